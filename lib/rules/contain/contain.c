/* SPDX-License-Identifier: Apache-2.0 */
#include "contain_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/table.h"

/* ---- one decision ---- */

static bool is_allowed(const struct contain *c, const struct policy *policy,
	const struct host *host, uint16_t port)
{
	struct policy_op op = {
		.kind = RULE_NETWORK, .host = host, .port = port, .now_ms = c->now_ms};
	struct policy_decision d;

	policy_decide(policy, &op, &d);
	return d.allowed;
}

bool contain_try(struct contain *c, const struct host *host)
{
	for (size_t i = 0; i < c->n_ports; i++) {
		if (c->n_tries++ == CONTAIN_MAX_TRIES)
			return true;
		if (is_allowed(c, c->inner, host, c->port[i]) &&
			!is_allowed(c, c->outer, host, c->port[i])) {
			c->ret->host = *host;
			c->ret->port = c->port[i];
			return true;
		}
	}
	return false;
}

/* ---- one sandbox at one moment ---- */

static int compare_ports(const void *a, const void *b)
{
	return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

static void add_port(struct contain *c, uint32_t port)
{
	if (port > 0 && port <= UINT16_MAX)
		c->port[c->n_ports++] = (uint16_t)port;
}

static void add_ports(struct contain *c, const struct rule *rule, const struct netrule *net)
{
	struct netrule_ports range[NETRULE_MAX_PORTS];
	size_t n = rule_get_ports(rule, net, range);

	for (size_t i = 0; i < n; i++) {
		add_port(c, range[i].lo);
		add_port(c, range[i].lo - 1u);
		add_port(c, range[i].hi);
		add_port(c, range[i].hi + 1u);
	}
}

static void add_rules(
	struct contain *c, const struct rules *rules, const char *sandbox, bool is_inner)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct rule *rule = &rules->rule[i];

		if (rule->kind != RULE_NETWORK || !rule_is_for(rule, sandbox) ||
			rule_is_over(rule, c->now_ms))
			continue;
		for (size_t k = 0; k < rule->n_net; k++) {
			c->row[c->n_rows++] = (struct contain_row){.net = &rule->net[k],
				.is_inner_allow = is_inner && rule->effect == RULE_ALLOW};
			add_ports(c, rule, &rule->net[k]);
		}
	}
}

static void keep_different_ports(struct contain *c)
{
	size_t n = 0;

	qsort(c->port, c->n_ports, sizeof(*c->port), compare_ports);
	for (size_t i = 0; i < c->n_ports; i++)
		if (n == 0 || c->port[n - 1] != c->port[i])
			c->port[n++] = c->port[i];
	c->n_ports = n;
}

static bool try_here_names(struct contain *c)
{
	static const char *const names[] = {"host.docker.internal", "gateway.docker.internal"};
	struct host host;
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (host_from_wire(slice_from_str(names[i]), &host, &err) == 0 &&
			contain_try(c, &host))
			return true;
	return false;
}

static enum contain_result check_view(struct contain *c)
{
	bool unproven = false;

	if (try_here_names(c) || contain_try_names(c, &unproven) || contain_try_addrs(c)) {
		if (c->n_tries <= CONTAIN_MAX_TRIES)
			return CONTAIN_NO;
		unproven = true;
	}
	c->ret->why = "the policies have too many different patterns";
	return unproven ? CONTAIN_UNPROVEN : CONTAIN_YES;
}

struct policy *contain_compile(
	const struct rules *rules, const struct contain_limit *limit, const char *sandbox)
{
	struct policy *p = policy_new(rules, sandbox);

	if (limit)
		policy_limit(p, limit->rules, limit->fault);
	return p;
}

/* The rules that decide about both policies. */
struct sides {
	const struct rules *inner, *outer;
	const struct contain_limit *limit;
};

static enum contain_result check_at(
	const struct sides *s, const char *sandbox, uint64_t now_ms, struct contain_witness *ret)
{
	const struct rules *inner = s->inner, *outer = s->outer;
	size_t n = inner->n_resources + outer->n_resources +
		   (s->limit ? s->limit->rules->n_resources : 0);
	AUTO_FREE struct contain_row *row = xcalloc(n + 1, sizeof(*row));
	AUTO_FREE uint16_t *port = xcalloc(n * 4 * NETRULE_MAX_PORTS + 1, sizeof(*port));
	struct policy *a = contain_compile(inner, s->limit, sandbox),
		      *b = contain_compile(outer, s->limit, sandbox);
	struct contain c = {
		.row = row, .port = port, .inner = a, .outer = b, .now_ms = now_ms, .ret = ret};
	enum contain_result result = CONTAIN_UNPROVEN;

	add_rules(&c, inner, sandbox, true);
	add_rules(&c, outer, sandbox, false);
	if (s->limit)
		add_rules(&c, s->limit->rules, sandbox, false);
	keep_different_ports(&c);
	ret->why = "a policy cannot be compiled";
	if (!policy_fault(a) && !policy_fault(b))
		result = check_view(&c);
	(void)snprintf(ret->sandbox, sizeof(ret->sandbox), "%s", sandbox);
	ret->at_ms = now_ms;
	policy_free(a);
	policy_free(b);
	return result;
}

/* ---- all sandboxes, all moments ---- */

struct views {
	const char *sandbox[CONTAIN_MAX_VIEWS];
	uint64_t at_ms[CONTAIN_MAX_VIEWS];
	size_t n_sandboxes, n_moments;
	bool is_full;
};

static void add_sandbox(struct views *v, const char *name)
{
	for (size_t i = 0; i < v->n_sandboxes; i++)
		if (strcmp(v->sandbox[i], name) == 0)
			return;
	if (v->n_sandboxes == CONTAIN_MAX_VIEWS)
		v->is_full = true;
	else
		v->sandbox[v->n_sandboxes++] = name;
}

static void add_moment(struct views *v, uint64_t at_ms)
{
	for (size_t i = 0; i < v->n_moments; i++)
		if (v->at_ms[i] == at_ms)
			return;
	if (v->n_moments == CONTAIN_MAX_VIEWS)
		v->is_full = true;
	else
		v->at_ms[v->n_moments++] = at_ms;
}

static void add_views(struct views *v, const struct rules *rules, uint64_t now_ms)
{
	for (size_t i = 0; i < rules->n; i++) {
		if (rules->rule[i].sandbox)
			add_sandbox(v, rules->rule[i].sandbox);
		if (rules->rule[i].until_ms > now_ms)
			add_moment(v, rules->rule[i].until_ms);
	}
}

/* Rules about requests are compared as texts. */
static bool has_line(const struct rules *rules, const char *line)
{
	for (size_t i = 0; i < rules->n; i++) {
		AUTO_FREE char *other = rules->rule[i].kind == RULE_NETWORK
						? NULL
						: rule_print(&rules->rule[i], RULE_PRINT_PLAIN);

		if (other && strcmp(other, line) == 0)
			return true;
	}
	return false;
}

static bool has_all_requests(const struct rules *a, const struct rules *b)
{
	for (size_t i = 0; i < a->n; i++) {
		AUTO_FREE char *line = a->rule[i].kind == RULE_NETWORK
					       ? NULL
					       : rule_print(&a->rule[i], RULE_PRINT_PLAIN);

		if (line && !has_line(b, line))
			return false;
	}
	return true;
}

static enum contain_result check_views(
	const struct views *v, const struct sides *s, struct contain_witness *ret)
{
	for (size_t i = 0; i < v->n_sandboxes; i++)
		for (size_t k = 0; k < v->n_moments; k++) {
			enum contain_result r = check_at(s, v->sandbox[i], v->at_ms[k], ret);

			if (r != CONTAIN_YES)
				return r;
		}
	return CONTAIN_YES;
}

enum contain_result contain_check(const struct rules *inner, const struct rules *outer,
	uint64_t now_ms, struct contain_witness *ret)
{
	return contain_check_limited(inner, outer, NULL, now_ms, ret);
}

enum contain_result contain_check_limited(const struct rules *inner, const struct rules *outer,
	const struct contain_limit *limit, uint64_t now_ms, struct contain_witness *ret)
{
	struct sides s = {inner, outer, limit};
	struct views v = {.n_sandboxes = 1, .sandbox = {""}, .n_moments = 1, .at_ms = {now_ms}};

	*ret = (struct contain_witness){.why = "rules about requests differ"};
	if (limit && limit->fault)
		return CONTAIN_YES; /* both deny everything */
	add_views(&v, inner, now_ms);
	add_views(&v, outer, now_ms);
	if (limit)
		add_views(&v, limit->rules, now_ms);
	if (!has_all_requests(inner, outer) || !has_all_requests(outer, inner))
		return CONTAIN_UNPROVEN;
	ret->why = "the policies have rules for too many sandboxes and moments";
	if (v.is_full || v.n_sandboxes * v.n_moments > CONTAIN_MAX_VIEWS)
		return CONTAIN_UNPROVEN;
	return check_views(&v, &s, ret);
}
