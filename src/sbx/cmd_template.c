#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/paths.h"
#include "lib/base/str.h"
#include "api.h"
#include "table.h"
#include "template.h"
#include "verb.h"

static const struct opt_def build_opts[] = {
	{0, "mirror", "URL", "where Debian's packages come from (the host's own mirror)"},
	{0, "force", NULL, "remove the one that is there first; no sandbox may stand on it"},
	{0},
};
static const struct opt_def ls_opts[] = {
	{0, "json", NULL, "print JSON"},
	{'q', "quiet", NULL, "print names only"},
	{0},
};

/* A template under a sandbox's disk must not change: its overlay would be rubbish. */
static int check_unused(const char *name, struct problem *p)
{
	AUTO_JSON json_t *answer = NULL;
	const json_t *s;
	size_t i;
	int r = api_call("GET", "/v1/sandboxes", NULL, API_TIMEOUT_MS, &answer, p);

	if (r < 0)
		return r;
	json_array_foreach(json_object_get(answer, "sandboxes"), i,
		s) if (strcmp(api_str(s, "template"), name) == 0)
	{
		(void)err_set(&p->err, -EBUSY, "the sandbox '%s' stands on the template '%s'",
			api_str(s, "name"), name);
		return problem_hint(p, -EBUSY, "sbx rm %s", api_str(s, "name"));
	}
	return 0;
}

static int remove_old(const char *name, struct problem *p)
{
	AUTO_FREE char *dir = paths_get(PATHS_DATA, "templates/%s", name),
		       *away = xasprintf("%s.old", dir);
	int r = check_unused(name, p);

	if (r < 0)
		return r;
	if (rename(dir, away) < 0)
		return err_errno(&p->err, -errno, "moving %s away", dir);
	r = template_remove_dir(away);
	return r < 0 ? err_errno(&p->err, r, "removing %s", away) : 0;
}

static int run_build(struct opts *o)
{
	const char *mirror = opts_value(o, "mirror"), *name = o->args.n ? o->args.v[0] : "debian";
	const char *extra[] = {"--mirror", mirror, NULL};
	struct problem p = {0};
	int r = 0;

	if (strcmp(name, "debian") != 0) {
		ui_error("there is a recipe for the template 'debian' only, not for '%s'", name);
		return EXIT_USAGE;
	}
	if (template_is_there(name) && !opts_has(o, "force")) {
		printf("The template '%s' is there already. To build it anew: sbx template build "
		       "--force\n",
			name);
		return EXIT_OK;
	}
	if (template_is_there(name))
		r = remove_old(name, &p);
	if (r == 0)
		r = template_build(name, mirror ? extra : NULL, &p);
	if (r < 0)
		return ui_problem(&p, r);
	printf("%s Template '%s' is ready. To use it: sbx create shell . --name demo\n", ui_tick(),
		name);
	return EXIT_OK;
}

static json_t *describe_all(void)
{
	AUTO_JSON json_t *names = template_names();
	json_t *list = json_array(), *name;
	size_t i;

	json_array_foreach(names, i, name)
	{
		json_t *m = template_manifest(json_string_value(name));

		if (!m)
			m = json_object();
		(void)json_object_set(m, "name", name);
		(void)json_array_append_new(list, m);
	}
	return list;
}

static void print_table(const json_t *list)
{
	static const char *const heading[] = {"TEMPLATE", "VERSION", "CREATED", "CONTENT"};
	CLEANUP(table_done) struct table t;
	const json_t *m;
	size_t i;

	table_init(&t, ARRAY_LEN(heading), heading);
	json_array_foreach(list, i, m)
	{
		char hash[16];
		const char *cells[] = {
			api_str(m, "name"), api_str(m, "version"), api_str(m, "created"), hash};

		(void)snprintf(hash, sizeof(hash), "%.12s", api_str(m, "content"));
		table_add(&t, cells);
	}
	table_print(&t);
}

static int run_ls(struct opts *o)
{
	AUTO_JSON json_t *list = describe_all(), *whole = NULL;
	const json_t *m;
	size_t i;

	if (opts_has(o, "json")) {
		whole = json_pack("{s:O}", "templates", list);
		api_print(whole);
	} else if (opts_has(o, "quiet")) {
		json_array_foreach(list, i, m) printf("%s\n", api_str(m, "name"));
	} else if (json_array_size(list) == 0) {
		printf("No templates found. To build one: sbx template build\n");
	} else {
		print_table(list);
	}
	return EXIT_OK;
}

static const struct verb subs[] = {
	{
		.name = "build",
		.args = "[NAME]",
		.summary = "build the base template",
		.about = "Builds the template 'debian', the disk that sandboxes start from, from "
			 "Debian's\n"
			 "packages, as an ordinary user. It takes some minutes and about 5 GiB of "
			 "free space.",
		.examples = "  sbx template build\n",
		.opts = build_opts,
		.max = 1,
		.run = run_build,
	},
	{
		.name = "ls",
		.args = "",
		.summary = "list templates",
		.about = "Lists the templates there are, with the hash of their content.",
		.examples = "  sbx template ls --json\n",
		.opts = ls_opts,
		.run = run_ls,
	},
	{0},
};

const struct verb verb_template = {
	.name = "template",
	.group = "management",
	.args = "COMMAND",
	.summary = "build and list templates",
	.about = "A template is the disk that new sandboxes start from. All sandboxes share it, "
		 "read-only.",
	.examples = "  sbx template build\n",
	.subs = subs,
};
