/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/secret/keyring.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_there_and_back(void **state)
{
	uint8_t buf[KEYRING_MAX];
	struct wr wr = wr_init(buf, sizeof(buf));
	const struct keyring_ask ask = {
		.op = KEYRING_PUT, .name = "abc", .value = slice_from_str("key")};
	const struct keyring_answer answer = {.status = KEYRING_OK, .value = slice_from_str("key")};
	struct keyring_ask got;
	struct keyring_answer back;

	assert_int_equal(keyring_put_ask(&wr, &ask), 0);
	assert_int_equal(keyring_get_ask(slice_of(buf, wr.n), &got), 0);
	assert_int_equal(got.op, KEYRING_PUT);
	assert_true(slice_eq_str(got.value, "key"));
	for (size_t i = 0; i < wr.n; i++)
		assert_int_equal(keyring_get_ask(slice_of(buf, i), &got), -EBADMSG);
	wr = wr_init(buf, sizeof(buf));
	assert_int_equal(keyring_put_answer(&wr, &answer), 0);
	assert_int_equal(keyring_get_answer(slice_of(buf, wr.n), &back), 0);
	assert_true(slice_eq_str(back.value, "key"));
	for (size_t i = 0; i < wr.n; i++)
		assert_int_equal(keyring_get_answer(slice_of(buf, i), &back), -EBADMSG);
}

static void test_refused(void **state)
{
	struct keyring_ask ask;
	struct keyring_answer answer;

	/* GET with a value, PUT without, unknown, no name */
	assert_int_equal(keyring_get_ask(slice_of("\1\1\0a\1\0x", 7), &ask), -EBADMSG);
	assert_int_equal(keyring_get_ask(slice_of("\2\1\0a\0\0", 6), &ask), -EBADMSG);
	assert_int_equal(keyring_get_ask(slice_of("\3\1\0a\0\0", 6), &ask), -EBADMSG);
	assert_int_equal(keyring_get_ask(slice_of("\1\0\0\0\0", 5), &ask), -EBADMSG);
	/* a value with a failure, a status out of range, a text with a line break */
	assert_int_equal(keyring_get_answer(slice_of("\1\0\0\1\0x", 6), &answer), -EBADMSG);
	assert_int_equal(keyring_get_answer(slice_of("\x9\0\0\0\0", 5), &answer), -EBADMSG);
	assert_int_equal(keyring_get_answer(slice_of("\4\1\0\n\0\0", 6), &answer), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
