/* SPDX-License-Identifier: Apache-2.0 */
#include "stage_view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"
#include "pull.h"
#include "src/sbx/stage/merge/saved.h"
#include "src/sbx/stage/past/past.h"
#include "view_internal.h"

#define NAMES_BYTES 200 /* of names in an audit record */

/* ---- items ---- */

static bool has_same_content(const struct plan_step *s)
{
	return s->kind == PLAN_PUT && s->old.type == s->new.type &&
	       s->old.type != LOOK_ABSENT &&memcmp(s->old.sha, s->new.sha, SHA256_BYTES) == 0;
}

static const char *change_of(const struct plan_step *s)
{
	if (s->kind == PLAN_DELETE || s->kind == PLAN_RMDIR)
		return "deleted";
	if (s->kind == PLAN_CHMOD || has_same_content(s))
		return "mode";
	return s->old.type == LOOK_ABSENT ? "new" : "changed";
}

static enum stage_rule rule_of(enum plan_class class)
{
	if (class >= PLAN_SYMLINK_OUT)
		return STAGE_NEVER;
	return class >= PLAN_GIT ? STAGE_BY_PATH : STAGE_BY_CLASS;
}

static bool has_mode(const struct look *l)
{
	return l->type != LOOK_ABSENT && l->type != LOOK_LINK;
}

static bool has_diff(const struct plan_step *s)
{
	return (s->kind == PLAN_PUT || s->kind == PLAN_DELETE) &&
	       (s->old.type == LOOK_FILE || s->new.type == LOOK_FILE) && !has_same_content(s);
}

static struct stage_change make_item(const struct area *a, struct plan_step *s)
{
	struct stage_change item = {.path = xstrdup(s->path),
		.shown = area_show_path(a, s->ws, s->path),
		.target = s->new.type == LOOK_LINK ? xstrdup(s->entry->link) : NULL,
		.workspace = a->host[s->ws],
		.guest = a->guest[s->ws],
		.class = plan_class_name(s->class),
		.notes = s->notes,
		.change = change_of(s),
		.rule = rule_of(s->class),
		.mode = s->new.mode,
		.old_mode = has_mode(&s->old) && has_mode(&s->new) ? s->old.mode : s->new.mode,
		.directory = s->new.type == LOOK_DIR || s->old.type == LOOK_DIR,
		.has_diff = has_diff(s),
		.wanted = &s->wanted,
		.step = s};

	ui_clean(item.path);
	if (item.target)
		ui_clean(item.target);
	return item;
}

static void make_items(struct stage_view *v)
{
	struct plan *p = &v->parts->plan;

	v->items = xcalloc(p->n + 1, sizeof(*v->items));
	for (int c = 0; c < PLAN_N_CLASSES; c++)
		for (size_t i = 0; i < p->n; i++)
			if (p->v[i].class == (enum plan_class)c)
				v->items[v->n++] = make_item(&v->parts->area, &p->v[i]);
}

/* ---- open ---- */

static int get_bundle(struct stage_parts *s, bool pull, struct problem *p)
{
	int r = area_require_finished(&s->area, p);

	if (r < 0)
		return r;
	if (!pull)
		return area_bundle(&s->area, &s->bundle, p);
	r = sandbox_start(s->area.name, NULL, NULL, p);
	return r < 0 ? r : pull_bundle(&s->area, &s->bundle, p);
}

int stage_view_open(struct stage_view *v, const char *ref, bool pull, struct problem *p)
{
	struct stage_parts *s = xcalloc(1, sizeof(*s));
	int r;

	*v = (struct stage_view){.parts = s};
	bundle_init(&s->bundle);
	r = area_open(&s->area, ref, p);
	if (r == 0)
		r = get_bundle(s, pull, p);
	if (r == 0)
		r = area_plan(&s->area, &s->bundle, pull, &s->plan, &p->err);
	if (r < 0)
		return r;
	v->sandbox = s->area.name;
	make_items(v);
	return 0;
}

void stage_view_done(struct stage_view *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free(v->items[i].path);
		free(v->items[i].shown);
		free(v->items[i].target);
	}
	free(v->items);
	if (v->parts) {
		plan_done(&v->parts->plan);
		bundle_done(&v->parts->bundle);
		area_done(&v->parts->area);
	}
	free(v->parts);
	*v = (struct stage_view){0};
}

/* ---- diffs ---- */

int stage_view_diff(const struct stage_view *v, const struct stage_change *item, textdiff_put *put,
	void *arg, struct err *err)
{
	const struct plan_step *s = item->step;
	AUTO_FREE char *old = NULL, *new = NULL;
	AUTO_FREE char *from = xasprintf("a/%s", s->path), *to = xasprintf("b/%s", s->path);
	struct textdiff_side x = {.name = "/dev/null"}, y = {.name = "/dev/null"};
	size_t n_old = 0, n_new = 0;
	int r = 0;

	if (s->old.type == LOOK_FILE && s->old.size <= PLAN_HUGE &&
		area_load_host(&v->parts->area, s, &old, &n_old) == 0)
		x = (struct textdiff_side){.name = from, .text = slice_of(old, n_old)};
	if (s->new.type == LOOK_FILE) {
		r = saved_load_step(&v->parts->bundle, s, PLAN_HUGE + 1, &new, &n_new, err);
		y = (struct textdiff_side){.name = to, .text = slice_of(new, n_new)};
	}
	if (r == 0)
		(void)textdiff_write(&x, &y, put, arg);
	return r;
}

/* ---- apply ---- */

static void tell_skipped(void *arg, const struct plan_step *step, const char *why)
{
	const struct stage_parts *s = arg;
	AUTO_FREE char *path = area_show_path(&s->area, step->ws, step->path);

	if (s->tell)
		s->tell(path, why);
}

struct apply view_make_apply(struct stage_parts *s, unsigned number)
{
	return (struct apply){.dir = xasprintf("%s/undo/%u", s->area.dir, number),
		.tag = xasprintf("%s-%u", s->area.id, number),
		.roots = s->area.roots,
		.bundle = &s->bundle,
		.merged = area_path(&s->area, "merged"),
		.known = &s->area.known,
		.tell = tell_skipped,
		.arg = s};
}

void view_free_apply(struct apply *a)
{
	free((char *)a->dir);
	free((char *)a->tag);
	free((char *)a->merged);
}

static int run_apply(struct stage_parts *s, struct stage_result *ret, struct problem *p)
{
	CLEANUP(view_free_apply) struct apply ap = {0};
	unsigned number;
	int r = area_next_apply(&s->area, &number, &p->err);

	if (r < 0)
		return r;
	ap = view_make_apply(s, number);
	r = apply_run(&ap, &s->plan, &p->err);
	pull_refresh(&s->area);
	if (r < 0)
		return problem_hint(p, r, "sbx apply --undo %s", s->area.name);
	*ret = (struct stage_result){.n_done = ap.n_done,
		.n_skipped = ap.n_skipped,
		.n_held = s->plan.n - ap.n_done - ap.n_skipped};
	r = area_save_known(&s->area, &p->err);
	if (r == 0)
		past_trim(&s->area, number);
	return r;
}

/* "a, b, c and 5 more" for the record. The names are cleaned; one that is not UTF-8 is "?". */
static char *list_names(const struct stage_view *v, size_t n)
{
	char buf[NAMES_BYTES] = "";
	size_t used = 0, told = 0;

	for (size_t i = 0; i < v->n; i++) {
		const char *name = v->items[i].shown;
		AUTO_JSON json_t *text = json_string(name);

		if (!*v->items[i].wanted)
			continue;
		name = text ? name : "?";
		if (used + strlen(name) + 2 >= sizeof(buf))
			break;
		used += (size_t)snprintf(
			buf + used, sizeof(buf) - used, "%s%s", told ? ", " : "", name);
		told++;
	}
	if (told == n)
		return xstrdup(buf);
	return xasprintf("%s%s%zu%s", buf, told ? " and " : "", n - told, told ? " more" : "");
}

int stage_view_apply(struct stage_view *v, void (*tell)(const char *path, const char *why),
	struct stage_result *ret, struct problem *p)
{
	struct stage_parts *s = v->parts;
	AUTO_FREE char *names = NULL;
	size_t n = 0;
	int r;

	*ret = (struct stage_result){.n_held = s->plan.n};
	s->tell = tell;
	for (size_t i = 0; i < v->n; i++) {
		*v->items[i].wanted &= v->items[i].rule != STAGE_NEVER;
		n += *v->items[i].wanted;
	}
	if (n == 0)
		return 0;
	plan_want_parents(&s->plan);
	names = list_names(v, n);
	r = area_record(&s->area, "apply", &s->bundle, n, names, p);
	return r < 0 ? r : run_apply(s, ret, p);
}
