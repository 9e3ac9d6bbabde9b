/* SPDX-License-Identifier: Apache-2.0 */
/* The maker of memory images ends with an error when its machine does not boot. Test program. */
#include "net_rig.h"

/* `sbx template warm` said that the image was there already: the maker had ended with 0. */
static void a_machine_that_does_not_boot_is_a_failure(void **state)
{
	rig_k.warm.is_making = true;
	rig_k.boot_tries = 2;
	rig_k.state.phase = KEEPER_STARTING;
	start_on_timeout(&rig_k);
	assert_true(rig_k.over);
	assert_int_equal(rig_k.warm.exit_code, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_machine_that_does_not_boot_is_a_failure, rig_up, rig_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
