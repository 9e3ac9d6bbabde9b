#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "keepers.h"
#include "lib/base/fd.h"
#include "lib/base/mem.h"
#include "lib/base/paths.h"

/* The table of locks names an inode without a certain device, so this decides. */
static bool has_open(pid_t pid, const struct stat *file)
{
	char path[64 + sizeof(((struct dirent *)0)->d_name)];
	bool found = false;
	struct dirent *e;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir))) {
		struct stat st;

		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, e->d_name);
		found = stat(path, &st) == 0 && st.st_ino == file->st_ino &&
			st.st_dev == file->st_dev;
	}
	if (dir)
		(void)closedir(dir);
	return found;
}

static pid_t holder_of(const struct stat *file)
{
	FILE *f = fopen("/proc/locks", "re");
	char line[256];
	pid_t pid = 0;

	while (f && !pid && fgets(line, sizeof(line), f)) {
		unsigned long long inode;
		int p;

		if (sscanf(line, "%*d: FLOCK %*s %*s %d %*x:%*x:%llu", &p, &inode) == 2 && p > 1 &&
			inode == file->st_ino && has_open(p, file))
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
	pid = holder_of(&st);
	if (!pid)
		return -ESRCH;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	/* Held first, looked at again second: the number cannot have changed hands. */
	if (!has_open(pid, &st))
		return -ESRCH;
	*ret_pid = pid;
	return TAKE_FD(fd);
}
