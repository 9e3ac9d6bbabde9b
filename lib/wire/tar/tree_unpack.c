/* SPDX-License-Identifier: Apache-2.0 */
#include "tree_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define UNPACK_BUFFER (128u << 10)
#define UNPACK_MAX_TRAIL (1u << 20)  /* bytes after the end that are read and discarded */
#define UNPACK_ROOM_EVERY (4u << 20) /* bytes between two checks of the free space */
#define UNPACK_ENTRY_ROOM 4096	     /* size of an entry without its data */

/* A directory that this process created: it gets mode and time when it is complete. */
struct made_dir {
	char *path;
	uint32_t mode, uid, gid;
	struct timespec mtime;
};

struct unpack {
	int in_fd, dirfd;
	int root; /* the destination's path is opened beneath it; -1: from the current directory */
	unsigned flags;
	const char *as;		/* what the top is called here; NULL: names stay */
	char top[TAR_MAX_PATH]; /* what the archive calls it; empty before the first entry */
	bool want_dir, want_file;
	bool done;
	uint64_t n_entries;
	int file; /* the file being written, -1 between files */
	uint64_t left;
	struct tree_inodes made;
	struct made_dir *dirs;
	size_t n_dirs, room_dirs, dir_bytes;
	struct tree_count n;
	struct tree_guard guard;
	uint64_t unchecked;	 /* bytes since the last check of the free space */
	char path[TAR_MAX_PATH]; /* where the entry goes, beneath dirfd; empty for dirfd itself */
	struct tar_reader reader;
	uint8_t buf[UNPACK_BUFFER];
};

static void unpack_free(struct unpack **pp)
{
	struct unpack *u = *pp;

	if (!u)
		return;
	fd_close(&u->file);
	tree_inodes_done(&u->made);
	for (size_t i = 0; i < u->n_dirs; i++)
		free(u->dirs[i].path);
	free(u->dirs);
	free(u);
}

static int refuse_unpack(struct err *err, const char *why, const char *name)
{
	return err_set(err, -EBADMSG, "the archive was rejected: %s: '%.200s'", why, name);
}

/* Appends the parts of `name` to `to`, without "." and empty ones. */
static int add_parts(const char *name, char *to, size_t size, struct err *err)
{
	const char *p = name;
	size_t n = strlen(to);
	unsigned depth = 0;

	while (*p) {
		size_t k = strcspn(p, "/");

		if (k == 2 && p[0] == '.' && p[1] == '.')
			return refuse_unpack(err, "a name with '..'", name);
		if (k > 0 && !(k == 1 && p[0] == '.')) {
			if (++depth > TREE_MAX_DEPTH || k > 255 || n + k + 2 > size)
				return refuse_unpack(err, "a name that is too long", name);
			if (n > 0)
				to[n++] = '/';
			memcpy(to + n, p, k);
			n += k;
			to[n] = '\0';
		}
		p += k + (p[k] == '/');
	}
	return 0;
}

/* The place of a name of the archive beneath dirfd. */
static int place_unpack(struct unpack *u, const char *name, char *to, size_t size, struct err *err)
{
	size_t k = strcspn(name, "/");

	to[0] = '\0';
	if (name[0] == '/')
		return refuse_unpack(err, "an absolute name", name);
	if (!u->as)
		return add_parts(name, to, size, err);
	if (k == 2 && memcmp(name, "..", 2) == 0)
		return refuse_unpack(err, "a name with '..'", name);
	if (!u->top[0])
		(void)snprintf(u->top, sizeof(u->top), "%.*s", (int)k, name);
	if (strlen(u->top) != k || memcmp(u->top, name, k) != 0)
		return refuse_unpack(err, "a name outside the requested path", name);
	if (strcmp(u->as, ".") != 0)
		(void)snprintf(to, size, "%s", u->as);
	return add_parts(name + k, to, size, err);
}

/* The first part of the path is the name that the person chose, not the archive. */
static bool has_given_name(const struct unpack *u)
{
	return u->as && strcmp(u->as, ".") != 0;
}

static bool is_closed(const struct unpack *u, int at, const char *name)
{
	struct stat st;

	if (u->guard.n_closed == 0 || fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return false;
	for (size_t i = 0; i < u->guard.n_closed; i++)
		if (st.st_dev == u->guard.closed[i].st_dev &&
			st.st_ino == u->guard.closed[i].st_ino)
			return true;
	return false;
}

/* Opens the next directory on the way, making it when the archive did not mention it. */
static int step_into(int at, const char *part)
{
	int fd = tree_open_beneath(at, part, O_PATH | O_DIRECTORY);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(at, part, 0755) < 0)
		return -errno;
	return tree_open_beneath(at, part, O_PATH | O_DIRECTORY);
}

/* Opens the directory above u->path, part by part: none of them may be a link. */
static int open_parent(struct unpack *u, const char **ret_base, struct err *err)
{
	AUTO_CLOSE int fd = fcntl(u->dirfd, F_DUPFD_CLOEXEC, 0);
	char part[256];
	const char *p = u->path;

	for (size_t k; fd >= 0 && p[k = strcspn(p, "/")] == '/'; p += k + 1) {
		int next;

		(void)snprintf(part, sizeof(part), "%.*s", (int)k, p);
		next = step_into(fd, part);
		fd_close(&fd);
		fd = next;
		if (fd >= 0 && (p != u->path || !has_given_name(u)) && is_closed(u, fd, ""))
			return refuse_unpack(err, "a name in a read-only workspace", u->path);
	}
	*ret_base = p;
	if (fd == -ELOOP || fd == -EXDEV || fd == -ENOTDIR)
		return refuse_unpack(err, "a name below a link or a file", u->path);
	if (fd < 0)
		return err_errno(err, fd, "cannot open the directory of '%s'", u->path);
	return TAKE_FD(fd);
}

static struct timespec entry_time(const struct tar_entry *e)
{
	return (struct timespec){.tv_sec = e->mtime_s, .tv_nsec = e->mtime_ns};
}

static mode_t kept_mode(const struct unpack *u, uint32_t mode)
{
	return u->flags & TREE_OWNERS ? mode & 07777 : mode & 01777;
}

static int remember_dir(struct unpack *u, const struct tar_entry *e, struct err *err)
{
	u->dir_bytes += strlen(u->path) + sizeof(*u->dirs);
	if (u->dir_bytes > TREE_MAX_DIR_BYTES)
		return refuse_unpack(err, "too many directories", u->path);
	if (u->n_dirs == u->room_dirs) {
		u->room_dirs = u->room_dirs ? u->room_dirs * 2 : 64;
		u->dirs = xrealloc(u->dirs, u->room_dirs * sizeof(*u->dirs));
	}
	u->dirs[u->n_dirs++] = (struct made_dir){
		.path = xstrdup(u->path),
		.mode = e->mode,
		.uid = e->uid,
		.gid = e->gid,
		.mtime = entry_time(e),
	};
	return 0;
}

/* An existing directory keeps its mode: the archive does not change it. */
static int make_dir(struct unpack *u, struct err *err)
{
	AUTO_CLOSE int parent = -1, there = -1;
	const char *base;

	u->n.dirs++;
	if (!u->path[0])
		return 0;
	parent = open_parent(u, &base, err);
	if (parent < 0)
		return parent;
	if (mkdirat(parent, base, 0700) == 0)
		return remember_dir(u, &u->reader.entry, err);
	if (errno != EEXIST)
		return err_errno(err, -errno, "cannot create the directory '%s'", u->path);
	there = tree_open_beneath(parent, base, O_PATH | O_DIRECTORY);
	if (there < 0)
		return err_set(err, -EEXIST,
			"cannot create the directory '%s': another file has this name", u->path);
	return 0;
}

/* Whatever is in the way goes: nothing is ever written through it. */
static int clear_place(struct unpack *u, int parent, const char *base, struct err *err)
{
	if ((base != u->path || !has_given_name(u)) && is_closed(u, parent, base))
		return refuse_unpack(err, "the name of a read-only workspace", u->path);
	if (unlinkat(parent, base, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno == EISDIR || errno == EPERM)
		return err_set(err, -EISDIR, "cannot write '%s': it is a directory", u->path);
	return err_errno(err, -errno, "cannot replace '%s'", u->path);
}

static int make_file(struct unpack *u, struct err *err)
{
	AUTO_CLOSE int parent = -1;
	struct stat st;
	const char *base;
	int r;

	parent = open_parent(u, &base, err);
	if (parent < 0)
		return parent;
	r = clear_place(u, parent, base, err);
	if (r < 0)
		return r;
	u->file = openat(parent, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (u->file < 0 || fstat(u->file, &st) < 0)
		return err_errno(err, -errno, "cannot create the file '%s'", u->path);
	if (tree_inodes_add(&u->made, &st, NULL) < 0)
		return refuse_unpack(err, "too many files", u->path);
	u->left = u->reader.entry.size;
	u->n.files++;
	return 0;
}

/* Owner first: chown takes set-id bits away. */
static int finish_file(struct unpack *u, struct err *err)
{
	const struct tar_entry *e = &u->reader.entry;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry_time(e)};
	int r = 0;

	if (u->flags & TREE_OWNERS && fchown(u->file, e->uid, e->gid) < 0)
		r = -errno;
	if (r == 0 && fchmod(u->file, kept_mode(u, e->mode)) < 0)
		r = -errno;
	if (r == 0 && futimens(u->file, times) < 0)
		r = -errno;
	fd_close(&u->file);
	return r < 0 ? err_errno(err, r, "cannot set the attributes of '%s'", u->path) : 0;
}

static int make_symlink(struct unpack *u, struct err *err)
{
	const struct tar_entry *e = &u->reader.entry;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry_time(e)};
	AUTO_CLOSE int parent = -1;
	const char *base;
	int r;

	parent = open_parent(u, &base, err);
	if (parent < 0)
		return parent;
	r = clear_place(u, parent, base, err);
	if (r < 0)
		return r;
	if (symlinkat(e->link, parent, base) < 0)
		return err_errno(err, -errno, "cannot create the link '%s'", u->path);
	if (u->flags & TREE_OWNERS)
		r = fchownat(parent, base, e->uid, e->gid, AT_SYMLINK_NOFOLLOW);
	if (r == 0)
		r = utimensat(parent, base, times, AT_SYMLINK_NOFOLLOW);
	u->n.links++;
	return r < 0 ? err_errno(err, -errno, "cannot set the attributes of '%s'", u->path) : 0;
}

static bool is_made_here(const struct unpack *u, const struct stat *st)
{
	return S_ISREG(st->st_mode) && tree_inodes_find(&u->made, st);
}

/* Links the open file itself: a guest can replace any component of its path at any time. */
static int link_file(int fd, int parent, const char *base)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, parent, base, AT_SYMLINK_FOLLOW);
}

/* Only to files of this very archive. */
static int make_hardlink(struct unpack *u, struct err *err)
{
	char target[TAR_MAX_PATH];
	AUTO_CLOSE int parent = -1, fd = -1;
	struct stat st;
	const char *base;
	int r;

	r = place_unpack(u, u->reader.entry.link, target, sizeof(target), err);
	if (r < 0)
		return r;
	fd = target[0] ? tree_open_beneath(u->dirfd, target, O_PATH | O_NOFOLLOW) : -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0 || !is_made_here(u, &st))
		return refuse_unpack(
			err, "a hard link to a file outside the archive", u->reader.entry.link);
	if (strcmp(target, u->path) == 0)
		return refuse_unpack(err, "a hard link to itself", u->path);
	parent = open_parent(u, &base, err);
	if (parent < 0)
		return parent;
	r = clear_place(u, parent, base, err);
	if (r < 0)
		return r;
	if (link_file(fd, parent, base) < 0)
		return err_errno(err, -errno, "cannot create the hard link '%s'", u->path);
	u->n.links++;
	return 0;
}

/* Whether the file system has room for `n` more bytes; checked at intervals. */
static int check_room(struct unpack *u, uint64_t n, struct err *err)
{
	struct statvfs v;
	struct stat st;
	uint64_t need;

	u->unchecked += n;
	if (!u->guard.reserve || u->unchecked < UNPACK_ROOM_EVERY)
		return 0;
	u->unchecked = 0;
	if (fstat(u->dirfd, &st) < 0 || st.st_dev != u->guard.reserve_dev ||
		fstatvfs(u->dirfd, &v) < 0)
		return 0;
	need = MIN(u->guard.reserve, (uint64_t)v.f_blocks * v.f_frsize / 10);
	/* An eighth more: a sandbox is paused below the reserve, and continues from here on. */
	if ((uint64_t)v.f_bavail * v.f_frsize >= need + need / 8)
		return 0;
	return err_set(err, -ENOSPC,
		"disk almost full: less than disk.reserve is free, copy stopped at '%.200s'",
		u->path);
}

static int check_first(struct unpack *u, struct err *err)
{
	bool is_dir = u->reader.entry.type == TAR_DIR;

	if (u->want_dir && !is_dir)
		return err_set(
			err, -ENOTDIR, "cannot copy a file: the destination is not a directory");
	if (u->want_file && is_dir)
		return err_set(err, -ENOTDIR, "cannot copy a directory onto a file");
	return 0;
}

static int on_entry(struct unpack *u, struct err *err)
{
	const struct tar_entry *e = &u->reader.entry;
	int r;

	if (u->n_entries++ == 0)
		r = check_first(u, err);
	else
		r = u->n_entries > TREE_MAX_ENTRIES
			    ? refuse_unpack(err, "too many entries", e->name)
			    : 0;
	if (r == 0)
		r = place_unpack(u, e->name, u->path, sizeof(u->path), err);
	if (r == 0)
		r = check_room(u, UNPACK_ENTRY_ROOM, err);
	if (r < 0)
		return r;
	if (e->type == TAR_DIR)
		return make_dir(u, err);
	if (!u->path[0])
		return refuse_unpack(err, "a file without a name", e->name);
	switch (e->type) {
	case TAR_FILE:
		r = make_file(u, err);
		return r == 0 && u->left == 0 ? finish_file(u, err) : r;
	case TAR_SYMLINK:
		return make_symlink(u, err);
	case TAR_HARDLINK:
		return make_hardlink(u, err);
	default:
		return refuse_unpack(err, "a device or a fifo", e->name);
	}
}

static int on_data(struct unpack *u, struct err *err)
{
	struct slice d = u->reader.data;
	int r = check_room(u, d.n, err);

	if (r < 0)
		return r;
	r = fd_write_all(u->file, d.p, d.n);
	if (r < 0)
		return err_errno(err, r, "cannot write '%s'", u->path);
	u->left -= d.n;
	u->n.bytes += d.n;
	return u->left == 0 ? finish_file(u, err) : 0;
}

static int eat_unpack(struct unpack *u, struct slice in, struct err *err)
{
	for (;;) {
		int r = tar_read(&u->reader, &in, err);

		if (r == TAR_EV_MORE)
			return 0;
		if (r == TAR_EV_END)
			u->done = true;
		if (r == TAR_EV_END)
			return 0;
		if (r == TAR_EV_ENTRY)
			r = on_entry(u, err);
		else if (r == TAR_EV_DATA)
			r = on_data(u, err);
		if (r < 0)
			return r;
	}
}

/* From the last to the first, so that a closed directory closes after what is in it. */
static int finish_dirs(struct unpack *u, struct err *err)
{
	for (size_t i = u->n_dirs; i-- > 0;) {
		const struct made_dir *d = &u->dirs[i];
		struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, d->mtime};
		AUTO_CLOSE int fd = tree_open_beneath(u->dirfd, d->path, O_RDONLY | O_DIRECTORY);
		int r = fd < 0 ? fd : 0;

		if (r == 0 && u->flags & TREE_OWNERS && fchown(fd, d->uid, d->gid) < 0)
			r = -errno;
		if (r == 0 && futimens(fd, times) < 0)
			r = -errno;
		if (r == 0 && fchmod(fd, kept_mode(u, d->mode)) < 0)
			r = -errno;
		if (r < 0)
			return err_errno(
				err, r, "cannot set the attributes of the directory '%s'", d->path);
	}
	return 0;
}

/* The sender may round its archive up; reading that lets it end in peace. */
static void drain_unpack(struct unpack *u)
{
	for (size_t n = 0; n < UNPACK_MAX_TRAIL;) {
		ssize_t k = read(u->in_fd, u->buf, sizeof(u->buf));

		if (k <= 0)
			return;
		n += (size_t)k;
	}
}

static int run_unpack(struct unpack *u, struct err *err)
{
	int r;

	while (!u->done) {
		ssize_t k = read(u->in_fd, u->buf, sizeof(u->buf));

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return err_errno(err, -errno, "cannot read the archive");
		if (k == 0)
			return err_set(err, -EBADMSG, "the archive is truncated");
		r = eat_unpack(u, slice_of(u->buf, (size_t)k), err);
		if (r < 0)
			return r;
	}
	drain_unpack(u);
	return finish_dirs(u, err);
}

static struct unpack *unpack_new(int in_fd, int dirfd, const char *as, unsigned flags)
{
	struct unpack *u = xcalloc(1, sizeof(*u));

	u->in_fd = in_fd;
	u->dirfd = dirfd;
	u->root = -1;
	u->as = as;
	u->flags = flags;
	u->file = -1;
	tar_reader_init(&u->reader);
	return u;
}

static bool is_plain_name(const char *s)
{
	return s[0] && !strchr(s, '/') && strcmp(s, "..") != 0 && strlen(s) <= 255;
}

int tree_unpack(int in_fd, int dirfd, const char *name, unsigned flags, struct tree_count *ret_n,
	struct err *err)
{
	CLEANUP(unpack_free) struct unpack *u = unpack_new(in_fd, dirfd, name, flags);
	int r;

	if (name && !is_plain_name(name))
		return err_set(err, -EINVAL, "invalid name '%.200s' for the copy", name);
	r = run_unpack(u, err);
	if (r == 0 && ret_n)
		*ret_n = u->n;
	return r;
}

/* A directory on the way to the destination; beneath a root no symbolic link is followed. */
static int open_dest(const struct unpack *u, const char *path)
{
	int fd;

	if (u->root >= 0)
		return tree_open_beneath(u->root, path, O_PATH | O_DIRECTORY);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The existing destination. A directory was not opened, so it is reached through a link. */
static int look_at(struct unpack *u, int parent, const char *base, struct err *err)
{
	struct stat st;

	if (fstatat(parent, base, &st, 0) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return err_set(err, -ELOOP, "'%.200s' is a symbolic link to a directory", base);
	u->want_file = true;
	return 0;
}

/* The directory above a destination that is not a directory yet, and what it will be called. */
static int open_above(struct unpack *u, const char *path, char *name, size_t size, struct err *err)
{
	char dir[TAR_MAX_PATH], clean[TAR_MAX_PATH];
	AUTO_CLOSE int fd = -1;
	size_t n = strlen(path);
	const char *base;
	int r;

	(void)snprintf(clean, sizeof(clean), "%s", path);
	u->want_dir = clean[n - 1] == '/';
	while (n > 1 && clean[n - 1] == '/')
		clean[--n] = '\0';
	tree_split(clean, dir, sizeof(dir), &base);
	fd = open_dest(u, dir);
	if (fd < 0)
		return err_errno(err, fd, "cannot open the directory '%.200s'", dir);
	if (!is_plain_name(base) || strcmp(base, ".") == 0)
		return err_set(err, -ENOENT, "no directory '%.200s'", path);
	r = look_at(u, fd, base, err);
	if (r < 0)
		return r;
	if (u->want_dir && u->want_file)
		return err_set(err, -ENOTDIR, "'%.200s' is not a directory", clean);
	(void)snprintf(name, size, "%s", base);
	return TAKE_FD(fd);
}

static int unpack_to(struct unpack *u, const char *path, struct tree_count *ret_n, struct err *err)
{
	AUTO_CLOSE int dirfd = -1;
	char name[256];
	int r;

	if (!path[0] || strlen(path) >= TAR_MAX_PATH)
		return err_set(err, -EINVAL, "the path to copy to is empty or too long");
	if (!is_plain_name(u->as))
		return err_set(err, -EINVAL, "invalid name '%.200s' for the copy", u->as);
	dirfd = open_dest(u, path);
	if (dirfd < 0) {
		dirfd = open_above(u, path, name, sizeof(name), err);
		u->as = name;
	}
	if (dirfd < 0)
		return dirfd;
	u->dirfd = dirfd;
	r = run_unpack(u, err);
	if (r == 0 && ret_n)
		*ret_n = u->n;
	return r;
}

int tree_unpack_path(int in_fd, const char *path, const char *as, unsigned flags,
	struct tree_count *ret_n, struct err *err)
{
	CLEANUP(unpack_free) struct unpack *u = unpack_new(in_fd, -1, as ? as : ".", flags);

	return unpack_to(u, path, ret_n, err);
}

int tree_unpack_guarded(int in_fd, int root, const char *path, const char *as,
	const struct tree_guard *guard, struct tree_count *ret_n, struct err *err)
{
	CLEANUP(unpack_free) struct unpack *u = unpack_new(in_fd, -1, as ? as : ".", 0);

	u->root = root;
	u->guard = *guard;
	return unpack_to(u, path, ret_n, err);
}
