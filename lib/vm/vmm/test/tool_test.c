/* SPDX-License-Identifier: Apache-2.0 */
/* Short programs that end well, badly, by a signal or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/clock.h"
#include "lib/vm/vmm/tool.h"

static int run(const char *script, char *said, size_t size, int timeout_ms)
{
	return tool_run((const char *[]){"/bin/sh", "-c", script, NULL}, said, size, timeout_ms);
}

static void what_is_said(void **state)
{
	char said[16] = "before", little[4];

	assert_int_equal(run("echo out; echo err >&2", said, sizeof(said), 5000), 0);
	assert_string_equal(said, "out err ");
	assert_int_equal(run("printf 'a\\033[2Jb\\377c'", said, sizeof(said), 5000), 0);
	assert_string_equal(said, "a [2Jb c");
	/* more than fits, and more than a pipe holds */
	assert_int_equal(
		run("head -c 200000 /dev/zero | tr '\\0' x", little, sizeof(little), 5000), 0);
	assert_string_equal(little, "xxx");
	assert_int_equal(run("exit 0", said, sizeof(said), 5000), 0);
	assert_string_equal(said, "");
}

static void how_it_ends(void **state)
{
	char said[64];

	assert_int_equal(run("exit 7", said, sizeof(said), 5000), 7);
	assert_int_equal(run("kill -9 $$", said, sizeof(said), 5000), 128);
	assert_int_equal(
		tool_run((const char *[]){"/nowhere/tool", NULL}, said, sizeof(said), 5000),
		-ENOENT);
}

/* One that says nothing, one that does not stop saying it, one that has closed its mouth. */
static void overdue(void **state)
{
	static const char *const scripts[] = {
		"sleep 60", "exec yes", "exec sleep 60 >/dev/null 2>&1", NULL};

	for (const char *const *s = scripts; *s; s++) {
		uint64_t t = clock_mono_ms();
		char said[64];

		assert_int_equal(run(*s, said, sizeof(said), 300), -ETIMEDOUT);
		assert_in_range(clock_mono_ms() - t, 299, 50000);
	}
}

/* Nothing of the caller's environment and input. */
static void nothing_is_inherited(void **state)
{
	char said[256];

	assert_int_equal(setenv("SBX_TOOL_TEST", "secret", 1), 0);
	assert_int_equal(run("/usr/bin/env; /bin/cat", said, sizeof(said), 5000), 0);
	assert_non_null(strstr(said, "LC_ALL=C"));
	assert_null(strstr(said, "SBX_TOOL_TEST"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_said),
		cmocka_unit_test(how_it_ends),
		cmocka_unit_test(overdue),
		cmocka_unit_test(nothing_is_inherited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
