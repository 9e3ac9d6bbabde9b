/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static void mono_never_goes_back(void **state)
{
	uint64_t last = clock_mono_us();

	for (int i = 0; i < 10000; i++) {
		uint64_t now = clock_mono_us();

		assert_true(now >= last);
		last = now;
	}
}

static void units_agree(void **state)
{
	uint64_t ms = clock_mono_ms(), us = clock_mono_us(), start = us;

	assert_true(us / 1000 >= ms && us / 1000 - ms < 1000);
	(void)usleep(20000);
	us = clock_mono_us() - start;
	assert_true(us >= 20000 && us < 10000000);
}

static void wall_is_since_1970(void **state)
{
	uint64_t s = clock_wall_ms() / 1000, now = (uint64_t)time(NULL);

	assert_true(s <= now && now - s <= 1);
}

/* In a process of its own: the variable is looked at once. */
static uint32_t limit_with(const char *factor)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (factor ? setenv("SBX_TIME_FACTOR", factor, 1) : unsetenv("SBX_TIME_FACTOR"))
			_exit(255);
		_exit((int)clock_limit_ms(2));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return (uint32_t)WEXITSTATUS(status);
}

static void a_limit_is_multiplied_by_the_factor(void **state)
{
	assert_int_equal(limit_with(NULL), 2);
	assert_int_equal(limit_with("1"), 2);
	assert_int_equal(limit_with("4"), 8);
	assert_int_equal(limit_with("100"), 200);
}

static void a_factor_that_is_none_counts_as_one(void **state)
{
	static const char *const bad[] = {
		"", "0", "-1", "0.5", "4x", " 4", "101", "99999999999999999999"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(limit_with(bad[i]), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mono_never_goes_back),
		cmocka_unit_test(units_agree),
		cmocka_unit_test(wall_is_since_1970),
		cmocka_unit_test(a_limit_is_multiplied_by_the_factor),
		cmocka_unit_test(a_factor_that_is_none_counts_as_one),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
