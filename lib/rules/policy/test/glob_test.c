/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/rules/policy/glob.h"

#define S(s) slice_from_str(s)

static void patterns_match_inside_a_label(void **state)
{
	static const struct {
		const char *pattern, *label;
		bool match;
	} rows[] = {{"*", "a", true}, {"crl*", "crl3", true}, {"crl*", "crl", true},
		{"crl*", "cr", false}, {"crl*", "xcrl", false}, {"*crl", "xcrl", true},
		{"a*b*c", "aXbXc", true}, {"a*b*c", "abc", true}, {"a*b*c", "acb", false},
		{"api?", "api1", true}, {"api?", "api", false}, {"api?", "api12", false},
		{"api[12]", "api1", true}, {"api[12]", "api3", false}, {"api[1-3]", "api2", true},
		{"api[a-c1-3]", "apib", true}, {"api[a-c1-3]", "api4", false},
		{"x[a-]", "x-", true}, {"x[a-]", "xb", false}, {"[a-c]*[0-9]", "bfoo7", true},
		{"[a-c]*[0-9]", "bfoo", false},
		{"*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaac", false}, {"a", "b", false},
		{"a", "a", true}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (glob_match(S(rows[i].pattern), S(rows[i].label)) != rows[i].match)
			fail_msg("%s and %s", rows[i].pattern, rows[i].label);
}

static void odd_patterns_are_refused(void **state)
{
	static const char *const good[] = {
		"*", "a*", "?", "[a]", "[a-z0-9]x", "[a-]", "[-]", "a_b-*"};
	static const char *const bad[] = {"", "**", "a**", "[", "]", "[]", "[a", "a]", "[!a]",
		"[^a]", "[z-a]", "[a-*]", "[[a]]", "a\\*", "A*", "a b*", "\xc3\xbc*", "a.b*",
		"[a-z-", "a,*"};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(glob_check(S(good[i]), NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (glob_check(S(bad[i]), NULL) == 0)
			fail_msg("'%s' is taken", bad[i]);
}

static void two_patterns_that_share_a_label_meet(void **state)
{
	assert_true(glob_may_meet(S("a*"), S("*b")));
	assert_true(glob_may_meet(S("a*"), S("ab")));
	assert_true(glob_may_meet(S("ab"), S("a?")));
	assert_true(glob_may_meet(S("[ab]c"), S("[bd]c")));
	assert_false(glob_may_meet(S("a*"), S("b*")));
	assert_false(glob_may_meet(S("*a"), S("*b")));
	assert_false(glob_may_meet(S("a*"), S("ba")));
	assert_false(glob_may_meet(S("a"), S("b")));
	assert_true(glob_may_meet(S("a"), S("a")));
	assert_false(glob_is_pattern(S("abc")));
	assert_true(glob_is_pattern(S("a?c")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_match_inside_a_label),
		cmocka_unit_test(odd_patterns_are_refused),
		cmocka_unit_test(two_patterns_that_share_a_label_meet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
