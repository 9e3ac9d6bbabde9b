/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/rules.h"

static const char sample[] = "policy 1\n"
			     "deny network bad.example  # known for it\n"
			     "\n"
			     "group forge  # where the code is\n"
			     "allow network git.example:22,git.example:443 id 0123456789ab\n"
			     "allow network *.git.example:443 for sandbox demo\n"
			     "\n"
			     "group packages\n"
			     "allow network pkg.example until 2030-01-01T00:00:00Z from local\n"
			     "\n"
			     "end\n";

static void text_and_rules_are_the_same(void **state)
{
	AUTO_RULES struct rules rules = {0};
	AUTO_FREE char *text = NULL;

	assert_int_equal(rules_decode(slice_from_str(sample), "f", &rules, NULL), 0);
	assert_int_equal(rules.n, 4);
	assert_int_equal(rules.n_resources, 5);
	assert_int_equal(rules.n_groups, 2);
	assert_string_equal(rules.rule[0].comment, "known for it");
	assert_int_equal(rules.rule[0].group, 0);
	assert_int_equal(rules.rule[3].group, 2);
	assert_int_equal(rules.rule[3].line, 9);
	assert_string_equal(rules.group[0].comment, "where the code is");
	text = rules_encode(&rules, RULE_PRINT_ALL);
	assert_string_equal(text, sample);
}

static void rules_about_requests_need_the_second_form(void **state)
{
	static const char two[] = "policy 2\n"
				  "allow network a.com\n"
				  "ask http a.com/v1/** method POST  # for a person\n"
				  "\n"
				  "end\n";
	static const char more[] = "policy 2\nallow network a.com\nend\n";
	AUTO_RULES struct rules rules = {0}, other = {0};
	AUTO_FREE char *text = NULL, *older = NULL;

	assert_int_equal(rules_decode(slice_from_str(two), "f", &rules, NULL), 0);
	assert_true(rules_has_requests(&rules));
	text = rules_encode(&rules, RULE_PRINT_ALL);
	assert_string_equal(text, two);
	assert_int_equal(rules_decode(slice_from_str(more), "f", &other, NULL), 0);
	older = rules_encode(&other, RULE_PRINT_ALL);
	assert_string_equal(older, "policy 1\nallow network a.com\n\nend\n");
}

static void comments_and_blanks_are_free(void **state)
{
	static const char text[] =
		"# a policy\n\n  policy 1  # the first\n# more\n"
		"\tallow\tnetwork a.example#b  # c # d\nend  # over\n\n# behind\n";
	AUTO_RULES struct rules rules = {0};
	struct err err;

	/* '#' inside a word is no comment, and no host either. */
	assert_int_equal(rules_decode(slice_from_str(text), "f", &rules, &err), -EINVAL);
	assert_non_null(strstr(err.text, "f: line 5: 'a.example#b'"));
	static const char good[] = "# a\npolicy 1 # x\n allow network a.example\t# c # d\nend";

	assert_int_equal(rules_decode(slice_from_str(good), "f", &rules, &err), 0);
	assert_string_equal(rules.rule[0].comment, "c # d");
}

static void a_fault_names_its_line(void **state)
{
	static const struct {
		const char *text;
		const char *said;
	} rows[] = {{"", "line 0: the line 'end' is missing"}, {"\n\n", "line 2: the line 'end'"},
		{"allow network a.com\nend\n",
			"line 1: a policy must begin with the line 'policy 1'"},
		{"policy 3\nend\n", "line 1"},
		{"policy 1\nallow http a.com/x\nend\n",
			"line 2: a rule of kind http: the first line must be 'policy 2'"},
		{"policy 1\npolicy 2\nend\n", "line 2"},
		{"policy 1\nallow network a.com\n", "truncated"},
		{"policy 1\nallow network a.com\nen", "line 3: unknown word 'en'"},
		{"policy 1\nallow network a.com\ndeny netw", "line 3"},
		{"policy 1\nend\nallow network a.com\n", "line 3: unexpected text after"},
		{"policy 1\nallow network a.com\r\nend\n",
			"line 2: contains the control character 0x0d"},
		{"policy 1\nallow network *\nend\n", "line 2: '*': '*' alone"},
		{"policy 1\ngroup a\ngroup a\nend\n", "line 3: group 'a' already exists"},
		{"policy 1\ngroup a b\nend\n", "line 2: invalid group name: expected one word"},
		{"policy 1\npolicy 1\nend\n", "line 2"}};
	struct rules rules = {0};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rules_decode(slice_from_str(rows[i].text), "f", &rules, &err) == 0)
			fail_msg("row %zu is taken", i);
		if (!strstr(err.text, rows[i].said))
			fail_msg("row %zu: %s", i, err.text);
		assert_null(rules.rule);
	}
	assert_true(rules_decode(slice_of("policy 1\n\0end\n", 14), "f", &rules, &err) < 0);
}

/* Cut at any byte, a policy is refused: a shorter one could lack its denies. */
static void half_written_policy_is_refused(void **state)
{
	for (size_t n = 0; n + 1 < strlen(sample); n++) {
		struct rules rules = {0};

		if (rules_decode(slice_of(sample, n), "f", &rules, NULL) == 0)
			fail_msg("the first %zu bytes are taken", n);
	}
}

static void there_is_a_largest_policy(void **state)
{
	AUTO_RULES struct rules rules = {.n_resources = RULES_MAX_RESOURCES};
	AUTO_RULE struct rule rule = {0};
	struct err err;

	assert_int_equal(rule_parse(slice_from_str("deny network **"), &rule, NULL), 0);
	assert_int_equal(rules_add(&rules, &rule, &err), -E2BIG);
	assert_int_equal(rule.n_net, 1);
	rules.n_resources--;
	assert_int_equal(rules_add(&rules, &rule, &err), 0);
	assert_int_equal(rule.n_net, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_and_rules_are_the_same),
		cmocka_unit_test(rules_about_requests_need_the_second_form),
		cmocka_unit_test(comments_and_blanks_are_free),
		cmocka_unit_test(a_fault_names_its_line),
		cmocka_unit_test(half_written_policy_is_refused),
		cmocka_unit_test(there_is_a_largest_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
