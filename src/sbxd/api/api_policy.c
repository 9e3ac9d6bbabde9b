/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "api_internal.h"
#include "api_policy.h"
#include "reload_reply.h"
#include "src/sbxd/journal/journal.h"
#include "lib/base/clock.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/locals_read.h"
#include "lib/rules/policy/policy.h"

#define PAGE 1000
#define MAX_TEXT (8u << 20)

static json_t *text_or_null(const char *s)
{
	return s ? api_text(s) : json_null();
}

json_t *api_rule_to_json(const struct rules *rules, const struct rule *rule)
{
	AUTO_FREE char *line = rule_print(rule, RULE_PRINT_PLAIN),
		       *terms = effect_terms_print(&rule->terms, rule_request_kind(rule->kind));
	json_t *o = json_object(), *list = json_array();

	for (size_t i = 0; i < rule->n_net; i++) {
		char text[NETRULE_MAX_TEXT];

		netrule_print(&rule->net[i], text);
		json_array_append_new(list, api_text(text));
	}
	json_object_set_new(o, "id", text_or_null(rule->id));
	json_object_set_new(o, "effect", json_string(rule_effect_name(rule->effect)));
	json_object_set_new(o, "kind", json_string(rule_kind_name(rule->kind)));
	json_object_set_new(o, "resources", list);
	if (terms[0])
		json_object_set_new(o, "options", api_text(terms + 1));
	json_object_set_new(o, "sandbox", text_or_null(rule->sandbox));
	json_object_set_new(o, "until", json_integer((json_int_t)rule->until_ms));
	json_object_set_new(o, "created", json_integer((json_int_t)rule->created_ms));
	json_object_set_new(o, "origin", text_or_null(rule->origin));
	json_object_set_new(o, "comment", text_or_null(rule->comment));
	json_object_set_new(
		o, "group", text_or_null(rule->group ? rules->group[rule->group - 1].name : NULL));
	json_object_set_new(o, "text", api_text(line));
	return o;
}

/* Its id is that of its line, whatever the file says. */
static json_t *managed_rule_to_json(const struct rules *rules, const struct rule *rule)
{
	json_t *o = api_rule_to_json(rules, rule);
	char id[sizeof(MANAGED_ID) + 12];

	(void)snprintf(id, sizeof(id), MANAGED_ID "%u", rule->line);
	json_object_set_new(o, "id", json_string(id));
	json_object_set_new(o, "origin", json_string("managed"));
	return o;
}

static void add_page(json_t *o, const struct rules *rules, uint64_t from)
{
	json_t *list = json_array();
	uint64_t end = MIN(from + PAGE, (uint64_t)rules->n);

	for (uint64_t i = from; i < end; i++)
		json_array_append_new(list, api_rule_to_json(rules, &rules->rule[i]));
	json_object_set_new(o, "total", json_integer((json_int_t)rules->n));
	json_object_set_new(o, "rules", list);
	json_object_set_new(o, "next", json_integer(end < rules->n ? (json_int_t)end : 0));
}

/* null, or the file, why it cannot be used, and its rules. */
static json_t *managed_to_json(const struct managed *m)
{
	json_t *o, *list;

	if (!m->exists)
		return json_null();
	list = json_array();
	for (size_t i = 0; i < MIN(m->rules.n, (size_t)PAGE); i++)
		json_array_append_new(list, managed_rule_to_json(&m->rules, &m->rules.rule[i]));
	o = json_object();
	json_object_set_new(o, "file", json_string(MANAGED_FILE));
	json_object_set_new(o, "fault", text_or_null(m->fault.text[0] ? m->fault.text : NULL));
	json_object_set_new(o, "total", json_integer((json_int_t)m->rules.n));
	json_object_set_new(o, "rules", list);
	return o;
}

static int add_text(json_t *o, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	int r = rulebook_text(&text, &n, err);

	if (r == -ENOENT)
		text = xstrdup("");
	else if (r < 0)
		return r;
	if (n > MAX_TEXT)
		return err_set(
			err, -E2BIG, "the policy has %zu bytes: read the file state/policy", n);
	json_object_set_new(o, "text", api_text(text));
	return 0;
}

void api_policy_get(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	struct rulebook *b = d->rulebook;
	struct err err = {0};
	json_t *o = json_object();
	int r;

	rulebook_refresh(b);
	json_object_set_new(o, "exists", json_boolean(b->exists));
	json_object_set_new(o, "fault", text_or_null(b->fault.text[0] ? b->fault.text : NULL));
	json_object_set_new(o, "preset", text_or_null(rulebook_preset(&b->rules)));
	json_object_set_new(o, "locked", json_boolean(rulebook_is_locked(&b->rules)));
	json_object_set_new(o, "revision", json_integer((json_int_t)b->revision));
	json_object_set_new(o, "managed", managed_to_json(&b->managed));
	add_page(o, &b->rules, req->from);
	r = req->text ? add_text(o, &err) : 0;
	if (r == 0) {
		api_reply_json(d, c, 200, o);
		return;
	}
	json_decref(o);
	api_fail_errno(d, c, r, &err);
}

static const char *why_name(enum policy_why why)
{
	static const char *const names[] = {
		[POLICY_NO_POLICY] = "no-policy",
		[POLICY_FAULT] = "fault",
		[POLICY_NO_RULE] = "no-rule",
		[POLICY_SPECIAL] = "special-address",
		[POLICY_RULE] = "rule",
		[POLICY_PUBLIC] = "public-address",
		[POLICY_UNCOVERED] = "uncovered",
	};

	return names[why];
}

static json_t *managed_rule(const struct managed *m, uint32_t line)
{
	struct rules none = {0};

	for (size_t i = 0; i < m->rules.n; i++)
		if (m->rules.rule[i].line == line) {
			struct rule rule = m->rules.rule[i];

			rule.group = 0;
			return managed_rule_to_json(&none, &rule);
		}
	return json_null();
}

/* Its group is left out: it belongs to the rules of the policy. */
static json_t *decided_rule(struct sbxd *d, const struct policy_decision *pd)
{
	const struct rules *rules = &d->rulebook->rules;
	struct rules none = {0};
	struct rule rule;

	rulebook_refresh(d->rulebook);
	if (pd->why == POLICY_RULE && pd->is_managed)
		return managed_rule(&d->rulebook->managed, pd->rule.index);
	if (pd->why != POLICY_RULE || pd->rule.index >= rules->n)
		return json_null();
	rule = rules->rule[pd->rule.index];
	rule.group = 0;
	return api_rule_to_json(&none, &rule);
}

static json_t *decide_target(
	struct sbxd *d, struct policy *policy, const struct host *host, uint16_t port)
{
	static struct addr_locals locals;
	struct policy_op op = {.kind = RULE_NETWORK,
		.host = host,
		.port = port,
		.now_ms = clock_wall_ms(),
		.locals = &locals};
	char text[POLICY_MAX_EXPLAIN], what[HOST_MAX_NAME + 80];
	AUTO_FREE char *file = paths_get(PATHS_STATE, "policy");
	struct policy_decision pd;
	json_t *o = json_object();

	/* As a keeper reads them; if the kernel does not answer, the last ones apply. */
	(void)!locals_read(&locals);
	policy_decide(policy, &op, &pd);
	policy_explain(&op, &pd, text, sizeof(text));
	policy_print_op(&op, what, sizeof(what));
	json_object_set_new(o, "host", json_string(host->name));
	json_object_set_new(o, "port", json_integer(port));
	json_object_set_new(o, "allowed", json_boolean(pd.allowed));
	json_object_set_new(o, "why", json_string(why_name(pd.why)));
	json_object_set_new(o, "operation", api_text(what));
	json_object_set_new(o, "explanation", api_text(text));
	json_object_set_new(o, "rule", decided_rule(d, &pd));
	json_object_set_new(o, "managed", json_boolean(pd.is_managed));
	json_object_set_new(o, "file", api_text(pd.is_managed ? MANAGED_FILE : file));
	return o;
}

void api_policy_check(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	struct policy *policy;
	struct host host = {0};
	struct err err = {0};
	uint16_t port = 0;
	json_t *o;
	int r = api_parse_target(req->target, &host, &port, &err);

	if (!api_succeeded(d, c, r, &err))
		return;
	if (req->sandbox && !api_find(d, c, req->sandbox, &row))
		return;
	policy = tables_open(d->tables, d->rulebook, req->sandbox ? row.spec.name : NULL);
	o = decide_target(d, policy, &host, port);
	policy_free(policy);
	json_object_set_new(o, "sandbox", text_or_null(req->sandbox ? row.spec.name : NULL));
	api_reply_json(d, c, 200, o);
}

void api_reload(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	keep_look(d);
	autosave_look_all(d);
	reload_reply(d, c, 200, json_object(), NULL);
}

void api_pool(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	pool_look(d);
	api_reply_json(d, c, 200, json_object());
}
