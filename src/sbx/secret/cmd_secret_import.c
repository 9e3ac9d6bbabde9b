/* SPDX-License-Identifier: Apache-2.0 */
/* Copies credentials from variables of this shell into the vault. Shows them first. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "secret_api.h"
#include "secret_verbs.h"
#include "lib/client/cli/table.h"

#define MAX_IMPORTS 256
#define SESSION_VARIABLE \
	"AWS_SESSION_TOKEN" /* of temporary keys; the third part of ID:SECRET:SESSION */

const struct opt_def secret_import_opts[] = {
	{'g', "global", NULL, "for all sandboxes (default)"},
	{0, "sandbox", "NAME", "for this sandbox only"},
	{0, "dry-run", NULL, "list the credentials and change nothing"},
	{'y', "yes", NULL, "do not prompt for confirmation"},
	{'f', "force", NULL, "also replace existing credentials"},
	{0, "all", NULL, "all services (default)", .hidden = true},
	{0},
};

enum action { IMPORT_SET, IMPORT_REPLACE, IMPORT_KEEP, IMPORT_PLACEHOLDER };

struct import {
	const json_t *service;
	enum action action;
	char *variables;      /* their names */
	const char *value[4]; /* in the environment; joined with colons */
	size_t n;
	char mask[SECRET_MASK];
};

struct plan {
	struct import list[MAX_IMPORTS];
	size_t n, n_todo;
};

static void plan_done(struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		free(plan->list[i].variables);
}

static const char *value_of(const json_t *env)
{
	const char *v = getenv(api_str(env, "name"));

	return v && v[0] ? v : NULL;
}

/* All parts, or none. */
static bool take_parts(const json_t *envs, struct import *im)
{
	const json_t *env;
	const char *session = getenv(SESSION_VARIABLE);
	size_t i;

	json_array_foreach (envs, i, env) {
		if (i == 2 || !value_of(env))
			return false;
		im->value[im->n++] = value_of(env);
	}
	im->variables = xasprintf("%s, %s%s", api_str(json_array_get(envs, 0), "name"),
		api_str(json_array_get(envs, 1), "name"),
		session && session[0] ? ", " SESSION_VARIABLE : "");
	if (session && session[0])
		im->value[im->n++] = session;
	return im->n >= 2;
}

static bool take_first(const json_t *envs, struct import *im)
{
	const json_t *env;
	size_t i;

	json_array_foreach (envs, i, env) {
		const char *v = value_of(env);

		if (v && !im->n) {
			im->value[im->n++] = v;
			im->variables = xstrdup(api_str(env, "name"));
		} else if (v && strcmp(v, im->value[0]) != 0) {
			ui_warning("%s and %s differ: using %s", im->variables,
				api_str(env, "name"), im->variables);
		}
	}
	return im->n > 0;
}

static void look_at(struct plan *plan, const json_t *service, const json_t *there,
	const char *sandbox, bool force)
{
	const json_t *envs = json_object_get(service, "env");
	struct import im = {.service = service};
	const char *last;

	if (plan->n == MAX_IMPORTS ||
		!(strcmp(api_str(service, "shape"), "id:secret") == 0 ? take_parts(envs, &im)
								      : take_first(envs, &im))) {
		free(im.variables);
		return;
	}
	last = im.value[MIN(im.n, (size_t)2) - 1];
	secret_value_mask(last, im.mask);
	if (secret_value_is_placeholder(last))
		im.action = IMPORT_PLACEHOLDER;
	else if (secret_find(there, api_str(service, "name"), sandbox))
		im.action = force ? IMPORT_REPLACE : IMPORT_KEEP;
	plan->n_todo += im.action == IMPORT_SET || im.action == IMPORT_REPLACE;
	plan->list[plan->n++] = im;
}

static int make_plan(const struct opts *o, const char *sandbox, const json_t *services,
	struct plan *plan, struct problem *p)
{
	AUTO_JSON json_t *there = NULL;
	bool force = opts_has(o, "force");
	const json_t *s;
	size_t i;
	int r = secret_check_sandbox(sandbox, p);

	if (r == 0)
		r = secret_list(&there, p);
	for (i = 0; i < o->args.n && r == 0; i++) {
		const json_t *one = NULL;

		r = secret_find_service(services, o->args.v[i], &one, p);
		if (r == 0)
			look_at(plan, one, there, sandbox, force);
	}
	if (r < 0 || o->args.n)
		return r;
	json_array_foreach (json_object_get(services, "services"), i, s)
		look_at(plan, s, there, sandbox, force);
	return 0;
}

static void show_import(const struct plan *plan)
{
	static const char *const heading[] = {"SERVICE", "FROM", "SECRET", "ACTION"};
	static const char *const words[] = {
		[IMPORT_SET] = "set",
		[IMPORT_REPLACE] = "replace",
		[IMPORT_KEEP] = "skip: already exists (use -f to replace it)",
		[IMPORT_PLACEHOLDER] = "skip: the value is a placeholder",
	};
	struct table t;

	table_init(&t, ARRAY_LEN(heading), heading);
	for (size_t i = 0; i < plan->n; i++) {
		const struct import *im = &plan->list[i];
		const char *const cells[] = {
			api_str(im->service, "name"), im->variables, im->mask, words[im->action]};

		table_add(&t, cells);
	}
	table_print(&t);
	table_done(&t);
	(void)fflush(stdout);
}

static int import_one(const struct import *im, const char *sandbox)
{
	AUTO_SECRET_VALUE struct secret_value v = {0};
	AUTO_JSON json_t *body = json_pack("{s:s}", "kind", "service"), *answer = NULL;
	struct problem p = {0};
	int r = secret_value_init(&v, &p);

	if (sandbox)
		(void)json_object_set_new(body, "sandbox", json_string(sandbox));
	for (size_t i = 0; i < im->n && r == 0; i++) {
		if (i)
			r = secret_value_append(&v, ":", &p);
		if (r == 0)
			r = secret_value_append(&v, im->value[i], &p);
	}
	if (r == 0)
		r = secret_value_check(&v, &p);
	if (r == 0)
		r = secret_put(api_str(im->service, "name"), body, &v, &answer, &p);
	if (r < 0)
		return ui_problem(&p, r);
	secret_say_set(answer, sandbox);
	return EXIT_OK;
}

static int do_plan(const struct plan *plan, const char *sandbox)
{
	int status = EXIT_OK;

	for (size_t i = 0; i < plan->n; i++) {
		const struct import *im = &plan->list[i];

		if ((im->action == IMPORT_SET || im->action == IMPORT_REPLACE) &&
			import_one(im, sandbox) != EXIT_OK)
			status = EXIT_FAILED;
	}
	if (status == EXIT_OK)
		ui_note("The variables in this shell are unchanged. Sandboxes never see them.");
	return status;
}

static int finish_import(const struct opts *o, const struct plan *plan, const char *sandbox)
{
	if (plan->n == 0) {
		ui_note("None of the variables of %s is set.",
			o->args.n ? "the named services" : "the services");
		ui_hint("sbx secret services");
		return EXIT_OK;
	}
	show_import(plan);
	if (plan->n_todo == 0) {
		ui_note("Nothing to import.");
		return EXIT_OK;
	}
	if (opts_has(o, "dry-run") || (!opts_has(o, "yes") && !ui_can_ask())) {
		ui_note("Nothing was changed.");
		ui_hint("sbx secret import --yes");
		return EXIT_OK;
	}
	if (!opts_has(o, "yes") &&
		!ui_confirm("Set %zu credential%s for %s%s?", plan->n_todo,
			plan->n_todo == 1 ? "" : "s", sandbox ? "sandbox " : "all sandboxes",
			sandbox ? sandbox : "")) {
		ui_note("Nothing was changed.");
		return EXIT_FAILED;
	}
	return do_plan(plan, sandbox);
}

int secret_import_run(struct opts *o)
{
	CLEANUP(plan_done) struct plan plan = {.n = 0};
	AUTO_JSON json_t *services = NULL;
	const char *sandbox = NULL;
	struct problem p = {0};
	int r = 0;

	if (opts_has(o, "dry-run") && opts_has(o, "yes")) {
		r = err_set(&p.err, -EINVAL, "--dry-run and --yes are mutually exclusive");
		(void)problem_usage(&p, r, "secret import");
	}
	if (r == 0)
		r = secret_scope(o, "secret import", &sandbox, &p);
	if (r == 0)
		r = secret_services(&services, &p);
	if (r == 0)
		r = make_plan(o, sandbox, services, &plan, &p);
	return r < 0 ? ui_problem(&p, r) : finish_import(o, &plan, sandbox);
}
