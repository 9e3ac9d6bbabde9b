/* SPDX-License-Identifier: Apache-2.0 */
#include "look.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define BUFFER (256u << 10)

static int open_beneath(int root, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

	/* -EAGAIN: a rename elsewhere could have confused the check of the kernel. */
	for (int tries = 0; tries < 16; tries++) {
		long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

int look_parent(int root, const char *path, const char **ret_base)
{
	const char *slash = strrchr(path, '/');
	AUTO_FREE char *dir = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");

	*ret_base = slash ? slash + 1 : path;
	return open_beneath(root, dir, O_PATH | O_DIRECTORY);
}

int look_dir(int root, const char *path)
{
	return open_beneath(root, path, O_RDONLY | O_DIRECTORY);
}

static int64_t to_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static enum look_type type_of(mode_t mode)
{
	if (S_ISREG(mode))
		return LOOK_FILE;
	if (S_ISDIR(mode))
		return LOOK_DIR;
	return S_ISLNK(mode) ? LOOK_LINK : LOOK_OTHER;
}

static int hash_file(int dirfd, const char *name, uint8_t ret[SHA256_BYTES])
{
	AUTO_CLOSE int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_FREE uint8_t *buf = xmalloc(BUFFER);
	struct sha256 sha;
	ssize_t n;

	if (fd < 0)
		return -errno;
	sha256_begin(&sha);
	while ((n = fd_read_full(fd, buf, BUFFER)) > 0)
		sha256_add(&sha, slice_of(buf, (size_t)n));
	sha256_end(&sha, ret);
	return n < 0 ? (int)n : 0;
}

static int hash_link(int dirfd, const char *name, uint8_t ret[SHA256_BYTES])
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dirfd, name, target, sizeof(target));

	if (n < 0)
		return -errno;
	sha256(slice_of(target, (size_t)n), ret);
	return 0;
}

int look_in(int dirfd, const char *name, bool hash, struct look *ret, struct err *err)
{
	struct stat st;
	int r = 0;

	*ret = (struct look){0};
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_errno(err, -errno, "cannot access '%.200s'", name);
	*ret = (struct look){.type = type_of(st.st_mode),
		.mode = st.st_mode & 0777,
		.size = (uint64_t)st.st_size,
		.dev = st.st_dev,
		.ino = st.st_ino,
		.mtime_ns = to_ns(&st.st_mtim),
		.ctime_ns = to_ns(&st.st_ctim)};
	if (hash && ret->type == LOOK_FILE)
		r = hash_file(dirfd, name, ret->sha);
	if (hash && ret->type == LOOK_LINK)
		r = hash_link(dirfd, name, ret->sha);
	return r < 0 ? err_errno(err, r, "cannot read '%.200s'", name) : 0;
}

static int look_path(int root, const char *path, bool hash, struct look *ret, struct err *err)
{
	const char *base;
	AUTO_CLOSE int dir = look_parent(root, path, &base);

	*ret = (struct look){0};
	if (dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP)
		return 0;
	if (dir < 0)
		return err_errno(err, dir, "cannot open the directory of '%.200s'", path);
	return look_in(dir, base, hash, ret, err);
}

int look_at(int root, const char *path, struct look *ret, struct err *err)
{
	return look_path(root, path, true, ret, err);
}

bool look_same(const struct look *a, const struct look *b, bool renamed)
{
	return a->type == b->type && a->dev == b->dev && a->ino == b->ino && a->mode == b->mode &&
	       a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       (renamed || a->ctime_ns == b->ctime_ns);
}
