/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/wire/http/ws.h"
#include "lib/base/mem.h"

/* All at once, and byte by byte: the same verdict. */
static int judge(const void *p, size_t n)
{
	struct ws whole = {0}, pieces = {0};
	int r = ws_check(&whole, slice_of(p, n)), each = 0;

	for (size_t i = 0; i < n && each == 0; i++)
		each = ws_check(&pieces, slice_of((const uint8_t *)p + i, 1));
	assert_int_equal(r, each);
	return r;
}

#define JUDGE(text) judge(text, sizeof(text) - 1)

static void test_frames_of_a_server(void **state)
{
	assert_int_equal(JUDGE("\x81\x05hello"), 0);
	assert_int_equal(JUDGE("\x01\x02he\x80\x03llo\x89\x00\x88\x02\x03\xe8"), 0);
	assert_int_equal(JUDGE("\x82\x00\x82\x00"), 0);
	assert_int_equal(JUDGE("\x81\x05hel"), 0);
	assert_int_equal(JUDGE(""), 0);
}

/* Payload that looks like a bad head is payload. */
static void test_lengths(void **state)
{
	uint8_t p[4 + 300 + 7];
	static const uint8_t last[] = {0x81, 0x05, 0xff, 0xff, 0xff, 0xff, 0xff};

	memset(p, 0xff, sizeof(p));
	memcpy(p, "\x82\x7e\x01\x2c", 4);
	memcpy(p + 304, last, sizeof(last));
	assert_int_equal(judge(p, sizeof(p)), 0);
	assert_int_equal(JUDGE("\x82\x7f\0\0\0\0\0\0\0\2\xff\xff\x81\x00"), 0);
	assert_int_equal(JUDGE("\x82\x7f\0\0\0\0\0\0\0\2\xff\xff\xff"), -EBADMSG);
	assert_int_equal(JUDGE("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff\xff"), 0);
	assert_int_equal(JUDGE("\x82\x7f\x80\0\0\0\0\0\0\0"), -EBADMSG);
}

static void test_what_was_never_agreed_on(void **state)
{
	static const uint8_t bits[] = {0x40, 0x20, 0x10};

	assert_int_equal(JUDGE("\x81\x85\1\2\3\4iGohn"), -EBADMSG);
	assert_int_equal(JUDGE("\x81\x80"), -EBADMSG);
	assert_int_equal(JUDGE("\x81\x02hi\x81\xfe"), -EBADMSG);
	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		uint8_t p[] = {0x81, 0x01, 'x', (uint8_t)(0x81 | bits[i]), 0x01, 'x'};

		assert_int_equal(judge(p, 3), 0);
		assert_int_equal(judge(p, sizeof(p)), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_of_a_server),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_what_was_never_agreed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
