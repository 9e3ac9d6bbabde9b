/* SPDX-License-Identifier: Apache-2.0 */
#include "guard_screen.h"

#include <stdio.h>
#include <string.h>

#include "edit_copy.h"
#include "guard_diff.h"
#include "guard_row.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/tui/tui.h"
#include "screen_style.h"

static const struct tui_bind binds[] = {{'e', "editor"}, {'d', "done"}, {0, NULL}};

struct screen_row {
	const json_t *row; /* NULL: a heading */
	char *text;
	bool is_seen;
};

struct guard_screen {
	const json_t *sandbox, *list;
	struct screen_row *v;
	size_t n;
	char *text; /* of the selected file */
	size_t n_text;
	bool is_asking, is_done;
};

static void screen_done(struct guard_screen *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].text);
	free(s->v);
	free(s->text);
}

/* ---- list ---- */

struct group {
	const char *title, *field;
	const char *const states[3];
};

static const struct group groups[] = {
	{"New", "changed", {"new"}},
	{"Changed", "changed", {"changed"}},
	{"Replaced", "changed", {"was-link", "was-other"}},
	{"Directories", "changed", {"tree"}},
	{"Denied", "denied", {"denied"}},
};

static bool is_in_group(const struct group *g, const json_t *row)
{
	const char *state = api_str(row, "state");

	for (size_t i = 0; i < ARRAY_LEN(g->states) && g->states[i]; i++)
		if (strcmp(g->states[i], state) == 0)
			return true;
	return false;
}

static void add_group(struct guard_screen *s, const struct group *g)
{
	const json_t *row;
	size_t i, at = s->n++;

	json_array_foreach (json_object_get(s->list, g->field), i, row) {
		if (is_in_group(g, row))
			s->v[s->n++] = (struct screen_row){
				.row = row, .text = guard_row_path(s->sandbox, row)};
	}
	if (s->n == at + 1)
		s->n = at;
	else
		s->v[at].text = xasprintf("%s (%zu)", g->title, s->n - at - 1);
}

static void make_list(struct guard_screen *s)
{
	size_t n = json_array_size(json_object_get(s->list, "changed")) +
		   json_array_size(json_object_get(s->list, "denied")) + ARRAY_LEN(groups);

	s->v = xcalloc(n, sizeof(*s->v));
	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		add_group(s, &groups[i]);
}

static void get_row(void *arg, size_t i, struct tui_row *ret)
{
	const struct screen_row *r = &((struct guard_screen *)arg)->v[i];

	ret->text = slice_from_str(r->text);
	ret->is_heading = !r->row;
	ret->mark = r->is_seen ? ' ' : '*';
}

/* ---- text ---- */

static void put_stream(void *arg, const char *text, size_t n)
{
	(void)fwrite(text, 1, n, arg);
}

static struct slice get_text(void *arg, size_t i)
{
	struct guard_screen *s = arg;
	const json_t *row = s->v[i].row;
	AUTO_FREE char *heading = guard_row_heading(s->sandbox, row);
	FILE *f;

	free(s->text);
	s->text = NULL;
	f = open_memstream(&s->text, &s->n_text);
	if (!f)
		abort();
	(void)fprintf(f, "%s\n\n", heading);
	if (strcmp(api_str(row, "state"), "denied") == 0)
		(void)fprintf(f, "The guard denied this write. The file was not changed.\n");
	else
		guard_diff_print(s->sandbox, s->list, row, put_stream, f);
	(void)fclose(f);
	s->v[i].is_seen = true;
	return slice_of(s->text, s->n_text);
}

static enum tui_style get_style(void *arg, struct slice line)
{
	const struct guard_screen *s = arg;

	return (const char *)line.p == s->text ? TUI_BOLD : screen_style_of(line);
}

/* ---- keys ---- */

static void open_editor(struct guard_screen *s, size_t i, char *status, size_t size)
{
	const json_t *row = s->v[i].row;
	AUTO_FREE char *text = NULL;
	const char *fault = NULL;
	struct err err = {0};
	size_t n = 0;

	if (guard_diff_file(s->sandbox, row, &text, &n, &fault) < 0)
		(void)snprintf(status, size, "not opened: the file %s", fault);
	else if (edit_copy_show(api_str(row, "path"), slice_of(text, n), &err) < 0)
		(void)snprintf(status, size, "%s", err.text);
	else
		(void)snprintf(status, size, "The editor had a copy. The file was not changed.");
}

static enum tui_answer ask_done(struct guard_screen *s, char *status, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->v[i].row && !s->v[i].is_seen;
	s->is_asking = true;
	if (n)
		(void)snprintf(status, size, "Forget the list? %zu not shown yet. [y/N]", n);
	else
		(void)snprintf(status, size, "Forget the list? [y/N]");
	return TUI_ASK;
}

static enum tui_answer press_key(void *arg, size_t i, uint32_t key, char *status, size_t size)
{
	struct guard_screen *s = arg;

	if (s->is_asking) {
		s->is_asking = false;
		s->is_done = key == 'y' || key == 'Y';
		return s->is_done ? TUI_CLOSE : TUI_STAY;
	}
	if (key == 'd')
		return ask_done(s, status, size);
	if (key == 'e' && i < s->n)
		open_editor(s, i, status, size);
	return TUI_STAY;
}

int guard_screen_run(const json_t *sandbox, const json_t *list, struct err *err)
{
	CLEANUP(screen_done) struct guard_screen s = {.sandbox = sandbox, .list = list};
	struct tui_source src = {.binds = binds,
		.row = get_row,
		.text = get_text,
		.line_style = get_style,
		.press = press_key,
		.arg = &s};
	AUTO_FREE char *title = xasprintf(
		" %s: %lld changed files that run programs on the host, %zu denied writes",
		api_str(sandbox, "name"), api_int(list, "total"),
		json_array_size(json_object_get(list, "denied")));
	int r;

	make_list(&s);
	src.title = title;
	src.n = s.n;
	r = tui_run(&src, err);
	return r < 0 ? r : s.is_done;
}
