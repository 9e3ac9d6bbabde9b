/* SPDX-License-Identifier: Apache-2.0 */
/* Small policies with a few recorded requests and the rules that are left; and random ones, for
 * which the proof must succeed. */
#include "lib/rules/contain/shrink.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/test/random_rules.h"

#define NOW 2
#define REQUESTS 100

static unsigned long n_policies = 200;

static void read_rules(const char *lines, struct rules *ret)
{
	AUTO_FREE char *text = xasprintf("policy 1\n%send\n", lines);
	struct err err = {0};

	if (rules_decode(slice_from_str(text), "test", ret, &err) < 0)
		fail_msg("%s", err.text);
}

static int add_target(struct shrink *s, const char *sandbox, const char *target)
{
	struct slice name;
	struct host host;
	uint16_t port;

	assert_int_equal(host_split(slice_from_str(target), &name, &port, NULL), 0);
	assert_int_equal(host_from_wire(name, &host, NULL), 0);
	return shrink_add(s, slice_from_str(sandbox), &host, port);
}

/* `targets` are separated by blanks; SANDBOX/ can precede one. */
static void add_targets(struct shrink *s, const char *targets)
{
	AUTO_FREE char *copy = xstrdup(targets);
	char *save = NULL;

	for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save)) {
		char *slash = strchr(t, '/');

		if (slash)
			*slash = 0;
		assert_int_equal(add_target(s, slash ? t : "demo", slash ? slash + 1 : t), 0);
	}
}

static void becomes(const char *old_lines, const char *targets, const char *new_lines)
{
	AUTO_RULES struct rules old = {0}, new = {0};
	AUTO_FREE char *want = xasprintf("policy 1\n%s\nend\n", new_lines), *got = NULL;
	struct contain_witness w;
	struct err err = {0};
	struct shrink *s;

	read_rules(old_lines, &old);
	s = shrink_new(&old, NULL, NOW);
	add_targets(s, targets);
	assert_int_equal(shrink_rules(s, &new, &err), 0);
	got = rules_encode(&new, RULE_PRINT_PLAIN);
	assert_string_equal(got, want);
	assert_int_equal(shrink_check(s, &new, &w), CONTAIN_YES);
	shrink_free(s);
}

static void patterns_become_the_names_that_were_used(void **state)
{
	becomes("allow network **.a.example\n", "", "");
	becomes("allow network **.a.example\n", "b.a.example:443 b.a.example:443",
		"allow network b.a.example:443\n");
	becomes("allow network **.a.example\n", "b.a.example:443 b.a.example:80 c.a.example:80",
		"allow network b.a.example,c.a.example:80\n");
	becomes("allow network a.example,b.example\n", "b.example:80 b.example:443",
		"allow network b.example\n");
	becomes("allow network **:1-65535\n", "a.example:22", "allow network a.example:22\n");
}

static void names_below_one_domain_become_a_pattern(void **state)
{
	const char *three = "b.a.example:443 c.a.example:443 d.a.example:443";

	becomes("allow network **.a.example\n", three, "allow network *.a.example:443\n");
	becomes("allow network **\n", three, "allow network *.a.example:443\n");
	becomes("allow network *.a.example\n", three, "allow network *.a.example:443\n");
	/* names of a list are names of a list */
	becomes("allow network b.a.example,c.a.example,d.a.example,e.a.example\n", three,
		"allow network b.a.example:443,c.a.example:443,d.a.example:443\n");
	/* a pattern that is narrower than one label */
	becomes("allow network ?.a.example\n", three,
		"allow network b.a.example:443,c.a.example:443,d.a.example:443\n");
	becomes("allow network **.b.example,**\n", "b.a.example:443 c.a.example:443 d.a.example:80",
		"allow network b.a.example:443,c.a.example:443,d.a.example:80\n");
	/* not below a top-level domain, and not on a port of another resource */
	becomes("allow network **\n", "a.example:443 b.example:443 c.example:443",
		"allow network a.example:443,b.example:443,c.example:443\n");
	becomes("allow network **.a.example:22,b.a.example,c.a.example,d.a.example\n", three,
		"allow network b.a.example:443,c.a.example:443,d.a.example:443\n");
}

static void rules_for_addresses_are_kept(void **state)
{
	becomes("allow network 10.0.0.0/8,a.example,b.example\n", "a.example:443",
		"allow network 10.0.0.0/8,a.example:443\n");
	becomes("allow network 10.0.0.0/8\n", "10.1.2.3:80", "allow network 10.0.0.0/8\n");
	becomes("allow network **\n", "1.2.3.4:443", "allow network 1.2.3.4:443\n");
}

static void other_rules_are_kept(void **state)
{
	becomes("deny network c.example\nallow network **  # all\n", "a.example:443",
		"deny network c.example\nallow network a.example:443  # all\n");
	becomes("group g  # why\nallow network **.a.example for sandbox one\n",
		"one/b.a.example:80",
		"\ngroup g  # why\nallow network b.a.example:80 for sandbox one\n");
	becomes("allow network a.example until 1970-01-01T00:00:00.001Z\n", "", "");
}

static void a_rule_that_is_needed_as_it_is_stays(void **state)
{
	becomes("allow network b.example,a.example:443\n",
		"a.example:443 b.example:80 b.example:443",
		"allow network b.example,a.example:443\n");
}

static void a_resolved_name_keeps_one_port(void **state)
{
	becomes("allow network **.a.example\n", "b.a.example", "allow network b.a.example:443\n");
	becomes("allow network **.a.example\n", "b.a.example b.a.example:80",
		"allow network b.a.example:80\n");
	becomes("allow network a.example:20-30\ndeny network a.example:20-25\n", "a.example",
		"allow network a.example:26\ndeny network a.example:20-25\n");
}

static void a_request_that_is_denied_now_is_refused(void **state)
{
	AUTO_RULES struct rules old = {0};
	struct shrink *s;

	read_rules("allow network a.example for sandbox one\n", &old);
	s = shrink_new(&old, NULL, NOW);
	assert_int_equal(add_target(s, "one", "a.example:443"), 0);
	assert_int_equal(add_target(s, "two", "a.example:443"), -EACCES);
	assert_int_equal(add_target(s, "one", "a.example:22"), -EACCES);
	assert_int_equal(add_target(s, "two", "a.example"), -EACCES);
	shrink_free(s);
}

/* It stays as it is, and what it denies needs no rule of the user. */
static void requests_need_the_managed_policy_as_well(void **state)
{
	AUTO_RULES struct rules old = {0}, managed = {0}, new = {0};
	struct contain_limit limit = {.rules = &managed};
	AUTO_FREE char *got = NULL;
	struct contain_witness w;
	struct err err = {0};
	struct shrink *s;

	read_rules("allow network **.a.example:1-65535\nallow network b.example\n", &old);
	read_rules("allow network **:1-65535\ndeny network b.example,x.a.example:443\n", &managed);
	s = shrink_new(&old, &limit, NOW);
	add_targets(s, "c.a.example:80 x.a.example");
	assert_int_equal(add_target(s, "demo", "b.example:443"), -EACCES);
	assert_int_equal(shrink_rules(s, &new, &err), 0);
	got = rules_encode(&new, RULE_PRINT_PLAIN);
	assert_string_equal(got, "policy 1\nallow network c.a.example:80,x.a.example:1\n\nend\n");
	assert_int_equal(shrink_check(s, &new, &w), CONTAIN_YES);
	shrink_free(s);
}

static void many_names_become_more_than_one_rule(void **state)
{
	AUTO_RULES struct rules old = {0}, new = {0};
	struct contain_witness w;
	struct err err = {0};
	struct shrink *s;
	char name[64];

	read_rules("allow network *.a.example,**.b.example:443 for sandbox demo\n", &old);
	s = shrink_new(&old, NULL, NOW);
	for (unsigned i = 0; i < 700; i++) {
		(void)snprintf(name, sizeof(name), "x.n%u.b.example:443", i);
		add_targets(s, name);
	}
	assert_int_equal(shrink_rules(s, &new, &err), 0);
	assert_int_equal(new.n, 3);
	assert_int_equal(new.rule[0].n_net, RULE_MAX_RESOURCES);
	assert_string_equal(new.rule[2].sandbox, "demo");
	assert_int_equal(shrink_check(s, &new, &w), CONTAIN_YES);
	shrink_free(s);
}

/* The check must notice both faults, not trust shrink_rules. */
static void the_check_fails_for_other_rules(void **state)
{
	AUTO_RULES struct rules old = {0}, new = {0}, narrow = {0}, wide = {0};
	struct contain_witness w;
	struct err err = {0};
	struct shrink *s;

	read_rules("allow network **.a.example\n", &old);
	read_rules("allow network b.a.example:443\n", &narrow);
	read_rules("allow network **.a.example,c.example\n", &wide);
	s = shrink_new(&old, NULL, NOW);
	add_targets(s, "b.a.example:443 c.a.example:443");
	assert_int_equal(shrink_rules(s, &new, &err), 0);
	assert_int_equal(shrink_check(s, &narrow, &w), CONTAIN_NO);
	assert_string_equal(w.host.name, "c.a.example");
	assert_int_equal(shrink_check(s, &wide, &w), CONTAIN_NO);
	assert_string_equal(w.host.name, "c.example");
	shrink_free(s);
}

static void random_policies_are_proven(void **state)
{
	static const char *const sandboxes[] = {"one", "two", "other"};
	struct random_state rs = {.x = 11};
	unsigned long n_added = 0, n_narrower = 0;

	for (unsigned long i = 0; i < n_policies; i++) {
		AUTO_RULES struct rules old = {0}, new = {0};
		struct contain_witness w;
		struct err err = {0};
		struct shrink *s;

		for (unsigned long k = 0; k < 1 + i % 5; k++)
			random_rule(&rs, &old);
		s = shrink_new(&old, NULL, NOW);
		for (unsigned k = 0; k < REQUESTS; k++) {
			const char *sandbox = sandboxes[random_below(&rs, ARRAY_LEN(sandboxes))];
			struct policy_op op;
			struct host host;

			random_op(&rs, &host, &op);
			n_added += shrink_add(s, slice_from_str(sandbox), &host,
					   k % 8 ? op.port : 0) == 0;
		}
		assert_int_equal(shrink_rules(s, &new, &err), 0);
		if (shrink_check(s, &new, &w) != CONTAIN_YES)
			fail_msg("%s:%u: %s\n%s---\n%s", w.host.name, w.port, w.why,
				rules_encode(&old, RULE_PRINT_PLAIN),
				rules_encode(&new, RULE_PRINT_PLAIN));
		n_narrower += contain_check(&old, &new, NOW, &w) == CONTAIN_NO;
		shrink_free(s);
	}
	printf("%lu requests, %lu policies became narrower\n", n_added, n_narrower);
	assert_true(n_added > n_policies && n_narrower * 2 > n_policies);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_become_the_names_that_were_used),
		cmocka_unit_test(names_below_one_domain_become_a_pattern),
		cmocka_unit_test(rules_for_addresses_are_kept),
		cmocka_unit_test(other_rules_are_kept),
		cmocka_unit_test(a_rule_that_is_needed_as_it_is_stays),
		cmocka_unit_test(a_resolved_name_keeps_one_port),
		cmocka_unit_test(a_request_that_is_denied_now_is_refused),
		cmocka_unit_test(requests_need_the_managed_policy_as_well),
		cmocka_unit_test(many_names_become_more_than_one_rule),
		cmocka_unit_test(the_check_fails_for_other_rules),
		cmocka_unit_test(random_policies_are_proven),
	};

	if (argc > 1)
		n_policies = strtoul(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
