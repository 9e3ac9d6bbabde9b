/* SPDX-License-Identifier: Apache-2.0 */
#include "stage_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "stage_read.h"

#define PACK_BUFFER (128u << 10)

struct pack {
	const struct stage_source *src;
	int out_fd;
	struct tar_entry entry;
	uint8_t head[TAR_MAX_HEAD];
	uint8_t buf[PACK_BUFFER];
};

static int put_bytes(struct pack *p, const void *bytes, size_t n, struct err *err)
{
	int r = n ? fd_write_all(p->out_fd, bytes, n) : 0;

	return r < 0 ? err_errno(err, r, "cannot send the changes") : 0;
}

static int put_head(struct pack *p, enum stage_op op, enum tar_type type, const char *path,
	const struct stat *st, struct err *err)
{
	struct tar_entry *e = &p->entry;
	size_t n;
	int r;

	e->type = type;
	e->mode = st->st_mode & 0777;
	e->size = op == STAGE_FILE ? (uint64_t)st->st_size : 0;
	e->mtime_s = st->st_mtim.tv_sec;
	e->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	if (snprintf(e->name, sizeof(e->name), "%c/%s", stage_op_letter(op), path) >=
		(int)sizeof(e->name))
		return err_set(err, -ENAMETOOLONG, "a path is too long: %.200s", path);
	r = tar_write_entry(e, p->head, sizeof(p->head), &n);
	return r < 0 ? err_errno(err, r, "cannot pack '%s'", path) : put_bytes(p, p->head, n, err);
}

static int put_mark(struct pack *p, enum stage_op op, const char *path, struct err *err)
{
	static const struct stat none;

	return put_head(p, op, TAR_FILE, path, &none, err);
}

/* Exactly `size` bytes, with zeros for those that are gone: the header has promised them. */
static int put_body(struct pack *p, int fd, uint64_t size, struct err *err)
{
	uint64_t left = size;
	int r = 0;

	while (r == 0 && left > 0) {
		size_t want = (size_t)MIN(left, (uint64_t)PACK_BUFFER);
		ssize_t k = fd_read_full(fd, p->buf, want);

		if (k < (ssize_t)want)
			memset(p->buf + MAX(k, 0), 0, want - (size_t)MAX(k, 0));
		r = put_bytes(p, p->buf, want, err);
		left -= want;
	}
	memset(p->buf, 0, TAR_BLOCK);
	return r < 0 ? r : put_bytes(p, p->buf, tar_padding(size), err);
}

static bool has_moved(int fd, const struct stat *before)
{
	struct stat st;

	return fstat(fd, &st) < 0 || st.st_size != before->st_size ||
	       st.st_mtim.tv_sec != before->st_mtim.tv_sec ||
	       st.st_mtim.tv_nsec != before->st_mtim.tv_nsec ||
	       st.st_ctim.tv_sec != before->st_ctim.tv_sec ||
	       st.st_ctim.tv_nsec != before->st_ctim.tv_nsec;
}

static int pack_file(struct pack *p, int dirfd, const char *base, const char *path, struct err *err)
{
	AUTO_CLOSE int fd = openat(dirfd, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	for (int i = 0; fd >= 0 && i < STAGE_PACK_TRIES; i++) {
		int r = fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;

		if (r == 0)
			r = put_head(p, STAGE_FILE, TAR_FILE, path, &st, err);
		if (r == 0)
			r = put_body(p, fd, (uint64_t)st.st_size, err);
		if (r < 0)
			return r;
		if (!has_moved(fd, &st))
			return 0;
	}
	return put_mark(p, STAGE_MOVING, path, err);
}

static int pack_link(struct pack *p, int dirfd, const char *base, const char *path,
	const struct stat *st, struct err *err)
{
	ssize_t n = readlinkat(dirfd, base, p->entry.link, sizeof(p->entry.link) - 1);
	int r;

	if (n < 0)
		return put_mark(p, STAGE_MOVING, path, err);
	p->entry.link[n] = '\0';
	r = put_head(p, STAGE_LINK, TAR_SYMLINK, path, st, err);
	p->entry.link[0] = '\0';
	return r;
}

typedef int child_fn(struct pack *p, int dirfd, const char *base, const char *path, unsigned depth,
	struct err *err);

static int pack_children(
	struct pack *p, int fd, const char *path, unsigned depth, child_fn *fn, struct err *err)
{
	AUTO_DIR DIR *d = dir_of(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;

	if (!d)
		return err_errno(err, -errno, "cannot read the directory '%.200s'", path);
	if (depth >= STAGE_MAX_DEPTH)
		return err_set(err, -ELOOP, "'%.200s' is nested too deeply", path);
	while ((e = dir_next(d))) {
		AUTO_FREE char *child = strcmp(path, ".") == 0
						? xstrdup(e->d_name)
						: xasprintf("%s/%s", path, e->d_name);
		int r = fn(p, fd, e->d_name, child, depth + 1, err);

		if (r < 0)
			return r;
	}
	return errno ? err_errno(err, -errno, "cannot read the directory '%.200s'", path) : 0;
}

/* What is not a directory. */
static int pack_leaf(struct pack *p, int dirfd, const char *base, const char *path,
	const struct stat *st, struct err *err)
{
	if (S_ISREG(st->st_mode))
		return pack_file(p, dirfd, base, path, err);
	if (S_ISLNK(st->st_mode))
		return pack_link(p, dirfd, base, path, st, err);
	if (S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0))
		return put_mark(p, STAGE_DELETE, path, err);
	return put_mark(p, STAGE_SPECIAL, path, err);
}

/* Everything below a renamed directory, as the overlay shows it. When the rename is applied, the
 * directory below, where its files still are, is deleted: they are copied up before. */
static int pack_whole(struct pack *p, int dirfd, const char *base, const char *path, unsigned depth,
	struct err *err)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r;

	/* A change of attributes that changes nothing copies the file into the upper directory. */
	if (fchownat(dirfd, base, (uid_t)-1, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0 ||
		fstatat(dirfd, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : put_mark(p, STAGE_MOVING, path, err);
	if (!S_ISDIR(st.st_mode))
		return pack_leaf(p, dirfd, base, path, &st, err);
	fd = openat(dirfd, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return put_mark(p, STAGE_MOVING, path, err);
	r = put_head(p, STAGE_OPAQUE, TAR_DIR, path, &st, err);
	return r < 0 ? r : pack_children(p, fd, path, depth, pack_whole, err);
}

static bool has_attribute(const struct pack *p, int fd, const char *name, char *value, size_t size)
{
	char whole[64];
	ssize_t n;

	(void)snprintf(whole, sizeof(whole), "%s%s", p->src->prefix, name);
	n = fgetxattr(fd, whole, value, size);
	return n > 0 || (n < 0 && errno == ERANGE);
}

static int pack_upper(struct pack *p, int dirfd, const char *base, const char *path, unsigned depth,
	struct err *err);

static int pack_upper_dir(struct pack *p, int fd, const char *path, const struct stat *st,
	unsigned depth, struct err *err)
{
	char value[8] = "";
	bool is_opaque = has_attribute(p, fd, "opaque", value, sizeof(value)) && value[0] == 'y';
	int r;

	if (has_attribute(p, fd, "redirect", value, sizeof(value)))
		return pack_whole(p, p->src->merged, path, path, depth, err);
	r = put_head(p, is_opaque ? STAGE_OPAQUE : STAGE_DIR, TAR_DIR, path, st, err);
	return r < 0 ? r : pack_children(p, fd, path, depth, pack_upper, err);
}

static int pack_upper(struct pack *p, int dirfd, const char *base, const char *path, unsigned depth,
	struct err *err)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;

	if (fstatat(dirfd, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_errno(err, -errno, "cannot access '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return pack_leaf(p, dirfd, base, path, &st, err);
	fd = openat(dirfd, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_errno(err, -errno, "cannot open '%s'", path);
	return pack_upper_dir(p, fd, path, &st, depth, err);
}

int stage_pack(const struct stage_source *src, int out_fd, struct err *err)
{
	AUTO_FREE struct pack *p = xcalloc(1, sizeof(*p));
	struct stat st;
	int r;

	p->src = src;
	p->out_fd = out_fd;
	if (fstat(src->upper, &st) < 0)
		return err_errno(err, -errno, "cannot read the staged changes");
	r = pack_upper_dir(p, src->upper, ".", &st, 0, err);
	memset(p->buf, 0, TAR_END_BYTES);
	return r < 0 ? r : put_bytes(p, p->buf, TAR_END_BYTES, err);
}
