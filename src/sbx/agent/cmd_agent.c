/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "agent_need.h"
#include "src/sbx/secret/secret.h"
#include "lib/client/cli/table.h"
#include "src/sbx/disk/disk.h"
#include "agent.h"

static const struct opt_def json_opts[] = {
	{0, "json", NULL, "print JSON"},
	{0},
};

static const struct opt_def ls_opts[] = {
	{0, "json", NULL, "print JSON"},
	{'q', "quiet", NULL, "print only the names"},
	{0},
};

static json_t *pairs_agent(const struct agent_list *l, const char *a, const char *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++)
		(void)json_array_append_new(
			list, b ? json_pack("{s:s, s:s}", a, l->v[i].a, b, l->v[i].b)
				: json_string(l->v[i].a));
	return list;
}

/* The version in its template, else the version to install. */
static json_t *version_of(const struct agent *a, const json_t *manifest)
{
	const json_t *first = json_array_get(json_object_get(manifest, "packages"), 0);

	if (first)
		return json_string(api_str(first, "version"));
	return a->package.n ? json_string(a->package.v[0].b) : json_null();
}

static json_t *services_of(const struct agent *a, const json_t *secrets)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->service.n; i++) {
		const char *name = a->service.v[i].a;

		(void)json_array_append_new(
			list, json_pack("{s:s, s:b}", "name", name, "set",
				      secret_find(secrets, name, NULL) != NULL));
	}
	return list;
}

static json_t *describe_agent(const struct agent *a, bool own, const json_t *secrets)
{
	AUTO_JSON json_t *manifest = template_manifest(agent_template(a));

	return json_pack(
		"{s:s, s:s, s:s, s:s, s:b, s:o, s:b, s:s, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o}",
		"name", a->name, "title", a->title, "about", a->about, "template",
		agent_template(a), "built", template_is_there(agent_template(a)), "version",
		version_of(a, manifest), "own", own, "command", a->command, "flags",
		pairs_agent(&a->flag, "flag", NULL), "packages",
		pairs_agent(&a->package, "name", "version"), "publisher", a->publisher, "integrity",
		pairs_agent(&a->pin, "name", "digest"), "services", services_of(a, secrets),
		"hosts", pairs_agent(&a->host, "host", "why"), "history",
		pairs_agent(&a->history, "folder", NULL), "import",
		pairs_agent(&a->import, "path", NULL));
}

/* Without the vault the rest is still printed. */
static json_t *get_secrets(void)
{
	struct problem ignored = {0};
	json_t *answer = NULL;

	return secret_list(&answer, &ignored) < 0 ? json_object() : answer;
}

static char *services_text(const json_t *o)
{
	char *text = xstrdup("");
	const json_t *s;
	size_t i;

	json_array_foreach (json_object_get(o, "services"), i, s) {
		AUTO_FREE char *old = text;

		text = xasprintf("%s%s%s%s", old, i ? ", " : "", api_str(s, "name"),
			json_is_true(json_object_get(s, "set")) ? "" : " (not set)");
	}
	return text;
}

static void add_row(struct table *t, const json_t *o)
{
	AUTO_FREE char *services = services_text(o);
	const char *version = api_str(o, "version");
	const char *cells[] = {api_str(o, "name"), version[0] ? version : "-",
		json_is_true(json_object_get(o, "built")) ? "built" : "not built",
		services[0] ? services : "-", api_str(o, "about")};

	table_add(t, cells);
}

static int run_ls(struct opts *o)
{
	static const char *const heading[] = {
		"AGENT", "VERSION", "TEMPLATE", "CREDENTIAL", "ABOUT"};
	const struct agents *all = agent_need_all();
	AUTO_JSON json_t *secrets = NULL, *list = NULL, *whole = NULL;
	CLEANUP(table_done) struct table t = {0};

	for (size_t i = 0; opts_has(o, "quiet") && i < all->n; i++)
		printf("%s\n", all->v[i]->name);
	if (opts_has(o, "quiet"))
		return EXIT_OK;
	secrets = get_secrets();
	list = json_array();

	table_init(&t, ARRAY_LEN(heading), heading);
	for (size_t i = 0; i < all->n; i++) {
		json_t *one = describe_agent(all->v[i], all->own[i], secrets);

		add_row(&t, one);
		(void)json_array_append_new(list, one);
	}
	if (opts_has(o, "json")) {
		whole = json_pack("{s:O}", "agents", list);
		api_print(whole);
	} else {
		table_print(&t);
		if (ui_is_terminal())
			ui_note("Start an agent in a project directory with: sbx run AGENT. Set "
				"its credential with: sbx secret set NAME");
	}
	return all->n_faults ? EXIT_FAILED : EXIT_OK;
}

static void print_list(const char *heading, const struct agent_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		printf("%-11s", i == 0 ? heading : "");
		ui_put(l->v[i].a);
		if (l->v[i].b) {
			printf("  ");
			ui_put(l->v[i].b);
		}
		(void)putchar('\n');
	}
}

static void print_text(const struct agent *a, const json_t *o)
{
	AUTO_FREE char *services = services_text(o);

	printf("agent      %s: %s, %s\n", a->name, a->title, a->about);
	printf("template   %s (%s)\n", agent_template(a),
		json_is_true(json_object_get(o, "built")) ? "built" : "not built");
	printf("command    %s", a->command);
	for (size_t i = 0; i < a->flag.n; i++)
		printf(" %s", a->flag.v[i].a);
	printf("\n");
	print_list("package", &a->package);
	if (a->publisher)
		printf("publisher  %s\n", a->publisher);
	print_list("integrity", &a->pin);
	print_list("variable", &a->env);
	print_list("host", &a->host);
	print_list("history", &a->history);
	print_list("import", &a->import);
	if (services[0])
		printf("credential %s\n", services);
	(void)fflush(stdout);
	if (!json_is_true(json_object_get(o, "built")))
		ui_hint("sbx template build%s%s", agent_is_built(a) ? " " : "",
			agent_is_built(a) ? a->name : "");
}

static int run_inspect(struct opts *o)
{
	const char *name = o->args.v[0];
	const struct agent *a = agent_need_find(name);
	const struct agents *all = agent_need_all();
	AUTO_JSON json_t *secrets = NULL, *one = NULL;
	bool own = false;

	if (!a && agent_need_unavailable(name))
		return EXIT_FAILED;
	if (!a) {
		AUTO_FREE char *names = agent_need_names();

		ui_error("unknown agent '%s': available agents are %s", name, names);
		ui_hint("sbx agent ls");
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < all->n; i++)
		own = own || (all->v[i] == a && all->own[i]);
	secrets = get_secrets();
	one = describe_agent(a, own, secrets);
	if (opts_has(o, "json"))
		api_print(one);
	else
		print_text(a, one);
	return EXIT_OK;
}

static const struct verb subs[] = {
	{
		.name = "ls",
		.args = "",
		.summary = "list agents",
		.about =
			"Lists all agents: the version that their template has or would get, whether the template\n"
			"is built, and whether the required credential is set. Files NAME.conf in the directory\n"
			"agents, in the same directory as settings.conf, add agents or replace built-in ones.",
		.examples = "  sbx agent ls --json\n",
		.opts = ls_opts,
		.run = run_ls,
	},
	{
		.name = "inspect",
		.args = "AGENT",
		.summary = "show one agent",
		.about =
			"Shows the packages of an agent, its start command, the hosts it needs and why, the\n"
			"history that is kept, and the configuration files that --import-config copies.",
		.examples = "  sbx agent inspect claude\n",
		.opts = json_opts,
		.min = 1,
		.max = 1,
		.first = VERB_AGENT,
		.run = run_inspect,
	},
	{0},
};

const struct verb verb_agent = {
	.name = "agent",
	.group = "management",
	.args = "COMMAND",
	.summary = "list agents and their requirements",
	.about =
		"An agent is the program that runs in a sandbox. A file describes its packages, its start\n"
		"command, and the hosts and credentials that it needs.",
	.examples = "  sbx agent ls\n",
	.subs = subs,
};
