/* SPDX-License-Identifier: Apache-2.0 */
/* sbx fork: new sandboxes with the disks of another, through sbxd. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/sandbox.h"
#include "lib/rules/spec/spec.h"
#include "rewind.h"
#include "src/sbx/clone/clone.h"
#include "src/sbx/disk/disk.h"
#include "src/sbx/session/session.h"
#include "src/sbx/stage/stage.h"

#define MAX_FORKS 16
#define MAX_RULES 64 /* of one create */
#define KEYS_MS 120000

static const struct opt_def opts[] = {
	{0, "n", "N", "create N forks, NAME-1 to NAME-N"},
	{0},
};

/* ---- what a fork has of its source ---- */

/* Ports are not copied: a host port has one sandbox. Neither are credentials of the sandbox. */
static json_t *make_spec(const json_t *source)
{
	static const char *const keys[] = {"agent", "template", "cpus", "memory", "disk", "accel",
		"idle_timeout", "workspaces", "mounts", "only", "force", "staged", "staged_since",
		"hide", "guard", "guard_except", "env", "labels", "ssh_agent", "clone"};
	json_t *body = json_object();

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		json_t *v = json_object_get(source, keys[i]);

		if (v && !json_is_null(v))
			json_object_set(body, keys[i], v);
	}
	if (json_is_true(json_object_get(source, "staged")) &&
		!json_object_get(body, "staged_since"))
		json_object_set(body, "staged_since", json_object_get(source, "created_at"));
	/* No snapshot of the template is created for it. */
	json_object_set_new(body, "cold", json_true());
	return body;
}

static json_t *copy_rule(const json_t *rule)
{
	static const char *const keys[] = {"effect", "kind", "resources", "comment", "origin"};
	json_t *o = json_object();

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		json_t *v = json_object_get(rule, keys[i]);

		if (v && !json_is_null(v))
			json_object_set(o, keys[i], v);
	}
	if (api_int(rule, "until"))
		json_object_set(o, "until", json_object_get(rule, "until"));
	return o;
}

/* A rule that has expired has no effect. */
static bool is_wanted(const json_t *rule, const char *sandbox)
{
	uint64_t until = (uint64_t)api_int(rule, "until");

	return strcmp(api_str(rule, "sandbox"), sandbox) == 0 &&
	       (!until || until > clock_wall_ms());
}

/* Deny rules too: a fork must not reach more than its source. */
static int copy_rules(const char *sandbox, json_t *ret, struct problem *p)
{
	long long from = 0;

	do {
		AUTO_FREE char *path = xasprintf("/v1/policy?from=%lld", from);
		AUTO_JSON json_t *page = NULL;
		int r = api_call("GET", path, NULL, POLICY_TIMEOUT_MS, &page, p);
		const json_t *rule;
		size_t i;

		if (r < 0)
			return r;
		json_array_foreach (json_object_get(page, "rules"), i, rule)
			if (is_wanted(rule, sandbox))
				json_array_append_new(ret, copy_rule(rule));
		from = api_int(page, "next");
	} while (from > 0);
	if (json_array_size(ret) > MAX_RULES)
		return err_set(&p->err, -E2BIG,
			"sandbox '%s' has more than %d network rules: a fork cannot copy them",
			sandbox, MAX_RULES);
	return 0;
}

/* ---- the command ---- */

static int parse_n(struct opts *o, uint64_t *ret, struct err *err)
{
	const char *text = opts_value(o, "n");

	*ret = 0;
	if (text && str_to_u64(text, 1, MAX_FORKS, ret) < 0)
		return err_set(err, -EINVAL, "invalid --n '%s': expected 1 to %d", text, MAX_FORKS);
	return 0;
}

static char *fork_name(const char *name, uint64_t n, uint64_t i)
{
	return n ? xasprintf("%s-%llu", name, (unsigned long long)i) : xstrdup(name);
}

/* Before the disks are frozen: each name must be valid and free. */
static int check_names(const char *name, uint64_t n, struct problem *p)
{
	int r = 0;

	for (uint64_t i = 1; r == 0 && i <= (n ? n : 1); i++) {
		AUTO_FREE char *one = fork_name(name, n, i);
		AUTO_JSON json_t *taken = NULL;
		struct problem ignored = {0};

		r = spec_check_name(one, &p->err);
		if (r < 0)
			return problem_usage(p, r, "fork");
		if (sandbox_get(one, &taken, &ignored) == 0)
			r = err_set(&p->err, -EEXIST, "a sandbox named %s already exists", one);
	}
	return r;
}

/* Replaces each SSH host key by a new one of the same type. $1 is the fork's name, which only its
 * own guest has as the host name. */
static const char new_keys[] =
	"[ \"$(cat /proc/sys/kernel/hostname)\" = \"$1\" ] || exit 0\n"
	"for f in /etc/ssh/ssh_host_*_key; do\n"
	"  [ -f \"$f\" ] || continue\n"
	"  t=${f##*/ssh_host_}\n"
	"  rm -f \"$f.new\" \"$f.new.pub\"\n"
	"  ssh-keygen -q -t \"${t%_key}\" -N '' -C \"root@$1\" -f \"$f.new\" &&\n"
	"    mv \"$f.new\" \"$f\" && mv \"$f.new.pub\" \"$f.pub\" || exit 1\n"
	"done\n";

static void renew_keys(const char *name)
{
	const char *argv[] = {"sh", "-c", new_keys, "sh", name, NULL};
	struct guest_run g = {.ref = name, .user = "root", .argv = argv, .max_ms = KEYS_MS};
	struct problem p = {0};
	int r = guest_run(&g, &p);

	if (r < 0)
		ui_warning("sandbox '%s' may have the SSH host keys of its source: %s", name,
			err_text(&p.err, r));
	free(g.out);
}

static int create_forks(
	json_t *spec, const json_t *source, const char *name, uint64_t n, struct problem *p)
{
	for (uint64_t i = 1; i <= (n ? n : 1); i++) {
		AUTO_FREE char *one = fork_name(name, n, i);
		AUTO_JSON json_t *body = json_deep_copy(spec), *fork = NULL;
		int r;

		json_object_set_new(body, "name", json_string(one));
		r = sandbox_create(body, &fork, p);
		if (r < 0)
			return r;
		clone_fork(source, one);
		stage_fork(source, fork);
		renew_keys(one);
		printf("Created sandbox '%s' from '%s'\n", one, api_str(source, "name"));
		(void)fflush(stdout);
	}
	return 0;
}

/* The forks refer to the id of the template: its name is only needed until they exist. */
static int fork_disks(
	json_t *spec, const json_t *source, const char *name, uint64_t n, struct problem *p)
{
	const char *ref = api_str(source, "id");
	char random[9];
	AUTO_TEMPLATE struct template t = {0};
	AUTO_FREE char *temp = NULL, *path = NULL;
	struct problem ignored = {0};
	int r;

	str_random_hex(random, 4);
	temp = xasprintf("fork-%s", random);
	path = xasprintf("/v1/templates/%s", temp);
	r = template_save_as(ref, &(struct template_wish){.name = temp}, &t, p);
	if (r == 0) {
		json_object_set_new(spec, "template_id", json_string(t.id));
		r = create_forks(spec, source, name, n, p);
		(void)!api_call("DELETE", path, NULL, API_TIMEOUT_MS, NULL, &ignored);
	}
	return r;
}

static int fork_sandbox(const char *ref, const char *name, uint64_t n, struct problem *p)
{
	AUTO_JSON json_t *source = NULL, *spec = NULL;
	json_t *rules = json_array();
	AUTO_CLOSE int lock = -1;
	int r = sandbox_get(ref, &source, p);

	if (r == 0)
		r = check_names(name, n, p);
	if (r == 0)
		r = copy_rules(api_str(source, "name"), rules, p);
	if (r == 0)
		r = stage_begin_fork(source, &lock, p);
	spec = make_spec(source);
	if (json_array_size(rules))
		json_object_set(spec, "rules", rules);
	json_decref(rules);
	return r < 0 ? r : fork_disks(spec, source, name, n, p);
}

static int run_fork(struct opts *o)
{
	struct problem p = {0};
	uint64_t n;
	int r = parse_n(o, &n, &p.err);

	if (r < 0)
		return ui_problem(&p, problem_usage(&p, r, "fork"));
	r = fork_sandbox(o->args.v[0], o->args.v[1], n, &p);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}

const struct verb verb_fork = {
	.name = "fork",
	.group = "sandboxes",
	.args = "SANDBOX NAME",
	.summary = "create sandboxes from the current disks of a sandbox",
	.about =
		"Creates a sandbox NAME with the current disks of SANDBOX and starts it. A running sandbox\n"
		"keeps running. Both share the data on disk until one changes it, and each can be removed\n"
		"without the other. The fork has the same resources, workspaces and network rules, and its\n"
		"own host name, machine id, certificates and SSH host keys. Memory, published ports and\n"
		"credentials of the sandbox are not copied.",
	.examples = "  sbx fork demo attempt\n"
		    "  sbx fork demo attempt --n 4\n",
	.opts = opts,
	.min = 2,
	.max = 2,
	.first = VERB_SANDBOX,
	.run = run_fork,
};
