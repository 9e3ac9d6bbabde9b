/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/ipc/vault_frame.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_there_and_back(void **state)
{
	static uint8_t buf[VAULT_FRAME_MAX];
	const struct vault_frame frame = {.serial = 7,
		.name = "github",
		.header = "authorization",
		.format = "Bearer %s",
		.user = "me",
		.value = slice_from_str("the value")};
	struct wr wr = wr_init(buf, sizeof(buf));
	struct vault_frame got;

	assert_int_equal(vault_frame_head(&frame, &wr), 0);
	wr_bytes(&wr, frame.value);
	assert_int_equal(vault_frame_split(slice_of(buf, wr.n), &got), 0);
	assert_int_equal(got.serial, 7);
	assert_string_equal(got.header, "authorization");
	assert_string_equal(got.user, "me");
	assert_true(slice_eq_str(got.value, "the value"));
	assert_int_equal(vault_frame_split(slice_of(buf, wr.n + 1), &got), -EBADMSG);
	for (size_t i = 0; i < wr.n; i++)
		assert_int_equal(vault_frame_split(slice_of(buf, i), &got), -EBADMSG);
	buf[0] ^= 1;
	assert_int_equal(vault_frame_split(slice_of(buf, wr.n), &got), -EBADMSG);
}

static void test_sizes(void **state)
{
	static uint8_t value[VAULT_MAX_VALUE + 1], buf[VAULT_FRAME_MAX_HEAD];
	struct vault_frame frame = {.value = slice_of(value, 0)};
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_int_equal(vault_frame_head(&frame, &wr), -EMSGSIZE);
	frame.value = slice_of(value, sizeof(value));
	assert_int_equal(vault_frame_head(&frame, &wr), -EMSGSIZE);
	/* the longest of everything fits */
	frame.value = slice_of(value, VAULT_MAX_VALUE);
	memset(frame.name, 'n', sizeof(frame.name) - 1);
	memset(frame.header, 'h', sizeof(frame.header) - 1);
	memset(frame.format, 'f', sizeof(frame.format) - 1);
	memset(frame.user, 'u', sizeof(frame.user) - 1);
	assert_int_equal(vault_frame_head(&frame, &wr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
