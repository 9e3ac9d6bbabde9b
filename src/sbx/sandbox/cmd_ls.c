/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/client/cli/form.h"
#include "port_spec.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/cli/table.h"
#include "src/sbx/label/label.h"
#include "sandbox.h"

static const struct opt_def opts[] = {
	{'a', "all", NULL, "accepted for compatibility; all sandboxes are always listed"},
	{0, "filter", "KEY=VALUE",
		"list only matching sandboxes: label=, state= or agent=", .many = true},
	{0, "json", NULL, "print JSON"},
	{'q', "quiet", NULL, "print only the names"},
	{0},
};

/* "/a/b:ro (+1)", "/a/b (clone)", "/a/b (staged)", or "-" */
static char *workspaces_text(const json_t *s)
{
	const json_t *list = json_object_get(s, "workspaces"), *first = json_array_get(list, 0);
	size_t n = json_array_size(list);
	const char *ro = json_is_true(json_object_get(first, "ro")) ? ":ro" : "";
	const char *staged = json_is_true(json_object_get(s, "staged")) ? " (staged)" : "";

	if (json_object_get(s, "clone"))
		return xasprintf("%s (clone)", api_str(json_object_get(s, "clone"), "host"));
	if (n == 0)
		return xstrdup("-");
	if (n == 1)
		return xasprintf("%s%s%s", api_str(first, "host"), ro, staged);
	return xasprintf("%s%s (+%zu)%s", api_str(first, "host"), ro, n - 1, staged);
}

/* The number of changed files that run programs on the host. */
static char *changed_text(const json_t *s)
{
	long long n = api_int(s, "guard_changed");

	return n ? xasprintf(", %lld to review", n) : xstrdup("");
}

static void add_row(struct table *t, const json_t *s)
{
	AUTO_FREE char *where = workspaces_text(s);
	AUTO_FREE char *ports = port_spec_summary(json_object_get(s, "ports"));
	bool emulated = strcmp(api_str(s, "accel"), "tcg") == 0 && !sandbox_is(s, "stopped") &&
			!sandbox_is(s, "suspended");
	AUTO_FREE char *changed = changed_text(s);
	AUTO_FREE char *status =
		xasprintf("%s%s%s", sandbox_is(s, "paused") ? SANDBOX_PAUSED : api_str(s, "status"),
			emulated && !sandbox_is(s, "paused") ? " (tcg)" : "", changed);
	const char *cells[] = {api_str(s, "name"), api_str(s, "agent"), status, ports, where};

	table_add(t, cells);
}

static void print_table(const json_t *list)
{
	static const char *const heading[] = {"SANDBOX", "AGENT", "STATUS", "PORTS", "WORKSPACE"};
	CLEANUP(table_done) struct table t;
	const json_t *s;
	size_t i;

	table_init(&t, ARRAY_LEN(heading), heading);
	json_array_foreach (list, i, s)
		add_row(&t, s);
	table_print(&t);
}

/* Only those that match every --filter. */
static int list_matching(const struct opts *o, json_t **ret, struct problem *p)
{
	const struct opt_list *filters = opts_list(o, "filter");
	int r = label_filter_check(filters, &p->err);

	if (r < 0)
		return problem_usage(p, r, "ls");
	r = sandbox_list(ret, p);
	for (size_t i = r < 0 ? 0 : json_array_size(*ret); i-- > 0;)
		if (!label_filter_matches(filters, json_array_get(*ret, i)))
			(void)json_array_remove(*ret, i);
	return r;
}

static int run_ls(struct opts *o)
{
	AUTO_JSON json_t *list = NULL, *whole = NULL;
	struct problem p = {0};
	int r = list_matching(o, &list, &p);
	json_t *s;
	size_t i;

	if (r < 0)
		return ui_problem(&p, r);
	if (opts_has(o, "json")) {
		json_array_foreach (list, i, s)
			form_sandbox(s);
		whole = json_pack("{s:O}", "sandboxes", list);
		api_print(whole);
	} else if (opts_has(o, "quiet")) {
		json_array_foreach (list, i, s)
			printf("%s\n", api_str(s, "name"));
	} else if (json_array_size(list) == 0 && opts_has(o, "filter")) {
		printf("No sandboxes match\n");
	} else if (json_array_size(list) == 0) {
		printf("No sandboxes found. Create one with: sbx create shell . --name demo\n");
	} else {
		print_table(list);
	}
	return EXIT_OK;
}

const struct verb verb_ls = {
	.name = "ls",
	.group = "sandboxes",
	.args = "",
	.summary = "list sandboxes",
	.about =
		"Lists all sandboxes by name. A sandbox that does not respond within a second is shown as\n"
		"unresponsive. (tcg) after the status means software emulation, which is not an isolation\n"
		"boundary. A sandbox that is paused (disk full) continues automatically when the host has\n"
		"free disk space again. \"2 to review\" means that the sandbox changed two workspace files\n"
		"that run programs on the host; sbx review SANDBOX --guard shows them.\n\n"
		"--filter label=KEY, label=KEY=VALUE, state=STATUS and agent=NAME list only the sandboxes\n"
		"that match all filters.",
	.examples =
		"  sbx ls\n  sbx ls --filter label=team=web --filter state=running\n  sbx ls --json | jq -r '.sandboxes[] | "
		"select(.status==\"running\").name'\n",
	.opts = opts,
	.run = run_ls,
};
