/* SPDX-License-Identifier: Apache-2.0 */
#include "forget.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include "park_list.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define MAX_MOUNTS 1024

static void shrink_forget(const char *place)
{
	AUTO_CLOSE int fd = fspick(AT_FDCWD, place, FSPICK_CLOEXEC | FSPICK_NO_AUTOMOUNT);

	if (fd >= 0)
		(void)fsconfig(fd, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0);
}

static bool is_first(const struct park_mount *all, size_t n, dev_t dev)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].dev == dev)
			return false;
	return true;
}

static void __attribute__((noreturn)) run(void)
{
	static struct park_mount mounts[MAX_MOUNTS];
	static struct park_mount done[MAX_MOUNTS];
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = xmalloc(PARK_MAX_LINE);
	size_t n = 0, n_done = 0;

	while (f && n < MAX_MOUNTS && fgets(line, PARK_MAX_LINE, f)) {
		line[strcspn(line, "\n")] = '\0';
		n += park_list_mount(line, &mounts[n]);
	}
	while (n-- > 0) {
		if (!is_first(done, n_done, mounts[n].dev))
			continue;
		shrink_forget(mounts[n].place);
		done[n_done++] = mounts[n];
	}
	_exit(0);
}

int forget_begin(struct forget *f, struct err *err)
{
	pid_t pid;

	if (f->pid)
		return -EINPROGRESS;
	pid = fork();
	if (pid < 0)
		return err_errno(err, -errno, "cannot start a child that forgets files");
	if (pid == 0)
		run();
	f->pid = pid;
	return -EINPROGRESS;
}

bool forget_on_exit(struct forget *f, pid_t pid)
{
	if (!f->pid || pid != f->pid)
		return false;
	f->pid = 0;
	return true;
}
