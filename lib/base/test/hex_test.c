/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "lib/base/hex.h"

static void digits_of_both_cases_have_a_value_and_no_other_byte_has(void **state)
{
	static const char digits[] = HEX_LOWER;

	for (unsigned c = 0; c < 256; c++) {
		unsigned low = c >= 'A' && c <= 'F' ? c + 0x20 : c;
		const char *at = low ? strchr(digits, (int)low) : NULL;

		assert_int_equal(hex_digit((uint8_t)c), at ? at - digits : -1);
	}
}

static void bytes_are_lower_case_digits_and_decode_again(void **state)
{
	char hex[513], bare[6] = "######";
	uint8_t b[256], back[256];

	for (unsigned i = 0; i < 256; i++)
		b[i] = (uint8_t)i;
	hex_print(b, sizeof(b), hex);
	assert_int_equal(strlen(hex), 512);
	assert_memory_equal(hex, "000102", 6);
	assert_string_equal(hex + 506, "fdfeff");
	assert_int_equal(hex_decode(slice_from_str(hex), back), 0);
	assert_memory_equal(b, back, sizeof(b));
	hex_encode((const uint8_t *)"\x0a\xff", 2, bare);
	assert_memory_equal(bare, "0aff##", 6);
}

static void other_text_does_not_decode(void **state)
{
	static const char *const bad[] = {"0Aff", "0af", "0g", "g0", " 0", "0x", "`0", "0@"};
	uint8_t b[2];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(hex_decode(slice_from_str(bad[i]), b), -EBADMSG);
	assert_int_equal(hex_decode(slice_of("0aff", 3), b), -EBADMSG);
	assert_int_equal(hex_decode(slice_from_str(""), b), 0);
}

static void an_id_has_exactly_its_number_of_lower_case_digits(void **state)
{
	assert_true(hex_is("0123abcdef", 10));
	assert_false(hex_is("0123abcdef", 9));
	assert_false(hex_is("0123abcdef", 11));
	assert_false(hex_is("0123Abcdef", 10));
	assert_false(hex_is("0123abcdeg", 10));
	assert_false(hex_is("0123abcdef-", 10));
	assert_false(hex_is("", 1));
	assert_true(hex_is("", 0));
}

static void a_percent_escape_has_upper_case_digits(void **state)
{
	char buf[4] = "";
	struct wr wr = wr_init(buf, 3);

	hex_put_percent(&wr, 0xaf);
	assert_int_equal(wr_finish(&wr), 0);
	assert_string_equal(buf, "%AF");
	hex_put_percent(&wr, 0xaf);
	assert_int_equal(wr_finish(&wr), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digits_of_both_cases_have_a_value_and_no_other_byte_has),
		cmocka_unit_test(bytes_are_lower_case_digits_and_decode_again),
		cmocka_unit_test(other_text_does_not_decode),
		cmocka_unit_test(an_id_has_exactly_its_number_of_lower_case_digits),
		cmocka_unit_test(a_percent_escape_has_upper_case_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
