/* SPDX-License-Identifier: Apache-2.0 */
#include "limit.h"

#include <errno.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/rules/contain/contain.h"
#include "rulebook_edit.h"

static bool is_of_preset(const struct rules *rules, const struct rule *rule)
{
	return rule->group && rulebook_preset_of_group(rules->group[rule->group - 1].name);
}

/* The network rules alone, without their sandboxes: contain_check compares nothing else. */
static int pick_network(
	const struct rules *rules, bool only_new, struct rules *ret, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < rules->n && r == 0; i++) {
		const struct rule *rule = &rules->rule[i];
		AUTO_RULE struct rule copy = {0};

		if (rule->kind != RULE_NETWORK ||
			(only_new && (rule->effect != RULE_ALLOW || is_of_preset(rules, rule))))
			continue;
		copy = rulebook_copy(rule);
		free(TAKE(copy.sandbox));
		r = rules_add(ret, &copy, err);
	}
	return r;
}

static int refuse_by(const struct rule *rule, const char *what, struct err *err)
{
	AUTO_FREE char *text = rule_print(rule, RULE_PRINT_PLAIN);

	return err_set(err, -EPERM,
		"the managed policy does not permit %s: " MANAGED_FILE ":%u is '%.300s'", what,
		rule->line, text);
}

static int refuse_witness(
	const struct rules *outer, const struct contain_witness *w, struct err *err)
{
	struct policy *policy = policy_new(outer, NULL);
	struct policy_op op = {
		.kind = RULE_NETWORK, .host = &w->host, .port = w->port, .now_ms = w->at_ms};
	bool v6 = w->host.is_addr && w->host.addr.n == 16;
	AUTO_FREE char *what =
		xasprintf("%s%s%s:%u", v6 ? "[" : "", w->host.name, v6 ? "]" : "", w->port);
	struct policy_decision d;
	int r;

	policy_decide(policy, &op, &d);
	if (d.why == POLICY_RULE && d.rule.index < outer->n)
		r = refuse_by(&outer->rule[d.rule.index], what, err);
	else
		r = err_set(err, -EPERM,
			"the managed policy does not permit %s: no rule of " MANAGED_FILE
			" allows it%s",
			what,
			d.why == POLICY_SPECIAL
				? ", and an address that is not public needs a rule for it"
				: "");
	policy_free(policy);
	return r;
}

static int check_network(
	const struct managed *m, const struct rules *rules, uint64_t now_ms, struct err *err)
{
	AUTO_RULES struct rules inner = {0}, outer = {0};
	struct contain_witness w = {0};
	int r = pick_network(rules, true, &inner, err);

	if (r == 0)
		r = pick_network(&m->rules, false, &outer, err);
	if (r < 0)
		return r;
	if (inner.n == 0 || contain_check(&inner, &outer, now_ms, &w) != CONTAIN_NO)
		return 0;
	return refuse_witness(&outer, &w, err);
}

/* Whether some resource of the allow rule is one path or repository that the deny rule matches. */
static bool denies_literal(const struct rule *deny, const struct rule *allow)
{
	for (size_t i = 0; i < allow->n_net * deny->n_net; i++) {
		const struct netrule *a = &allow->net[i / deny->n_net],
				     *d = &deny->net[i % deny->n_net];
		bool same_host = a->form == d->form && a->deep == d->deep && a->name && d->name &&
				 strcmp(a->name, d->name) == 0;

		if (same_host &&
			(!d->ports.lo || memcmp(&a->ports, &d->ports, sizeof(a->ports)) == 0) &&
			!strchr(a->path, '*') &&
			effect_pattern_match(
				slice_from_str(d->path), slice_from_str(a->path), true))
			return true;
	}
	return false;
}

static const struct rule *find_denying(const struct managed *m, const struct rule *allow)
{
	for (size_t i = 0; i < m->rules.n; i++) {
		const struct rule *deny = &m->rules.rule[i];

		if (deny->effect == RULE_DENY && deny->kind == allow->kind && !deny->terms.n &&
			!deny->until_ms && allow->kind != RULE_API && denies_literal(deny, allow))
			return deny;
	}
	return rulebook_covering_deny(&m->rules, allow);
}

static int check_requests(const struct managed *m, const struct rules *rules, struct err *err)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct rule *rule = &rules->rule[i], *deny = NULL;
		AUTO_FREE char *what = NULL;

		if (rule->kind != RULE_NETWORK && rule->effect == RULE_ALLOW)
			deny = find_denying(m, rule);
		if (!deny)
			continue;
		what = rule_print_what(rule);
		return refuse_by(deny, what, err);
	}
	return 0;
}

int limit_check(
	const struct managed *m, const struct rules *rules, uint64_t now_ms, struct err *err)
{
	int r;

	if (!m->exists)
		return 0;
	if (m->fault.text[0])
		return err_set(err, -EPERM, "the managed policy cannot be used: %s", m->fault.text);
	r = check_network(m, rules, now_ms, err);
	return r < 0 ? r : check_requests(m, rules, err);
}
