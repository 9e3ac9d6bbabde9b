/* SPDX-License-Identifier: Apache-2.0 */
#include "existing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/rules/spec/spec.h"
#include "src/sbx/agent/agent.h"
#include "src/sbx/session/session.h"
#include "lib/client/api/sandbox.h"

#define MAX_TRIED_NAMES 100

/* Handling of an option. */
enum kind {
	SAME,	 /* the sandbox must have it; another sandbox can */
	UPDATE,	 /* the sandbox must have it; sbx update changes it */
	SESSION, /* applied to this session or to this start */
	NEW,	 /* applied when the sandbox is created */
	CHANGE,	 /* applied to the sandbox by existing_apply or existing_import */
};

static const struct row {
	const char *option;
	enum kind kind;
	const char *field; /* in the object of the sandbox, for SAME and UPDATE */
	const char *word;  /* for messages */
} rows[] = {
	{"name", SESSION},
	{"cpus", UPDATE, "cpus", "CPUs"},
	{"memory", UPDATE, "memory", "memory"},
	{"disk", SAME, "disk", "disk"},
	{"idle-timeout", UPDATE, "idle_timeout", "idle timeout"},
	{"hide", SAME, "hide", "hidden files"},
	{"guard", UPDATE, "guard", "the guard"},
	{"guard-except", SAME, "guard_except", "exceptions of the guard"},
	{"label", UPDATE, "labels", "labels"},
	{"env", SESSION},
	{"env-file", SESSION},
	{"accel", SESSION},
	{"cold", SESSION},
	{"template", SAME, "template", "template"},
	{"allow-network", CHANGE},
	{"deny-network", CHANGE},
	{"publish", CHANGE},
	{"allow-hosts", CHANGE},
	{"import-config", CHANGE},
	{"ssh-agent", SAME, "ssh_agent", "SSH agent"},
	{"ssh-agent-confirm", SAME, "ssh_agent", "SSH agent"},
	{"clone", SAME, "clone", "clone"},
	{"branch", SAME, "clone", "clone"},
	{"carry", SAME, "carry", "files"},
	{"force", SESSION},
	{"staged", SAME, "staged", "staged workspaces"},
	{"detached", SESSION},
	{"rm", SESSION},
	{"detach-keys", SESSION},
	{"project", NEW},
	{"no-project", SESSION},
};

static const struct row *find_row(const char *option)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].option, option) == 0)
			return &rows[i];
	return NULL;
}

/* ---- the command that makes another sandbox ---- */

static void put_word(FILE *f, const char *word)
{
	AUTO_FREE char *quoted = policy_shell_word(word);

	(void)fprintf(f, " %s", quoted);
}

static void put_option(FILE *f, const struct opt_def *d, const struct opt_list *values)
{
	for (size_t i = 0; i < values->n; i++) {
		AUTO_FREE char *value = d->arg ? policy_shell_word(values->v[i]) : NULL;

		(void)fprintf(f, " --%s", d->name);
		if (value && !(d->optional && !values->v[i][0]))
			(void)fprintf(f, "%s%s", d->optional ? "=" : " ", value);
	}
}

/* The arguments without the name of the sandbox, which may be the first of them. */
static void put_args(FILE *f, const struct opts *o, const json_t *there)
{
	size_t first = 0;

	put_word(f, api_str(there, "agent"));
	if (o->args.n > 0 && (create_is_agent(o->args.v[0]) ||
				     strcmp(o->args.v[0], api_str(there, "name")) == 0))
		first = 1;
	for (size_t i = first; i < o->args.n; i++)
		put_word(f, o->args.v[i]);
}

static char *free_name(const char *name)
{
	for (unsigned i = 2; i < MAX_TRIED_NAMES; i++) {
		AUTO_JSON json_t *other = NULL;
		struct problem ignored = {0};
		char *next = xasprintf("%.*s-%u", SPEC_MAX_NAME - 3, name, i);

		if (sandbox_get(next, &other, &ignored) == -ENOENT)
			return next;
		free(next);
	}
	return NULL;
}

/* "sbx run" with the same arguments and a free name; NULL if there is none. */
static char *another_command(const struct opts *o, const json_t *there)
{
	AUTO_FREE char *name = free_name(api_str(there, "name"));
	char *text = NULL;
	size_t size = 0;
	FILE *f = name ? open_memstream(&text, &size) : NULL;

	if (!f)
		return NULL;
	(void)fputs("sbx run", f);
	put_args(f, o, there);
	for (size_t i = 0; o->defs[i].name; i++)
		if (strcmp(o->defs[i].name, "name") != 0)
			put_option(f, &o->defs[i], &o->values[i]);
	put_word(f, "--name");
	put_word(f, name);
	(void)fclose(f);
	return text;
}

static int hint_another(
	const struct opts *o, const json_t *there, struct problem *p, const char *text)
{
	AUTO_FREE char *command = another_command(o, there);

	(void)err_set(&p->err, -EEXIST,
		"sandbox '%s' already exists and %s, which is set at creation",
		api_str(there, "name"), text);
	if (command && strlen(command) < sizeof(p->hint))
		return problem_hint(p, -EEXIST, "%s", command);
	return problem_hint(p, -EEXIST, "sbx rm %s", api_str(there, "name"));
}

/* ---- comparing ---- */

static int hint_except(const json_t *there, const char *glob, const char *text, struct problem *p)
{
	AUTO_FREE char *word = policy_shell_word(glob);

	(void)err_set(&p->err, -EEXIST, "sandbox '%s' already exists and %s",
		api_str(there, "name"), text);
	return problem_hint(
		p, -EEXIST, "sbx update %s --guard-except %s", api_str(there, "name"), word);
}

/* Every pattern must be among the sandbox's, which may have more. */
static int check_globs(const struct opts *o, const char *field, const json_t *want,
	const json_t *there, struct problem *p)
{
	const char *verb = strcmp(field, "hide") == 0 ? "hide" : "except";
	const json_t *glob, *has;
	size_t i, k;

	json_array_foreach (json_object_get(want, field), i, glob) {
		AUTO_FREE char *text = xasprintf("does not %s '%s'%s", verb,
			json_string_value(glob), verb[0] == 'e' ? " from its guard" : "");
		bool found = false;

		json_array_foreach (json_object_get(there, field), k, has) {
			found = found || json_equal(glob, has);
		}
		if (!found && verb[0] == 'e')
			return hint_except(there, json_string_value(glob), text, p);
		if (!found)
			return hint_another(o, there, p, text);
	}
	return 0;
}

static int check_ssh(
	const struct opts *o, const json_t *want, const json_t *there, struct problem *p)
{
	const json_t *has = json_object_get(there, "ssh_agent");
	bool confirm = json_is_true(json_object_get(want, "confirm"));

	if (!has)
		return hint_another(o, there, p, "has no SSH agent");
	if (strcmp(api_str(want, "socket"), api_str(has, "socket")) != 0)
		return hint_another(o, there, p, "uses a different SSH agent socket");
	if (!json_equal(json_object_get(want, "keys"), json_object_get(has, "keys")))
		return hint_another(o, there, p, "uses different keys of your SSH agent");
	if (confirm != json_is_true(json_object_get(has, "confirm")))
		return hint_another(o, there, p,
			confirm ? "signs without confirmation"
				: "requires confirmation of each signature");
	return 0;
}

static int check_clone(
	const struct opts *o, const json_t *want, const json_t *there, struct problem *p)
{
	const json_t *has = json_object_get(there, "clone");

	if (!has)
		return hint_another(o, there, p, "has no clone");
	return json_equal(want, has)
		       ? 0
		       : hint_another(o, there, p, "is a clone of another path or branch");
}

static int check_same(const struct opts *o, const struct row *row, const json_t *want,
	const json_t *there, struct problem *p)
{
	AUTO_FREE char *text = NULL;

	if (strcmp(row->field, "hide") == 0 || strcmp(row->field, "guard_except") == 0)
		return check_globs(o, row->field, want, there, p);
	if (strcmp(row->field, "clone") == 0)
		return check_clone(o, json_object_get(want, "clone"), there, p);
	if (strcmp(row->field, "carry") == 0)
		return hint_another(o, there, p, "has its own copy of the files");
	if (strcmp(row->field, "ssh_agent") == 0)
		return check_ssh(o, json_object_get(want, "ssh_agent"), there, p);
	if (json_equal(json_object_get(want, row->field), json_object_get(there, row->field)))
		return 0;
	if (strcmp(row->field, "staged") == 0)
		return hint_another(o, there, p, "is not staged");
	if (strcmp(row->field, "disk") == 0)
		return hint_another(o, there, p, "has a different disk size");
	text = xasprintf("was created from the %s '%s'", row->word, api_str(there, row->field));
	return hint_another(o, there, p, text);
}

/* The sandbox may have more labels. */
static int check_labels(const json_t *want, const json_t *there, struct problem *p)
{
	const json_t *has = json_object_get(there, "labels");
	const char *key;
	json_t *value;

	json_object_foreach (json_object_get(want, "labels"), key, value) {
		AUTO_FREE char *label = xasprintf("%s=%s", key, json_string_value(value));
		AUTO_FREE char *word = policy_shell_word(label);

		if (json_equal(json_object_get(has, key), value))
			continue;
		(void)err_set(&p->err, -EEXIST, "sandbox '%s' already exists without the label %s",
			api_str(there, "name"), label);
		return problem_hint(
			p, -EEXIST, "sbx update %s --label %s", api_str(there, "name"), word);
	}
	return 0;
}

static int check_update(const struct opts *o, const struct row *row, const json_t *want,
	const json_t *there, struct problem *p)
{
	AUTO_FREE char *value = policy_shell_word(opts_value(o, row->option));

	if (strcmp(row->field, "labels") == 0)
		return check_labels(want, there, p);
	if (api_int(want, row->field) == api_int(there, row->field) &&
		strcmp(api_str(want, row->field), api_str(there, row->field)) == 0)
		return 0;
	(void)err_set(&p->err, -EEXIST, "sandbox '%s' already exists with a different value for %s",
		api_str(there, "name"), row->word);
	return problem_hint(
		p, -EEXIST, "sbx update %s --%s %s", api_str(there, "name"), row->option, value);
}

/* Options of a start cannot be changed while it runs. */
static int check_start(const struct opts *o, const json_t *there, struct problem *p)
{
	const char *name = api_str(there, "name"), *accel = opts_value(o, "accel");
	const char *has = api_str(there, "accel");

	if (sandbox_is(there, "stopped") || sandbox_is(there, "suspended"))
		return 0;
	if (opts_has(o, "cold")) {
		(void)err_set(&p->err, -EEXIST,
			"sandbox '%s' is already running: --cold has no effect", name);
		return problem_hint(
			p, -EEXIST, "sbx stop --cold %s && sbx run --cold --name %s", name, name);
	}
	if (accel && strcmp(accel, "auto") != 0 && strcmp(accel, has) != 0) {
		(void)err_set(
			&p->err, -EEXIST, "sandbox '%s' is already running with %s", name, has);
		return problem_hint(p, -EEXIST,
			"sbx stop --cold %s && sbx run --accel %s --name %s", name, accel, name);
	}
	return 0;
}

/* -e is for this session. With -d there is no session, so the sandbox must have the variable. */
static int check_env(const struct opts *o, const json_t *there, struct problem *p)
{
	const json_t *has = json_object_get(there, "env");
	AUTO_ENV struct env env = {0};
	int r = 0;

	if (opts_has(o, "detached"))
		r = env_from_opts(&env, opts_list(o, "env-file"), opts_list(o, "env"), p);
	for (size_t i = 0; r == 0 && i < env.n; i++) {
		size_t n = strcspn(env.v[i], "=");
		AUTO_FREE char *name = xstrndup(env.v[i], n);
		const char *value = json_string_value(json_object_get(has, name));
		AUTO_FREE char *text = xasprintf("has a different value for the variable %s", name);

		if (!value || strcmp(value, env.v[i] + n + 1) != 0)
			r = hint_another(o, there, p, text);
	}
	return r;
}

/* ---- the workspaces ---- */

static const json_t *find_workspace(const json_t *there, const char *host)
{
	const json_t *w;
	size_t i;

	json_array_foreach (json_object_get(there, "workspaces"), i, w) {
		if (strcmp(api_str(w, "host"), host) == 0)
			return w;
	}
	return NULL;
}

static int check_workspaces(
	const struct opts *o, const json_t *want, const json_t *there, struct problem *p)
{
	const json_t *w;
	size_t i;

	json_array_foreach (json_object_get(want, "workspaces"), i, w) {
		const json_t *has = find_workspace(there, api_str(w, "host"));
		bool ro = has && json_is_true(json_object_get(has, "ro"));
		AUTO_FREE char *text = NULL;

		/* `sbx run AGENT .` again, without --clone */
		if (!has && strcmp(api_str(json_object_get(there, "clone"), "host"),
				    api_str(w, "host")) == 0)
			continue;
		if (!has)
			text = xasprintf("does not share '%s'", api_str(w, "host"));
		else if (strcmp(api_str(has, "guest"), api_str(w, "guest")) != 0)
			text = xasprintf(
				"shares '%s' at '%s'", api_str(w, "host"), api_str(has, "guest"));
		else if (ro != json_is_true(json_object_get(w, "ro")))
			text = xasprintf("shares '%s' %s", api_str(w, "host"),
				ro ? "read-only" : "read-write");
		if (text)
			return hint_another(o, there, p, text);
	}
	return 0;
}

int existing_check(
	const struct opts *o, const struct creation *want, const json_t *there, struct problem *p)
{
	int r = check_workspaces(o, want->body, there, p);

	for (size_t i = 0; r == 0 && o->defs[i].name; i++) {
		const struct row *row = find_row(o->defs[i].name);

		if (!row)
			return err_set(&p->err, -EINVAL,
				"--%s cannot be used for an existing sandbox", o->defs[i].name);
		if (o->values[i].n == 0)
			continue;
		if (row->kind == NEW) {
			(void)err_set(&p->err, -EINVAL,
				"--%s cannot be used for an existing sandbox", row->option);
			return problem_hint(
				p, -EINVAL, "sbx run --name %s", api_str(there, "name"));
		}
		if (row->kind == SAME)
			r = check_same(o, row, want->body, there, p);
		else if (row->kind == UPDATE)
			r = check_update(o, row, want->body, there, p);
	}
	if (r == 0)
		r = check_start(o, there, p);
	return r < 0 ? r : check_env(o, there, p);
}

/* ---- applying ---- */

/* Whether the sandbox already publishes that port; any host port matches if a free one is
 * requested. */
static bool is_published(const json_t *there, const json_t *port)
{
	const json_t *has;
	size_t i;

	json_array_foreach (json_object_get(there, "ports"), i, has) {
		bool any = json_is_true(json_object_get(has, "ephemeral"));
		long long host = api_int(port, "host_port");

		if (strcmp(api_str(has, "host_ip"), api_str(port, "host_ip")) == 0 &&
			api_int(has, "sandbox_port") == api_int(port, "sandbox_port") &&
			(host ? host == api_int(has, "host_port") : any))
			return true;
	}
	return false;
}

static int publish_existing(const struct creation *want, const json_t *there, struct problem *p)
{
	AUTO_JSON json_t *body = json_pack("{s:[]}", "ports"), *answer = NULL;
	json_t *port, *list = json_object_get(body, "ports");
	size_t i;

	json_array_foreach (json_object_get(want->body, "ports"), i, port) {
		if (!is_published(there, port))
			(void)json_array_append(list, port);
	}
	if (json_array_size(list) == 0)
		return 0;
	return sandbox_call(
		"POST", api_str(there, "name"), "/ports", body, API_TIMEOUT_MS, &answer, p);
}

int existing_apply(const struct creation *want, const json_t *there, struct problem *p)
{
	CLEANUP(agent_hosts_done) struct agent_hosts hosts = {0};
	int r = 0;

	if (want->allow_hosts)
		r = agent_need_hosts(want->agent, api_str(there, "name"), true, &hosts, p);
	if (r == 0)
		r = create_add_rules(want, &hosts, p);
	return r < 0 ? r : publish_existing(want, there, p);
}

int existing_import(const struct creation *want, const json_t *there, struct problem *p)
{
	if (!want->import)
		return 0;
	return create_import(want, api_str(there, "name"), p);
}
