/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/guest/docker/imageenv.h"

static void test_lines(void **state)
{
	struct env e = {0};

	env_set(&e, "PATH", "/default");
	env_set(&e, "LANG", "C.UTF-8");
	imageenv_put(&e,
		"A=1\n\n# no\nB\n=x\n1C=2\nD E=f\nA=2=3 \nPATH=/opt/bin:/bin\nLANG=de\nLAST=",
		"/home/agent/.local/bin");
	assert_string_equal(env_get(&e, "A"), "2=3 ");
	assert_string_equal(env_get(&e, "PATH"), "/home/agent/.local/bin:/opt/bin:/bin");
	assert_string_equal(env_get(&e, "LANG"), "de");
	assert_string_equal(env_get(&e, "LAST"), "");
	assert_int_equal(e.n, 4);
	env_done(&e);
}

static void test_path_of_root_is_the_images(void **state)
{
	struct env e = {0};

	imageenv_put(&e, "PATH=/opt/bin\n", NULL);
	assert_string_equal(env_get(&e, "PATH"), "/opt/bin");
	env_done(&e);
}

static void test_lines_are_bounded(void **state)
{
	size_t n = 4 * (IMAGEENV_MAX + 1);
	char *text = calloc(1, n + 5);
	struct env e = {0};

	for (size_t i = 0; i < n; i += 4)
		memcpy(text + i, "A=1\n", 4);
	memcpy(text + n, "B=1\n", 4);
	imageenv_put(&e, text, NULL);
	assert_non_null(env_get(&e, "A"));
	assert_null(env_get(&e, "B"));
	env_done(&e);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_path_of_root_is_the_images),
		cmocka_unit_test(test_lines_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
