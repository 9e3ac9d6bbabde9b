/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define MAX_PATH 512
#define CHUNK (256u << 10)

static struct timespec times[2];

void place_set_time(int64_t at)
{
	times[0] = times[1] = (struct timespec){.tv_sec = (time_t)at};
}

void place_touch(const char *path)
{
	(void)utimensat(AT_FDCWD, path, times, 0);
}

/* Of the parent directory of path. */
static void touch_above(const char *path)
{
	char above[MAX_PATH];
	const char *slash = strrchr(path, '/');

	if (!slash || (size_t)(slash - path) >= sizeof(above))
		return;
	snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
	place_touch(above[0] ? above : "/");
}

bool place_is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

int place_read(const char *path, char **ret, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	AUTO_FREE char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 && errno == ENOENT) {
		*ret = xstrdup("");
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot read %s of the image", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s of the image is not a regular file", path);
	text = xmalloc(PLACE_MAX_TEXT + 1);
	n = fd_read_full(fd, text, PLACE_MAX_TEXT + 1);
	if (n < 0)
		return err_errno(err, (int)n, "cannot read %s of the image", path);
	if (n > (ssize_t)PLACE_MAX_TEXT)
		return err_set(err, -EFBIG, "%s of the image is too large", path);
	text[n] = '\0';
	*ret = TAKE(text);
	return 0;
}

static int make_one(const char *path, mode_t mode, uid_t id, struct err *err)
{
	struct stat st;

	if (mkdir(path, mode) < 0) {
		if (errno != EEXIST)
			return err_errno(
				err, -errno, "cannot create the directory %s in the image", path);
		if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			return err_set(err, -ENOTDIR, "%s of the image is not a directory", path);
		return 0;
	}
	if (chmod(path, mode) < 0 || chown(path, id, id) < 0)
		return err_errno(err, -errno,
			"cannot change the owner of %s in the image to uid %u", path, id);
	place_touch(path);
	touch_above(path);
	return 0;
}

int place_dir(const char *path, mode_t mode, uid_t id, struct err *err)
{
	char part[MAX_PATH];
	int r = 0;

	for (const char *p = strchr(path + 1, '/'); p && r == 0; p = strchr(p + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		r = make_one(part, 0755, 0, err);
	}
	return r < 0 ? r : make_one(path, mode, id, err);
}

static int copy_bytes(int from, int to)
{
	AUTO_FREE char *buf = xmalloc(CHUNK);
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = read(from, buf, CHUNK)) != 0)
		r = n < 0 ? -errno : fd_write_all(to, buf, (size_t)n);
	return r;
}

/* In the same directory: an existing file stays complete until the rename. */
static int open_new(const char *path, char **ret_name)
{
	int fd;

	*ret_name = xasprintf("%s.sbx-new", path);
	(void)unlink(*ret_name);
	fd = open(*ret_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int set_facts(int fd, mode_t mode)
{
	/* The owner first: chown clears the set-id bits. */
	return fchown(fd, 0, 0) < 0 || fchmod(fd, mode) < 0 || futimens(fd, times) < 0 ? -errno : 0;
}

/* from -1: the text. */
static int put_place(const char *path, int from, const char *text, mode_t mode, struct err *err)
{
	AUTO_FREE char *name = NULL;
	AUTO_CLOSE int fd = open_new(path, &name);
	int r = fd < 0 ? fd : 0;

	if (r == 0)
		r = from >= 0 ? copy_bytes(from, fd) : fd_write_all(fd, text, strlen(text));
	if (r == 0)
		r = set_facts(fd, mode);
	if (r == 0 && rename(name, path) < 0)
		r = -errno;
	if (r < 0)
		return err_errno(err, r, "cannot write %s in the image", path);
	touch_above(path);
	return 0;
}

int place_text(const char *path, const char *text, mode_t mode, struct err *err)
{
	return put_place(path, -1, text, mode, err);
}

int place_copy(const char *path, int from, mode_t mode, struct err *err)
{
	return put_place(path, from, NULL, mode, err);
}

int place_link(const char *path, const char *target, struct err *err)
{
	struct timespec now[2] = {times[0], times[1]};

	if (symlink(target, path) < 0)
		return errno == EEXIST ? 0
				       : err_errno(err, -errno,
						 "cannot create the link %s in the image", path);
	(void)utimensat(AT_FDCWD, path, now, AT_SYMLINK_NOFOLLOW);
	touch_above(path);
	return 0;
}
