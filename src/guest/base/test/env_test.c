/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "src/guest/base/env.h"

static void test_later_wins(void **state)
{
	struct env e = {0};
	char *more[] = {(char *)"A=3", (char *)"B=", NULL};

	env_set(&e, "A", "1");
	env_set(&e, "AB", "2");
	env_put_all(&e, more);
	assert_string_equal(env_get(&e, "A"), "3");
	assert_string_equal(env_get(&e, "AB"), "2");
	assert_string_equal(env_get(&e, "B"), "");
	assert_null(env_get(&e, "C"));
	assert_int_equal(e.n, 3);
	assert_null(e.v[3]);
	env_put_all(&e, NULL);
	env_done(&e);
}

static void test_grows(void **state)
{
	struct env e = {0};
	char name[16];

	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "V%d", i);
		env_set(&e, name, "x");
		assert_null(e.v[e.n]);
	}
	assert_int_equal(e.n, 200);
	assert_string_equal(env_get(&e, "V0"), "x");
	env_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_later_wins),
		cmocka_unit_test(test_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
