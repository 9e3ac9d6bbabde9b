/* SPDX-License-Identifier: Apache-2.0 */
/* A rule for one sandbox decides for this one only, in whatever order the names are asked about. */
#include "lib/rules/contain/policies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define SANDBOXES 20

static bool allows(struct policies *all, const char *sandbox)
{
	struct policy_op op = {.kind = RULE_NETWORK, .port = 443};
	struct policy_decision d;
	struct host host;

	assert_int_equal(host_from_wire(slice_from_str("a.example"), &host, NULL), 0);
	op.host = &host;
	policy_decide(policies_find(all, slice_from_str(sandbox)), &op, &d);
	return d.allowed;
}

static void each_sandbox_has_its_own_policy(void **state)
{
	AUTO_RULES struct rules rules = {0};
	CLEANUP(policies_done) struct policies all = {.rules = &rules};
	struct err err = {0};
	char name[8];

	assert_int_equal(
		rules_decode(slice_from_str("policy 1\nallow network a.example for sandbox "
					    "s7\nend\n"),
			"test", &rules, &err),
		0);
	for (unsigned i = 0; i < 3 * SANDBOXES; i++) {
		unsigned k = i * 7 % SANDBOXES;

		(void)snprintf(name, sizeof(name), "s%u", k);
		assert_int_equal(allows(&all, name), k == 7);
		assert_int_equal(allows(&all, name), k == 7);
	}
	assert_int_equal(all.n, SANDBOXES);
	assert_ptr_equal(policies_find(&all, slice_from_str("s1")),
		policies_find(&all, slice_from_str("s1")));
	assert_false(allows(&all, ""));
}

static void the_managed_policy_limits_each_of_them(void **state)
{
	AUTO_RULES struct rules rules = {0}, managed = {0};
	struct contain_limit limit = {.rules = &managed};
	CLEANUP(policies_done) struct policies all = {.rules = &rules, .limit = &limit};
	struct err err = {0};

	assert_int_equal(rules_decode(slice_from_str("policy 1\nallow network **\nend\n"), "test",
				 &rules, &err),
		0);
	assert_int_equal(rules_decode(slice_from_str("policy 1\nallow network b.example\nend\n"),
				 "test", &managed, &err),
		0);
	assert_false(allows(&all, "demo"));
	limit.fault = "it is broken";
	assert_false(allows(&all, "other"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_managed_policy_limits_each_of_them),
		cmocka_unit_test(each_sandbox_has_its_own_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
