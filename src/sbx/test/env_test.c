/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/session/env.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static void expect(const struct env *e, const char *want)
{
	char got[512] = "";

	for (size_t i = 0; i < e->n; i++)
		(void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s|", e->v[i]);
	assert_string_equal(got, want);
}

static void words(void **state)
{
	AUTO_ENV struct env e = {0};
	struct err err;

	assert_int_equal(setenv("SBX_TEST_THERE", "host", 1), 0);
	(void)unsetenv("SBX_TEST_GONE");
	assert_int_equal(env_add(&e, "A=1", &err), 0);
	assert_int_equal(env_add(&e, "B=x=y z", &err), 0);
	assert_int_equal(env_add(&e, "A=2", &err), 0);
	assert_int_equal(env_add(&e, "SBX_TEST_THERE", &err), 0);
	assert_int_equal(env_add(&e, "SBX_TEST_GONE", &err), 0);
	assert_int_equal(env_add(&e, "E=", &err), 0);
	expect(&e, "A=2|B=x=y z|SBX_TEST_THERE=host|E=|");
	assert_int_equal(env_add(&e, "1A=2", &err), -EINVAL);
	assert_int_equal(env_add(&e, "=2", &err), -EINVAL);
	assert_int_equal(env_add(&e, "A-B=2", &err), -EINVAL);
	assert_string_equal(err.text, "invalid variable 'A-B=2': expected NAME=VALUE or NAME");
}

static void files(void **state)
{
	AUTO_ENV struct env e = {0};
	struct err err;

	assert_int_equal(
		env_add_text(&e, slice_from_str("# note\n\n A=1\r\nB=\"q\" # kept\nA=3\n  \nC=end"),
			"f", &err),
		0);
	expect(&e, "A=3|B=\"q\" # kept|C=end|");
	assert_int_equal(env_add_text(&e, slice_from_str("A=1\nexport B=2\n"), "f", &err), -EINVAL);
	assert_string_equal(
		err.text, "f, line 2: invalid variable 'export B=2': expected NAME=VALUE or NAME");
	assert_int_equal(setenv("SBX_TEST_THERE", "host", 1), 0);
	assert_int_equal(
		env_add_text(&e, slice_from_str("A=1\n SBX_TEST_THERE\n"), "f", &err), -EINVAL);
	assert_string_equal(err.text,
		"f, line 2: missing '=' in 'SBX_TEST_THERE': to pass a host variable, use -e SBX_TEST_THERE");
	expect(&e, "A=1|B=\"q\" # kept|C=end|");
	assert_int_equal(env_add_text(&e, slice_of("A=\0b\n", 5), "f", &err), -EINVAL);
}

static void too_many(void **state)
{
	AUTO_ENV struct env e = {0};
	struct err err;
	char word[32];

	for (int i = 0; i < ENV_MAX_VARS; i++) {
		(void)snprintf(word, sizeof(word), "V%d=", i);
		assert_int_equal(env_add(&e, word, &err), 0);
	}
	assert_int_equal(env_add(&e, "ONE=more", &err), -E2BIG);
	assert_int_equal(env_add(&e, "V7=again", &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(files),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
