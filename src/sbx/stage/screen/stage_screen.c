/* SPDX-License-Identifier: Apache-2.0 */
#include "stage_screen.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/client/tui/tui.h"
#include "src/sbx/review/review.h"
#include "src/sbx/stage/merge/saved.h"
#include "src/sbx/stage/view_internal.h"

static const struct tui_bind binds[] = {{'a', "apply"}, {'s', "skip"}, {'h', "hold back"},
	{'c', "class"}, {'e', "editor"}, {'w', "apply selected"}, {'q', "close"}, {0, NULL}};

struct screen_row {
	struct stage_change *item; /* NULL: a heading */
	char *heading;
	bool is_seen, is_held;
};

enum question { ASK_NOTHING, ASK_APPLY, ASK_CLOSE };

struct stage_screen {
	struct stage_view *v;
	struct screen_row *rows;
	struct tui_source src;
	char title[256];
	char *text; /* of the selected change */
	size_t n_text;
	enum question question;
	bool applies;
};

static void screen_done(struct stage_screen *s)
{
	for (size_t i = 0; i < s->src.n; i++)
		free(s->rows[i].heading);
	free(s->rows);
	free(s->text);
}

/* ---- list ---- */

static char *make_heading(const struct stage_change *first, size_t n)
{
	static const char *const notes[] = {[STAGE_BY_CLASS] = "",
		[STAGE_BY_PATH] = ", one by one",
		[STAGE_NEVER] = ", never applied"};

	return xasprintf("%s (%zu)%s", first->class, n, notes[first->rule]);
}

/* The items are sorted by class. */
static void make_rows(struct stage_screen *s)
{
	struct stage_change *v = s->v->items;
	size_t n;

	s->rows = xcalloc(2 * s->v->n + 1, sizeof(*s->rows));
	for (size_t i = 0; i < s->v->n; i += n) {
		struct screen_row *heading = &s->rows[s->src.n++];

		for (n = 0; i + n < s->v->n && strcmp(v[i + n].class, v[i].class) == 0; n++)
			s->rows[s->src.n++].item = &v[i + n];
		heading->heading = make_heading(&v[i], n);
	}
}

static char mark_of(const struct screen_row *r)
{
	if (*r->item->wanted)
		return '+';
	return r->is_held ? '-' : r->is_seen ? ' ' : '*';
}

static void get_row(void *arg, size_t i, struct tui_row *ret)
{
	const struct screen_row *r = &((struct stage_screen *)arg)->rows[i];

	ret->is_heading = !r->item;
	if (!r->item) {
		ret->text = slice_from_str(r->heading);
		return;
	}
	ret->text = slice_from_str(r->item->shown);
	ret->mark = mark_of(r);
	ret->style = *r->item->wanted		    ? TUI_GREEN
		     : r->is_held		    ? TUI_YELLOW
		     : r->item->rule == STAGE_NEVER ? TUI_DIM
						    : TUI_PLAIN;
}

static size_t count_wanted(const struct stage_screen *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->v->n; i++)
		n += *s->v->items[i].wanted;
	return n;
}

static void set_title(struct stage_screen *s)
{
	(void)snprintf(s->title, sizeof(s->title), " %s: %zu changes, %zu selected", s->v->sandbox,
		s->v->n, count_wanted(s));
}

/* ---- text ---- */

static void put_stream(void *arg, const char *text, size_t n)
{
	(void)fwrite(text, 1, n, arg);
}

static void write_facts(FILE *f, const struct stage_change *item)
{
	(void)fprintf(f, "%s%s (%s, %s)\n", item->shown, item->directory ? "/" : "", item->change,
		item->class);
	if (item->target)
		(void)fprintf(f, "symbolic link to %s\n", item->target);
	if (item->old_mode != item->mode)
		(void)fprintf(
			f, "mode %03o, was %03o\n", (unsigned)item->mode, (unsigned)item->old_mode);
	if (item->notes)
		(void)fprintf(f, "%s\n", item->notes);
	if (item->rule == STAGE_NEVER)
		(void)fprintf(f, "Class %s is never applied.\n", item->class);
	(void)fprintf(f, "\n");
}

static struct slice get_text(void *arg, size_t i)
{
	struct stage_screen *s = arg;
	const struct stage_change *item = s->rows[i].item;
	struct err err = {0};
	FILE *f;

	free(s->text);
	s->text = NULL;
	f = open_memstream(&s->text, &s->n_text);
	if (!f)
		abort();
	write_facts(f, item);
	if (item->has_diff && stage_view_diff(s->v, item, put_stream, f, &err) < 0)
		(void)fprintf(f, "no diff: %s\n", err.text);
	(void)fclose(f);
	s->rows[i].is_seen = true;
	return slice_of(s->text, s->n_text);
}

static enum tui_style get_style(void *arg, struct slice line)
{
	const struct stage_screen *s = arg;

	return (const char *)line.p == s->text ? TUI_BOLD : screen_style_of(line);
}

/* ---- keys ---- */

static enum tui_answer select_one(
	struct stage_screen *s, struct screen_row *r, char *status, size_t size)
{
	if (r->item->rule == STAGE_NEVER) {
		(void)snprintf(status, size, "class %s is never applied", r->item->class);
		return TUI_STAY;
	}
	*r->item->wanted = true;
	r->is_held = false;
	return TUI_NEXT;
}

static enum tui_answer leave_one(struct screen_row *r, bool is_held)
{
	*r->item->wanted = false;
	r->is_held = is_held;
	return TUI_NEXT;
}

/* All of the class that are not held back. */
static enum tui_answer select_class(
	struct stage_screen *s, const struct screen_row *r, char *status, size_t size)
{
	size_t n = 0;

	if (r->item->rule != STAGE_BY_CLASS) {
		(void)snprintf(status, size, "class %s is %s", r->item->class,
			r->item->rule == STAGE_NEVER ? "never applied" : "selected one by one");
		return TUI_STAY;
	}
	for (size_t i = 0; i < s->src.n; i++) {
		struct screen_row *other = &s->rows[i];

		if (!other->item || other->is_held ||
			strcmp(other->item->class, r->item->class) != 0)
			continue;
		*other->item->wanted = true;
		n++;
	}
	(void)snprintf(status, size, "%zu of class %s selected", n, r->item->class);
	return TUI_STAY;
}

static void open_editor(
	struct stage_screen *s, const struct stage_change *item, char *status, size_t size)
{
	const struct plan_step *step = item->step;
	AUTO_FREE char *text = NULL;
	struct err err = {0};
	size_t n = 0;

	if (step->new.type != LOOK_FILE || step->new.size > PLAN_HUGE)
		(void)snprintf(status, size, "not opened: %s",
			step->new.type != LOOK_FILE ? "the change is not a file"
						    : "the file is too large");
	else if (saved_load_step(&s->v->parts->bundle, step, PLAN_HUGE, &text, &n, &err) < 0 ||
		 edit_copy_show(step->path, slice_of(text, n), &err) < 0)
		(void)snprintf(status, size, "%s", err.text);
	else
		(void)snprintf(status, size, "The editor had a copy. The change is as it was.");
}

static enum tui_answer ask_user(
	struct stage_screen *s, enum question question, char *status, size_t size)
{
	size_t n = count_wanted(s);

	if (n == 0 && question == ASK_CLOSE)
		return TUI_CLOSE;
	if (n == 0) {
		(void)snprintf(status, size, "nothing is selected");
		return TUI_STAY;
	}
	s->question = question;
	(void)snprintf(status, size,
		question == ASK_APPLY ? "Apply %zu selected changes to the workspace? [y/N]"
				      : "Close without applying %zu selected changes? [y/N]",
		n);
	return TUI_ASK;
}

static enum tui_answer press_item(
	struct stage_screen *s, struct screen_row *r, uint32_t key, char *status, size_t size)
{
	switch (key) {
	case 'a':
		return select_one(s, r, status, size);
	case 's':
		return leave_one(r, false);
	case 'h':
		return leave_one(r, true);
	case 'c':
		return select_class(s, r, status, size);
	case 'e':
		open_editor(s, r->item, status, size);
		return TUI_STAY;
	default:
		return TUI_STAY;
	}
}

static enum tui_answer press_key(void *arg, size_t i, uint32_t key, char *status, size_t size)
{
	struct stage_screen *s = arg;
	enum question question = s->question;
	enum tui_answer answer = TUI_STAY;

	s->question = ASK_NOTHING;
	if (question != ASK_NOTHING) {
		s->applies = question == ASK_APPLY && (key == 'y' || key == 'Y');
		return key == 'y' || key == 'Y' ? TUI_CLOSE : TUI_STAY;
	}
	if (key == 'w' || key == 'q')
		return ask_user(s, key == 'w' ? ASK_APPLY : ASK_CLOSE, status, size);
	if (i < s->src.n)
		answer = press_item(s, &s->rows[i], key, status, size);
	set_title(s);
	return answer;
}

int stage_screen_run(struct stage_view *v, struct err *err)
{
	CLEANUP(screen_done) struct stage_screen s = {.v = v};
	int r;

	s.src = (struct tui_source){.title = s.title,
		.binds = binds,
		.row = get_row,
		.text = get_text,
		.line_style = get_style,
		.press = press_key,
		.arg = &s};
	make_rows(&s);
	set_title(&s);
	r = tui_run(&s.src, err);
	return r < 0 ? r : s.applies;
}
