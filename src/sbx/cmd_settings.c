#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/settings/settings_net.h"
#include "lib/base/str.h"
#include "lib/sshagent/sha256.h"
#include "policy_api.h"
#include "sandbox.h"
#include "table.h"
#include "verb.h"

static const struct opt_def no_opts[] = {{0}};
static const struct opt_def json_opts[] = {
	{0, "json", NULL, "print JSON"},
	{0},
};

static int find_and_load(
	const struct opts *o, enum settings_id *ret_id, struct settings *s, struct problem *p)
{
	int r = settings_find(o->args.v[0], ret_id, &p->err);

	if (r < 0)
		return problem_hint(p, r, "sbx settings list");
	return settings_load(s, &p->err);
}

static int run_get(struct opts *o)
{
	AUTO_SETTINGS struct settings s = {0};
	struct problem p = {0};
	enum settings_id id;
	int r = find_and_load(o, &id, &s, &p);

	if (r < 0)
		return ui_problem(&p, r);
	printf("%s\n", settings_get(&s, id));
	return EXIT_OK;
}

/* Whom a change concerns at once: running sandboxes, or sbxd's pool alone. */
static const char *whom_to_tell(const char *key)
{
	if (str_starts(key, "network.") || str_starts(key, "audit."))
		return "/v1/reload";
	return str_starts(key, "pool.") || str_starts(key, "vm.") ? "/v1/pool" : NULL;
}

/* Without sbxd nobody runs who had to be told. */
static void tell(const char *path)
{
	AUTO_JSON json_t *answer = NULL;
	struct problem p = {0};
	int r = api_peek("POST", path, API_TIMEOUT_MS, &answer, &p);

	if (r == 0)
		policy_say_not_taken(answer);
	else if (r != -ECONNREFUSED)
		ui_warning("what runs was not told: %s", err_text(&p.err, r));
}

static bool is_inside(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return n && strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]);
}

static int refuse_shared(
	const json_t *sandbox, const char *list, const char *path, struct problem *p)
{
	const json_t *shares = json_object_get(sandbox, list);

	for (size_t i = 0; i < json_array_size(shares); i++) {
		const char *host = api_str(json_array_get(shares, i), "host");

		if (is_inside(path, host))
			return err_set(&p->err, -EPERM,
				"network.extra-ca: %s is inside %s, which sandbox '%s' shares: a "
				"guest could write the file",
				path, host, api_str(sandbox, "name"));
	}
	return 0;
}

/* A certificate authority that a guest wrote could pass for every server. */
static int check_not_shared(const char *value, struct problem *p)
{
	AUTO_FREE char *path = value[0] ? realpath(value, NULL) : NULL;
	AUTO_JSON json_t *whole = NULL;
	const json_t *s;
	size_t i;
	int r = path ? sandbox_list(&whole, p) : 0;

	json_array_foreach(whole, i, s)
	{
		if (r == 0)
			r = refuse_shared(s, "workspaces", path, p);
		if (r == 0)
			r = refuse_shared(s, "mounts", path, p);
	}
	return r;
}

static int change(const struct opts *o, const char *value)
{
	struct problem p = {0};
	enum settings_id id;
	const char *path;
	int r = settings_find(o->args.v[0], &id, &p.err);

	if (r < 0)
		return ui_problem(&p, problem_hint(&p, r, "sbx settings list"));
	if (value)
		r = settings_check_value(id, value, &p.err);
	if (r < 0)
		return ui_problem(&p, problem_usage(&p, r, "settings set"));
	r = value && id == SETTINGS_NETWORK_EXTRA_CA ? check_not_shared(value, &p) : 0;
	if (r == 0)
		r = settings_change(id, value, &p.err);
	if (r < 0)
		return ui_problem(&p, r);
	path = whom_to_tell(settings_keys[id].name);
	if (path)
		tell(path);
	return EXIT_OK;
}

static int run_set(struct opts *o)
{
	return change(o, o->args.v[1]);
}

static int run_unset(struct opts *o)
{
	return change(o, NULL);
}

/* What is used of network.extra-ca: the SHA-256 of the copy in hex, or why there is none. */
static char *describe_ca(const struct settings *s)
{
	const char *path = settings_get(s, SETTINGS_NETWORK_EXTRA_CA);
	AUTO_FREE char *pem = NULL;
	uint8_t hash[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	struct err err = {0};
	size_t n = 0;
	int r = path[0] ? settings_net_load_ca(path, &pem, &n, &err) : -ENOENT;

	if (!path[0])
		return NULL;
	if (r < 0)
		return xasprintf("not usable: %s", err_text(&err, r));
	sha256(slice_of(pem, n), hash);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", hash[i]);
	return xasprintf("SHA-256 %s", hex);
}

static char *value_text(const struct settings *s, enum settings_id id)
{
	AUTO_FREE char *ca = id == SETTINGS_NETWORK_EXTRA_CA ? describe_ca(s) : NULL;

	return ca ? xasprintf("%s (copy, %s)", settings_get(s, id), ca)
		  : xstrdup(settings_get(s, id));
}

static void print_table(const struct settings *s)
{
	static const char *const heading[] = {"KEY", "VALUE", "SOURCE", "MEANING"};
	CLEANUP(table_done) struct table t;

	table_init(&t, ARRAY_LEN(heading), heading);
	for (size_t i = 0; i < SETTINGS_N; i++) {
		const struct settings_key *k = &settings_keys[i];
		AUTO_FREE char *value = value_text(s, (enum settings_id)i);
		const char *cells[] = {k->name, value,
			settings_is_set(s, (enum settings_id)i) ? "file" : "default", k->help};

		table_add(&t, cells);
	}
	table_print(&t);
}

static void print_json(const struct settings *s)
{
	AUTO_JSON json_t *list = json_array(), *whole = NULL;

	for (size_t i = 0; i < SETTINGS_N; i++) {
		const struct settings_key *k = &settings_keys[i];
		AUTO_FREE char *ca = i == SETTINGS_NETWORK_EXTRA_CA ? describe_ca(s) : NULL;
		AUTO_FREE char *copy = ca ? settings_net_ca_copy() : NULL;

		(void)json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:b, s:s, s:s*, s:s*}", "key", k->name,
				      "value", settings_get(s, (enum settings_id)i), "default",
				      k->standard, "set", settings_is_set(s, (enum settings_id)i),
				      "help", k->help, "copy", copy, "state", ca));
	}
	whole = json_pack("{s:O}", "settings", list);
	api_print(whole);
}

static int run_list(struct opts *o)
{
	AUTO_SETTINGS struct settings s = {0};
	struct problem p = {0};
	int r = settings_load(&s, &p.err);

	if (r < 0)
		return ui_problem(&p, r);
	if (opts_has(o, "json"))
		print_json(&s);
	else
		print_table(&s);
	return EXIT_OK;
}

static const struct verb subs[] = {
	{
		.name = "list",
		.args = "",
		.summary = "list all settings",
		.about = "Lists every setting with its value and where that comes from.",
		.opts = json_opts,
		.run = run_list,
	},
	{
		.name = "get",
		.args = "KEY",
		.summary = "print one value",
		.about = "Prints the value of one setting, or its default.",
		.opts = no_opts,
		.min = 1,
		.max = 1,
		.first = VERB_KEY,
		.run = run_get,
	},
	{
		.name = "set",
		.args = "KEY VALUE",
		.summary = "change one value",
		.about = "Changes one setting. It counts for sandboxes that are made or started "
			 "from now on;\n"
			 "those of the network and the audit log count for running ones too.",
		.opts = no_opts,
		.min = 2,
		.max = 2,
		.first = VERB_KEY,
		.run = run_set,
	},
	{
		.name = "unset",
		.args = "KEY",
		.summary = "go back to the default",
		.about = "Takes one setting out of the file, so that its default counts again.",
		.opts = no_opts,
		.min = 1,
		.max = 1,
		.first = VERB_KEY,
		.run = run_unset,
	},
	{0},
};

const struct verb verb_settings = {
	.name = "settings",
	.group = "management",
	.args = "COMMAND",
	.summary = "read and change settings",
	.about = "Settings are lines `key = value` in settings.conf in sbx's configuration folder.",
	.examples = "  sbx settings list\n  sbx settings set vm.memory 4g\n",
	.subs = subs,
};
