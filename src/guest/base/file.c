/* SPDX-License-Identifier: Apache-2.0 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define MAX_DEPTH 128
#define MAX_PATH 4096

int file_read_bytes(const char *path, char **ret, size_t *ret_n)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	AUTO_FREE char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	/* Files of /proc have size 0 regardless of their content. */
	text = xmalloc(FILE_MAX_BYTES + 1);
	n = fd_read_full(fd, text, FILE_MAX_BYTES + 1);
	if (n < 0)
		return (int)n;
	if (n > (ssize_t)FILE_MAX_BYTES)
		return -EFBIG;
	text[n] = '\0';
	*ret_n = (size_t)n;
	*ret = TAKE(text);
	return 0;
}

int file_read(const char *path, char **ret_text)
{
	size_t n;

	return file_read_bytes(path, ret_text, &n);
}

int file_poke(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int write_new(const char *path, struct slice bytes, const struct stat *like)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, bytes.p, bytes.n);
	if (r < 0)
		return r;
	if (fchown(fd, like->st_uid, like->st_gid) < 0 || fchmod(fd, like->st_mode & 07777) < 0)
		return -errno;
	return 0;
}

int file_replace_bytes(const char *path, struct slice bytes, struct err *err)
{
	AUTO_FREE char *tmp = xasprintf("%s.sbx-new", path);
	struct stat st;
	int r;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		st = (struct stat){.st_mode = 0644, .st_uid = geteuid(), .st_gid = getegid()};
	(void)unlink(tmp);
	r = write_new(tmp, bytes, &st);
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	return r < 0 ? err_errno(err, r, "cannot write %s in the guest", path) : 0;
}

int file_replace(const char *path, const char *text, struct err *err)
{
	return file_replace_bytes(path, slice_from_str(text), err);
}

int file_say(const char *path, const char *text, struct err *err)
{
	AUTO_FREE char *old = NULL;

	if (file_read(path, &old) == 0 && !strcmp(old, text))
		return 0;
	return file_replace(path, text, err);
}

int file_make_parents(const char *path, struct err *err)
{
	char part[MAX_PATH];

	if (strlen(path) >= sizeof(part))
		return err_set(err, -ENAMETOOLONG, "the path %.64s... is too long", path);
	for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return err_errno(err, -errno, "cannot create %s in the guest", part);
	}
	return 0;
}

static int chown_entry(
	int dirfd, const char *name, const struct stat *st, const uid_t old[2], const uid_t new[2])
{
	uid_t uid = st->st_uid == old[0] ? new[0] : (uid_t)-1;
	gid_t gid = st->st_gid == old[1] ? new[1] : (gid_t)-1;

	if (uid == (uid_t)-1 && gid == (gid_t)-1)
		return 0;
	if (fchownat(dirfd, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* chown drops the set-id bits of files that had them. */
	if (!S_ISREG(st->st_mode) || !(st->st_mode & (S_ISUID | S_ISGID)))
		return 0;
	return fchmodat(dirfd, name, st->st_mode & 07777, 0) < 0 ? -errno : 0;
}

struct walk {
	const uid_t *old, *new;
	dev_t dev;
};

static int chown_dir(const struct walk *w, int fd, int depth);

static int chown_child(const struct walk *w, int dirfd, const char *name, int depth)
{
	struct stat st;
	int r, fd;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (st.st_dev != w->dev)
		return 0;
	r = chown_entry(dirfd, name, &st, w->old, w->new);
	if (r < 0 || !S_ISDIR(st.st_mode))
		return r;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : chown_dir(w, fd, depth + 1);
}

/* Takes fd. */
static int chown_dir(const struct walk *w, int fd, int depth)
{
	AUTO_DIR DIR *d = dir_of(fd);
	struct dirent *e;
	int r = 0;

	if (!d)
		return -ENOMEM;
	if (depth > MAX_DEPTH)
		return -ELOOP;
	while (r == 0 && (e = dir_next(d)))
		r = chown_child(w, dirfd(d), e->d_name, depth);
	return r;
}

int file_chown_tree(const char *path, const uid_t old[2], const uid_t new[2])
{
	struct walk w = {.old = old, .new = new};
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	w.dev = st.st_dev;
	return chown_child(&w, AT_FDCWD, path, 0);
}
