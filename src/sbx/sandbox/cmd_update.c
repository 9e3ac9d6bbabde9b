/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/spec/spec.h"
#include "lib/client/api/sandbox.h"
#include "create.h"
#include "src/sbx/label/label.h"
#include "src/sbx/session/session.h"
#include "sandbox.h"
#include "workspace.h"

static const struct opt_def opts[] = {
	{0, "cpus", "N", "number of virtual CPUs"},
	{'m', "memory", "SIZE", "memory size, for example 2g"},
	{0, "idle-timeout", "DURATION", "suspend after DURATION without activity; 0 disables it"},
	{0, "accel", "KIND", "auto, kvm or tcg"},
	{0, "guard", "LEVEL", "default, strict, report or off; see sbx help review"},
	{0, "guard-except", "PATH", "file that --guard ignores, for example Makefile", true},
	{0, "no-guard-except", "PATH", "remove an exception of the guard", true},
	{'e', "env", "NAME[=VALUE]", "set a variable for all commands", true},
	{0, "rm-env", "NAME", "remove a variable", true},
	{0, "hide", "GLOB", "make matching files unreadable too", true},
	{0, "add-path", "PATH", "share another directory, as PATH of sbx create", true},
	{0, "rm-path", "PATH", "stop sharing a directory; the sandbox must be stopped", true},
	{0, "force", NULL, "--add-path: allow directories that are otherwise refused"},
	{0, "label", "KEY=VALUE", "set a label", true},
	{0, "rm-label", "KEY", "remove a label", true},
	{0},
};

static bool changes_except(const struct opts *o)
{
	return opts_has(o, "guard-except") || opts_has(o, "no-guard-except");
}

static bool changes_paths(const struct opts *o)
{
	return opts_has(o, "add-path") || opts_has(o, "rm-path");
}

/* Options whose value in the API is a complete list. */
static bool changes_lists(const struct opts *o)
{
	return changes_except(o) || changes_paths(o) || opts_has(o, "hide");
}

static bool changes_labels(const struct opts *o)
{
	return opts_has(o, "label") || opts_has(o, "rm-label");
}

static int build_body(const struct opts *o, json_t *body, struct err *err)
{
	const char *cpus = opts_value(o, "cpus"), *memory = opts_value(o, "memory");
	const char *accel = opts_value(o, "accel"), *guard = opts_value(o, "guard");
	const char *idle = opts_value(o, "idle-timeout");
	enum spec_guard level;
	enum spec_accel kind;
	uint64_t v;

	if (cpus && str_to_u64(cpus, 1, SPEC_MAX_CPUS, &v) < 0)
		return err_set(
			err, -EINVAL, "invalid --cpus '%s': expected 1 to %d", cpus, SPEC_MAX_CPUS);
	if (cpus)
		(void)json_object_set_new(body, "cpus", json_integer((json_int_t)v));
	if (memory && str_to_size(memory, &v) < 0)
		return err_set(err, -EINVAL,
			"invalid --memory '%s': expected a size such as 512m or 2g", memory);
	if (memory)
		(void)json_object_set_new(body, "memory", json_integer((json_int_t)v));
	if (accel && spec_accel_parse(accel, &kind) < 0)
		return err_set(
			err, -EINVAL, "invalid --accel '%s': expected auto, kvm or tcg", accel);
	if (accel)
		(void)json_object_set_new(body, "accel", json_string(accel));
	if (idle && strcmp(idle, "0") != 0 && (str_to_seconds(idle, &v) < 0 || v > SPEC_MAX_IDLE))
		return err_set(err, -EINVAL,
			"invalid duration '%s': use a form such as 90s, 30m or 2h", idle);
	if (idle)
		(void)json_object_set_new(body, "idle_timeout",
			json_integer(strcmp(idle, "0") != 0 ? (json_int_t)v : 0));
	if (guard && spec_guard_parse(guard, &level) < 0)
		return err_set(err, -EINVAL,
			"invalid --guard '%s': expected default, strict, report or off", guard);
	if (guard)
		(void)json_object_set_new(body, "guard", json_string(guard));
	return 0;
}

/* The value of a removed variable is null. */
static int set_env(const struct opts *o, json_t *body, struct problem *p)
{
	AUTO_ENV struct env env = {0};
	const struct opt_list *less = opts_list(o, "rm-env");
	json_t *object = json_object();
	int r = env_from_opts(&env, &(struct opt_list){0}, opts_list(o, "env"), p);

	for (size_t i = 0; r == 0 && i < env.n; i++) {
		size_t n = strcspn(env.v[i], "=");
		AUTO_FREE char *name = xstrndup(env.v[i], n);
		json_t *value = json_string(env.v[i] + n + 1);

		if (json_object_set_new(object, name, value) < 0)
			r = err_set(&p->err, -EINVAL, "the value of %s is not UTF-8", name);
	}
	for (size_t i = 0; r == 0 && i < less->n; i++)
		if (json_object_set_new(object, less->v[i], json_null()) < 0)
			r = err_set(&p->err, -EINVAL, "the name '%s' is not UTF-8", less->v[i]);
	if (json_object_size(object))
		(void)json_object_set(body, "env", object);
	json_decref(object);
	return r;
}

static int check_some(const struct opts *o, const json_t *body, struct err *err)
{
	if (opts_has(o, "force") && !opts_has(o, "add-path"))
		return err_set(err, -EINVAL, "--force requires --add-path");
	if (json_object_size(body) == 0 && !changes_lists(o) && !changes_labels(o))
		return err_set(err, -EINVAL,
			"nothing to change: use --cpus, --memory, --env, --hide, --add-path, --rm-path, --idle-timeout, --accel, --guard, --guard-except or --label");
	return 0;
}

static size_t find_text(const json_t *list, const char *text)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (strcmp(json_string_value(item), text) == 0)
			break;
	return i;
}

static int set_except(const struct opts *o, const json_t *s, json_t *body, struct problem *p)
{
	const struct opt_list *more = opts_list(o, "guard-except");
	const struct opt_list *less = opts_list(o, "no-guard-except");
	const char *ref = o->args.v[0];
	json_t *list = json_array();

	(void)json_object_set_new(body, "guard_except", list);
	(void)json_array_extend(list, json_object_get(s, "guard_except"));
	for (size_t i = 0; i < less->n; i++)
		if (json_array_remove(list, find_text(list, less->v[i])) < 0) {
			(void)err_set(&p->err, -ENOENT, "sandbox '%s' has no exception '%s'", ref,
				less->v[i]);
			return problem_hint(p, -ENOENT, "sbx inspect %s", ref);
		}
	for (size_t i = 0; i < more->n; i++)
		if (find_text(list, more->v[i]) == json_array_size(list))
			(void)json_array_append_new(list, json_string(more->v[i]));
	return 0;
}

static int set_hide(const struct opts *o, const json_t *s, json_t *body)
{
	const struct opt_list *more = opts_list(o, "hide");
	json_t *list = json_deep_copy(json_object_get(s, "hide"));

	(void)json_object_set_new(body, "hide", list);
	for (size_t i = 0; i < more->n; i++)
		if (find_text(list, more->v[i]) == json_array_size(list))
			(void)json_array_append_new(list, json_string(more->v[i]));
	return 0;
}

/* A path as typed, or as it is on the host or in the sandbox. */
static int remove_path(json_t *list, const char *typed, const char *ref, struct problem *p)
{
	AUTO_FREE char *real = realpath(typed, NULL);
	const json_t *w;
	size_t i;

	json_array_foreach (list, i, w) {
		const char *host = api_str(w, "host");

		if (strcmp(host, typed) == 0 || strcmp(api_str(w, "guest"), typed) == 0 ||
			(real && strcmp(host, real) == 0))
			return json_array_remove(list, i);
	}
	(void)err_set(&p->err, -ENOENT, "sandbox '%s' has no workspace '%s'", ref, typed);
	return problem_hint(p, -ENOENT, "sbx inspect %s", ref);
}

static int set_paths(const struct opts *o, const json_t *s, json_t *body, struct problem *p)
{
	const struct opt_list *more = opts_list(o, "add-path"), *less = opts_list(o, "rm-path");
	json_t *list = json_deep_copy(json_object_get(s, "workspaces"));
	bool force = opts_has(o, "force");
	int r = 0;

	(void)json_object_set_new(body, "workspaces", list);
	for (size_t i = 0; i < less->n && r == 0; i++)
		r = remove_path(list, less->v[i], o->args.v[0], p);
	for (size_t i = 0; i < more->n && r == 0; i++)
		r = create_add_workspace(list, more->v[i], force, p);
	if (force)
		(void)json_object_set_new(body, "force", json_true());
	return r;
}

static int set_labels(const struct opts *o, const json_t *s, json_t *body, struct problem *p)
{
	const struct opt_list *less = opts_list(o, "rm-label");
	const char *ref = o->args.v[0];
	json_t *labels = json_object();
	int r;

	(void)json_object_set_new(body, "labels", labels);
	(void)json_object_update(labels, json_object_get(s, "labels"));
	for (size_t i = 0; i < less->n; i++)
		if (json_object_del(labels, less->v[i]) < 0) {
			(void)err_set(&p->err, -ENOENT, "sandbox '%s' has no label '%s'", ref,
				less->v[i]);
			return problem_hint(p, -ENOENT, "sbx inspect %s", ref);
		}
	r = label_set(opts_list(o, "label"), labels, &p->err);
	return r < 0 ? problem_usage(p, r, "update") : 0;
}

/* The API takes complete lists. `generation` makes sure that they are the ones that were read. */
static int set_lists(const struct opts *o, json_t *body, struct problem *p)
{
	AUTO_JSON json_t *s = NULL;
	int r = sandbox_get(o->args.v[0], &s, p);

	if (r < 0)
		return r;
	(void)json_object_set_new(body, "generation", json_integer(api_int(s, "generation")));
	if (changes_except(o))
		r = set_except(o, s, body, p);
	if (r == 0 && opts_has(o, "hide"))
		r = set_hide(o, s, body);
	if (r == 0 && changes_paths(o))
		r = set_paths(o, s, body, p);
	if (r == 0 && changes_labels(o))
		r = set_labels(o, s, body, p);
	return r;
}

static void print_labels(const json_t *s)
{
	AUTO_FREE char *text = label_text(s);

	printf("Sandbox '%s': %s%s\n", api_str(s, "name"), text[0] ? "labels " : "no labels", text);
}

static void print_paths(const struct opts *o, const json_t *s)
{
	const json_t *w;
	size_t i;

	json_array_foreach (json_object_get(s, "workspaces"), i, w) {
		AUTO_FREE char *text = workspace_describe(api_str(w, "host"), api_str(w, "guest"),
			json_is_true(json_object_get(w, "ro")));

		if (changes_paths(o)) {
			printf("workspace  ");
			ui_put(text);
			(void)putchar('\n');
		}
	}
}

static void print_resources(const struct opts *o, const json_t *s)
{
	bool is_down = sandbox_is(s, "stopped") || sandbox_is(s, "suspended");
	char size[32];

	str_from_size((uint64_t)api_int(s, "memory"), size, sizeof(size));
	print_paths(o, s);
	printf("Sandbox '%s': %lld CPUs, %s%s%s%s\n", api_str(s, "name"), api_int(s, "cpus"), size,
		opts_has(o, "guard") ? ", guard " : "",
		opts_has(o, "guard") ? api_str(s, "guard") : "",
		is_down ? "" : ", applied at the next start");
	if (!is_down)
		printf("Restart it with: sbx restart %s\n", api_str(s, "name"));
}

static int run_update(struct opts *o)
{
	AUTO_JSON json_t *body = json_object(), *s = NULL;
	struct problem p = {0};
	bool resources;
	int r = build_body(o, body, &p.err);

	if (r == 0)
		r = set_env(o, body, &p);
	if (r == 0)
		r = check_some(o, body, &p.err);
	if (r < 0) {
		ui_error("sbx update: %s", p.err.text);
		ui_hint("sbx help update");
		return EXIT_USAGE;
	}
	resources = json_object_size(body) > 0 || changes_lists(o);
	if (changes_lists(o) || changes_labels(o))
		r = set_lists(o, body, &p);
	if (r == 0)
		r = sandbox_call("PATCH", o->args.v[0], "", body, API_TIMEOUT_MS, &s, &p);
	if (r < 0)
		return ui_problem(&p, r);
	if (changes_labels(o))
		print_labels(s);
	if (resources)
		print_resources(o, s);
	return EXIT_OK;
}

const struct verb verb_update = {
	.name = "update",
	.group = "sandboxes",
	.args = "SANDBOX",
	.summary = "change the settings or labels of a sandbox",
	.about =
		"Changes the CPUs, memory, workspaces, variables, idle timeout, accelerator, guard or labels\n"
		"of a sandbox. Labels change immediately, everything else at the next start. Of a suspended\n"
		"sandbox, only the idle timeout, the guard and labels can be changed.",
	.examples = "  sbx update demo --cpus 4 --memory 8g\n"
		    "  sbx update demo --add-path ~/library:ro --env MODE=test\n"
		    "  sbx update demo --guard-except .envrc\n"
		    "  sbx update demo --label team=web --rm-label old\n",
	.opts = opts,
	.min = 1,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_update,
};
