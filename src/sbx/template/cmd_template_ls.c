/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/client/api/api.h"
#include "lib/client/cli/form.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/cli/table.h"
#include "src/sbx/disk/disk.h"
#include "template_verbs.h"

const struct opt_def template_ls_opts[] = {
	{0, "json", NULL, "print JSON"},
	{'q', "quiet", NULL, "print only the names"},
	{0},
};
const struct opt_def template_rm_opts[] = {
	{'f', "force", NULL, "do not prompt for confirmation"},
	{0},
};
const struct opt_def template_inspect_opts[] = {
	{0, "json", NULL, "print JSON"},
	{0},
};

/* Keys of every template in JSON; its author may have added others to its manifest. */
static const char *const known_keys[] = {
	"id", "kind", "agent", "parent", "created", "version", "broken", NULL};

static void fill_ls(json_t *m)
{
	form_fill(m, known_keys);
	if (!json_object_get(m, "loaded"))
		(void)json_object_set_new(m, "loaded", json_false());
}

static const char *or_dash(const char *s)
{
	return s[0] ? s : "-";
}

/* The author chooses the kind. Whether it is a third party's is our own fact. */
static const char *kind_ls(const json_t *m, char buf[64])
{
	const char *s = or_dash(api_str(m, "kind"));

	if (json_object_get(m, "broken"))
		return "broken";
	if (!json_is_true(json_object_get(m, "loaded")))
		return s;
	(void)snprintf(buf, 64, "%.40s (loaded)", s);
	return buf;
}

static void print_table(const json_t *list)
{
	static const char *const heading[] = {
		"NAME", "ID", "SIZE", "SHARED", "CREATED", "KIND", "AGENT", "PARENT"};
	CLEANUP(table_done) struct table t;
	const json_t *m;
	size_t i;

	table_init(&t, ARRAY_LEN(heading), heading);
	json_array_foreach (list, i, m) {
		char size[32], shared[32], created[32], buf[64];
		const char *cells[] = {api_str(m, "name"), or_dash(api_str(m, "id")), size, shared,
			created, kind_ls(m, buf), or_dash(api_str(m, "agent")),
			or_dash(api_str(m, "parent"))};

		str_from_size((uint64_t)api_int(m, "size"), size, sizeof(size));
		str_from_size((uint64_t)api_int(m, "shared"), shared, sizeof(shared));
		(void)snprintf(created, sizeof(created), "%.16s", or_dash(api_str(m, "created")));
		table_add(&t, cells);
	}
	table_print(&t);
}

int template_ls_run(struct opts *o)
{
	AUTO_JSON json_t *list = template_list(), *whole = NULL;
	json_t *m;
	size_t i;

	if (opts_has(o, "json")) {
		json_array_foreach (list, i, m)
			fill_ls(m);
		whole = json_pack("{s:O}", "templates", list);
		api_print(whole);
	} else if (opts_has(o, "quiet")) {
		json_array_foreach (list, i, m)
			printf("%s\n", api_str(m, "name"));
	} else if (json_array_size(list) == 0) {
		printf("No templates found. Build one with: sbx template build\n");
	} else {
		print_table(list);
	}
	return EXIT_OK;
}

static void row_ls(const char *label, const char *text)
{
	printf("%-11s", label);
	ui_put(text);
	(void)putchar('\n');
}

static bool is_shown_apart(const char *key)
{
	static const char *const keys[] = {
		"name", "id", "size", "shared", "files", "format", "dir", "broken"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

/* Facts from its creator. */
static void print_facts(const json_t *m)
{
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)m, key, v) {
		AUTO_FREE char *text = NULL;

		if (is_shown_apart(key))
			continue;
		text = json_is_string(v) ? xstrdup(json_string_value(v))
					 : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
		row_ls(key, text ? text : "");
	}
}

static void print_sizes(const json_t *m)
{
	char size[32], shared[32];
	AUTO_FREE char *text = NULL;

	str_from_size((uint64_t)api_int(m, "size"), size, sizeof(size));
	str_from_size((uint64_t)api_int(m, "shared"), shared, sizeof(shared));
	text = xasprintf(
		"%s on the disk, %s of it shared with other templates and sandboxes", size, shared);
	row_ls("size", text);
}

static void print_text(const json_t *m)
{
	const char *name;
	json_t *file;

	row_ls("template", api_str(m, "name"));
	row_ls("id", or_dash(api_str(m, "id")));
	if (api_str(m, "broken")[0])
		row_ls("broken", api_str(m, "broken"));
	print_sizes(m);
	print_facts(m);
	row_ls("folder", api_str(m, "dir"));
	json_object_foreach (json_object_get(m, "files"), name, file) {
		AUTO_FREE char *text =
			xasprintf("%-15s %.16s", name, or_dash(api_str(file, "hash")));

		row_ls("file", text);
	}
}

static int not_there(const char *name, struct problem *p)
{
	(void)err_set(&p->err, -ENOENT, "template '%s' not found", name);
	return problem_hint(p, -ENOENT, "sbx template ls");
}

int template_inspect_run(struct opts *o)
{
	AUTO_JSON json_t *m = template_manifest(o->args.v[0]);
	struct problem p = {0};

	if (!m)
		return ui_problem(&p, not_there(o->args.v[0], &p));
	if (!opts_has(o, "json")) {
		print_text(m);
		return EXIT_OK;
	}
	fill_ls(m);
	api_print(m);
	return EXIT_OK;
}

static int remove_one(const char *name, struct problem *p)
{
	AUTO_FREE char *quoted = api_quote(name), *path = xasprintf("/v1/templates/%s", quoted);
	AUTO_JSON json_t *m = template_manifest(name);
	AUTO_TEMPLATE struct template t = {0};

	if (!m)
		return not_there(name, p);
	/* A template that was never hashed has no id yet, which its sandboxes need from now on. */
	if (!json_object_get(m, "id") && !json_object_get(m, "broken"))
		(void)!template_open_shown(name, template_show, NULL, &t, NULL);
	ui_progress_end();
	return api_call("DELETE", path, NULL, API_TIMEOUT_MS, NULL, p);
}

/* Rebuilding it can take minutes. */
static bool is_wanted(const struct opts *o)
{
	const char *first = o->args.v[0];

	if (opts_has(o, "force"))
		return true;
	if (!ui_can_ask()) {
		ui_error(
			"refusing to remove templates without confirmation: stdin is not a terminal");
		ui_hint("sbx template rm --force %s", first);
		return false;
	}
	if (o->args.n == 1)
		return ui_confirm("Remove template '%s'?", first);
	return ui_confirm("Remove %zu templates?", o->args.n);
}

/* Detects a typo before the prompt. */
static int check_there(const struct opts *o)
{
	AUTO_JSON json_t *list = template_list();
	int status = EXIT_OK;

	for (size_t i = 0; i < o->args.n; i++) {
		const json_t *m;
		bool found = false;
		size_t k;

		json_array_foreach (list, k, m) {
			found = found || strcmp(api_str(m, "name"), o->args.v[i]) == 0;
		}
		if (found)
			continue;
		ui_error("template '%s' not found", o->args.v[i]);
		ui_hint("sbx template ls");
		status = EXIT_FAILED;
	}
	return status;
}

int template_rm_run(struct opts *o)
{
	int status = check_there(o);

	if (status != EXIT_OK || !is_wanted(o))
		return EXIT_FAILED;
	for (size_t i = 0; i < o->args.n; i++) {
		struct problem p = {0};
		int r = remove_one(o->args.v[i], &p);

		if (r < 0)
			status = ui_problem(&p, r);
		else
			printf("%s Removed template %s. Existing sandboxes keep it.\n", ui_tick(),
				o->args.v[i]);
	}
	return status;
}

static int verify_one(const char *name)
{
	struct problem p = {0};
	int r = template_verify(name, template_show, NULL, &p.err);

	ui_progress_end();
	if (r < 0)
		return ui_problem(&p, r);
	printf("%s Template %s is intact\n", ui_tick(), name);
	return EXIT_OK;
}

int template_verify_run(struct opts *o)
{
	AUTO_JSON json_t *list = o->args.n ? NULL : template_list();
	int status = EXIT_OK, s;
	const json_t *m;
	size_t i;

	for (i = 0; i < o->args.n; i++) {
		s = verify_one(o->args.v[i]);
		status = s ? s : status;
	}
	json_array_foreach (list, i, m) {
		s = verify_one(api_str(m, "name"));
		status = s ? s : status;
	}
	return status;
}
