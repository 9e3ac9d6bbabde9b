/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard_diff.h"
#include "guard_row.h"
#include "guard_screen.h"
#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/cli/form.h"
#include "lib/client/tui/tui.h"
#include "lib/rules/airlock/autorun.h"
#include "review.h"

#define NOTE_MAX 5 /* paths in the note at the end of a session */

static int get_list(const char *ref, json_t **ret, struct problem *p)
{
	return sandbox_call("GET", ref, "/guard", NULL, API_TIMEOUT_MS, ret, p);
}

static void put_stdout(void *arg, const char *text, size_t n)
{
	(void)arg;
	(void)fwrite(text, 1, n, stdout);
}

static void print_rows(const json_t *sandbox, const json_t *list, const char *field, bool diffs)
{
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(list, field), i, row) {
		AUTO_FREE char *text = guard_row_heading(sandbox, row);

		printf("%s\n", text);
		if (!diffs)
			continue;
		guard_diff_print(sandbox, list, row, put_stdout, NULL);
		printf("\n");
	}
}

static void print_end(const json_t *sandbox, const json_t *list)
{
	const char *name = api_str(sandbox, "name");
	long long n = api_int(list, "total");
	size_t shown = json_array_size(json_object_get(list, "changed"));

	if (strcmp(api_str(list, "guard"), "off") == 0) {
		ui_note("The guard of sandbox '%s' is off: changes are not recorded. "
			"Enable it with: sbx update %s --guard default",
			name, name);
	} else if (n == 0) {
		ui_note("No changed files run programs on the host");
	} else {
		if ((size_t)n > shown)
			ui_note("%lld more files are not listed", n - (long long)shown);
		ui_note("%lld changed file%s run%s programs on the host. Forget the list with: "
			"sbx review %s --guard --done",
			n, n == 1 ? "" : "s", n == 1 ? "s" : "", name);
	}
}

static void put_stream(void *arg, const char *text, size_t n)
{
	(void)fwrite(text, 1, n, arg);
}

static void add_diff(const json_t *sandbox, const json_t *list, json_t *row)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	json_t *diff;

	if (!f)
		abort();
	guard_diff_print(sandbox, list, row, put_stream, f);
	(void)fclose(f);
	diff = json_stringn(text, size);
	(void)json_object_set_new(row, "diff", diff ? diff : json_null());
	free(text);
}

static void print_json(const json_t *sandbox, json_t *list)
{
	static const char *const keys[] = {"copy", "diff", NULL};
	static const char *const fields[] = {"changed", "denied"};
	json_t *row;
	size_t k;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		json_array_foreach (json_object_get(list, fields[i]), k, row) {
			if (i == 0)
				add_diff(sandbox, list, row);
			form_fill(row, keys);
		}
	}
	api_print(list);
}

/* sbxd forgets the list only if it still has the same number of files. */
static int forget_list(const char *ref, const json_t *list, struct problem *p)
{
	AUTO_FREE char *tail = xasprintf("/guard?total=%lld", api_int(list, "total"));

	return sandbox_call("DELETE", ref, tail, NULL, API_TIMEOUT_MS, NULL, p);
}

static void print_text(const json_t *sandbox, const json_t *list, bool is_done)
{
	print_rows(sandbox, list, "changed", !is_done);
	print_rows(sandbox, list, "denied", false);
	(void)fflush(stdout);
	if (!is_done)
		print_end(sandbox, list);
}

static bool wants_screen(const struct opts *o, const json_t *list)
{
	bool is_empty = json_array_size(json_object_get(list, "changed")) == 0 &&
			json_array_size(json_object_get(list, "denied")) == 0;

	return !is_empty && !opts_has(o, "plain") && !opts_has(o, "json") && !opts_has(o, "done") &&
	       tui_is_usable();
}

/* Returns 1 if the list is to be forgotten. */
static int show_list(const struct opts *o, const json_t *sandbox, json_t *list, struct problem *p)
{
	int r = opts_has(o, "done");

	if (wants_screen(o, list)) {
		r = guard_screen_run(sandbox, list, &p->err);
		if (r == 0)
			print_end(sandbox, list);
	} else if (opts_has(o, "json")) {
		print_json(sandbox, list);
	} else {
		print_text(sandbox, list, r);
	}
	return r;
}

int review_guard(const struct opts *o)
{
	AUTO_JSON json_t *sandbox = NULL, *list = NULL;
	const char *ref = o->args.v[0];
	struct problem p = {0};
	bool is_done;
	int r;

	r = sandbox_get(ref, &sandbox, &p);
	if (r == 0)
		r = get_list(ref, &list, &p);
	if (r == 0)
		r = show_list(o, sandbox, list, &p);
	is_done = r > 0;
	if (is_done)
		r = forget_list(ref, list, &p);
	if (r < 0)
		return ui_problem(&p, r);
	if (is_done && !opts_has(o, "json"))
		ui_note("The list of sandbox '%s' is empty now", api_str(sandbox, "name"));
	return EXIT_OK;
}

/* ---- the note at the end of a session ---- */

/* A retried write is listed once. */
static bool is_repeated(const json_t *rows, size_t at, uint64_t since_ms)
{
	const json_t *row = json_array_get(rows, at);

	for (size_t i = 0; i < at; i++) {
		const json_t *other = json_array_get(rows, i);

		if ((uint64_t)api_int(other, "changed_at") >= since_ms &&
			strcmp(api_str(other, "path"), api_str(row, "path")) == 0 &&
			strcmp(api_str(other, "detail"), api_str(row, "detail")) == 0)
			return true;
	}
	return false;
}

static void note_denied(const json_t *sandbox, const json_t *rows, uint64_t since_ms)
{
	const json_t *row;
	size_t i, n = 0;

	json_array_foreach (rows, i, row) {
		AUTO_FREE char *text = NULL;

		if ((uint64_t)api_int(row, "changed_at") < since_ms ||
			is_repeated(rows, i, since_ms))
			continue;
		if (++n > NOTE_MAX)
			continue;
		text = guard_row_heading(sandbox, row);
		ui_note("guard: %s", text);
	}
	if (n > NOTE_MAX)
		ui_note("guard: %zu more writes were denied", n - NOTE_MAX);
}

/* The command that permits the last denied write: a program that needs it may come again. */
static void note_exception(const json_t *sandbox, const json_t *rows, uint64_t since_ms)
{
	const char *name = api_str(sandbox, "name");
	const json_t *row = json_array_get(rows, json_array_size(rows) - 1);
	const char *path = api_str(row, "path");

	if (row && (uint64_t)api_int(row, "changed_at") >= since_ms && autorun_is_typed(path))
		ui_note("To permit writes to %s: sbx update %s --guard-except %s && sbx restart %s",
			path, name, path, name);
}

static void note_nothing(const json_t *list, bool is_only)
{
	if (!is_only || !ui_is_terminal())
		return;
	if (strcmp(api_str(list, "guard"), "off") == 0)
		ui_note("The guard is off: changes of files that run programs on the host are not "
			"recorded");
	else
		ui_note("No files that run programs on the host were changed");
}

void review_note(const json_t *sandbox, uint64_t since_ms, bool is_only)
{
	AUTO_JSON json_t *list = NULL;
	struct problem p = {0};
	long long n;

	/* The session is over: what it left is worth a note, not an error. */
	if (get_list(api_str(sandbox, "id"), &list, &p) < 0)
		return;
	note_denied(sandbox, json_object_get(list, "denied"), since_ms);
	note_exception(sandbox, json_object_get(list, "denied"), since_ms);
	n = api_int(list, "total");
	if (n)
		ui_note("%lld changed file%s run%s programs on the host: sbx review %s --guard", n,
			n == 1 ? "" : "s", n == 1 ? "s" : "", api_str(sandbox, "name"));
	else
		note_nothing(list, is_only);
}

void review_note_removed(const json_t *sandbox, uint64_t since_ms)
{
	AUTO_JSON json_t *list = NULL;
	struct problem p = {0};
	const json_t *row;
	size_t i;

	if (get_list(api_str(sandbox, "id"), &list, &p) < 0)
		return;
	note_denied(sandbox, json_object_get(list, "denied"), since_ms);
	json_array_foreach (json_object_get(list, "changed"), i, row) {
		AUTO_FREE char *text = guard_row_heading(sandbox, row);

		if (i < 2 * NOTE_MAX)
			ui_note("guard: %s", text);
	}
	if (i > 2 * NOTE_MAX)
		ui_note("guard: %zu more files", i - 2 * NOTE_MAX);
	if (i == 0)
		note_nothing(list, true);
}
