/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/api.h"
#include "lib/client/cli/table.h"
#include "lib/rules/pack/pack_path.h"
#include "api_request.h"
#include "policy.h"

const struct packs *api_packs(void)
{
	static struct packs all; /* for the lifetime of the program */
	static bool loaded;
	struct err err = {0};

	if (loaded)
		return &all;
	loaded = true;
	if (packs_load_installed(&all, &err) < 0)
		ui_warning("%s", err.text);
	for (size_t i = 0; i < all.n_faults; i++)
		ui_warning("%s: API pack skipped", all.fault[i]);
	return &all;
}

static char *hosts_text(const struct pack *p)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < p->n_hosts; i++) {
		AUTO_FREE char *old = text;

		text = xasprintf("%s%s%.*s:%u", old, i ? ", " : "", (int)p->host[i].name.n,
			p->host[i].name.p, p->host[i].port);
	}
	return text;
}

/* ---- ls ---- */

static json_t *describe_pack(const struct pack *p, bool own)
{
	json_t *hosts = json_array();

	for (size_t i = 0; i < p->n_hosts; i++)
		(void)json_array_append_new(
			hosts, json_pack("{s:s%, s:i}", "host", p->host[i].name.p,
				       p->host[i].name.n, "port", (int)p->host[i].port));
	return json_pack("{s:s, s:s%, s:s%, s:o, s:i, s:i, s:b}", "service", p->name, "about",
		p->about.p, p->about.n, "version", p->version.p ? (const char *)p->version.p : "",
		p->version.n, "hosts", hosts, "rows", (int)(p->n_rows + p->n_fields), "cases",
		(int)p->n_cases, "own", own);
}

static void list_packs(const struct packs *all)
{
	static const char *const heading[] = {"SERVICE", "ROWS", "ABOUT", "HOSTS"};
	CLEANUP(table_done) struct table t = {0};

	table_init(&t, ARRAY_LEN(heading), heading);
	for (size_t i = 0; i < all->n; i++) {
		const struct pack *p = &all->v[i];
		AUTO_FREE char *hosts = hosts_text(p),
			       *rows = xasprintf("%zu", p->n_rows + p->n_fields),
			       *about = xstrndup((const char *)p->about.p, p->about.n);
		const char *cells[] = {p->name, rows, about, hosts};

		table_add(&t, cells);
	}
	table_print(&t);
}

static int run_ls(struct opts *o)
{
	const struct packs *all = api_packs();
	AUTO_JSON json_t *list = json_array(), *whole = NULL;

	for (size_t i = 0; i < all->n; i++)
		(void)json_array_append_new(list, describe_pack(&all->v[i], all->own[i]));
	if (opts_has(o, "quiet")) {
		for (size_t i = 0; i < all->n; i++)
			printf("%s\n", all->v[i].name);
	} else if (opts_has(o, "json")) {
		whole = json_pack("{s:O}", "packs", list);
		api_print(whole);
	} else {
		list_packs(all);
	}
	return all->n_faults ? EXIT_FAILED : EXIT_OK;
}

/* ---- show ---- */

static int compare_lines(const void *a, const void *b)
{
	const struct pack_row *const *x = a, *const *y = b;

	if ((*x)->risk != (*y)->risk)
		return (int)(*x)->risk - (int)(*y)->risk;
	return (*x)->line < (*y)->line ? -1 : 1;
}

static json_t *describe_row(const struct pack *p, const struct pack_row *row, const char *path)
{
	const struct slice object = p->object[row->object].text;

	return json_pack("{s:s, s:s%, s:s%, s:s, s:s%, s:s%, s:i, s:i}", "risk",
		pack_risk_name(row->risk), "verb", row->verb.p, row->verb.n, "method",
		row->method.p, row->method.n, "path", path, "object", object.p, object.n, "say",
		row->say.p ? (const char *)row->say.p : "", row->say.n, "conditions",
		(int)row->n_whens, "line", (int)row->line);
}

static void print_row(const struct pack *p, const struct pack_row *row, const char *path)
{
	const struct slice object = p->object[row->object].text;

	printf("%-10s  %.*s  %.*s %s  on %.*s%s\n", pack_risk_name(row->risk), (int)row->verb.n,
		row->verb.p, (int)row->method.n, row->method.p, path, (int)object.n, object.p,
		row->n_whens ? "  (with conditions)" : "");
}

static bool is_risk(const char *text)
{
	for (enum pack_risk r = 0; r < PACK_N_RISKS; r++)
		if (strcmp(text, pack_risk_name(r)) == 0)
			return true;
	return false;
}

/* The path, or the field of GraphQL. */
static char *place_text(const struct pack_row *row)
{
	return row->field.n ? xstrndup((const char *)row->field.p, row->field.n)
			    : pack_path_text(&row->path);
}

static void show_rows(const struct pack *p, const char *risk, json_t *list)
{
	size_t n = p->n_rows + p->n_fields;
	AUTO_FREE const struct pack_row **rows = xcalloc(n, sizeof(struct pack_row *));

	for (size_t i = 0; i < n; i++)
		rows[i] = i < p->n_rows ? &p->row[i] : &p->field[i - p->n_rows];
	qsort(rows, n, sizeof(struct pack_row *), compare_lines);
	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *path = place_text(rows[i]);

		if (risk && strcmp(risk, pack_risk_name(rows[i]->risk)) != 0)
			continue;
		if (list)
			(void)json_array_append_new(list, describe_row(p, rows[i], path));
		else
			print_row(p, rows[i], path);
	}
}

static int run_show(struct opts *o)
{
	const char *name = o->args.v[0], *risk = opts_value(o, "risk");
	const struct pack *p = packs_find(api_packs(), name);
	AUTO_JSON json_t *list = opts_has(o, "json") ? json_array() : NULL, *whole = NULL;

	if (risk && !is_risk(risk)) {
		ui_error(
			"invalid --risk '%s': expected read, write, danger, money, credential, send or admin",
			risk);
		ui_hint("sbx help api show");
		return EXIT_USAGE;
	}
	if (!p) {
		ui_error("no API pack '%s'", name);
		ui_hint("sbx api ls");
		return EXIT_FAILED;
	}
	show_rows(p, risk, list);
	if (list) {
		whole = json_pack("{s:s, s:O}", "service", p->name, "rows", list);
		api_print(whole);
	}
	return EXIT_OK;
}

/* ---- test and add ---- */

static int load_file(const char *path, char **ret_text, struct pack *ret, struct err *err)
{
	size_t n = 0;
	int r = file_load(path, PACK_MAX_BYTES, ret_text, &n, err);

	if (r == -ENOENT)
		return err_errno(err, r, "cannot read %s", path);
	return r < 0 ? r : pack_parse(slice_of(*ret_text, n), path, ret, err);
}

static void print_count(const struct pack *p)
{
	ui_done("%s: %zu rows, %zu cases", p->name, p->n_rows + p->n_fields, p->n_cases);
}

static int test_file(const char *path)
{
	AUTO_PACK struct pack p = {0};
	AUTO_FREE char *text = NULL;
	struct err err = {0};

	if (load_file(path, &text, &p, &err) < 0) {
		ui_error("%s", err.text);
		return EXIT_FAILED;
	}
	print_count(&p);
	return EXIT_OK;
}

static int test_all(void)
{
	const struct packs *all = api_packs();

	for (size_t i = 0; i < all->n; i++)
		print_count(&all->v[i]);
	return all->n_faults ? EXIT_FAILED : EXIT_OK;
}

static int run_test(struct opts *o)
{
	const char *what = o->args.n ? o->args.v[0] : NULL;
	bool is_request = what && strchr(what, ' ');

	if (!is_request && (opts_has(o, "body") || opts_has(o, "header") || opts_has(o, "json"))) {
		ui_error("--body, --header and --json require a request");
		ui_hint("sbx help api test");
		return EXIT_USAGE;
	}
	if (is_request)
		return api_request_test(api_packs(), what, o);
	return what ? test_file(what) : test_all();
}

static int refuse_add(const struct err *err)
{
	ui_error("%s", err->text);
	return EXIT_FAILED;
}

/* What the user agrees to: the hosts, and how many requests count as harmless. */
static void show_new(const struct pack *p)
{
	AUTO_FREE char *hosts = hosts_text(p);
	size_t n_read = 0;

	for (size_t i = 0; i < p->n_rows; i++)
		n_read += p->row[i].risk == PACK_READ;
	for (size_t i = 0; i < p->n_fields; i++)
		n_read += p->field[i].risk == PACK_READ;
	ui_note("Service %s, hosts %s: %zu rows, %zu of them read. Show them with: sbx api show %s",
		p->name, hosts, p->n_rows + p->n_fields, n_read, p->name);
}

static int run_add(struct opts *o)
{
	AUTO_FREE char *text = NULL, *folder = paths_get(PATHS_CONFIG, "apis"), *path = NULL;
	AUTO_PACK struct pack p = {0};
	struct err err = {0};

	if (load_file(o->args.v[0], &text, &p, &err) < 0 ||
		packs_check_new(api_packs(), &p, &err) < 0)
		return refuse_add(&err);
	show_new(&p);
	if (!opts_has(o, "yes") && !ui_can_ask()) {
		ui_error("cannot prompt: stdin or stderr is not a terminal");
		ui_hint("sbx api add --yes %s", o->args.v[0]);
		return EXIT_FAILED;
	}
	if (!opts_has(o, "yes") && !ui_confirm("Add the API pack '%s'?", p.name))
		return EXIT_FAILED;
	path = xasprintf("%s/%s.api", folder, p.name);
	if (paths_make(folder, &err) < 0 || file_save(path, slice_from_str(text), &err) < 0)
		return refuse_add(&err);
	ui_done("Added %s", path);
	return EXIT_OK;
}

static const struct opt_def ls_opts[] = {
	{0, "json", NULL, "print JSON"},
	{'q', "quiet", NULL, "print only the names"},
	{0},
};

static const struct opt_def show_opts[] = {
	{0, "risk", "RISK", "print only the rows of this risk"},
	{0, "json", NULL, "print JSON"},
	{0},
};

static const struct opt_def test_opts[] = {
	{0, "body", "FILE", "the body of the request"},
	{0, "header", "LINE", "a header of the request, NAME: VALUE", .many = true},
	{0, "json", NULL, "print JSON"},
	{0},
};

static const struct opt_def add_opts[] = {
	{'y', "yes", NULL, "do not prompt"},
	{0},
};

static const struct verb subs[] = {
	{
		.name = "ls",
		.args = "",
		.summary = "list API packs",
		.about = "Lists the API packs, their hosts and the number of their rows.",
		.examples = "  sbx api ls --json\n",
		.opts = ls_opts,
		.run = run_ls,
	},
	{
		.name = "show",
		.args = "SERVICE",
		.summary = "show the rows of a pack",
		.about =
			"Shows the rows of an API pack by risk: the verb, the requests that have it, and the\n"
			"object that they concern.",
		.examples = "  sbx api show --risk danger github\n",
		.opts = show_opts,
		.min = 1,
		.max = 1,
		.first = VERB_PACK,
		.run = run_show,
	},
	{
		.name = "test",
		.args = "[REQUEST|FILE]",
		.summary = "show what a request does, or test packs",
		.about =
			"Shows the effect of a request, a method and a URL in one argument: its risk, verb and\n"
			"object. Without a scheme, the URL is https. Nothing is sent. With a file, checks this\n"
			"pack and runs its cases; without an argument, does so for all packs.",
		.examples =
			"  sbx api test 'DELETE api.github.com/repos/acme/app'\n"
			"  sbx api test --body message.json 'POST api.anthropic.com/v1/messages'\n"
			"  sbx api test ./internal.api\n",
		.opts = test_opts,
		.max = 1,
		.first = VERB_PATH,
		.run = run_test,
	},
	{
		.name = "add",
		.args = "FILE",
		.summary = "add your own pack",
		.about =
			"Checks an API pack and copies it to the directory apis, in the same directory as\n"
			"settings.conf. A pack must not have the name or a host of another pack.",
		.examples = "  sbx api add ./internal.api\n",
		.opts = add_opts,
		.min = 1,
		.max = 1,
		.first = VERB_PATH,
		.run = run_add,
	},
	{0},
};

const struct verb verb_api = {
	.name = "api",
	.group = "management",
	.args = "COMMAND",
	.summary = "show what requests to an API do",
	.about =
		"An API pack describes what the requests to a service do: whether a request reads, writes,\n"
		"deletes, costs money or touches a credential, and on which object.",
	.examples = "  sbx api test 'PUT api.github.com/repos/acme/app/pulls/7/merge'\n",
	.subs = subs,
};
