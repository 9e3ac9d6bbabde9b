/* SPDX-License-Identifier: Apache-2.0 */
#include "show.h"

#include <stdio.h>
#include <string.h>

#include "lib/client/api/api.h"

static void print_item(const struct stage_change *item)
{
	printf("  %-12s %-8s %s%s", item->class, item->change, item->shown,
		item->directory ? "/" : "");
	if (item->target)
		printf(" -> %s", item->target);
	if (item->old_mode != item->mode)
		printf(" (mode %03o, was %03o)", (unsigned)item->mode, (unsigned)item->old_mode);
	printf("\n");
	if (item->notes)
		printf("  %-12s          %s\n", "", item->notes);
}

static void print_sums(const struct stage_view *v)
{
	static const char *const notes[] = {
		[STAGE_BY_CLASS] = "",
		[STAGE_BY_PATH] = ", applied only by path",
		[STAGE_NEVER] = ", never applied",
	};
	size_t n;

	printf("%zu change%s of sandbox '%s':\n", v->n, v->n == 1 ? "" : "s", v->sandbox);
	for (size_t i = 0; i < v->n; i += n) {
		for (n = 1; i + n < v->n && strcmp(v->items[i + n].class, v->items[i].class) == 0;)
			n++;
		printf("  %-12s %zu%s\n", v->items[i].class, n, notes[v->items[i].rule]);
	}
}

static void put_piece(void *arg, const char *text, size_t n)
{
	(void)fwrite(text, 1, n, stdout);
}

int show_view(const struct stage_view *v, bool diffs, struct err *err)
{
	int r = 0;

	if (v->n == 0) {
		printf("No changes: the workspace is as sandbox '%s' shows it\n", v->sandbox);
		return 0;
	}
	print_sums(v);
	printf("\n");
	for (size_t i = 0; i < v->n; i++)
		print_item(&v->items[i]);
	for (size_t i = 0; diffs && r == 0 && i < v->n; i++) {
		if (!v->items[i].has_diff)
			continue;
		printf("\n");
		r = stage_view_diff(v, &v->items[i], put_piece, NULL, err);
	}
	return r;
}

/* ---- apply ---- */

void show_skipped(const char *path, const char *why)
{
	ui_warning("skipped %s: %s", path, why);
}

void show_applied(const char *name, const struct stage_result *done)
{
	ui_done("Applied %zu change%s to the workspace of sandbox '%s'", done->n_done,
		done->n_done == 1 ? "" : "s", name);
	if (done->n_skipped)
		ui_note("%zu skipped", done->n_skipped);
	if (done->n_held)
		ui_note("%zu not selected. They stay in the sandbox", done->n_held);
	ui_note("To revert: sbx undo %s", name);
}

/* ---- JSON ---- */

static json_t *item_to_json(const struct stage_change *item)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:b}", "path", item->path, "workspace",
		item->workspace, "class", item->class, "change", item->change, "directory",
		item->directory);

	(void)json_object_set_new(
		o, "target", item->target ? json_string(item->target) : json_null());
	(void)json_object_set_new(o, "notes", item->notes ? json_string(item->notes) : json_null());
	return o;
}

void show_json(const struct stage_view *v)
{
	AUTO_JSON json_t *o = json_object();
	json_t *list = json_array();

	for (size_t i = 0; i < v->n; i++)
		(void)json_array_append_new(list, item_to_json(&v->items[i]));
	(void)json_object_set_new(o, "sandbox", json_string(v->sandbox));
	(void)json_object_set_new(o, "changes", list);
	api_print(o);
}
