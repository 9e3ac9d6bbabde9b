/* SPDX-License-Identifier: Apache-2.0 */
/* Renames: judged and made by the same process, so that nothing moves in between. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "guard_internal.h"
#include "lib/base/fs/fd.h"

/* One end of a rename. */
struct end {
	const struct guard_path *path;
	int dir;
	const char *name;
	struct autorun_match m;
	mode_t type; /* 0: there is nothing */
};

static void look_at_end(
	const struct guard *g, const struct guard_path *path, int dir, struct end *ret)
{
	struct stat st;
	size_t tree;

	*ret = (struct end){.path = path, .dir = dir, .name = guard_path_name(path)};
	autorun_find(g->list, path->rel, g->level, &ret->m, &tree);
	if (fstatat(dir, ret->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		ret->type = st.st_mode & S_IFMT;
}

/* Whether what is at `from` can come to `to`. */
static int judge_move(struct guard *g, const struct end *from, const struct end *to)
{
	struct autorun_place a, b;
	int r;

	if (from->type == S_IFLNK)
		return from->m.anchor || to->m.anchor ? -EACCES : 0;
	if (from->type != S_IFDIR)
		return 0;
	guard_place_of(g, from->path, &a);
	guard_place_of(g, to->path, &b);
	if (!autorun_same(g->list, &a, &b, g->level))
		return -EACCES;
	r = guard_scan(g, from->dir, from->name, from->path, to->path);
	return r < 0 ? r : guard_note_moved(g, from->path, to->path);
}

static int judge_rename(
	struct guard *g, const struct end *from, const struct end *to, bool exchange)
{
	int r;

	if (guard_is_refused(&from->m) || guard_is_refused(&to->m))
		return -EACCES;
	/* A link that leads to guarded names would be replaced. */
	if (to->type == S_IFLNK && to->m.anchor)
		return -EACCES;
	r = judge_move(g, from, to);
	if (r == 0 && exchange)
		r = judge_move(g, to, from);
	if (r == 0)
		r = guard_note(g, from->path, DIRTY_RENAME);
	return r < 0 ? r : guard_note(g, to->path, DIRTY_RENAME);
}

static void tell_refusal(struct guard *g, const struct end *from, const struct end *to)
{
	const struct end *e = guard_is_refused(&from->m) || from->m.anchor ? from : to;

	guard_tell(g, GUARD_DENIED, DIRTY_RENAME, e->m.row ? e->m.row->kind : 0, e->path, NULL);
}

static int rename_here(struct guard *g, const struct guard_call *c)
{
	struct end from, to;
	int r;

	/* Between workspaces and what is not one, the kernel refuses. */
	if (!c->a.rel || !c->b.rel)
		return GUARD_CONTINUE;
	if (c->flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	look_at_end(g, &c->a, c->fds[0], &from);
	look_at_end(g, &c->b, c->fds[1], &to);
	if (!from.type)
		return -ENOENT;
	if (to.m.mode == AUTORUN_CHECK && !(c->flags & RENAME_EXCHANGE) && from.type == S_IFREG &&
		!guard_is_refused(&from.m))
		return guard_check_write(g, c, &to.m);
	r = judge_rename(g, &from, &to, c->flags & RENAME_EXCHANGE);
	if (r == -EACCES)
		tell_refusal(g, &from, &to);
	if (r < 0)
		return r;
	return renameat2(from.dir, from.name, to.dir, to.name, c->flags) < 0 ? -errno : 0;
}

static int symlink_here(struct guard *g, const struct guard_call *c)
{
	int r = guard_note(g, &c->a, c->op);

	if (r < 0)
		return r;
	return symlinkat(c->content, c->fds[0], guard_path_name(&c->a)) < 0 ? -errno : 0;
}

/* The guest gets a descriptor of the sink instead, so only the hand writes to this file. */
static int make_fixed(const struct guard_call *c)
{
	const char *name = guard_path_name(&c->a), *text = guard_fixed_text(&c->a);
	AUTO_CLOSE int fd = -1;
	int r;

	if (!text || c->fds[0] < 0)
		return -EACCES;
	fd = openat(c->fds[0], name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, strlen(text));
	if (r < 0)
		(void)unlinkat(c->fds[0], name, 0);
	return r < 0 ? r : GUARD_SINK;
}

static bool is_fixed(const struct guard *g, const struct guard_call *c)
{
	struct autorun_match m;
	size_t tree;

	if (!c->creates_fd || !c->a.rel)
		return false;
	autorun_find(g->list, c->a.rel, g->level, &m, &tree);
	return m.mode == AUTORUN_FIXED;
}

int guard_hand_do(struct guard *g, const struct guard_call *c)
{
	int r;

	if (c->type == GUARD_RENAME)
		return rename_here(g, c);
	if (c->type == GUARD_SYMLINK)
		return symlink_here(g, c);
	if (is_fixed(g, c))
		return make_fixed(c);
	r = guard_note(g, &c->a, c->op);
	if (r == 0 && c->type == GUARD_LINK)
		r = guard_note(g, &c->b, c->op);
	return r < 0 ? r : GUARD_CONTINUE;
}
