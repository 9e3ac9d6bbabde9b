/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/cli/form.h"
#include "port_spec.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/label/label.h"
#include "src/sbx/secret/secret.h"
#include "sandbox.h"
#include "workspace.h"

/* A busy guest is not awaited longer. */
#define STATS_MS 2000

static const struct opt_def opts[] = {
	{0, "json", NULL, "print JSON"},
	{0},
};

static void row_inspect(const char *label, const char *text)
{
	printf("%-11s", label);
	ui_put(text);
	(void)putchar('\n');
}

static void row_number(const char *label, long long v)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%lld", v);
	row_inspect(label, text);
}

static void row_time(const char *label, long long ms)
{
	char text[64];
	time_t t = (time_t)(ms / 1000);
	struct tm tm;

	if (ms <= 0 || !localtime_r(&t, &tm))
		return;
	(void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm);
	row_inspect(label, text);
}

static void print_lists(const json_t *s)
{
	const json_t *item;
	const char *key;
	size_t i;

	json_array_foreach (json_object_get(s, "workspaces"), i, item) {
		AUTO_FREE char *text = workspace_describe(api_str(item, "host"),
			api_str(item, "guest"), json_is_true(json_object_get(item, "ro")));

		row_inspect("workspace", text);
	}
	item = json_object_get(s, "clone");
	if (item) {
		AUTO_FREE char *text = xasprintf("%s -> %s (remote sandbox-%s)",
			api_str(item, "host"), api_str(item, "guest"), api_str(s, "name"));

		row_inspect("clone", text);
	}
	json_array_foreach (json_object_get(s, "hide"), i, item)
		row_inspect("hide", json_string_value(item) ? json_string_value(item) : "");
	row_inspect("guard", api_str(s, "guard"));
	json_array_foreach (json_object_get(s, "guard_except"), i, item)
		row_inspect("except", json_string_value(item) ? json_string_value(item) : "");
	json_array_foreach (json_object_get(s, "ports"), i, item) {
		AUTO_FREE char *address = port_spec_address(item);
		const char *why = api_str(item, "reason");
		AUTO_FREE char *text = xasprintf("%s -> %lld/%s, %s%s%s", address,
			api_int(item, "sandbox_port"), api_str(item, "protocol"),
			api_str(item, "state"), why[0] ? ": " : "", why);

		row_inspect("port", text);
	}
	if (json_object_size(json_object_get(s, "labels"))) {
		AUTO_FREE char *text = label_text(s);

		row_inspect("labels", text);
	}
	const json_t *ssh = json_object_get(s, "ssh_agent");

	if (ssh && json_array_size(json_object_get(ssh, "keys")) == 0)
		row_inspect("ssh-agent", "every key");
	json_array_foreach (json_object_get(ssh, "keys"), i, item)
		row_inspect("ssh-agent", json_string_value(item) ? json_string_value(item) : "");
	json_t *env = json_object_get(s, "env"), *value;

	/* Values may be secret; only --json shows them. */
	json_object_foreach (env, key, value)
		row_inspect("env", key);
}

/* A credential of a service for which the sandbox uses its own does not apply. */
static bool is_own(const json_t *s, const json_t *credential)
{
	const char *name = api_str(credential, "name");
	const json_t *one;
	size_t i;

	if (strcmp(api_str(credential, "kind"), "custom") == 0)
		return false;
	json_array_foreach (json_object_get(s, "own_services"), i, one) {
		const char *service = json_string_value(one);
		size_t n = service ? strlen(service) : 0;

		if (n && strncmp(name, service, n) == 0 && (!name[n] || name[n] == '.'))
			return true;
	}
	return false;
}

/* Names, hosts and variables of the effective credentials. An unreachable vault is reported, not an
 * error. */
static void add_credentials(json_t *s)
{
	AUTO_JSON json_t *answer = NULL;
	json_t *list = json_array(), *one;
	struct problem p = {0};
	size_t i;

	if (secret_list(&answer, &p) < 0)
		(void)json_object_set_new(s, "credentials_error", json_string(p.err.text));
	json_array_foreach (json_object_get(answer, "secrets"), i, one) {
		if (!secret_is_bound(answer, one, api_str(s, "id")) || is_own(s, one))
			continue;
		(void)json_array_append_new(list,
			json_pack("{s:s, s:s, s:s, s:O, s:O}", "name", api_str(one, "name"), "kind",
				api_str(one, "kind"), "scope", api_str(one, "scope"), "hosts",
				json_object_get(one, "hosts"), "env", json_object_get(one, "env")));
	}
	(void)json_object_set_new(s, "credentials", list);
}

static void print_credentials(const json_t *s)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(s, "credentials"), i, one) {
		AUTO_FREE char *hosts = secret_join(json_object_get(one, "hosts"), ", ");
		AUTO_FREE char *text = xasprintf(
			"%s (%s) to %s", api_str(one, "name"), api_str(one, "scope"), hosts);

		row_inspect("credential", text);
	}
	json_array_foreach (json_object_get(s, "own_services"), i, one) {
		AUTO_FREE char *text = xasprintf("%s: the sandbox uses its own; not intercepted",
			json_string_value(one) ? json_string_value(one) : "");

		row_inspect("credential", text);
	}
	if (api_str(s, "credentials_error")[0])
		row_inspect("credential", api_str(s, "credentials_error"));
}

/* Sessions reported by the guest; a busy guest may not answer. */
static void add_sessions(json_t *s, const char *ref)
{
	AUTO_JSON json_t *stats = NULL;
	struct problem p = {0};
	json_t *list = NULL;

	if (sandbox_is(s, "running") &&
		sandbox_call("GET", ref, "/stats", NULL, STATS_MS, &stats, &p) == 0)
		list = json_object_get(stats, "kept_sessions");
	(void)json_object_set_new(s, "kept_sessions", list ? json_incref(list) : json_array());
}

static void print_sessions(const json_t *s)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(s, "kept_sessions"), i, one) {
		bool ended = strcmp(api_str(one, "state"), "ended") == 0;
		bool attached = json_is_true(json_object_get(one, "attached"));
		AUTO_FREE char *status =
			xasprintf("exited with status %lld", api_int(one, "status"));
		AUTO_FREE char *text = xasprintf("%s: %s", api_str(one, "name"),
			ended	   ? status
			: attached ? "running, attached"
				   : "running, detached");

		row_inspect("session", text);
	}
}

/* How this run was started, and how long that took. */
static void print_start(const json_t *s)
{
	const char *how = api_str(s, "start"), *why = api_str(s, "cold_why");
	AUTO_FREE char *text = NULL;

	if (!how[0] || api_int(s, "boot_ms") == 0)
		return;
	text = xasprintf("%s, %.2f s%s%s%s", how, (double)api_int(s, "boot_ms") / 1000,
		why[0] ? " (" : "", why, why[0] ? ")" : "");
	row_inspect("start", text);
}

static void print_text(const json_t *s)
{
	const char *accel = api_str(s, "accel");
	char size[32];

	row_inspect("sandbox", api_str(s, "name"));
	row_inspect("id", api_str(s, "id"));
	row_inspect("agent", api_str(s, "agent"));
	row_inspect("template", api_str(s, "template"));
	row_inspect("status", api_str(s, "status"));
	if (api_str(s, "detail")[0])
		row_inspect("detail", api_str(s, "detail"));
	row_inspect("engine", strcmp(accel, "tcg") == 0
				      ? "tcg (software emulation: no isolation boundary)"
				      : accel);
	print_start(s);
	row_number("cpu", api_int(s, "cpus"));
	str_from_size((uint64_t)api_int(s, "memory"), size, sizeof(size));
	row_inspect("memory", size);
	str_from_size((uint64_t)api_int(s, "disk"), size, sizeof(size));
	row_inspect("disk", api_int(s, "disk") ? size : "same as the template");
	print_lists(s);
	print_credentials(s);
	row_number("sessions", api_int(s, "sessions"));
	print_sessions(s);
	row_time("created", api_int(s, "created_at"));
	row_time("started", api_int(s, "started_at"));
	row_time("stopped", api_int(s, "stopped_at"));
	row_time("suspended", api_int(s, "suspended_at"));
	if (api_int(s, "suspended_bytes")) {
		str_from_size((uint64_t)api_int(s, "suspended_bytes"), size, sizeof(size));
		row_inspect("kept", size);
	}
	if (api_int(s, "idle_timeout"))
		row_number("idle s", api_int(s, "idle_timeout"));
	row_time("last used", api_int(s, "last_used_at"));
}

static void print_json(json_t *s)
{
	static const char *const keys[] = {"credentials_error", NULL}, *const of_session[] = {
									       "status", NULL};
	json_t *one;
	size_t i;

	form_sandbox(s);
	form_fill(s, keys);
	json_array_foreach (json_object_get(s, "kept_sessions"), i, one)
		form_fill(one, of_session);
	api_print(s);
}

static int run_inspect(struct opts *o)
{
	AUTO_JSON json_t *s = NULL;
	struct problem p = {0};
	int r = sandbox_get(o->args.v[0], &s, &p);

	if (r < 0)
		return ui_problem(&p, r);
	add_credentials(s);
	add_sessions(s, o->args.v[0]);
	if (opts_has(o, "json"))
		print_json(s);
	else
		print_text(s);
	return EXIT_OK;
}

const struct verb verb_inspect = {
	.name = "inspect",
	.group = "sandboxes",
	.args = "SANDBOX",
	.summary = "show the details of a sandbox",
	.about =
		"Prints the state of a sandbox, its resources, workspaces, ports and sessions. The values\n"
		"of environment variables are printed only with --json.",
	.examples = "  sbx inspect demo\n  sbx inspect demo --json | jq .workspaces\n",
	.opts = opts,
	.min = 1,
	.max = 1,
	.first = VERB_SANDBOX,
	.run = run_inspect,
};
