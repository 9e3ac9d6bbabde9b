#include "clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mono_never_goes_back),
		cmocka_unit_test(units_agree),
		cmocka_unit_test(wall_is_since_1970),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
