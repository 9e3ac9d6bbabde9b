/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of changes: names that differ in case only. Reads names of the workspace. */
#include <string.h>

#include "lib/base/fs/dir.h"
#include "lib/base/mem.h"
#include "lib/rules/airlock/change.h"
#include "notes_internal.h"

/* A created path, its directory and its folded name. */
struct created {
	struct plan_step *step;
	char *folded; /* of the whole path */
};

struct clashes {
	struct created *v;
	size_t n, n_compared;
};

static void clashes_done(struct clashes *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->v[i].folded);
	free(c->v);
}

static int compare_created(const void *x, const void *y)
{
	const struct created *a = x, *b = y;

	if (a->step->ws != b->step->ws)
		return a->step->ws > b->step->ws ? 1 : -1;
	return strcmp(a->folded, b->folded);
}

static void add_created(struct clashes *c, struct plan_step *s)
{
	char *folded = xstrdup(s->path);

	change_fold(folded);
	c->v[c->n++] = (struct created){s, folded};
}

static void note_clash(struct plan_step *s, const char *other)
{
	notes_add(s, "case-clash", other);
	notes_refine(s, PLAN_CASE);
}

/* Two new names. */
static void compare_new(const struct clashes *c)
{
	for (size_t i = 1; i < c->n; i++) {
		struct plan_step *a = c->v[i - 1].step, *b = c->v[i].step;

		if (compare_created(&c->v[i - 1], &c->v[i]) != 0 || strcmp(a->path, b->path) == 0)
			continue;
		note_clash(a, b->path);
		note_clash(b, a->path);
	}
}

/* A name that only changes its case is not a clash. */
static bool is_deleted(struct clashes *c, const struct plan *p, size_t ws, const char *path)
{
	if (c->n_compared++ >= NOTES_MAX_CLASHES)
		return false;
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].ws == ws && p->v[i].kind <= PLAN_RMDIR &&
			strcmp(p->v[i].path, path) == 0)
			return true;
	return false;
}

static struct plan_step *find_created(const struct clashes *c, size_t ws, const char *path)
{
	AUTO_FREE char *folded = xstrdup(path);
	struct plan_step want = {.ws = ws};
	struct created key = {&want, folded}, *found;

	change_fold(folded);
	found = c->n ? bsearch(&key, c->v, c->n, sizeof(key), compare_created) : NULL;
	return found ? found->step : NULL;
}

static void compare_host(
	struct clashes *c, const struct area *a, const struct plan *p, size_t ws, const char *dir)
{
	AUTO_DIR DIR *d = dir_of(look_dir(a->roots[ws], dir));
	struct dirent *e;

	while ((e = dir_next(d))) {
		AUTO_FREE char *path = strcmp(dir, ".") == 0 ? xstrdup(e->d_name)
							     : xasprintf("%s/%s", dir, e->d_name);
		struct plan_step *s = find_created(c, ws, path);

		if (s && strcmp(s->path, path) != 0 && !is_deleted(c, p, ws, path))
			note_clash(s, path);
	}
}

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
}

void notes_find_clashes(const struct area *a, struct plan *p)
{
	CLEANUP(clashes_done) struct clashes c = {.v = xcalloc(p->n + 1, sizeof(*c.v))};
	AUTO_FREE char *last = NULL;
	size_t last_ws = 0;

	for (size_t i = 0; i < p->n; i++)
		if ((p->v[i].kind == PLAN_PUT || p->v[i].kind == PLAN_MKDIR) &&
			p->v[i].old.type == LOOK_ABSENT && p->v[i].class < PLAN_SYMLINK_OUT)
			add_created(&c, &p->v[i]);
	if (c.n)
		qsort(c.v, c.n, sizeof(*c.v), compare_created);
	compare_new(&c);
	for (size_t i = 0; i < c.n; i++) {
		char *dir = parent_of(c.v[i].step->path);
		size_t ws = c.v[i].step->ws;

		if (!last || last_ws != ws || strcmp(last, dir) != 0)
			compare_host(&c, a, p, ws, dir);
		free(last);
		last = dir;
		last_ws = ws;
	}
}
