/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/client/cli/form.h"
#include "secret_api.h"
#include "secret_verbs.h"
#include "lib/client/cli/table.h"
#include "lib/client/cli/when.h"

const struct opt_def secret_ls_opts[] = {
	{'g', "global", NULL, "list only credentials for all sandboxes"},
	{0, "sandbox", "NAME", "list only credentials that apply to this sandbox"},
	{0, "json", NULL, "print JSON"},
	{'q', "quiet", NULL, "print only the names"},
	{0},
};
const struct opt_def secret_services_opts[] = {
	{0, "json", NULL, "print JSON"},
	{'q', "quiet", NULL, "print only the names"},
	{0},
};
const struct opt_def secret_status_opts[] = {
	{0, "json", NULL, "print JSON"},
	{0},
};

/* The first two, and the number of the others. */
static char *short_hosts(const json_t *hosts)
{
	size_t n = json_array_size(hosts);
	const char *a = json_string_value(json_array_get(hosts, 0)),
		   *b = json_string_value(json_array_get(hosts, 1));

	if (n == 0)
		return xstrdup("-");
	if (n == 1)
		return xstrdup(a);
	return n == 2 ? xasprintf("%s,%s", a, b) : xasprintf("%s,%s,+%zu", a, b, n - 2);
}

static void add_row(struct table *t, const json_t *s)
{
	const char *sandbox = api_str(s, "sandbox");
	AUTO_FREE char *hosts = json_is_true(json_object_get(s, "known"))
					? short_hosts(json_object_get(s, "hosts"))
					: xstrdup("none: its service was removed");
	AUTO_FREE char *scope =
		strcmp(api_str(s, "scope"), "global") == 0
			? xstrdup("global")
			: xasprintf("sandbox:%s", sandbox[0] ? sandbox : "(removed)");
	char created[WHEN_TEXT], used[WHEN_TEXT];

	when_print((uint64_t)api_int(s, "created_at"), false, created);
	when_print((uint64_t)api_int(s, "used_at"), false, used);
	const char *const cells[] = {scope, api_str(s, "kind"), api_str(s, "name"),
		api_str(s, "secret"), hosts, created, api_int(s, "used_at") ? used : "never"};

	table_add(t, cells);
}

static json_t *pick_show(const json_t *answer, const char *sandbox, bool global)
{
	json_t *list = json_array(), *s;
	size_t i;

	json_array_foreach (json_object_get(answer, "secrets"), i, s) {
		if (global && strcmp(api_str(s, "scope"), "global") != 0)
			continue;
		if (!sandbox || secret_is_bound(answer, s, sandbox))
			(void)json_array_append(list, s);
	}
	return list;
}

static void print_table(const json_t *list)
{
	static const char *const heading[] = {
		"SCOPE", "TYPE", "NAME", "SECRET", "HOSTS", "CREATED", "LAST-USED"};
	const json_t *s;
	struct table t;
	size_t i;

	if (json_array_size(list) == 0) {
		ui_note("No credentials found");
		ui_hint("sbx secret services");
		return;
	}
	table_init(&t, ARRAY_LEN(heading), heading);
	json_array_foreach (list, i, s)
		add_row(&t, s);
	table_print(&t);
	table_done(&t);
}

static void print_names(const json_t *list)
{
	const json_t *s;
	size_t i;

	json_array_foreach (list, i, s) {
		ui_put(api_str(s, "name"));
		(void)putchar('\n');
	}
}

static void fill_each(json_t *list)
{
	static const char *const keys[] = {
		"program", "refresh_s", "header", "format", "sentinel", NULL};
	json_t *s;
	size_t i;

	json_array_foreach (list, i, s)
		form_fill(s, keys);
}

int secret_ls_run(struct opts *o)
{
	AUTO_JSON json_t *answer = NULL, *list = NULL, *whole = NULL;
	const char *sandbox = NULL;
	struct problem p = {0};
	int r = secret_scope(o, "secret ls", &sandbox, &p);

	if (r == 0)
		r = secret_check_sandbox(sandbox, &p);
	if (r == 0)
		r = secret_list(&answer, &p);
	if (r < 0)
		return ui_problem(&p, r);
	list = pick_show(answer, sandbox, opts_has(o, "global"));
	if (opts_has(o, "json")) {
		fill_each(list);
		whole = json_pack("{s:O}", "secrets", list);
		api_print(whole);
	} else if (opts_has(o, "quiet")) {
		print_names(list);
	} else {
		print_table(list);
	}
	return EXIT_OK;
}

static char *env_names(const json_t *envs)
{
	AUTO_JSON json_t *names = json_array();
	const json_t *e;
	size_t i;

	json_array_foreach (envs, i, e)
		(void)json_array_append_new(names, json_string(api_str(e, "name")));
	return secret_join(names, ",");
}

static void print_services(const json_t *answer)
{
	static const char *const heading[] = {"SERVICE", "VARIABLES", "HOSTS"};
	const json_t *s;
	struct table t;
	size_t i;

	table_init(&t, ARRAY_LEN(heading), heading);
	json_array_foreach (json_object_get(answer, "services"), i, s) {
		AUTO_FREE char *hosts = short_hosts(json_object_get(s, "hosts"));
		AUTO_FREE char *envs = env_names(json_object_get(s, "env"));
		const char *const cells[] = {api_str(s, "name"), envs, hosts};

		table_add(&t, cells);
	}
	table_print(&t);
	table_done(&t);
	(void)fflush(stdout);
}

int secret_services_run(struct opts *o)
{
	AUTO_JSON json_t *answer = NULL;
	struct problem p = {0};
	int r = secret_services(&answer, &p);
	const json_t *fault;
	size_t i;

	if (r < 0)
		return ui_problem(&p, r);
	if (opts_has(o, "json"))
		api_print(answer);
	else if (opts_has(o, "quiet"))
		print_names(json_object_get(answer, "services"));
	else
		print_services(answer);
	json_array_foreach (json_object_get(answer, "faults"), i, fault)
		ui_warning("skipped: %s", json_string_value(fault));
	return json_array_size(json_object_get(answer, "faults")) ? EXIT_FAILED : EXIT_OK;
}

static void row_show(const char *label, const char *text)
{
	printf("%-12s", label);
	ui_put(text);
	(void)putchar('\n');
}

static int print_status(const json_t *s)
{
	const char *state = api_str(s, "state");
	char n[24];

	(void)snprintf(n, sizeof(n), "%lld", api_int(s, "secrets"));
	row_show("vault", state);
	if (strcmp(state, "empty") == 0) {
		row_show("", "no credentials are set");
		return EXIT_OK;
	}
	row_show("credentials", n);
	row_show("key", api_str(s, "key_text"));
	row_show("memory", api_str(s, "memory_text"));
	(void)fflush(stdout);
	if (strcmp(state, "ready") == 0)
		return EXIT_OK;
	row_show("detail", api_str(s, "text"));
	(void)fflush(stdout);
	if (strcmp(state, "locked") == 0)
		ui_hint("sbx secret unlock");
	return EXIT_FAILED;
}

int secret_status_run(struct opts *o)
{
	static const char *const keys[] = {"key_text", "memory", "memory_text", NULL};
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r = api_call("GET", "/v1/secrets/status", NULL, SECRET_TIMEOUT_MS, &s, &p);

	if (r < 0)
		return ui_problem(&p, r);
	if (!opts_has(o, "json"))
		return print_status(s);
	form_fill(s, keys);
	api_print(s);
	return EXIT_OK;
}
