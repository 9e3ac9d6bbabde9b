/* SPDX-License-Identifier: Apache-2.0 */
#include "notes.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/rules/airlock/change.h"
#include "notes_internal.h"
#include "src/sbx/stage/merge/saved.h"

void notes_add(struct plan_step *s, const char *kind, const char *text)
{
	AUTO_FREE char *old = s->notes;

	s->notes = xasprintf(
		"%s%s%s%s%s", old ? old : "", old ? "; " : "", kind, text[0] ? ": " : "", text);
	ui_clean(s->notes);
}

/* Never from a class that is stricter. */
void notes_refine(struct plan_step *s, enum plan_class class)
{
	if (s->class < PLAN_GIT)
		s->class = class;
}

/* ---- contents ---- */

static const enum plan_class classes[CHANGE_N_KINDS] = {
	[CHANGE_UNICODE] = PLAN_UNICODE,
	[CHANGE_SCRIPT] = PLAN_SCRIPT,
	[CHANGE_DEPENDENCY] = PLAN_DEPENDENCY,
	[CHANGE_LOCKFILE] = PLAN_LOCKFILE,
};

/* "a, b, c ..." */
static char *join_names(const struct change_found *f, enum change_kind kind)
{
	char *all = xstrdup("");

	for (size_t i = 0; i < f->n; i++) {
		AUTO_FREE char *old = all;

		all = f->v[i].kind != kind
			      ? xstrdup(old)
			      : xasprintf("%s%s%s", old, old[0] ? ", " : "", f->v[i].text);
	}
	if (f->is_more && all[0]) {
		AUTO_FREE char *old = all;

		all = xasprintf("%s ...", old);
	}
	return all;
}

/* The weakest class first: a later one replaces it. */
static void note_found(struct plan_step *s, const struct change_found *f)
{
	bool was_plain = s->class == PLAN_PLAIN;

	for (int k = CHANGE_N_KINDS - 1; k >= 0; k--) {
		AUTO_FREE char *names = NULL;

		if (!f->has[k])
			continue;
		names = join_names(f, (enum change_kind)k);
		notes_add(s, change_kind_name((enum change_kind)k), names);
		if (k != CHANGE_LOCKFILE || was_plain)
			notes_refine(s, classes[k]);
	}
}

static void note_content(const struct area *a, const struct bundle *b, struct plan_step *s)
{
	AUTO_FREE char *old = NULL, *new = NULL;
	size_t n_old = 0, n_new = 0;
	struct change_found found;

	if (s->new.size > PLAN_HUGE || saved_load_step(b, s, PLAN_HUGE, &new, &n_new, NULL) < 0)
		return;
	if (s->old.type == LOOK_FILE && s->old.size <= PLAN_HUGE &&
		area_load_host(a, s, &old, &n_old) < 0)
		n_old = 0;
	change_find(s->path, slice_of(old, n_old), slice_of(new, n_new), &found);
	note_found(s, &found);
}

/* ---- names ---- */

/* The kinds of data/airlock/autorun.list that have a class of their own. */
static void note_kind(const struct autorun_list *list, struct plan_step *s)
{
	static const struct {
		unsigned kind;
		enum plan_class class;
	} kinds[] = {{34, PLAN_CONTAINER}, {56, PLAN_CONTAINER}, {59, PLAN_CI}};
	struct autorun_match match;
	size_t tree = 0;

	autorun_find(list, s->path, GUARD_REPORT, &match, &tree);
	for (size_t i = 0; match.row && i < ARRAY_LEN(kinds); i++)
		if (match.row->kind == kinds[i].kind)
			notes_refine(s, kinds[i].class);
}

void notes_find(const struct area *a, const struct bundle *b, const struct autorun_list *list,
	struct plan *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct plan_step *s = &p->v[i];

		if (s->kind != PLAN_PUT || s->new.type != LOOK_FILE || s->class >= PLAN_SYMLINK_OUT)
			continue;
		note_kind(list, s);
		note_content(a, b, s);
	}
	notes_find_clashes(a, p);
	notes_find_secrets(b, p);
}
