/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "keepers_internal.h"
#include "lib/base/fs/fd.h"
#include "src/sbxd/hands/hands.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

/* The table of locks names an inode without a certain device, so the command line decides. */
static pid_t holder_of(const struct stat *file, const char *id)
{
	FILE *f = fopen("/proc/locks", "re");
	char line[256];
	pid_t pid = 0;

	while (f && !pid && fgets(line, sizeof(line), f)) {
		unsigned long long inode;
		int p;

		if (sscanf(line, "%*d: FLOCK %*s %*s %d %*x:%*x:%llu", &p, &inode) == 2 && p > 1 &&
			inode == file->st_ino && child_is_keeper(p, id))
			pid = p;
	}
	if (f)
		(void)fclose(f);
	return pid;
}

int keeper_find_holder(const char *id, pid_t *ret_pid)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/lock", id);
	AUTO_CLOSE int fd = -1;
	struct stat st;
	pid_t pid;

	if (stat(path, &st) < 0)
		return -errno;
	pid = holder_of(&st, id);
	if (!pid)
		return -ESRCH;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	/* Opened first, checked again second: the pid cannot have been reused. */
	if (!child_is_keeper(pid, id))
		return -ESRCH;
	*ret_pid = pid;
	return TAKE_FD(fd);
}
