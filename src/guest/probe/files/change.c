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

static int write_with(const char *path, int flags)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, "changed\n", 8);
	(void)close(fd);
	return n == 8 ? 0 : -1;
}

static int do_write(const char *path, const char *to)
{
	return write_with(path, O_TRUNC);
}

static int do_append(const char *path, const char *to)
{
	return write_with(path, O_APPEND);
}

static int do_overwrite(const char *path, const char *to)
{
	return write_with(path, 0);
}

static int do_create(const char *path, const char *to)
{
	return write_with(path, O_CREAT | O_EXCL);
}

/* ENXIO when nobody reads from a pipe; it does not wait. A link, or anything else than a pipe,
 * is left alone: on the host a guest may have put it there. */
static int do_write_pipe(const char *path, const char *to)
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

static int do_read(const char *path, const char *to)
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

static int do_stat(const char *path, const char *to)
{
	struct stat st;

	return lstat(path, &st);
}

static int do_truncate(const char *path, const char *to)
{
	return truncate(path, 0);
}

static int do_grow(const char *path, const char *to)
{
	return truncate(path, 1 << 20);
}

static int do_chmod(const char *path, const char *to)
{
	return chmod(path, 0777);
}

static int do_chown_root(const char *path, const char *to)
{
	return lchown(path, 0, 0);
}

static int do_chown_stranger(const char *path, const char *to)
{
	return lchown(path, 4321, 4321);
}

/* Changes nothing but the time of the last change, and needs the right to. */
static int do_chown_owner(const char *path, const char *to)
{
	struct stat st;

	return lstat(path, &st) < 0 ? -1 : lchown(path, st.st_uid, st.st_gid);
}

static int do_times_now(const char *path, const char *to)
{
	return utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

static int do_times_old(const char *path, const char *to)
{
	const struct timespec t[2] = {{.tv_sec = 978307200}, {.tv_sec = 978307200}};

	return utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW);
}

static int do_mkdir(const char *path, const char *to)
{
	return mkdir(path, 0755);
}

static int do_pipe(const char *path, const char *to)
{
	return mknod(path, S_IFIFO | 0644, 0);
}

static int do_symlink(const char *path, const char *to)
{
	return symlink("target", path);
}

static int do_unlink(const char *path, const char *to)
{
	return unlink(path);
}

static int do_rename(const char *path, const char *to)
{
	return rename(path, to);
}

static int do_exchange(const char *path, const char *to)
{
	return renameat2(AT_FDCWD, path, AT_FDCWD, to, RENAME_EXCHANGE);
}

static int do_link(const char *path, const char *to)
{
	return link(path, to);
}

static const struct {
	const char *name;
	int (*run)(const char *path, const char *to);
	bool has_to;
} changes[] = {
	{"read", do_read, false},
	{"stat", do_stat, false},
	{"write", do_write, false},
	{"append", do_append, false},
	{"overwrite", do_overwrite, false},
	{"write-pipe", do_write_pipe, false},
	{"create", do_create, false},
	{"truncate", do_truncate, false},
	{"grow", do_grow, false},
	{"chmod", do_chmod, false},
	{"chown-root", do_chown_root, false},
	{"chown-owner", do_chown_owner, false},
	{"chown-stranger", do_chown_stranger, false},
	{"times-now", do_times_now, false},
	{"times-old", do_times_old, false},
	{"mkdir", do_mkdir, false},
	{"pipe", do_pipe, false},
	{"symlink", do_symlink, false},
	{"unlink", do_unlink, false},
	{"rename", do_rename, true},
	{"exchange", do_exchange, true},
	{"link", do_link, true},
};

int probe_change(int argc, char **argv)
{
	for (size_t i = 0; argc >= 2 && i < ARRAY_LEN(changes); i++) {
		if (strcmp(argv[0], changes[i].name) != 0 || argc != (changes[i].has_to ? 3 : 2))
			continue;
		if (changes[i].run(argv[1], argc == 3 ? argv[2] : NULL) < 0)
			return probe_refused(argv[0]);
		printf("%s went through\n", argv[0]);
		return PROBE_POSSIBLE;
	}
	return PROBE_USAGE;
}
