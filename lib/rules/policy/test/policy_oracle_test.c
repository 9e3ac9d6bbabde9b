/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c and policy_request.c against naive.c and naive_request.c on random policies, targets and
 * requests; the argument says how many pairs. */
#include <stdio.h>
#include <stdlib.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/rules/policy/policy_internal.h"
#include "naive.h"
#include "naive_request.h"
#include "random_requests.h"
#include "random_rules.h"

#define MAX_RULES 12
#define TARGETS 200

/* Outcomes of requests: verdict, governed. */
static size_t seen[POLICY_ASKS + 1][2];
static size_t n_limited; /* decided by the managed policy */

/* The managed policy of the policy that is tried; n 0: none. */
static struct {
	struct rules rules;
	struct naive_rule list[MAX_RULES];
} top;

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
	const struct naive_rule *rule;
	size_t index = d->rule.index;

	n_limited += d->is_managed;
	if (d->why != POLICY_RULE)
		return !d->allowed;
	if (d->is_managed && index-- == 0) /* they are counted from 1 */
		return false;
	if (index >= (d->is_managed ? top.rules.n : n))
		return false;
	rule = d->is_managed ? &top.list[index] : &list[index];
	return (!d->is_managed || !d->allowed) && naive_matches(rule, op) &&
	       rule_is_for(rule->rule, "one") && !rule_is_over(rule->rule, op->now_ms) &&
	       d->rule.effect == rule->rule->effect &&
	       d->allowed == (d->rule.effect == RULE_ALLOW) &&
	       d->rule.is_own == (rule->rule->sandbox != NULL) &&
	       slice_eq_str(d->rule.resources, rule->resources);
}

static bool naive_both(
	const struct rules *rules, const struct naive_rule *list, const struct policy_op *op)
{
	return naive_decide(list, rules->n, "one", op) &&
	       (!top.rules.n || naive_decide(top.list, top.rules.n, "one", op));
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
		if (d.allowed != naive_both(rules, list, &op) ||
			!names_a_good_rule(list, rules->n, &op, &d))
			complain(rules, &op, d.allowed);
		if (d.allowed && !policy_has_port(p, &op))
			complain(rules, &op, true);
		allowed += d.allowed;
	}
	return allowed;
}

static void complain_request(const struct rules *rules, const struct policy_request *req,
	const struct policy_outcome *out, struct naive_answer want)
{
	AUTO_FREE char *text = rules_encode(rules, RULE_PRINT_ALL);
	char what[EFFECT_MAX_TEXT + 1];

	fprintf(stderr, "%s%s:%u now %llu\n", text, req->op.host->name, req->op.port,
		(unsigned long long)req->op.now_ms);
	for (size_t d = 0; d < req->n; d++)
		for (size_t i = 0; i < req->list[d].n; i++) {
			(void)effect_print(&req->list[d].effect[i], what);
			fprintf(stderr, "  %zu: %s\n", d, what);
		}
	fprintf(stderr, "policy says %d governed %d why %d, the naive matcher %d governed %d\n",
		out->verdict, out->is_governed, out->by.why, want.verdict, want.is_governed);
	exit(1);
}

/* What an outcome names must have decided it. */
static bool is_good_outcome(const struct naive_rule *list, size_t n,
	const struct policy_request *req, const struct policy_outcome *out)
{
	if (out->by.why == POLICY_UNCOVERED)
		return out->verdict == POLICY_DENIES && out->is_governed;
	if (!out->has_effect)
		return (out->verdict == POLICY_ALLOWS) == out->by.allowed;
	if (out->by.rule.is_managed)
		return out->by.rule.index - 1 < top.rules.n &&
		       naive_request_names(&top.list[out->by.rule.index - 1], req, out);
	return out->by.rule.index < n && naive_request_names(&list[out->by.rule.index], req, out);
}

/* What one of both refuses is refused, what one of both asks about is held. */
static struct naive_answer naive_both_requests(const struct rules *rules,
	const struct naive_rule *list, const struct policy_request *req, bool network)
{
	struct naive_answer a = naive_request(list, rules->n, "one", req, network), b;

	if (!top.rules.n)
		return a;
	b = naive_request(top.list, top.rules.n, "one", req, network);
	b.is_governed = a.is_governed || b.is_governed;
	if (a.verdict == POLICY_DENIES || (a.verdict == POLICY_ASKS && b.verdict == POLICY_ALLOWS))
		b.verdict = a.verdict;
	return b;
}

static size_t try_requests(struct random_state *rs, const struct policy *p,
	const struct rules *rules, const struct naive_rule *list)
{
	size_t permitted = 0;

	for (size_t i = 0; i < TARGETS; i++) {
		struct random_request r = {0};
		struct policy_outcome out;
		struct naive_answer want;
		bool network;

		random_request(rs, &r);
		policy_decide_request(p, &r.req, &out);
		network = naive_both(rules, list, &r.req.op);
		want = naive_both_requests(rules, list, &r.req, network);
		if (out.verdict != want.verdict ||
			(network && out.is_governed != want.is_governed) ||
			!is_good_outcome(list, rules->n, &r.req, &out))
			complain_request(rules, &r.req, &out, want);
		permitted += out.verdict != POLICY_DENIES;
		seen[out.verdict][out.is_governed]++;
	}
	return permitted;
}

/* As sealed files, as a keeper and sbx-egress get them. */
static struct policy *through_files(const struct rules *rules)
{
	int files[POLICY_N_PARTS];
	struct policy *p;

	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		struct table_wish wish = {.part = (enum policy_part)i,
			.rules = i == POLICY_MANAGED ? &top.rules : rules,
			.unset = i == POLICY_MANAGED && !top.rules.n};
		AUTO_FREE uint32_t *pick =
			table_pick(wish.rules, i == POLICY_OWN ? "one" : NULL, &wish.n);

		wish.pick = pick;
		files[i] = table_make(&wish);
	}
	p = policy_open(files);
	for (size_t i = 0; i < POLICY_N_PARTS; i++)
		fd_close(&files[i]);
	return p;
}

static void random_policy(
	struct random_state *rs, bool requests, struct rules *rules, struct naive_rule *list)
{
	size_t n = 1 + random_below(rs, MAX_RULES);

	for (size_t i = 0; i < n; i++)
		if (requests && i == 0)
			random_open_rule(rs, rules);
		else if (requests && random_below(rs, 4))
			random_request_rule(rs, rules);
		else
			random_rule(rs, rules);
	for (size_t i = 0; i < n; i++)
		list[i] = (struct naive_rule){&rules->rule[i], rule_print_what(&rules->rule[i])};
}

/* As a file of root: for all sandboxes, each rule with its line. */
static void random_top(struct random_state *rs, bool requests)
{
	random_policy(rs, requests, &top.rules, top.list);
	for (size_t i = 0; i < top.rules.n; i++) {
		free(TAKE(top.rules.rule[i].sandbox));
		top.rules.rule[i].line = (unsigned)i + 1;
	}
}

static void free_texts(struct naive_rule *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free((void *)list[i].resources);
}

static size_t try_policy(struct random_state *rs, bool requests)
{
	struct naive_rule list[MAX_RULES];
	AUTO_RULES struct rules rules = {0};
	struct policy *p;
	size_t allowed;

	random_policy(rs, requests, &rules, list);
	if (random_below(rs, 8) == 0)
		random_top(rs, requests);
	p = random_below(rs, 4) ? policy_new(&rules, "one") : through_files(&rules);
	if (top.rules.n && !p->managed)
		policy_limit(p, &top.rules, NULL);
	if (policy_fault(p)) {
		fprintf(stderr, "%s\n", policy_fault(p));
		exit(1);
	}
	allowed = requests ? try_requests(rs, p, &rules, list) : try_targets(rs, p, &rules, list);
	free_texts(list, rules.n);
	free_texts(top.list, top.rules.n);
	rules_done(&top.rules);
	policy_free(p);
	return allowed;
}

int main(int argc, char **argv)
{
	size_t want = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000, pairs = 0, allowed = 0;
	struct random_state rs = {argc > 2 ? strtoul(argv[2], NULL, 10) : 1};

	for (; pairs < want; pairs += TARGETS)
		allowed += try_policy(&rs, pairs / TARGETS % 2);
	printf("%zu pairs, %zu of them allowed, no difference\n", pairs, allowed);
	printf("requests: %zu denied, %zu of them governed; %zu allowed, %zu governed; %zu held, "
	       "%zu governed\n",
		seen[0][0] + seen[0][1], seen[0][1], seen[1][0] + seen[1][1], seen[1][1],
		seen[2][0] + seen[2][1], seen[2][1]);
	printf("%zu targets were refused by the managed policy\n", n_limited);
	if (n_limited < want / 1000)
		return 1;
	for (size_t i = 0; i < ARRAY_LEN(seen); i++)
		if (MIN(seen[i][0], seen[i][1]) < want / 500)
			return 1;
	/* A generator that never hits tests nothing. */
	return allowed > pairs / 10 && allowed < pairs / 2 ? 0 : 1;
}
