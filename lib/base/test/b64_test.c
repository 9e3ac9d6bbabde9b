/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "lib/base/b64.h"

static void the_64_digits_have_their_place_as_value(void **state)
{
	static const char digits[] = B64_DIGITS, url[] = B64_LETTERS "-_";

	for (unsigned c = 0; c < 256; c++) {
		const char *at = c ? strchr(digits, (int)c) : NULL;
		const char *url_at = c ? strchr(url, (int)c) : NULL;
		long value = at ? at - digits : -1;

		assert_int_equal(b64_digit((uint8_t)c), value);
		assert_int_equal(b64_url_digit((uint8_t)c), url_at ? url_at - url : value);
	}
}

/* The examples of RFC 4648, section 10. */
static const struct {
	const char *plain, *coded;
} known[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}, {"\xff\xff\xfe", "///+"}};

static void known_texts_encode_and_decode(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		struct slice plain = slice_from_str(known[i].plain);
		char coded[16] = "";
		uint8_t back[16];
		size_t n = b64_encode(plain, coded);
		ssize_t r = b64_decode(slice_from_str(known[i].coded), "", back, plain.n);

		assert_string_equal(coded, known[i].coded);
		assert_int_equal(n, B64_LEN(plain.n));
		assert_int_equal(r, plain.n);
		assert_true(slice_eq(slice_of(back, (size_t)r), plain));
	}
}

static ssize_t decode_text(const char *text, const char *skip)
{
	uint8_t buf[6];

	return b64_decode(slice_from_str(text), skip, buf, sizeof(buf));
}

static void padding_is_optional_and_ends_the_text(void **state)
{
	assert_int_equal(decode_text("Zg", ""), 1);
	assert_int_equal(decode_text("Zg=====", ""), 1);
	assert_int_equal(decode_text("Zg==Zg==", ""), -EBADMSG);
	assert_int_equal(decode_text("=Zg", ""), -EBADMSG);
}

static void only_named_characters_are_skipped(void **state)
{
	assert_int_equal(decode_text("Zm\r\n9v\n", "\r\n"), 3);
	assert_int_equal(decode_text("Zm8\n=\n", "\r\n"), 2);
	assert_int_equal(decode_text("Zm\n9v", ""), -EBADMSG);
	assert_int_equal(decode_text("Zm 9v", "\r\n"), -EBADMSG);
	assert_int_equal(decode_text("Zm-_", "\r\n"), -EBADMSG);
	assert_int_equal(b64_decode(slice_of("Zm\0v", 4), "\n", (uint8_t[3]){0}, 3), -EBADMSG);
}

static void more_bytes_than_fit_are_an_error(void **state)
{
	assert_int_equal(decode_text("Zm9vYmFy", ""), 6);
	assert_int_equal(decode_text("Zm9vYmFyZg", ""), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_64_digits_have_their_place_as_value),
		cmocka_unit_test(known_texts_encode_and_decode),
		cmocka_unit_test(padding_is_optional_and_ends_the_text),
		cmocka_unit_test(only_named_characters_are_skipped),
		cmocka_unit_test(more_bytes_than_fit_are_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
