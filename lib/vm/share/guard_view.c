/* SPDX-License-Identifier: Apache-2.0 */
/* What a call of virtiofsd is about: names from its memory, directories from its descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "guard_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/str.h"
#include "hide_internal.h"

#define CHANGES (O_CREAT | O_TRUNC)
#define MAX_FD 10000000
#define LINK_SIZE 64

/* Which arguments are what; -1: none. */
static const struct shape {
	int nr;
	enum guard_type type;
	enum dirty_op op;
	int at[2], name[2], mode;
} shapes[] = {
	{SYS_openat, GUARD_OPEN, DIRTY_WRITE, {0, -1}, {1, -1}, -1},
	{SYS_mknodat, GUARD_OPEN, DIRTY_CREATE, {0, -1}, {1, -1}, -1},
	{SYS_fchmodat, GUARD_MODE, DIRTY_MODE, {0, -1}, {1, -1}, 2},
	{452 /* fchmodat2 */, GUARD_MODE, DIRTY_MODE, {0, -1}, {1, -1}, 2},
	{SYS_fchmod, GUARD_MODE, DIRTY_MODE, {0, -1}, {-1, -1}, 1},
	{SYS_unlinkat, GUARD_REMOVE, DIRTY_REMOVE, {0, -1}, {1, -1}, -1},
	{SYS_linkat, GUARD_LINK, DIRTY_LINK, {0, 2}, {1, 3}, -1},
	{SYS_symlinkat, GUARD_SYMLINK, DIRTY_SYMLINK, {1, -1}, {2, -1}, -1},
	{SYS_renameat, GUARD_RENAME, DIRTY_RENAME, {0, 2}, {1, 3}, -1},
	{SYS_renameat2, GUARD_RENAME, DIRTY_RENAME, {0, 2}, {1, 3}, -1},
};

static const struct shape *shape_of(const struct seccomp_data *d)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		if (shapes[i].nr != d->nr)
			continue;
		if (d->nr == SYS_openat && !(d->args[2] & (CHANGES | O_ACCMODE)))
			return NULL;
		return d->nr == SYS_unlinkat && d->args[2] & AT_REMOVEDIR ? NULL : &shapes[i];
	}
	return NULL;
}

static int read_link(const struct guard *g, pid_t pid, int fd, char buf[PATH_MAX])
{
	char link[LINK_SIZE];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "%d/fd/%d", pid, fd);
	n = readlinkat(g->proc_fd, link, buf, PATH_MAX - 1);
	if (n < 0 || n == PATH_MAX - 1)
		return -EACCES;
	buf[n] = '\0';
	return 0;
}

enum where { IN_MOUNT, IN_STUB, IN_PROC };

/* virtiofsd opens a file that the guest knows by the number of its descriptor in /proc/self/fd,
 * which it holds open: "/proc/1/fd", "/1/fd" when that is no longer mounted, "/" when it was bound.
 * The stubs above workspaces are a read-only tmpfs. */
static int find_where(const struct guard *g, pid_t pid, int fd, const char *path, enum where *ret)
{
	size_t n = strlen(path);
	char link[LINK_SIZE + 8];
	struct statfs st;

	*ret = IN_MOUNT;
	if (guard_is_in_mount(g, path) && (n < 3 || strcmp(path + n - 3, "/fd") != 0))
		return 0;
	(void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, fd);
	if (statfs(link, &st) < 0)
		return -EACCES;
	if (st.f_type == PROC_SUPER_MAGIC)
		*ret = IN_PROC;
	else if (!guard_is_in_mount(g, path))
		*ret = IN_STUB;
	return *ret == IN_STUB && st.f_type != TMPFS_MAGIC ? -EACCES : 0;
}

/* One name of the call. *ret_fd: the descriptor that is the file itself, or -1. */
static int view_name(const struct guard *g, pid_t pid, int at, uint64_t addr,
	struct guard_path *ret, int *ret_fd)
{
	static char name[PATH_MAX], path[PATH_MAX];
	enum where where;
	uint64_t number;

	*ret_fd = -1;
	if (at == AT_FDCWD || hide_read_name(pid, addr, name) < 0 ||
		read_link(g, pid, at, path) < 0 || find_where(g, pid, at, path, &where) < 0)
		return -EACCES;
	if (where != IN_PROC)
		return guard_path_set(g, path, name, ret);
	if (str_to_u64(name, 0, MAX_FD, &number) < 0 || read_link(g, pid, (int)number, path) < 0)
		return -EACCES;
	*ret_fd = (int)number;
	return guard_path_set(g, path, NULL, ret);
}

static bool is_link(const struct guard *g, pid_t pid, int at, const char *name)
{
	char link[LINK_SIZE + NAME_MAX + 2];
	struct stat st;

	(void)snprintf(
		link, sizeof(link), "%d/fd/%d%s%s", pid, at, name ? "/" : "", name ? name : "");
	return fstatat(g->proc_fd, link, &st, name ? AT_SYMLINK_NOFOLLOW : 0) < 0 ||
	       S_ISLNK(st.st_mode);
}

/* The directory of the call, for the hand. */
static int open_dir(const struct guard *g, pid_t pid, int at)
{
	char link[LINK_SIZE];
	int fd;

	(void)snprintf(link, sizeof(link), "%d/fd/%d", pid, at);
	fd = openat(g->proc_fd, link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int view_fd(const struct guard *g, pid_t pid, int fd, struct guard_call *c)
{
	static char path[PATH_MAX];
	int r = read_link(g, pid, fd, path);

	return r < 0 ? r : guard_path_set(g, path, NULL, &c->a);
}

static int view_both(const struct guard *g, pid_t pid, const struct seccomp_data *d,
	const struct shape *s, struct guard_call *c)
{
	int at = (int)d->args[s->at[0]], a, b, r;

	if (s->name[0] < 0)
		return view_fd(g, pid, at, c);
	r = view_name(g, pid, at, d->args[s->name[0]], &c->a, &a);
	if (r == 0 && s->name[1] >= 0)
		r = view_name(g, pid, (int)d->args[s->at[1]], d->args[s->name[1]], &c->b, &b);
	if (r < 0)
		return r;
	c->creates_fd = d->nr == SYS_openat && d->args[2] & O_CREAT && a < 0;
	if (c->type == GUARD_LINK)
		c->a_is_link = a >= 0 ? is_link(g, pid, a, NULL)
				      : is_link(g, pid, at, guard_path_name(&c->a));
	if (c->type == GUARD_REMOVE)
		c->a_is_link = is_link(g, pid, at, guard_path_name(&c->a));
	return 0;
}

/* What the hand needs. */
static int view_dirs(const struct guard *g, pid_t pid, const struct seccomp_data *d,
	const struct shape *s, struct guard_call *c)
{
	if (c->type == GUARD_SYMLINK && hide_read_name(pid, d->args[0], c->content) < 0)
		return -EACCES;
	if (c->type != GUARD_SYMLINK && c->type != GUARD_RENAME &&
		!(c->creates_fd && guard_fixed_text(&c->a)))
		return 0;
	for (int i = 0; i < 2 && s->at[i] >= 0; i++) {
		c->fds[i] = open_dir(g, pid, (int)d->args[s->at[i]]);
		if (c->fds[i] < 0)
			return -EACCES;
	}
	return 0;
}

/* 1: it is a call of another kind; 0: *ret; else a negative errno. */
static int view_call(const struct guard *g, const struct seccomp_notif *req, struct guard_call *ret)
{
	const struct seccomp_data *d = &req->data;
	const struct shape *s = shape_of(d);
	int r;

	if (d->nr == SYS_openat2)
		return -ENOSYS; /* its flags are in memory; virtiofsd can do without */
	/* Names without a directory are virtiofsd's own. */
	if (!s || (s->nr == SYS_openat && (int)d->args[0] == AT_FDCWD))
		return 1;
	ret->type = s->type;
	ret->op = s->nr == SYS_openat && d->args[2] & O_CREAT ? DIRTY_CREATE : s->op;
	ret->flags = d->nr == SYS_renameat2 ? (unsigned)d->args[4] : 0;
	ret->mode = s->mode >= 0 ? (mode_t)d->args[s->mode] : 0;
	ret->a_is_link = ret->creates_fd = false;
	ret->fds[0] = ret->fds[1] = -1;
	r = view_both(g, (pid_t)req->pid, d, s, ret);
	return r < 0 ? r : view_dirs(g, (pid_t)req->pid, d, s, ret);
}

int guard_answer(struct guard *g, const struct seccomp_notif *req)
{
	static struct guard_call c;
	int r;

	c.fds[0] = c.fds[1] = -1;
	r = view_call(g, req, &c);
	if (r == 0)
		r = guard_decide(g, &c);
	fd_close(&c.fds[0]);
	fd_close(&c.fds[1]);
	return r;
}
