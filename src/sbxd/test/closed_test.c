/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of a sandbox that only installs software. */
#include "src/sbxd/policy/closed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/table.h"

static char *only[] = {(char *)"npm.example:443"};
static const struct spec spec = {.only = only, .n_only = 1};

/* The text of the rules for a sandbox with these own rules; "" after an error. */
static char *close_it(const struct spec *of, const char *text)
{
	AUTO_RULES struct rules all = {0}, closed = {0};
	AUTO_FREE uint32_t *pick = NULL;
	size_t n;

	assert_int_equal(rules_decode(slice_from_str(text), "x", &all, NULL), 0);
	pick = table_pick(&all, "demo", &n);
	if (closed_rules(of, &all, pick, n, &closed, NULL) < 0) {
		assert_int_equal(closed.n, 0);
		return xstrdup("");
	}
	return rules_encode(&closed, RULE_PRINT_ALL);
}

static void only_what_the_spec_names_is_allowed(void **state)
{
	AUTO_FREE char *out =
		close_it(&spec, "policy 1\n\ngroup all  # x\nallow network **\nallow network "
				"git.example for sandbox demo\n\nend\n");

	assert_non_null(strstr(out, "allow network npm.example:443"));
	assert_null(strstr(out, "**"));
	assert_null(strstr(out, "git.example"));
}

static void a_deny_stays(void **state)
{
	AUTO_FREE char *out = close_it(&spec, "policy 1\ndeny network ** for sandbox demo  # why\n"
					      "allow network x.example for sandbox demo\nend\n");

	assert_non_null(strstr(out, "deny network **"));
	assert_null(strstr(out, "x.example"));
}

static void a_resource_that_is_none_allows_nothing(void **state)
{
	char *bad[] = {(char *)"*", NULL};
	const struct spec wrong = {.only = bad, .n_only = 1};
	AUTO_FREE char *out = close_it(&wrong, "policy 1\nallow network **\nend\n");

	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_the_spec_names_is_allowed),
		cmocka_unit_test(a_deny_stays),
		cmocka_unit_test(a_resource_that_is_none_allows_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
