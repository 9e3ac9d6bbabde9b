/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of policies: named cases, and random ones with naive.c as the judge. A witness must be
 * allowed by one and denied by the other; without a witness, no random target may be. */
#include "lib/rules/contain/contain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/test/naive.h"
#include "lib/rules/policy/test/random_rules.h"

#define NOW 1000
#define TARGETS 400

static unsigned long n_pairs = 1000;

static void read_rules(const char *lines, struct rules *ret)
{
	AUTO_FREE char *text = xasprintf("policy 1\n%send\n", lines);
	struct err err = {0};

	if (rules_decode(slice_from_str(text), "test", ret, &err) < 0)
		fail_msg("%s", err.text);
}

static enum contain_result compare(
	const char *inner, const char *outer, struct contain_witness *ret)
{
	AUTO_RULES struct rules a = {0}, b = {0};

	read_rules(inner, &a);
	read_rules(outer, &b);
	return contain_check(&a, &b, NOW, ret);
}

static void is_contained(const char *inner, const char *outer)
{
	struct contain_witness w;

	if (compare(inner, outer, &w) != CONTAIN_YES)
		fail_msg("%s is not in %s: %s:%u", inner, outer, w.host.name, w.port);
}

static void is_wider(const char *inner, const char *outer, const char *host)
{
	struct contain_witness w;

	if (compare(inner, outer, &w) != CONTAIN_NO)
		fail_msg("%s is in %s", inner, outer);
	if (host)
		assert_string_equal(w.host.name, host);
}

static void names_are_compared(void **state)
{
	is_contained("", "");
	is_contained("", "allow network a.example\n");
	is_contained("allow network a.example\n", "allow network a.example\n");
	is_wider("allow network a.example\n", "", "a.example");
	is_wider("allow network a.example\n", "allow network b.example\n", "a.example");
	is_contained("allow network b.a.example\n", "allow network *.a.example\n");
	is_contained("allow network *.a.example\n", "allow network **.a.example\n");
	is_wider("allow network **.a.example\n", "allow network *.a.example\n", NULL);
	is_wider("allow network *.a.example\n", "allow network a.example\n", "a.a.example");
	is_contained("allow network **.a.example\n", "allow network **\n");
	is_wider("allow network **\n", "allow network **.a.example\n", NULL);
	is_contained("allow network b*c.example\n", "allow network b*.example,*c.example\n");
	is_wider("allow network b*.example\n", "allow network b*c.example\n", "b.example");
	is_contained("allow network n?.example\n", "allow network n*.example\n");
	is_contained("allow network n[12].example\n", "allow network n1.example,n2.example\n");
	is_wider("allow network n[1-3].example\n", "allow network n1.example,n2.example\n",
		"n3.example");
}

static void denied_parts_are_left_out(void **state)
{
	is_contained("allow network *.a.example\ndeny network b.a.example\n",
		"allow network *.a.example\n");
	is_wider("allow network *.a.example\n",
		"allow network *.a.example\ndeny network b.a.example\n", "b.a.example");
	is_wider("allow network **\n", "allow network **\ndeny network *b*.example\n", NULL);
	is_contained("allow network **\ndeny network **.example\n",
		"allow network **\ndeny network *b*.example\n");
	is_contained("allow network a.example\ndeny network **\n", "");
}

static void ports_are_compared(void **state)
{
	struct contain_witness w;

	is_contained("allow network a.example:443\n", "allow network a.example\n");
	is_contained("allow network a.example:10-20\n",
		"allow network a.example:5-15,a.example:16-30\n");
	assert_int_equal(compare("allow network a.example:10-20\n",
				 "allow network a.example:5-15,a.example:17-30\n", &w),
		CONTAIN_NO);
	assert_int_equal(w.port, 16);
	is_contained("allow network a.example:443\ndeny network a.example:443\n", "");
}

static void addresses_are_compared(void **state)
{
	is_contained("allow network 10.1.0.0/16\n", "allow network 10.0.0.0/8\n");
	is_wider("allow network 10.0.0.0/8\n", "allow network 10.1.0.0/16\n", NULL);
	is_wider("allow network 8.0.0.0/7\n", "allow network 8.0.0.0/8\n", "9.255.255.255");
	is_wider("allow network 10.0.0.0/8\n", "allow network 10.0.0.0/8\ndeny network 10.1.2.3\n",
		"10.1.2.3");
	is_wider("allow network 0.0.0.0/0\n", "allow network 0.0.0.0/0\ndeny network 0.0.0.0/1\n",
		NULL);
	is_contained("allow network **\n", "allow network **,10.0.0.0/8\n");
	is_wider("allow network **,10.0.0.0/8\n", "allow network **\n", NULL);
	is_wider("allow network [2600::/16]\n", "allow network [2600::/17]\n", NULL);
}

static void names_of_the_host_are_compared(void **state)
{
	is_wider("allow network **,host.docker.internal:80\n", "allow network **\n",
		"host.docker.internal");
	is_contained("allow network **\n", "allow network **,host.docker.internal:80\n");
}

static void sandboxes_and_times_are_compared(void **state)
{
	struct contain_witness w;

	is_contained("allow network a.example for sandbox one\n", "allow network a.example\n");
	assert_int_equal(compare("allow network a.example\n",
				 "allow network a.example for sandbox one\n", &w),
		CONTAIN_NO);
	assert_string_equal(w.sandbox, "");
	assert_int_equal(
		compare("allow network a.example\n",
			"allow network a.example\ndeny network a.example for sandbox one\n", &w),
		CONTAIN_NO);
	assert_string_equal(w.sandbox, "one");
	is_contained("allow network a.example until 2030-01-01T00:00:00Z\n",
		"allow network a.example until 2031-01-01T00:00:00Z\n");
	is_wider("allow network a.example until 2031-01-01T00:00:00Z\n",
		"allow network a.example until 2030-01-01T00:00:00Z\n", "a.example");
	is_wider("allow network a.example\ndeny network ** until 2030-01-01T00:00:00Z\n", "",
		"a.example");
}

/* ---- random policies ---- */

struct judge {
	struct rules rules;
	struct naive_rule *list;
	char **text;
};

static void judge_make(struct judge *j, struct random_state *rs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		random_rule(rs, &j->rules);
	j->list = xcalloc(n + 1, sizeof(*j->list));
	j->text = xcalloc(n + 1, sizeof(*j->text));
	for (size_t i = 0; i < j->rules.n; i++) {
		j->text[i] = rule_print_resources(&j->rules.rule[i]);
		j->list[i] = (struct naive_rule){&j->rules.rule[i], j->text[i]};
	}
}

static void judge_done(struct judge *j)
{
	for (size_t i = 0; i < j->rules.n; i++)
		free(j->text[i]);
	free(j->text);
	free(j->list);
	rules_done(&j->rules);
}

static bool differs(const struct judge *a, const struct judge *b, const char *sandbox,
	const struct policy_op *op)
{
	return naive_decide(a->list, a->rules.n, sandbox, op) &&
	       !naive_decide(b->list, b->rules.n, sandbox, op);
}

static void complain(const struct judge *a, const struct judge *b, const char *host, uint16_t port,
	const char *sandbox)
{
	AUTO_FREE char *one = rules_encode(&a->rules, RULE_PRINT_PLAIN),
		       *two = rules_encode(&b->rules, RULE_PRINT_PLAIN);

	fail_msg("%s---\n%s%s:%u of '%s'", one, two, host, port, sandbox);
}

static void check_witness(
	const struct judge *a, const struct judge *b, const struct contain_witness *w)
{
	struct policy_op op = {
		.kind = RULE_NETWORK, .host = &w->host, .port = w->port, .now_ms = w->at_ms};

	if (!differs(a, b, w->sandbox, &op))
		complain(a, b, w->host.name, w->port, w->sandbox);
}

static void check_targets(const struct judge *a, const struct judge *b, struct random_state *rs)
{
	static const char *const sandboxes[] = {"one", "two", "other"};

	for (size_t i = 0; i < TARGETS; i++) {
		const char *sandbox = sandboxes[random_below(rs, ARRAY_LEN(sandboxes))];
		struct policy_op op;
		struct host host;

		random_op(rs, &host, &op);
		op.locals = NULL;
		op.is_own = false;
		if (op.now_ms >= NOW && differs(a, b, sandbox, &op))
			complain(a, b, host.name, op.port, sandbox);
	}
}

static void random_policies_agree_with_the_naive_matcher(void **state)
{
	struct random_state rs = {.x = 7};
	unsigned long count[3] = {0};

	for (unsigned long i = 0; i < n_pairs; i++) {
		CLEANUP(judge_done) struct judge a = {0}, b = {0};
		struct random_state same = rs;
		struct contain_witness w;
		enum contain_result r;

		judge_make(&a, &rs, 1 + i % 4);
		/* half of the pairs share rules, else nothing is ever contained */
		judge_make(&b, i % 2 ? &same : &rs, 1 + i % 4 + i % 3);
		r = contain_check(&a.rules, &b.rules, NOW, &w);
		count[r]++;
		if (r == CONTAIN_NO)
			check_witness(&a, &b, &w);
		else if (r == CONTAIN_YES)
			check_targets(&a, &b, &rs);
	}
	printf("%lu contained, %lu with a witness, %lu not proven\n", count[CONTAIN_YES],
		count[CONTAIN_NO], count[CONTAIN_UNPROVEN]);
	assert_true(count[CONTAIN_YES] * 10 > n_pairs && count[CONTAIN_NO] * 10 > n_pairs);
	assert_int_equal(count[CONTAIN_UNPROVEN], 0);
}

static void too_many_patterns_are_not_proven(void **state)
{
	AUTO_FREE char *text = xstrdup("");
	struct contain_witness w;

	for (unsigned i = 0; i < 24; i++) {
		AUTO_FREE char *old = text;

		text = xasprintf("%sallow network *%c*%c*%c*.example\n", old, 'a' + i % 12,
			'a' + i / 2, 'b' + i % 7);
	}
	assert_int_equal(compare(text, text, &w), CONTAIN_UNPROVEN);
	assert_non_null(strstr(w.why, "too many"));
}

/* What the managed policy denies is no difference, and what it permits is one. */
static void both_are_compared_with_the_managed_policy(void **state)
{
	AUTO_RULES struct rules a = {0}, b = {0}, managed = {0};
	struct contain_limit limit = {.rules = &managed};
	struct contain_witness w;

	read_rules("allow network **.a.example\n", &a);
	read_rules("allow network b.a.example\n", &b);
	read_rules("allow network *.a.example:443\ndeny network c.a.example\n", &managed);
	assert_int_equal(contain_check(&a, &b, NOW, &w), CONTAIN_NO);
	assert_int_equal(contain_check_limited(&a, &b, &limit, NOW, &w), CONTAIN_NO);
	assert_string_not_equal(w.host.name, "c.a.example");
	assert_int_equal(w.port, 443);
	rules_done(&managed);
	read_rules("allow network b.a.example:443\n", &managed);
	assert_int_equal(contain_check_limited(&a, &b, &limit, NOW, &w), CONTAIN_YES);
	limit.fault = "it is broken";
	assert_int_equal(contain_check_limited(&a, &b, &limit, NOW, &w), CONTAIN_YES);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_are_compared_with_the_managed_policy),
		cmocka_unit_test(names_are_compared),
		cmocka_unit_test(denied_parts_are_left_out),
		cmocka_unit_test(ports_are_compared),
		cmocka_unit_test(addresses_are_compared),
		cmocka_unit_test(names_of_the_host_are_compared),
		cmocka_unit_test(sandboxes_and_times_are_compared),
		cmocka_unit_test(random_policies_agree_with_the_naive_matcher),
		cmocka_unit_test(too_many_patterns_are_not_proven),
	};

	if (argc > 1)
		n_pairs = strtoul(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
