/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of a sandbox that only installs software. */
#include "src/keeper/network/closed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/rules.h"

static char *only[] = {(char *)"npm.example:443"};
static const struct spec spec = {.only = only, .n_only = 1};

static char *close_it(const char *text)
{
	return closed_policy(&spec, slice_from_str(text));
}

static void only_what_the_spec_names_is_allowed(void **state)
{
	AUTO_FREE char *out =
		close_it("policy 1\n\ngroup all  # x\nallow network **\nallow network "
			 "git.example for sandbox demo\n\nend\n");

	assert_non_null(strstr(out, "allow network npm.example:443"));
	assert_null(strstr(out, "**"));
	assert_null(strstr(out, "git.example"));
}

static void a_deny_stays(void **state)
{
	AUTO_FREE char *out = close_it("policy 1\ndeny network **\nallow network x.example\nend\n");

	assert_non_null(strstr(out, "deny network **"));
	assert_null(strstr(out, "x.example"));
}

static void what_cannot_be_read_allows_nothing(void **state)
{
	AUTO_FREE char *cut = close_it("policy 1\nallow network **\n"), *empty = close_it("");
	struct rules rules = {0};
	struct err err = {0};

	assert_true(rules_decode(slice_from_str(cut), "x", &rules, &err) < 0);
	assert_true(rules_decode(slice_from_str(empty), "x", &rules, &err) < 0);
}

static void a_resource_that_is_none_allows_nothing(void **state)
{
	char *bad[] = {(char *)"*", NULL};
	const struct spec wrong = {.only = bad, .n_only = 1};
	AUTO_FREE char *out =
		closed_policy(&wrong, slice_from_str("policy 1\nallow network **\nend\n"));

	assert_string_equal(out, "policy 1\nend\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_the_spec_names_is_allowed),
		cmocka_unit_test(a_deny_stays),
		cmocka_unit_test(what_cannot_be_read_allows_nothing),
		cmocka_unit_test(a_resource_that_is_none_allows_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
