/* SPDX-License-Identifier: Apache-2.0 */
#include "tree_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define PACK_BUFFER (128u << 10)

struct pack {
	int out_fd;
	struct tree_inodes seen; /* files with several names, and the first of them */
	struct tree_count n;
	struct tar_entry entry;
	uint8_t head[TAR_MAX_HEAD];
	uint8_t buf[PACK_BUFFER];
};

static void pack_free(struct pack **pp)
{
	if (*pp)
		tree_inodes_done(&(*pp)->seen);
	free(*pp);
}

static int put_pack(struct pack *p, const void *bytes, size_t n, struct err *err)
{
	int r = fd_write_all(p->out_fd, bytes, n);

	return r < 0 ? err_errno(err, r, "cannot send the archive") : 0;
}

static int put_entry(struct pack *p, struct err *err)
{
	size_t n;
	int r = tar_write_entry(&p->entry, p->head, sizeof(p->head), &n);

	if (r < 0)
		return err_errno(err, r, "cannot pack '%s'", p->entry.name);
	return put_pack(p, p->head, n, err);
}

/* Fills p->entry; the name is the path inside the archive. */
static void set_entry(struct pack *p, const char *name, const struct stat *st, enum tar_type type,
	const char *link)
{
	struct tar_entry *e = &p->entry;

	e->type = type;
	e->mode = st->st_mode & 07777;
	e->uid = st->st_uid;
	e->gid = st->st_gid;
	e->size = type == TAR_FILE ? (uint64_t)st->st_size : 0;
	e->mtime_s = st->st_mtim.tv_sec;
	e->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	(void)snprintf(e->name, sizeof(e->name), "%s", name);
	(void)snprintf(e->link, sizeof(e->link), "%s", link);
}

/* Exactly `size` bytes: the header has promised them. */
static int put_body(struct pack *p, int fd, const char *name, uint64_t size, struct err *err)
{
	static const uint8_t zeros[TAR_BLOCK];
	uint64_t left = size;

	while (left > 0) {
		ssize_t k = fd_read_full(fd, p->buf, (size_t)MIN(left, (uint64_t)PACK_BUFFER));
		int r;

		if (k < 0)
			return err_errno(err, (int)k, "cannot read '%s'", name);
		if (k == 0)
			return err_set(err, -EIO, "'%s' was truncated while it was read", name);
		r = put_pack(p, p->buf, (size_t)k, err);
		if (r < 0)
			return r;
		left -= (uint64_t)k;
	}
	p->n.bytes += size;
	return put_pack(p, zeros, tar_padding(size), err);
}

static int pack_file(
	struct pack *p, int fd, const char *name, const struct stat *st, struct err *err)
{
	const struct tree_inode *first = st->st_nlink > 1 ? tree_inodes_find(&p->seen, st) : NULL;
	int r;

	if (first) {
		set_entry(p, name, st, TAR_HARDLINK, first->name);
		p->n.links++;
		return put_entry(p, err);
	}
	if (st->st_nlink > 1 && tree_inodes_add(&p->seen, st, name) < 0)
		return err_set(err, -E2BIG, "too many hard links under '%s'", name);
	set_entry(p, name, st, TAR_FILE, "");
	r = put_entry(p, err);
	if (r < 0)
		return r;
	p->n.files++;
	return put_body(p, fd, name, (uint64_t)st->st_size, err);
}

static int pack_symlink(struct pack *p, int dirfd, const char *base, const char *name,
	const struct stat *st, struct err *err)
{
	char target[TAR_MAX_PATH];
	ssize_t n = readlinkat(dirfd, base, target, sizeof(target) - 1);

	if (n < 0)
		return err_errno(err, -errno, "cannot read the link '%s'", name);
	target[n] = '\0';
	set_entry(p, name, st, TAR_SYMLINK, target);
	p->n.links++;
	return put_entry(p, err);
}

static int pack_any(struct pack *p, int dirfd, const char *base, const char *name, int follow,
	unsigned depth, struct err *err);

static int pack_children(struct pack *p, int fd, const char *name, unsigned depth, struct err *err)
{
	AUTO_DIR DIR *d = dir_of(fcntl(fd, F_DUPFD_CLOEXEC, 0));
	struct dirent *e;

	if (!d)
		return err_errno(err, -errno, "cannot read the directory '%s'", name);
	while ((e = dir_next(d))) {
		AUTO_FREE char *child = xasprintf("%s/%s", name, e->d_name);
		int r;

		if (strlen(child) >= TAR_MAX_PATH)
			return err_set(err, -ENAMETOOLONG,
				"the name of a file in '%.200s' is too long", name);
		r = pack_any(p, fd, e->d_name, child, 0, depth + 1, err);
		if (r < 0)
			return r;
	}
	return errno ? err_errno(err, -errno, "cannot read the directory '%s'", name) : 0;
}

static int pack_dir(struct pack *p, int fd, const char *name, const struct stat *st, unsigned depth,
	struct err *err)
{
	int r;

	if (depth >= TREE_MAX_DEPTH)
		return err_set(err, -ELOOP, "'%.200s' is nested too deeply", name);
	set_entry(p, name, st, TAR_DIR, "");
	r = put_entry(p, err);
	if (r < 0)
		return r;
	p->n.dirs++;
	return pack_children(p, fd, name, depth, err);
}

/* Opens first and checks then, so that the checked file is the one that is sent. */
static int pack_any(struct pack *p, int dirfd, const char *base, const char *name, int follow,
	unsigned depth, struct err *err)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;

	if (fstatat(dirfd, base, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(err, -errno, "cannot access '%s'", name);
	if (S_ISLNK(st.st_mode))
		return pack_symlink(p, dirfd, base, name, &st, err);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		p->n.skipped++;
		return 0;
	}
	fd = openat(dirfd, base, O_RDONLY | O_NONBLOCK | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot open '%s'", name);
	if (S_ISDIR(st.st_mode))
		return pack_dir(p, fd, name, &st, depth, err);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EIO, "'%s' was replaced while it was read", name);
	return pack_file(p, fd, name, &st, err);
}

/* A single fifo or device named by the user is an error; inside a directory it is skipped. */
static int check_top(int dirfd, const char *name, unsigned flags, struct err *err)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, flags & TREE_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(err, -errno, "cannot access '%s'", name);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
		return err_set(err, -EINVAL, "'%s' is not a directory or a regular file", name);
	return 0;
}

/* Writes `name` of dirfd, with the top `name`, and the end of the archive. "." packs dirfd. */
static int pack_tree(int dirfd, const char *name, unsigned flags, int out_fd,
	struct tree_count *ret_n, struct err *err)
{
	static const uint8_t end[TAR_END_BYTES];
	CLEANUP(pack_free) struct pack *p = xcalloc(1, sizeof(*p));
	int r;

	p->out_fd = out_fd;
	r = check_top(dirfd, name, flags, err);
	if (r == 0)
		r = pack_any(p, dirfd, name, name, flags & TREE_FOLLOW, 0, err);
	if (r == 0)
		r = put_pack(p, end, sizeof(end), err);
	if (r == 0 && ret_n)
		*ret_n = p->n;
	return r;
}

/* "." for what is in the directory itself. */
static void split_source(
	const char *path, char clean[TAR_MAX_PATH], char dir[TAR_MAX_PATH], char base[TAR_MAX_PATH])
{
	size_t n = strlen(path);
	const char *rest;

	tree_base_name(path, base, TAR_MAX_PATH);
	(void)snprintf(clean, TAR_MAX_PATH, "%s", path);
	while (n > 1 && clean[n - 1] == '/')
		clean[--n] = '\0';
	tree_split(clean, dir, TAR_MAX_PATH, &rest);
	if (strcmp(base, ".") == 0)
		(void)snprintf(dir, TAR_MAX_PATH, "%s", clean);
}

static int check_length(const char *path, struct err *err)
{
	if (!path[0] || strlen(path) >= TAR_MAX_PATH)
		return err_set(err, -EINVAL, "the path to copy is empty or too long");
	return 0;
}

static bool is_link(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

int tree_pack_beneath(int root, const char *path, unsigned flags, int out_fd,
	struct tree_count *ret_n, struct err *err)
{
	char dir[TAR_MAX_PATH], base[TAR_MAX_PATH], clean[TAR_MAX_PATH];
	AUTO_CLOSE int dirfd = -1;
	int r = check_length(path, err);

	if (r < 0)
		return r;
	split_source(path, clean, dir, base);
	dirfd = tree_open_beneath(root, dir, O_PATH | O_DIRECTORY);
	if (dirfd < 0)
		return err_errno(err, dirfd, "cannot find '%s'", path);
	if ((flags & TREE_FOLLOW || path[strlen(path) - 1] == '/') && is_link(dirfd, base))
		return err_set(err, -ELOOP, "'%s' is a symbolic link", path);
	r = pack_tree(dirfd, base, 0, out_fd, ret_n, err);
	return r == -ELOOP ? -E2BIG : r; /* too deep; -ELOOP is about links */
}

int tree_pack_path(
	const char *path, unsigned flags, int out_fd, struct tree_count *ret_n, struct err *err)
{
	char dir[TAR_MAX_PATH], base[TAR_MAX_PATH], clean[TAR_MAX_PATH];
	AUTO_CLOSE int dirfd = -1;
	int r = check_length(path, err);

	if (r < 0)
		return r;
	if (path[strlen(path) - 1] == '/')
		flags |= TREE_FOLLOW;
	split_source(path, clean, dir, base);
	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return err_errno(err, -errno, "cannot find '%s'", path);
	return pack_tree(dirfd, base, flags, out_fd, ret_n, err);
}
