/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "src/guest/probe/verb/verb.h"

static int do_write(const char *path, const char *to, int flags)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, "changed\n", 8);
	(void)close(fd);
	return n == 8 ? 0 : -1;
}

/* Returns ENXIO without waiting if the pipe has no reader. A symlink, or anything but a pipe, is
 * not touched: on the host, a guest may have created it. */
static int do_write_pipe(const char *path, const char *to, int arg)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW), r = -1;
	struct stat st;

	if (fd < 0)
		return -1;
	errno = ENOTSUP;
	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		r = write(fd, "changed\n", 8) == 8 ? 0 : -1;
	(void)close(fd);
	return r;
}

static int do_read(const char *path, const char *to, int arg)
{
	char byte;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, &byte, 1);
	(void)close(fd);
	return n < 0 ? -1 : 0;
}

static int do_stat(const char *path, const char *to, int arg)
{
	struct stat st;

	return lstat(path, &st);
}

static int do_truncate(const char *path, const char *to, int arg)
{
	return truncate(path, arg);
}

static int do_chmod(const char *path, const char *to, int arg)
{
	return chmod(path, 0777);
}

static int do_chown(const char *path, const char *to, int arg)
{
	return lchown(path, (uid_t)arg, (gid_t)arg);
}

/* Changes only the change time, and requires the permission for it. */
static int do_chown_owner(const char *path, const char *to, int arg)
{
	struct stat st;

	return lstat(path, &st) < 0 ? -1 : lchown(path, st.st_uid, st.st_gid);
}

static int do_times_now(const char *path, const char *to, int arg)
{
	return utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

static int do_times_old(const char *path, const char *to, int arg)
{
	const struct timespec t[2] = {{.tv_sec = 978307200}, {.tv_sec = 978307200}};

	return utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW);
}

static int do_mkdir(const char *path, const char *to, int arg)
{
	return mkdir(path, 0755);
}

static int do_pipe(const char *path, const char *to, int arg)
{
	return mknod(path, S_IFIFO | 0644, 0);
}

static int do_symlink(const char *path, const char *to, int arg)
{
	return symlink("target", path);
}

static int do_unlink(const char *path, const char *to, int arg)
{
	return unlink(path);
}

static int do_rename(const char *path, const char *to, int arg)
{
	return rename(path, to);
}

static int do_exchange(const char *path, const char *to, int arg)
{
	return renameat2(AT_FDCWD, path, AT_FDCWD, to, RENAME_EXCHANGE);
}

static int do_link(const char *path, const char *to, int arg)
{
	return link(path, to);
}

static const struct {
	const char *name;
	int (*run)(const char *path, const char *to, int arg);
	int arg;
	bool has_to;
} changes[] = {
	{"read", do_read, 0, false},
	{"stat", do_stat, 0, false},
	{"write", do_write, O_TRUNC, false},
	{"append", do_write, O_APPEND, false},
	{"overwrite", do_write, 0, false},
	{"write-pipe", do_write_pipe, 0, false},
	{"create", do_write, O_CREAT | O_EXCL, false},
	{"truncate", do_truncate, 0, false},
	{"grow", do_truncate, 1 << 20, false},
	{"chmod", do_chmod, 0, false},
	{"chown-root", do_chown, 0, false},
	{"chown-owner", do_chown_owner, 0, false},
	{"chown-stranger", do_chown, 4321, false},
	{"times-now", do_times_now, 0, false},
	{"times-old", do_times_old, 0, false},
	{"mkdir", do_mkdir, 0, false},
	{"pipe", do_pipe, 0, false},
	{"symlink", do_symlink, 0, false},
	{"unlink", do_unlink, 0, false},
	{"rename", do_rename, 0, true},
	{"exchange", do_exchange, 0, true},
	{"link", do_link, 0, true},
};

int probe_change(int argc, char **argv)
{
	for (size_t i = 0; argc >= 2 && i < ARRAY_LEN(changes); i++) {
		if (strcmp(argv[0], changes[i].name) != 0 || argc != (changes[i].has_to ? 3 : 2))
			continue;
		if (changes[i].run(argv[1], argc == 3 ? argv[2] : NULL, changes[i].arg) < 0)
			return probe_refused(argv[0]);
		printf("%s went through\n", argv[0]);
		return PROBE_POSSIBLE;
	}
	return PROBE_USAGE;
}
