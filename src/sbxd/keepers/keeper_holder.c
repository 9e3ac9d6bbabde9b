/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "keepers_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

#define MAX_CMDLINE 4096

/* Whether a program of this user was started with `--id ID`. Other processes cannot read a keeper's
 * descriptors (lib/os/jail/broker.h), but can read its command line. */
static bool is_keeper_of(pid_t pid, const char *id)
{
	AUTO_FREE char *path = xasprintf("/proc/%d", (int)pid);
	AUTO_FREE char *file = xasprintf("%s/cmdline", path), *words = NULL;
	struct stat st;
	size_t n = 0;

	if (stat(path, &st) < 0 || st.st_uid != geteuid() ||
		file_load(file, MAX_CMDLINE, &words, &n, NULL) < 0)
		return false;
	for (size_t at = 0; at < n; at += strlen(words + at) + 1) {
		size_t next = at + strlen(words + at) + 1;

		if (strcmp(words + at, "--id") == 0 && next < n)
			return strcmp(words + next, id) == 0;
	}
	return false;
}

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
			inode == file->st_ino && is_keeper_of(p, id))
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
	if (!is_keeper_of(pid, id))
		return -ESRCH;
	*ret_pid = pid;
	return TAKE_FD(fd);
}
