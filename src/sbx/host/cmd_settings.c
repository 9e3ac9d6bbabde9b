/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs/fd.h"
#include "lib/base/hash/sha256.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/fs/walk.h"
#include "lib/rules/settings/settings_net.h"
#include "lib/base/str.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/cli/table.h"
#include "host.h"

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

/* Receivers of a change: running sandboxes, or only sbxd's pool. */
static const char *whom_to_tell(const char *key)
{
	if (str_starts(key, "network.") || str_starts(key, "audit.") || str_starts(key, "disk.") ||
		str_starts(key, "ask."))
		return "/v1/reload";
	return str_starts(key, "pool.") || str_starts(key, "vm.") ? "/v1/pool" : NULL;
}

/* Without sbxd there are no keepers to notify. */
static void tell_settings(const char *path)
{
	AUTO_JSON json_t *answer = NULL;
	struct problem p = {0};
	int r = api_peek("POST", path, API_TIMEOUT_MS, &answer, &p);

	if (r == 0)
		policy_say_not_taken(answer);
	else if (r != -ECONNREFUSED)
		ui_warning("cannot notify running sandboxes: %s", err_text(&p.err, r));
}

struct shares {
	const json_t *sandboxes;
	struct problem *p;
};

static int refuse_in(const json_t *sandbox, const char *list, const char *next, const char *after,
	struct problem *p)
{
	const json_t *shares = json_object_get(sandbox, list);

	for (size_t i = 0; i < json_array_size(shares); i++) {
		const char *host = api_str(json_array_get(shares, i), "host");

		if (host[0] && walk_is_in(next, host))
			return err_set(&p->err, -EPERM,
				"network.extra-ca: %s%s is inside %s, which sandbox '%s' shares: a "
				"guest could write the file",
				next, after, host, api_str(sandbox, "name"));
	}
	return 0;
}

/* A directory, link or file of the path. */
static int visit_settings(
	void *arg, const struct walk *w, const char *next, const char *after, struct err *err)
{
	const struct shares *s = arg;
	const json_t *sandbox;
	struct stat st;
	size_t i;
	int r = 0;

	json_array_foreach (s->sandboxes, i, sandbox) {
		if (r == 0)
			r = refuse_in(sandbox, "workspaces", next, after, s->p);
		if (r == 0)
			r = refuse_in(sandbox, "mounts", next, after, s->p);
	}
	return r < 0 ? r : lstat(next, &st) == 0 && S_ISLNK(st.st_mode);
}

/* A certificate authority written by a guest could impersonate every server. The path is resolved
 * again after the open: a guest can replace files in its workspace at any time, and no others. */
static int check_not_shared(const char *path, int fd, struct problem *p)
{
	AUTO_JSON json_t *whole = NULL;
	AUTO_WALK struct walk typed = {0}, opened = {0};
	AUTO_FREE char *link = xasprintf("/proc/self/fd/%d", fd);
	struct shares s = {.p = p};
	char at[PATH_MAX];
	ssize_t n = readlink(link, at, sizeof(at) - 1);
	int r = n < 0 ? err_errno(&p->err, -errno, "network.extra-ca") : sandbox_list(&whole, p);

	if (r < 0)
		return r;
	at[n] = '\0';
	s.sandboxes = whole;
	r = walk_path(path, visit_settings, &s, &typed, &p->err);
	return r < 0 ? r : walk_path(at, visit_settings, &s, &opened, &p->err);
}

static int change_ca(const char *value, struct problem *p)
{
	AUTO_CLOSE int fd = settings_net_open_ca(value, &p->err);
	int r = fd < 0 ? fd : check_not_shared(value, fd, p);

	return r < 0 ? r : settings_change_with(SETTINGS_NETWORK_EXTRA_CA, value, fd, &p->err);
}

static int change_settings(const struct opts *o, const char *value)
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
	r = value && value[0] && id == SETTINGS_NETWORK_EXTRA_CA
		    ? change_ca(value, &p)
		    : settings_change(id, value, &p.err);
	if (r < 0)
		return ui_problem(&p, r);
	path = whom_to_tell(settings_keys[id].name);
	if (path)
		tell_settings(path);
	return EXIT_OK;
}

static int run_set(struct opts *o)
{
	return change_settings(o, o->args.v[1]);
}

static int run_unset(struct opts *o)
{
	return change_settings(o, NULL);
}

/* The effective network.extra-ca: SHA-256 of the copy in hex, or why there is none. */
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
	hex_print(hash, SHA256_BYTES, hex);
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
			list, json_pack("{s:s, s:s, s:s, s:b, s:s, s:s?, s:s?}", "key", k->name,
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
		.about = "Lists every setting with its value and the source of the value.",
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
		.about =
			"Changes one setting. The change applies to sandboxes created or started later; changes of\n"
			"network and audit settings also apply to running sandboxes.",
		.opts = no_opts,
		.min = 2,
		.max = 2,
		.first = VERB_KEY,
		.run = run_set,
	},
	{
		.name = "unset",
		.args = "KEY",
		.summary = "restore the default",
		.about = "Removes one setting from the file, so that its default applies again.",
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
	.about =
		"A setting is a line `key = value` in settings.conf in sbx's configuration directory.",
	.examples = "  sbx settings list\n  sbx settings set vm.memory 4g\n",
	.subs = subs,
};
