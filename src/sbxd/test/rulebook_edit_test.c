/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "src/sbxd/policy/rulebook_edit.h"

#define HOUR UINT64_C(3600000)

static void decode(const char *text, struct rules *ret)
{
	AUTO_FREE char *whole = xasprintf("policy 1\n%s\nend\n", text);
	struct err err = {0};

	if (rules_decode(slice_from_str(whole), "t", ret, &err) < 0)
		fail_msg("%s", err.text);
}

/* Compares the rules as written, without the first and last line. */
static void assert_rules(const struct rules *rules, const char *want)
{
	AUTO_FREE char *text = rules_encode(rules, RULE_PRINT_ALL);
	AUTO_FREE char *whole = xasprintf("policy 1\n%s\nend\n", want);

	assert_string_equal(text, whole);
}

static int remove_resource(struct rules *rules, const char *list, const char *sandbox, int effect,
	struct rules *old, struct err *err)
{
	AUTO_RULE struct rule what = {0};
	struct rulebook_match m = {.sandbox = sandbox,
		.any_effect = effect < 0,
		.effect = effect < 0 ? RULE_DENY : (enum rule_effect)effect,
		.resources = &what};

	assert_int_equal(rule_make(RULE_ALLOW, RULE_NETWORK, slice_from_str(list), &what, err), 0);
	return rulebook_remove(rules, &m, old, err);
}

static void resources_are_taken_out_of_their_rules(void **state)
{
	AUTO_RULES struct rules rules = {0}, old = {0};
	struct err err = {0};

	decode("allow network a.example,b.example id 1  # keep\ndeny network a.example id 2\n"
	       "allow network a.example for sandbox demo id 3\nallow network a.example:443 id 4",
		&rules);
	assert_int_equal(remove_resource(&rules, "A.EXAMPLE", NULL, RULE_ALLOW, &old, &err), 0);
	assert_rules(&rules, "allow network b.example id 1  # keep\ndeny network a.example id 2\n"
			     "allow network a.example for sandbox demo id 3\n"
			     "allow network a.example:443 id 4\n");
	assert_rules(&old, "allow network a.example,b.example id 1  # keep\n");
	assert_int_equal(rules.n_resources, 4);
	rules_done(&old);
	assert_int_equal(remove_resource(&rules, "a.example", NULL, -1, &old, &err), 0);
	assert_int_equal(rules.n, 3);
	assert_int_equal(rules.n_resources, 3);
	rules_done(&old);
	assert_int_equal(remove_resource(&rules, "a.example", "demo", -1, &old, &err), 0);
	assert_rules(&rules, "allow network b.example id 1  # keep\n"
			     "allow network a.example:443 id 4\n");
}

static void what_is_not_there_changes_nothing(void **state)
{
	static const char text[] = "allow network a.example,b.example id 1\n";
	struct rulebook_match by_id = {.id = "2"};
	AUTO_RULES struct rules rules = {0}, old = {0};
	struct err err = {0};

	decode(text, &rules);
	assert_int_equal(
		remove_resource(&rules, "a.example,c.example", NULL, -1, &old, &err), -ENOENT);
	assert_non_null(strstr(err.text, "c.example"));
	assert_int_equal(
		remove_resource(&rules, "a.example", NULL, RULE_DENY, &old, &err), -ENOENT);
	assert_int_equal(remove_resource(&rules, "a.example", "demo", -1, &old, &err), -ENOENT);
	assert_int_equal(rulebook_remove(&rules, &by_id, &old, &err), -ENOENT);
	assert_rules(&rules, text);
	assert_int_equal(old.n, 0);
	by_id.id = "1";
	assert_int_equal(rulebook_remove(&rules, &by_id, &old, &err), 0);
	assert_int_equal(rules.n + rules.n_resources, 0);
}

static void scopes_move_and_go(void **state)
{
	AUTO_RULES struct rules rules = {0};

	decode("allow network a.example\ndeny network b.example for sandbox demo\n"
	       "allow network c.example for sandbox demo2\nallow network d.example for sandbox "
	       "demo",
		&rules);
	assert_int_equal(rulebook_count_scope(&rules, "demo"), 2);
	assert_int_equal(rulebook_move_scope(&rules, "demo", "other"), 2);
	assert_int_equal(rulebook_count_scope(&rules, "demo"), 0);
	assert_int_equal(rulebook_count_scope(&rules, "other"), 2);
	assert_int_equal(rulebook_move_scope(&rules, "other", NULL), 2);
	assert_rules(
		&rules, "allow network a.example\nallow network c.example for sandbox demo2\n");
}

static void left_overs_go_and_imports_stay(void **state)
{
	AUTO_RULES struct rules rules = {0};

	decode("allow network a.example for sandbox demo from local\n"
	       "allow network b.example for sandbox demo from import\n"
	       "allow network c.example for sandbox demo\nallow network d.example from local",
		&rules);
	assert_int_equal(rulebook_drop_left_over(&rules, "demo"), 2);
	assert_rules(&rules, "allow network b.example for sandbox demo from import\n"
			     "allow network d.example from local\n");
}

static void what_is_over_goes(void **state)
{
	AUTO_RULES struct rules rules = {0};

	decode("allow network a.example until 2026-01-01T00:00:00Z\nallow network b.example\n"
	       "deny network c.example until 2026-01-01T01:00:00Z",
		&rules);
	rulebook_drop_over(&rules, UINT64_C(1767225600000));
	assert_rules(&rules,
		"allow network b.example\ndeny network c.example until 2026-01-01T01:00:00Z\n");
	rulebook_drop_over(&rules, UINT64_C(1767225600000) + HOUR);
	assert_int_equal(rules.n, 1);
}

static void a_preset_takes_the_place_of_the_one_before(void **state)
{
	AUTO_RULES struct rules rules = {0}, preset = {0}, next = {0};
	struct err err = {0};

	decode("allow network own.example id 1\n\ngroup team  # ours\nallow network t.example id 2",
		&rules);
	assert_null(rulebook_preset(&rules));
	decode("group g1  # why\nallow network a.example\n\ngroup g2\ndeny network b.example",
		&preset);
	assert_int_equal(rulebook_set_preset(&rules, &preset, "balanced", &err), 0);
	assert_rules(&rules, "allow network own.example id 1\n\ngroup team  # ours\nallow network "
			     "t.example id 2\n\n"
			     "group balanced:g1  # why\nallow network a.example\n\n"
			     "group balanced:g2\ndeny network b.example\n");
	assert_string_equal(rulebook_preset(&rules), "balanced");
	decode("group all\ndeny network **", &next);
	assert_int_equal(rulebook_set_preset(&rules, &next, "deny-all", &err), 0);
	assert_rules(&rules, "allow network own.example id 1\n\ngroup team  # ours\nallow network "
			     "t.example id 2\n\n"
			     "group deny-all:all\ndeny network **\n");
	assert_string_equal(rulebook_preset(&rules), "deny-all");
	assert_true(rulebook_is_locked(&rules));
	decode("group all", &next);
	assert_int_equal(rulebook_set_preset(&rules, &next, "deny-all", &err), 0);
	assert_string_equal(rulebook_preset(&rules), "deny-all");
	assert_false(rulebook_is_locked(&rules));
	/* also after reading a file */
	assert_null(rulebook_preset_of_group("deny-all"));
	assert_null(rulebook_preset_of_group("team:x"));
}

static void rules_without_a_group_are_no_preset(void **state)
{
	AUTO_RULES struct rules rules = {0}, preset = {0};
	struct err err = {0};

	decode("allow network a.example", &preset);
	assert_int_equal(rulebook_set_preset(&rules, &preset, "balanced", &err), -EINVAL);
}

static void ids_are_given_once_and_are_unique(void **state)
{
	AUTO_RULES struct rules rules = {0};
	struct err err = {0};

	decode("allow network a.example id mine from kit:x\nallow network b.example\n\n"
	       "group balanced:g\nallow network c.example",
		&rules);
	rulebook_complete(&rules, "import", 1000);
	assert_string_equal(rules.rule[0].id, "mine");
	assert_string_equal(rules.rule[0].origin, "kit:x");
	assert_int_equal(strlen(rules.rule[1].id), RULEBOOK_ID_LEN);
	assert_string_equal(rules.rule[1].origin, "import");
	assert_string_equal(rules.rule[2].origin, "preset:balanced");
	assert_int_equal(rules.rule[2].created_ms, 1000);
	assert_int_equal(rulebook_check_ids(&rules, &err), 0);
	free(rules.rule[2].id);
	rules.rule[2].id = xstrdup("mine");
	assert_int_equal(rulebook_check_ids(&rules, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 6"));
}

static void the_same_rule_is_found(void **state)
{
	AUTO_RULES struct rules rules = {0};
	AUTO_RULE struct rule rule = {0};

	decode("allow network a.example:443\nallow network a.example for sandbox demo\n"
	       "allow network a.example until 2030-01-01T00:00:00Z\ndeny network a.example\n"
	       "allow network a.example,b.example\nallow network a.example id x",
		&rules);
	assert_int_equal(
		rule_make(RULE_ALLOW, RULE_NETWORK, slice_from_str("a.example"), &rule, NULL), 0);
	assert_ptr_equal(rulebook_find_same(&rules, &rule), &rules.rule[5]);
	assert_ptr_equal(rulebook_find(&rules, "x"), &rules.rule[5]);
	assert_null(rulebook_find(&rules, "y"));
}

static void a_deny_that_leaves_nothing_of_an_allow_is_found(void **state)
{
	static const struct {
		const char *deny, *allow;
		bool covers;
	} rows[] = {
		{"deny network **", "allow network a.example", true},
		{"deny network **", "allow network a.example:22,10.0.0.0/8,** for sandbox x", true},
		{"deny network a.example", "allow network a.example:1-65535", true},
		{"deny network a.example:80", "allow network a.example", false},
		{"deny network a.example:443", "allow network a.example:443", true},
		{"deny network **:443", "allow network a.example:443", true},
		{"deny network **:443", "allow network a.example", false},
		{"deny network a.example", "allow network a.example,b.example", false},
		{"deny network ** for sandbox x", "allow network a.example", false},
		{"deny network ** for sandbox x", "allow network a.example for sandbox x", true},
		{"deny network ** until 2030-01-01T00:00:00Z", "allow network a.example", false},
		{"deny network ** until 2030-01-01T00:00:00Z",
			"allow network a.example until 2029-01-01T00:00:00Z", true},
		{"deny network *.example", "allow network a.example", false},
		{"allow network **", "allow network a.example", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_RULES struct rules rules = {0};
		AUTO_RULE struct rule allow = {0};
		struct err err = {0};

		decode(rows[i].deny, &rules);
		assert_int_equal(rule_parse(slice_from_str(rows[i].allow), &allow, &err), 0);
		if ((rulebook_covering_deny(&rules, &allow) != NULL) != rows[i].covers)
			fail_msg("%s / %s", rows[i].deny, rows[i].allow);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(resources_are_taken_out_of_their_rules),
		cmocka_unit_test(what_is_not_there_changes_nothing),
		cmocka_unit_test(scopes_move_and_go),
		cmocka_unit_test(left_overs_go_and_imports_stay),
		cmocka_unit_test(what_is_over_goes),
		cmocka_unit_test(a_preset_takes_the_place_of_the_one_before),
		cmocka_unit_test(rules_without_a_group_are_no_preset),
		cmocka_unit_test(ids_are_given_once_and_are_unique),
		cmocka_unit_test(the_same_rule_is_found),
		cmocka_unit_test(a_deny_that_leaves_nothing_of_an_allow_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
