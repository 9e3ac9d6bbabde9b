/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/hash/siphash.h"

static void known_inputs_have_their_published_hash(void **state)
{
	uint8_t key[16], in[64];

	for (uint8_t i = 0; i < 64; i++)
		in[i] = i;
	memcpy(key, in, 16);
	assert_true(siphash(key, slice_of(in, 15)) == 0xa129ca6149be45e5);
	assert_true(siphash(key, slice_of(in, 0)) == 0x726fdb47dd0e0e31);
	assert_true(siphash(key, slice_of(in, 8)) == 0x93f5f5799a932462);
	assert_true(siphash(key, slice_of(in, 63)) == 0x958a324ceb064572);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_inputs_have_their_published_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
