/* SPDX-License-Identifier: Apache-2.0 */
#include "shrink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "policies.h"
#include "shrink_internal.h"

#define NOT_KNOWN UINT32_MAX

struct shrink {
	const struct rules *old;
	uint64_t now_ms;
	struct policies policies;
	struct shrink_target *v;
	size_t n, room;
};

struct shrink *shrink_new(
	const struct rules *old, const struct contain_limit *limit, uint64_t now_ms)
{
	struct shrink *s = xcalloc(1, sizeof(*s));

	*s = (struct shrink){.old = old,
		.now_ms = now_ms,
		.policies = {.rules = old, .limit = limit},
		.v = xcalloc(1, sizeof(*s->v)),
		.room = 1};
	return s;
}

void shrink_free(struct shrink *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].host);
	free(s->v);
	policies_done(&s->policies);
	free(s);
}

/* ---- noting a target ---- */

/* By sandbox, host and port: a name without a port comes before its ports. */
static int compare_targets(const void *a, const void *b)
{
	const struct shrink_target *x = a, *y = b;
	int r;

	if (x->sandbox != y->sandbox)
		return x->sandbox < y->sandbox ? -1 : 1;
	r = strcmp(x->host, y->host);
	return r ? r : (int)x->port - (int)y->port;
}

static void remove_equal(struct shrink *s)
{
	size_t n = 0;

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), compare_targets);
	for (size_t i = 0; i < s->n; i++) {
		if (n && compare_targets(&s->v[n - 1], &s->v[i]) == 0)
			free(s->v[i].host);
		else
			s->v[n++] = s->v[i];
	}
	s->n = n;
}

static int make_room(struct shrink *s)
{
	if (s->n < s->room)
		return 0;
	remove_equal(s);
	if (s->n > SHRINK_MAX_TARGETS)
		return -E2BIG;
	s->room = MAX(2 * s->n, 64u);
	s->v = xrealloc(s->v, s->room * sizeof(*s->v));
	return 0;
}

static bool decide_target(const struct shrink *s, const struct policy *policy,
	const struct host *host, uint16_t port, uint32_t *ret_rule)
{
	struct policy_op op = {
		.kind = RULE_NETWORK, .host = host, .port = port, .now_ms = s->now_ms};
	struct policy_decision d;

	policy_decide(policy, &op, &d);
	*ret_rule = d.rule.index;
	return d.allowed && d.why == POLICY_RULE;
}

int shrink_add(struct shrink *s, struct slice sandbox, const struct host *host, uint16_t port)
{
	const struct policy *policy = policies_find(&s->policies, sandbox);
	struct policy_op op = {.kind = RULE_NETWORK, .host = host, .now_ms = s->now_ms};
	struct shrink_target t = {.port = port,
		.rule = NOT_KNOWN,
		.is_addr = host->is_addr,
		.sandbox = (uint32_t)s->policies.last};
	int r;

	if (port ? !decide_target(s, policy, host, port, &t.rule) : !policy_has_port(policy, &op))
		return -EACCES;
	r = make_room(s);
	if (r < 0)
		return r;
	t.host = xstrndup(host->name, host->n);
	s->v[s->n++] = t;
	return 0;
}

/* ---- names that were resolved only ---- */

static bool find_port_of(const struct shrink *s, const struct rules *rules, const struct host *host,
	struct shrink_target *t)
{
	const struct policies_row *row = &s->policies.row[t->sandbox];
	struct netrule_ports range[NETRULE_MAX_PORTS];

	for (size_t i = 0; i < rules->n; i++)
		for (size_t k = 0; k < rules->rule[i].n_net; k++) {
			size_t n = rule_get_ports(&rules->rule[i], &rules->rule[i].net[k], range);

			for (size_t j = 0; j < 2 * n; j++) {
				t->port = j % 2 ? (uint16_t)(range[j / 2].hi + 1) : range[j / 2].lo;
				if (t->port &&
					decide_target(s, row->policy, host, t->port, &t->rule))
					return true;
			}
		}
	return false;
}

/* A port on which a rule allows the name. The lowest one begins a range or follows a denied one. */
static bool find_port(struct shrink *s, struct shrink_target *t)
{
	const struct policies_row *row = &s->policies.row[t->sandbox];
	const struct contain_limit *limit = s->policies.limit;
	struct host host;

	if (host_from_wire(slice_from_str(t->host), &host, NULL) < 0)
		return false;
	t->port = 443;
	if (decide_target(s, row->policy, &host, t->port, &t->rule) ||
		find_port_of(s, s->old, &host, t))
		return true;
	return limit && find_port_of(s, limit->rules, &host, t);
}

/* A name without a port needs one of its own only if no connection to it was recorded. */
static void find_ports(struct shrink *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct shrink_target *t = &s->v[i], *next = i + 1 < s->n ? t + 1 : NULL;
		bool is_same =
			next && next->sandbox == t->sandbox && strcmp(next->host, t->host) == 0;

		if (t->port == 0 && (is_same || !find_port(s, t)))
			free(t->host);
		else
			s->v[n++] = *t;
	}
	s->n = n;
}

static int compare_rules(const void *a, const void *b)
{
	const struct shrink_target *x = a, *y = b;

	if (x->rule != y->rule)
		return x->rule < y->rule ? -1 : 1;
	return compare_targets(a, b);
}

/* ---- the new rules ---- */

static void copy_groups(const struct rules *old, struct rules *ret)
{
	ret->group = xcalloc(old->n_groups + 1, sizeof(*ret->group));
	ret->n_groups = old->n_groups;
	for (size_t i = 0; i < old->n_groups; i++) {
		ret->group[i].name = xstrdup(old->group[i].name);
		if (old->group[i].comment)
			ret->group[i].comment = xstrdup(old->group[i].comment);
	}
}

int shrink_rules(struct shrink *s, struct rules *ret, struct err *err)
{
	size_t at = 0;
	int r = 0;

	remove_equal(s);
	find_ports(s);
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), compare_rules);
	copy_groups(s->old, ret);
	for (size_t i = 0; r == 0 && i < s->old->n; i++) {
		const struct rule *rule = &s->old->rule[i];
		size_t from = at;

		while (at < s->n && s->v[at].rule == i)
			at++;
		if (rule->kind != RULE_NETWORK || rule->effect != RULE_ALLOW)
			r = shrink_keep_rule(rule, ret, err);
		else if (!rule_is_over(rule, s->now_ms))
			r = shrink_one_rule(rule, &s->v[from], at - from, ret, err);
	}
	return r;
}

enum contain_result shrink_check(
	struct shrink *s, const struct rules *new, struct contain_witness *ret)
{
	/* Without the managed policy: what holds then holds with it too. */
	enum contain_result result = contain_check(new, s->old, s->now_ms, ret);
	CLEANUP(policies_done)
	struct policies after = {.rules = new, .limit = s->policies.limit};

	for (size_t i = 0; result == CONTAIN_YES && i < s->n; i++) {
		const char *sandbox = s->policies.row[s->v[i].sandbox].sandbox;
		uint32_t rule;

		if (host_from_wire(slice_from_str(s->v[i].host), &ret->host, NULL) < 0 ||
			!decide_target(s, policies_find(&after, slice_from_str(sandbox)),
				&ret->host, s->v[i].port, &rule)) {
			ret->port = s->v[i].port;
			ret->why = "a recorded request would be denied";
			result = CONTAIN_NO;
		}
	}
	return result;
}
