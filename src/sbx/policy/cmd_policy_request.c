/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about requests: check http, read-only. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "api_request.h"
#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/policy_file.h"
#include "lib/client/api/sandbox.h"
#include "lib/rules/head/head.h"
#include "lib/rules/policy/policy_request.h"
#include "lib/rules/policy/table.h"
#include "lib/secret/service/services.h"
#include "policy_verbs.h"

const struct opt_def policy_read_only_opts[] = {
	{0, "sandbox", "NAME", "add the rules for this sandbox only"},
	{0},
};

/* ---- check http ---- */

struct checked {
	struct asked asked;
	struct rules rules;
	struct managed managed;
	const struct pack *pack;
	const char *sandbox; /* NULL: any */
	struct arena arena;
	struct head_decision d;
	bool is_governed;
};

static void checked_done(struct checked *c)
{
	asked_done(&c->asked);
	rules_done(&c->rules);
	managed_done(&c->managed);
	arena_done(&c->arena);
}

static void decide_head(struct checked *c)
{
	struct policy *policy = policy_new(&c->rules, c->sandbox);
	const struct policy_op op = {.kind = RULE_NETWORK,
		.host = &c->asked.host,
		.port = c->asked.port,
		.now_ms = clock_wall_ms()};
	const struct head h = {.method = c->asked.req.method,
		.host = host_slice(&c->asked.host),
		.port = c->asked.port,
		.path = c->asked.path,
		.query = c->asked.req.query,
		.has_query = c->asked.has_query,
		.headers = &c->asked.headers};

	policy_file_managed(&c->managed);
	if (c->managed.exists)
		policy_limit(policy, &c->managed.rules,
			c->managed.fault.text[0] ? c->managed.fault.text : NULL);
	c->pack = packs_of_host(api_packs(), h.host, h.port);
	c->is_governed = policy_governs(
		policy, &op, c->pack ? slice_from_str(c->pack->name) : slice_of(NULL, 0));
	arena_init(&c->arena, HTTP_ARENA_SIZE);
	head_decide(policy, &op, c->pack, &h, &c->arena, &c->d);
	policy_free(policy);
}

static const char *const answers[] = {[HEAD_ALLOWED] = "allow",
	[HEAD_DENIED] = "deny",
	[HEAD_HELD] = "ask",
	[HEAD_READ] = "read"};

static void print_check(const struct checked *c, const char *target)
{
	static const char *const words[] = {[HEAD_ALLOWED] = "Allowed",
		[HEAD_DENIED] = "Denied",
		[HEAD_HELD] = "Held",
		[HEAD_READ] = "Decided by the content"};

	printf("%s: ", words[c->d.answer]);
	ui_put(target);
	printf("\n  detail: ");
	ui_put(c->d.reason);
	printf("\n  host:   %s, %s\n", c->asked.host.name,
		c->is_governed ? "governed: only requests that a rule about requests permits pass"
			       : "not governed: the network rules permit what no rule refuses");
	for (size_t i = 0; i < c->d.effects.n; i++) {
		char text[EFFECT_MAX_TEXT + 1];

		(void)effect_print(&c->d.effects.v[i], text);
		printf("  effect: %s\n", text);
	}
	if (c->d.rule[0]) {
		printf("  rule:   %s  ", c->d.id[0] ? c->d.id : "-");
		ui_put(c->d.rule);
		(void)putchar('\n');
	}
	if (c->d.is_managed || strncmp(c->d.where, MANAGED_FILE, strlen(MANAGED_FILE)) == 0)
		printf("  file:   %s, the managed policy: only root can change it\n",
			c->d.where[0] ? c->d.where : MANAGED_FILE);
	if (c->d.instead[0]) {
		printf("  instead: ");
		ui_put(c->d.instead);
		(void)putchar('\n');
	}
}

static void print_check_json(const struct checked *c)
{
	uint8_t digest[EFFECT_DIGEST];
	char hex[2 * EFFECT_DIGEST + 1];
	json_t *list = json_array();
	AUTO_JSON json_t *o = json_pack("{s:s, s:b, s:b, s:b, s:o, s:s?, s:s?, s:s, s:s?}",
		"decision", answers[c->d.answer], "allowed", c->d.answer == HEAD_ALLOWED,
		"governed", c->is_governed, "managed", c->d.is_managed, "effects", list, "rule",
		c->d.id[0] ? c->d.id : NULL, "text", c->d.rule[0] ? c->d.rule : NULL, "reason",
		c->d.reason, "instead", c->d.instead[0] ? c->d.instead : NULL);

	for (size_t i = 0; i < c->d.effects.n; i++) {
		char text[EFFECT_MAX_TEXT + 1];

		(void)effect_print(&c->d.effects.v[i], text);
		(void)json_array_append_new(list, json_string(text));
	}
	effect_digest(c->d.effects.v, c->d.effects.n, slice_of(NULL, 0), digest);
	hex_print(digest, sizeof(digest), hex);
	(void)json_object_set_new(o, "digest", json_string(hex));
	api_print(o);
}

int policy_check_http(struct opts *o)
{
	CLEANUP(checked_done) struct checked c = {0};
	AUTO_JSON json_t *sandbox = NULL;
	struct problem p = {0};
	int r = asked_read(&c.asked, o->args.v[1], opts_list(o, "header"), NULL, &p.err);

	if (r < 0)
		return ui_problem(&p, problem_usage(&p, r, "policy check"));
	if (opts_value(o, "sandbox"))
		r = sandbox_get(opts_value(o, "sandbox"), &sandbox, &p);
	if (r == 0)
		r = policy_file_load(&c.rules, &p);
	if (r < 0)
		return ui_problem(&p, r);
	c.sandbox = sandbox ? api_str(sandbox, "name") : NULL;
	decide_head(&c);
	if (opts_has(o, "json"))
		print_check_json(&c);
	else
		print_check(&c, o->args.v[1]);
	return c.d.answer == HEAD_ALLOWED ? EXIT_OK : EXIT_FAILED;
}

/* ---- read-only ---- */

#define READS "method GET,HEAD,OPTIONS"

static int add_rule(const char *kind, const char *resources, const char *options,
	const char *sandbox, struct problem *p)
{
	const struct policy_wish w = {.effect = "allow",
		.kind = kind,
		.resources = resources,
		.options = options,
		.sandbox = sandbox};
	AUTO_JSON json_t *answer = NULL;
	int r = policy_add(&w, &answer, p);

	if (r < 0)
		return r;
	printf("%s: %s\n",
		json_is_true(json_object_get(answer, "existed")) ? "Rule already exists"
								 : "Rule added",
		api_str(json_object_get(answer, "rule"), "text"));
	(void)fflush(stdout);
	policy_say_conflicts(answer);
	policy_say_governed(answer);
	policy_say_not_taken(answer);
	return 0;
}

static bool pack_has(const struct pack *pack, const struct netrule *net)
{
	return pack && net->form == NETRULE_NAME && !net->n_glob && !net->deep &&
	       pack_has_host(
		       pack, slice_of(net->name, net->n_name), net->ports.lo ? net->ports.lo : 443);
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
		if ((at == list || at[-1] == ',') && (at[n] == ',' || !at[n]))
			return true;
	return false;
}

/* The hosts of the service that its pack does not have, each with all paths; on the heap. */
static char *join_hosts(const struct service *service, const struct pack *pack)
{
	char *list = xstrdup("");

	for (size_t i = 0; i < service->n_slots; i++)
		for (size_t k = 0; k < service->slot[i].n_hosts; k++) {
			const struct netrule *net = &service->slot[i].host[k];
			AUTO_FREE char *old = list, *one = NULL;
			char text[NETRULE_MAX_TEXT];

			netrule_print(net, text);
			one = xasprintf("%s/**", text);
			list = pack_has(pack, net) || has_word(old, one)
				       ? xstrdup(old)
				       : xasprintf("%s%s%s", old, old[0] ? "," : "", one);
		}
	return list;
}

static int add_hosts(const struct service *service, const struct pack *pack, const char *sandbox,
	struct problem *p)
{
	AUTO_FREE char *list = join_hosts(service, pack);
	int r = 0;

	if (list[0])
		r = add_rule("http", list, READS, sandbox, p);
	if (list[0] && r == 0)
		r = add_rule("git", list, "do fetch", sandbox, p);
	return r;
}

int policy_read_only_run(struct opts *o)
{
	const char *name = o->args.v[0], *sandbox = opts_value(o, "sandbox");
	const struct pack *pack = packs_find(api_packs(), name);
	struct services *set = services_new();
	const struct service *service = NULL;
	struct problem p = {0};
	int r = services_load_installed(set, &p.err);

	if (r == 0)
		service = services_by_name(set, name);
	if (r == 0 && !service && !pack) {
		r = err_set(&p.err, -ENOENT, "service '%s' not found", name);
		(void)problem_hint(&p, r, "sbx secret services");
	}
	if (r == 0 && pack)
		r = add_rule("api", name, "do any risk read", sandbox, &p);
	if (r == 0 && service)
		r = add_hosts(service, pack, sandbox, &p);
	services_free(set);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}
