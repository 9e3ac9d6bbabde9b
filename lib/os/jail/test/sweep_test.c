/* SPDX-License-Identifier: Apache-2.0 */
/* Each list refuses what it does not name; a list that is no list is seen. */
#include "lib/os/jail/sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/os/jail/profiles.h"

static void test_every_list_is_what_it_declares(void **state)
{
	for (int i = 0; i < JAIL_N_PROFILES; i++)
		assert_int_equal(jail_sweep_named(jail_row((enum jail_profile)i)->name), 0);
}

static void test_a_name_without_a_row(void **state)
{
	assert_int_equal(jail_sweep_named("nobody"), 2);
	assert_int_equal(jail_sweep_named(""), 2);
}

/* The supervisor of hidden names is never started, and the foreign programs never seal
 * themselves. */
static void test_a_list_that_is_not_there(void **state)
{
	assert_int_equal(jail_sweep(JAIL_QEMU, SWEEP_SEAL), 1);
	assert_int_equal(jail_sweep(JAIL_HIDE, SWEEP_START), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_list_is_what_it_declares),
		cmocka_unit_test(test_a_name_without_a_row),
		cmocka_unit_test(test_a_list_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
