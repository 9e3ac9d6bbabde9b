/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c against naive.c on random policies and targets; the argument says how many pairs. */
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/table.h"
#include "naive.h"
#include "random_rules.h"

#define MAX_RULES 12
#define TARGETS 200

static void complain(const struct rules *rules, const struct policy_op *op, bool ours)
{
	AUTO_FREE char *text = rules_encode(rules, RULE_PRINT_ALL);
	char what[400];

	policy_print_op(op, what, sizeof(what));
	fprintf(stderr, "%sop(%s) now %llu: policy says %d, the naive matcher %d\n", text, what,
		(unsigned long long)op->now_ms, ours, !ours);
	exit(1);
}

/* The rule that a decision names must be there, speak of the operation and say what was decided. */
static bool names_a_good_rule(const struct naive_rule *list, size_t n, const struct policy_op *op,
	const struct policy_decision *d)
{
	const struct naive_rule *rule = &list[d->rule.index];

	if (d->why != POLICY_RULE)
		return !d->allowed;
	return d->rule.index < n && naive_matches(rule, op) && rule_is_for(rule->rule, "one") &&
	       !rule_is_over(rule->rule, op->now_ms) && d->rule.effect == rule->rule->effect &&
	       d->allowed == (d->rule.effect == RULE_ALLOW) &&
	       d->rule.is_own == (rule->rule->sandbox != NULL) &&
	       slice_eq_str(d->rule.resources, rule->resources);
}

static size_t try_targets(struct random_state *rs, const struct policy *p,
	const struct rules *rules, const struct naive_rule *list)
{
	size_t allowed = 0;

	for (size_t i = 0; i < TARGETS; i++) {
		struct host host;
		struct policy_op op;
		struct policy_decision d;

		random_op(rs, &host, &op);
		policy_decide(p, &op, &d);
		if (d.allowed != naive_decide(list, rules->n, "one", &op) ||
			!names_a_good_rule(list, rules->n, &op, &d))
			complain(rules, &op, d.allowed);
		if (d.allowed && !policy_has_port(p, &op))
			complain(rules, &op, true);
		allowed += d.allowed;
	}
	return allowed;
}

/* As two sealed files, as a keeper and sbx-egress get them. */
static struct policy *through_files(const struct rules *rules)
{
	int files[POLICY_N_PARTS];
	struct policy *p;

	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		struct table_wish wish = {.part = (enum policy_part)i, .rules = rules};
		AUTO_FREE uint32_t *pick =
			table_pick(rules, i == POLICY_OWN ? "one" : NULL, &wish.n);

		wish.pick = pick;
		files[i] = table_make(&wish);
	}
	p = policy_open(files);
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		fd_close(&files[i]);
	return p;
}

static size_t try_policy(struct random_state *rs)
{
	struct naive_rule list[MAX_RULES];
	AUTO_RULES struct rules rules = {0};
	struct policy *p;
	size_t n = 1 + random_below(rs, MAX_RULES), allowed;

	for (size_t i = 0; i < n; i++)
		random_rule(rs, &rules);
	for (size_t i = 0; i < n; i++)
		list[i] = (struct naive_rule){&rules.rule[i], rule_print_resources(&rules.rule[i])};
	p = random_below(rs, 4) ? policy_new(&rules, "one") : through_files(&rules);
	if (policy_fault(p)) {
		fprintf(stderr, "%s\n", policy_fault(p));
		exit(1);
	}
	allowed = try_targets(rs, p, &rules, list);
	for (size_t i = 0; i < n; i++)
		free((void *)list[i].resources);
	policy_free(p);
	return allowed;
}

int main(int argc, char **argv)
{
	size_t want = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000, pairs = 0, allowed = 0;
	struct random_state rs = {argc > 2 ? strtoul(argv[2], NULL, 10) : 1};

	for (; pairs < want; pairs += TARGETS)
		allowed += try_policy(&rs);
	printf("%zu pairs, %zu of them allowed, no difference\n", pairs, allowed);
	/* A generator that never hits tests nothing. */
	return allowed > pairs / 10 && allowed < pairs / 2 ? 0 : 1;
}
