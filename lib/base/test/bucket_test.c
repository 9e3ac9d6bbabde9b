/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/bucket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static unsigned take_all(struct bucket *b, uint64_t now_ms)
{
	unsigned n = 0;

	while (n < 100000 && bucket_take(b, now_ms))
		n++;
	return n;
}

static void a_burst_then_nothing(void **state)
{
	struct bucket b = bucket_init(20, 100);

	assert_int_equal(take_all(&b, 5), 20);
	assert_int_equal(take_all(&b, 5), 0);
}

static void time_brings_some_back(void **state)
{
	struct bucket b = bucket_init(20, 100);

	assert_int_equal(take_all(&b, 1000), 20);
	assert_int_equal(take_all(&b, 1009), 0);
	assert_int_equal(take_all(&b, 1050), 5);
	assert_int_equal(take_all(&b, 100000000), 20);
	assert_int_equal(take_all(&b, 1050), 0); /* a clock that goes back brings nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_then_nothing),
		cmocka_unit_test(time_brings_some_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
