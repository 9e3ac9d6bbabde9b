/* SPDX-License-Identifier: Apache-2.0 */
/* The list of changed files, and the copies of what they were. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "guard_internal.h"
#include "lib/base/clock.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define COPY_TRIES 64
#define CHUNK 65536

void guard_dirty_sync(struct guard *g)
{
	struct stat st;

	if (g->n_rows == 0 && g->reported.n == 0)
		return;
	if (fstatat(g->dir_fd, "dirty", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	guard_forget(&g->reported);
	g->n_rows = g->n_copied = 0;
	g->generation++;
}

int guard_report_path(
	const struct guard *g, const struct guard_path *p, size_t tree, struct guard_path *ret)
{
	size_t n = tree ? (size_t)(p->rel - p->text) + tree : strlen(p->text);
	char text[GUARD_PATH_SIZE];

	memcpy(text, p->text, n);
	text[n] = '\0';
	return guard_path_set(g, text, NULL, ret);
}

/* ---- copies ---- */

/* No symbolic link on the way: the guest could have made it. With O_PATH the last component may be
 * one. */
static int open_now(const struct guard_path *p, uint64_t flags)
{
	struct open_how how = {.flags = flags | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, p->mount->fd, p->in_mount, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int open_copy(struct guard *g, uint32_t *ret_number)
{
	char name[32];

	if (mkdirat(g->dir_fd, "copy", 0700) < 0 && errno != EEXIST)
		return -errno;
	for (int i = 0; i < COPY_TRIES; i++) {
		int fd;

		(void)snprintf(name, sizeof(name), "copy/%u", ++g->next_copy);
		fd = openat(g->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);
		*ret_number = g->next_copy;
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
	}
	return -EEXIST;
}

static int copy_bytes(int from, int to, size_t *left)
{
	static char buf[CHUNK];

	for (;;) {
		ssize_t n = read(from, buf, sizeof(buf));
		int r;

		if (n <= 0)
			return n < 0 ? -errno : 0;
		if ((size_t)n > *left)
			return -EFBIG;
		*left -= (size_t)n;
		r = fd_write_all(to, buf, (size_t)n);
		if (r < 0)
			return r;
	}
}

static void drop_copy(struct guard *g, uint32_t *number)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "copy/%u", *number);
	(void)unlinkat(g->dir_fd, name, 0);
	*number = 0;
}

/* Without a copy when it is too large; 0 or an error of the guard's directory. */
static int copy_file(struct guard *g, const struct guard_path *p, uint32_t *ret_number)
{
	AUTO_CLOSE int from = open_now(p, O_RDONLY | O_NONBLOCK);
	AUTO_CLOSE int to = -1;
	size_t left = GUARD_MAX_COPIES - g->n_copied;
	struct stat st;
	int r;

	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > left)
		return 0;
	to = open_copy(g, ret_number);
	if (to < 0)
		return to;
	r = copy_bytes(from, to, &left);
	if (r == 0)
		g->n_copied = GUARD_MAX_COPIES - left;
	else
		drop_copy(g, ret_number);
	return r == -ENOSPC || r == -EDQUOT || r == -EIO ? r : 0;
}

static int copy_link(struct guard *g, int link, uint32_t *ret_number)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(link, "", target, sizeof(target));
	AUTO_CLOSE int to = -1;

	if (n < 0)
		return 0;
	to = open_copy(g, ret_number);
	return to < 0 ? to : fd_write_all(to, target, (size_t)n);
}

/* ---- rows ---- */

static int append_row(struct guard *g, const struct dirty_row *row)
{
	static char line[DIRTY_MAX_LINE];
	struct wr wr = wr_init(line, sizeof(line));
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r = dirty_encode(&wr, row);

	if (r < 0)
		return 0; /* a path that is too long for the list */
	fd = openat(g->dir_fd, "dirty",
		O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size + wr.n > DIRTY_MAX_BYTES)
		return 0;
	g->n_rows++;
	return fd_write_all(fd, line, wr.n);
}

/* What the path is now, and a copy of it. */
static int describe_now(struct guard *g, const struct guard_path *p, struct dirty_row *row)
{
	AUTO_CLOSE int fd = open_now(p, O_PATH);
	struct stat st;

	row->copy = 0;
	row->state = DIRTY_NEW;
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	row->state = S_ISLNK(st.st_mode)   ? DIRTY_WAS_LINK
		     : S_ISREG(st.st_mode) ? DIRTY_CHANGED
					   : DIRTY_WAS_OTHER;
	if (S_ISLNK(st.st_mode))
		return copy_link(g, fd, &row->copy);
	return S_ISREG(st.st_mode) ? copy_file(g, p, &row->copy) : 0;
}

static bool exists_now(const struct guard_path *p)
{
	AUTO_CLOSE int fd = open_now(p, O_PATH);

	return fd >= 0;
}

static int add_row(struct guard *g, const struct guard_path *p, const struct autorun_row *why,
	enum dirty_op op, bool tree)
{
	static struct dirty_row row;
	int r = 0;

	row.time_ms = clock_wall_ms();
	row.kind = why->kind;
	row.op = op;
	row.state = DIRTY_TREE;
	row.copy = 0;
	row.detail[0] = '\0';
	if (g->n_rows >= DIRTY_MAX_ROWS || strlen(p->mount->host) >= sizeof(row.mount) ||
		strlen(p->in_mount) >= sizeof(row.path))
		return 0;
	(void)strcpy(row.mount, p->mount->host);
	(void)strcpy(row.path, p->in_mount);
	if (!tree)
		r = describe_now(g, p, &row);
	return r < 0 ? r : append_row(g, &row);
}

static int record_path(struct guard *g, const struct guard_path *p, size_t tree,
	const struct autorun_match *m, enum dirty_op op)
{
	static struct guard_path at;
	int r = guard_report_path(g, p, tree, &at);

	if (r < 0)
		return r;
	guard_dirty_sync(g);
	if (guard_knows(&g->reported, at.text) ||
		(m->mode == AUTORUN_REPORT_NEW && exists_now(&at)))
		return 0;
	r = add_row(g, &at, m->row, op, tree > 0);
	if (r < 0)
		return r;
	(void)guard_see(&g->reported, at.text);
	guard_tell(g, GUARD_REPORTED, op, m->row->kind, &at, NULL);
	return 0;
}

int guard_note(struct guard *g, const struct guard_path *p, enum dirty_op op)
{
	struct autorun_match m;
	size_t tree;

	if (!p->rel)
		return 0;
	autorun_find(g->list, p->rel, g->level, &m, &tree);
	if (!guard_is_reported(&m))
		return 0;
	return record_path(g, p, m.mode == AUTORUN_REPORT_TREE ? tree : 0, &m, op);
}

int guard_note_checked(struct guard *g, const struct guard_path *p, const struct autorun_match *m)
{
	return record_path(g, p, 0, m, DIRTY_RENAME);
}

/* ---- reading the list ---- */

/* Without a list, *ret is NULL. */
static int load_list(const struct guard *g, char **ret, size_t *ret_n)
{
	AUTO_CLOSE int fd = openat(g->dir_fd, "dirty", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return fd_load(fd, DIRTY_MAX_BYTES, ret, ret_n);
}

/* A recorded path below `from`, as it is named below `to`. */
static int note_moved_row(struct guard *g, const struct dirty_row *row,
	const struct guard_path *from, const struct guard_path *to)
{
	static struct guard_path at;
	size_t n = strlen(from->in_mount);
	AUTO_FREE char *text = NULL;
	int r;

	if (strcmp(row->mount, from->mount->host) != 0 ||
		strncmp(row->path, from->in_mount, n) != 0 || row->path[n] != '/')
		return 0;
	text = xasprintf("%s%s", to->text, row->path + n);
	r = guard_path_set(g, text, NULL, &at);
	return r < 0 ? 0 : guard_note(g, &at, DIRTY_RENAME);
}

int guard_note_moved(struct guard *g, const struct guard_path *from, const struct guard_path *to)
{
	static struct dirty_row row;
	AUTO_FREE char *text = NULL;
	struct slice rest;
	size_t n = 0;
	int r = load_list(g, &text, &n);

	rest = slice_of(text, n);
	while (r == 0 && dirty_next(&rest, &row) == 1)
		r = note_moved_row(g, &row, from, to);
	return r;
}

static int load_rows(struct guard *g)
{
	static struct dirty_row row;
	AUTO_FREE char *text = NULL;
	struct slice rest;
	size_t n = 0;
	int r = load_list(g, &text, &n);

	if (r < 0)
		return r;
	rest = slice_of(text, n);
	while (dirty_next(&rest, &row) == 1) {
		g->n_rows++;
		for (size_t i = 0; i < g->n_mounts; i++) {
			AUTO_FREE char *at = xasprintf("%s/%s", g->mounts[i].guest, row.path);

			if (strcmp(g->mounts[i].host, row.mount) == 0)
				(void)guard_see(&g->reported, at);
		}
	}
	return 0;
}

static void load_copies(struct guard *g)
{
	AUTO_DIR DIR *d =
		dir_of(openat(g->dir_fd, "copy", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	struct dirent *e;
	struct stat st;
	uint64_t number;

	while ((e = dir_next(d))) {
		if (str_to_u64(e->d_name, 1, UINT32_MAX - GUARD_SEEN, &number) < 0)
			continue;
		g->next_copy = MAX(g->next_copy, (uint32_t)number);
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			g->n_copied +=
				MIN((uint64_t)st.st_size, (uint64_t)GUARD_MAX_COPIES - g->n_copied);
	}
}

int guard_dirty_load(struct guard *g, struct err *err)
{
	int r = load_rows(g);

	load_copies(g);
	return r < 0 ? err_errno(err, r, "cannot read the list of changed files") : 0;
}
