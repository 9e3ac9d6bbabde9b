/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions from names alone: no system calls. */
#include <errno.h>
#include <string.h>
#include "guard_internal.h"

static const char deleted[] = " (deleted)";

/* Both absolute. */
static bool is_below(const char *path, const char *dir, size_t n)
{
	return n == 1 || (strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]));
}

bool guard_is_in_mount(const struct guard *g, const char *path)
{
	for (size_t i = 0; i < g->n_mounts; i++)
		if (is_below(path, g->mounts[i].guest, g->mounts[i].n_guest))
			return true;
	return false;
}

/* In a mount that is not guarded, or in the stubs above mounts, which are read-only. */
static bool is_unguarded(const struct guard *g, const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < g->n_mounts; i++)
		if (is_below(g->mounts[i].guest, path, n))
			return true;
	return guard_is_in_mount(g, path);
}

static int join_path(const char *dir, const char *name, struct guard_path *ret)
{
	size_t n = strlen(dir), k = name ? strlen(name) : 0;

	if (n == 0 || dir[0] != '/' || n >= PATH_MAX || k > NAME_MAX)
		return -EACCES;
	if (name && (k == 0 || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..")))
		return -EACCES;
	memmove(ret->text, dir, n + 1); /* `dir` may be it */
	if (name) {
		if (n > 1)
			ret->text[n++] = '/';
		memcpy(ret->text + n, name, k + 1);
	}
	ret->n_dir = (size_t)(strrchr(ret->text, '/') - ret->text) + 1;
	return 0;
}

int guard_path_set(const struct guard *g, const char *dir, const char *name, struct guard_path *ret)
{
	const struct guard_mount *outer = NULL, *inner = NULL;
	int r = join_path(dir, name, ret);

	ret->rel = ret->in_mount = NULL;
	ret->mount = NULL;
	if (r < 0)
		return r;
	for (size_t i = 0; i < g->n_mounts; i++) {
		const struct guard_mount *m = &g->mounts[i];

		if (!is_below(ret->text, m->guest, m->n_guest) || m->fd < 0)
			continue;
		if (!outer || m->n_guest < outer->n_guest)
			outer = m;
		if (!inner || m->n_guest > inner->n_guest)
			inner = m;
	}
	if (!outer)
		return is_unguarded(g, name ? dir : ret->text) ? 0 : -EACCES;
	ret->mount = inner;
	ret->in_mount = ret->text + inner->n_guest + (ret->text[inner->n_guest] == '/');
	ret->rel = ret->text + outer->n_guest + (ret->text[outer->n_guest] == '/');
	return 0;
}

const char *guard_path_name(const struct guard_path *p)
{
	return p->text + p->n_dir;
}

bool guard_is_refused(const struct autorun_match *m)
{
	return m->mode >= AUTORUN_FIXED;
}

bool guard_is_reported(const struct autorun_match *m)
{
	return m->mode == AUTORUN_REPORT || m->mode == AUTORUN_REPORT_NEW ||
	       m->mode == AUTORUN_REPORT_TREE;
}

void guard_place_of(const struct guard *g, const struct guard_path *p, struct autorun_place *ret)
{
	autorun_root(g->list, ret);
	for (const char *at = p->rel; *at; at += *at == '/') {
		size_t n = strcspn(at, "/");

		autorun_enter(g->list, ret, at, n, ret);
		at += n;
	}
}

void guard_find(struct guard *g, const char *rel, struct autorun_match *ret, size_t *ret_tree)
{
	autorun_find_near(g->list, &g->memo, rel, g->level, ret, ret_tree);
}

/* A file that was removed while it was open may have had a name that is guarded. */
static void find_deleted(struct guard *g, const char *rel, struct autorun_match *m)
{
	size_t n = strlen(rel), k = sizeof(deleted) - 1, tree;
	char text[GUARD_PATH_SIZE];
	struct autorun_match other;

	if (n <= k || strcmp(rel + n - k, deleted) != 0)
		return;
	memcpy(text, rel, n - k);
	text[n - k] = '\0';
	guard_find(g, text, &other, &tree);
	if (guard_is_refused(&other))
		*m = other;
}

static void find_match(struct guard *g, const struct guard_path *p, struct autorun_match *m)
{
	size_t tree;

	*m = (struct autorun_match){0};
	if (!p->rel)
		return;
	guard_find(g, p->rel, m, &tree);
	find_deleted(g, p->rel, m);
}

/* A mode cannot make a checked file harmful, and git tries one out on its configuration. */
static bool is_harmless_mode(const struct guard_call *c, const struct autorun_match *m)
{
	return c->type == GUARD_MODE && m->mode == AUTORUN_CHECK &&
	       !(c->mode & (S_IWOTH | S_ISUID | S_ISGID));
}

/* The configuration of a linked work tree is that of its repository. `.git/worktrees/NAME` is not a
 * symbolic link, because the guest cannot make one there, so its grandparent is `.git`. */
const char *guard_fixed_text(const struct guard_path *p)
{
	return strcmp(guard_path_name(p), "commondir") == 0 ? "../..\n" : NULL;
}

/* A work tree without `commondir` is harmless: git reads no other name that the guest can write. */
static int judge_fixed(const struct guard_call *c)
{
	if (c->type == GUARD_REMOVE && !c->a_is_link)
		return GUARD_CONTINUE;
	return c->creates_fd && guard_fixed_text(&c->a) ? GUARD_SINK : -EACCES;
}

int guard_judge(struct guard *g, const struct guard_call *c, bool *ret_ask)
{
	struct autorun_match a, b = {0};

	find_match(g, &c->a, &a);
	if (c->type == GUARD_LINK)
		find_match(g, &c->b, &b);
	*ret_ask = guard_is_reported(&a) || guard_is_reported(&b) ||
		   (c->type == GUARD_SYMLINK && c->a.rel);
	if (is_harmless_mode(c, &a))
		return GUARD_CONTINUE;
	if (a.mode == AUTORUN_FIXED && c->type != GUARD_LINK)
		return judge_fixed(c);
	if (guard_is_refused(&a) || guard_is_refused(&b))
		return -EACCES;
	if (a.anchor && (c->type == GUARD_SYMLINK || (c->type == GUARD_REMOVE && c->a_is_link)))
		return -EACCES;
	/* A hard link could bring a symbolic link to any name. */
	return c->type == GUARD_LINK && c->a_is_link ? -EPERM : GUARD_CONTINUE;
}
