/* SPDX-License-Identifier: Apache-2.0 */
#include "autorun.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include "autorun_internal.h"

#define WORDS (AUTORUN_MAX_STEPS / 64)
#define ROW_WORDS (AUTORUN_MAX_ROWS / 64)

/* A name in one place: the rows that match it, and the place below it. */
struct look {
	const struct autorun_list *list;
	const char *name;
	size_t n;
	char text[NAME_MAX + 1]; /* the same, for fnmatch */
	uint64_t rows[ROW_WORDS];
	struct autorun_place below;
};

enum autorun_mode autorun_effective(enum autorun_mode mode, enum guard_level level)
{
	bool reports =
		mode == AUTORUN_REPORT || mode == AUTORUN_REPORT_NEW || mode == AUTORUN_REPORT_TREE;
	bool refuses = mode >= AUTORUN_FIXED;

	if (level == GUARD_OFF)
		return AUTORUN_NONE;
	if (level == GUARD_REPORT && refuses)
		return AUTORUN_REPORT;
	return level == GUARD_STRICT && reports ? AUTORUN_DENY : mode;
}

void autorun_add_step(const struct autorun_list *l, struct autorun_place *place, size_t step)
{
	for (;;) {
		place->bits[step / 64] |= UINT64_C(1) << step % 64;
		if (l->steps[step].type != AUTORUN_DEEP || l->steps[step].last)
			return;
		step++; /* none at all is any number of directories, too */
	}
}

static bool step_matches(const struct autorun_step *s, const struct look *k)
{
	switch (s->type) {
	case AUTORUN_LITERAL:
		return s->n == k->n && memcmp(s->text, k->name, s->n) == 0;
	case AUTORUN_SUFFIX:
		return s->n <= k->n && memcmp(s->text, k->name + k->n - s->n, s->n) == 0;
	case AUTORUN_GLOB:
		return fnmatch(s->text, k->text, 0) == 0;
	case AUTORUN_ANY:
	case AUTORUN_DEEP:
		return true;
	}
	return true;
}

static void take_step(struct look *k, size_t i)
{
	const struct autorun_step *s = &k->list->steps[i];

	if (!step_matches(s, k))
		return;
	if (s->last)
		k->rows[s->row / 64] |= UINT64_C(1) << s->row % 64;
	if (s->type == AUTORUN_DEEP)
		autorun_add_step(k->list, &k->below, i);
	else if (!s->last)
		autorun_add_step(k->list, &k->below, i + 1);
}

/* The kernel refuses names that are longer. */
static void look_at(const struct autorun_list *l, const struct autorun_place *at, const char *name,
	size_t n, struct look *k)
{
	*k = (struct look){.list = l, .name = name, .n = n};
	if (n == 0 || n > NAME_MAX)
		return;
	memcpy(k->text, name, n);
	k->text[n] = '\0';
	for (uint16_t i = l->first[(uint8_t)name[0]]; i != AUTORUN_NO_STEP;
		i = l->steps[i].next_first)
		take_step(k, i);
	for (uint16_t i = l->first_other; i != AUTORUN_NO_STEP; i = l->steps[i].next_first)
		take_step(k, i);
	for (size_t w = 0; w < WORDS; w++)
		for (uint64_t left = at->bits[w]; left; left &= left - 1)
			take_step(k, w * 64 + (size_t)__builtin_ctzll(left));
}

/* In the order of the list. */
static void judge_rows(const struct look *k, enum guard_level level, struct autorun_match *ret)
{
	for (size_t w = 0; w < ROW_WORDS; w++)
		for (uint64_t left = k->rows[w]; left; left &= left - 1) {
			size_t i = w * 64 + (size_t)__builtin_ctzll(left);
			const struct autorun_row *row = &k->list->rows[i];
			enum autorun_mode mode = autorun_effective(row->mode, level);
			bool replaces = row->mode == AUTORUN_ALLOW || row->mode == AUTORUN_CHECK;

			if (!replaces && mode <= ret->mode)
				continue;
			ret->mode = mode;
			ret->row = mode <= AUTORUN_ALLOW ? NULL : row;
		}
}

static void judge_look(const struct look *k, enum guard_level level, struct autorun_match *ret)
{
	const struct autorun_place *refuses = &k->list->refuses[level];

	*ret = (struct autorun_match){0};
	judge_rows(k, level, ret);
	for (size_t w = 0; w < WORDS && !ret->anchor; w++)
		ret->anchor = (k->below.bits[w] & refuses->bits[w]) != 0;
}

void autorun_root(const struct autorun_list *l, struct autorun_place *ret)
{
	*ret = l->root;
}

void autorun_enter(const struct autorun_list *l, const struct autorun_place *from, const char *name,
	size_t n, struct autorun_place *ret)
{
	struct look k;

	look_at(l, from, name, n, &k);
	*ret = k.below;
}

void autorun_match(const struct autorun_list *l, const struct autorun_place *at, const char *name,
	size_t n, enum guard_level level, struct autorun_match *ret)
{
	struct look k;

	look_at(l, at, name, n, &k);
	judge_look(&k, level, ret);
}

bool autorun_same(const struct autorun_list *l, const struct autorun_place *a,
	const struct autorun_place *b, enum guard_level level)
{
	const struct autorun_place *mask = &l->differs[level];

	for (size_t w = 0; w < WORDS; w++)
		if ((a->bits[w] ^ b->bits[w]) & mask->bits[w])
			return false;
	return true;
}

/* Below a directory that is reported once, nothing else is reported; with GUARD_STRICT nothing is
 * allowed there. */
static void judge_tree(
	const struct autorun_match *tree, enum guard_level level, struct autorun_match *ret)
{
	bool strict = level == GUARD_STRICT;

	if (ret->mode >= AUTORUN_FIXED || (strict && ret->mode == AUTORUN_ALLOW))
		return;
	ret->mode = strict ? AUTORUN_DENY : AUTORUN_REPORT_TREE;
	ret->row = tree->row;
}

/* One more component, which ends at *p. */
static void walk_name(const struct autorun_list *l, const char *path, const char **p,
	enum guard_level level, struct autorun_walk *w, struct autorun_match *ret)
{
	size_t n = strcspn(*p, "/");
	struct look k;

	look_at(l, &w->at, *p, n, &k);
	judge_look(&k, level, ret);
	w->at = k.below;
	*p += n;
	if (ret->row && ret->row->mode == AUTORUN_REPORT_TREE && !w->tree.row) {
		w->tree = *ret;
		w->n_tree = (size_t)(*p - path);
	}
}

static void walk_dir(const struct autorun_list *l, const char *path, size_t n,
	enum guard_level level, struct autorun_memo *memo, struct autorun_match *ret)
{
	memo->walk = (struct autorun_walk){.at = l->root};
	memo->n_dir = n < sizeof(memo->dir) ? n : 0;
	memcpy(memo->dir, path, memo->n_dir);
	for (const char *p = path; p < path + n; p++)
		walk_name(l, path, &p, level, &memo->walk, ret);
}

void autorun_find_near(const struct autorun_list *l, struct autorun_memo *memo, const char *path,
	enum guard_level level, struct autorun_match *ret, size_t *ret_tree)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = (size_t)(name - path);
	struct autorun_walk w;

	*ret = (struct autorun_match){0};
	if (!n || !*name || n != memo->n_dir || memcmp(path, memo->dir, n) != 0)
		walk_dir(l, path, n, level, memo, ret);
	w = memo->walk;
	if (*name)
		walk_name(l, path, &name, level, &w, ret);
	*ret_tree = w.n_tree;
	if (w.tree.row)
		judge_tree(&w.tree, level, ret);
}

void autorun_find(const struct autorun_list *l, const char *path, enum guard_level level,
	struct autorun_match *ret, size_t *ret_tree)
{
	struct autorun_memo memo = {0};

	autorun_find_near(l, &memo, path, level, ret, ret_tree);
}
