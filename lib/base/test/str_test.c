/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void copies_fit_or_are_empty(void **state)
{
	char buf[4];

	assert_int_equal(str_copy(buf, sizeof(buf), "abc"), 0);
	assert_string_equal(buf, "abc");
	assert_int_equal(str_copy(buf, sizeof(buf), "abcd"), -ENAMETOOLONG);
	assert_string_equal(buf, "");
	assert_int_equal(str_copy(buf, 1, ""), 0);
}

static void both_ends_compare(void **state)
{
	assert_true(str_starts("sandbox", "sand"));
	assert_true(str_starts("sandbox", ""));
	assert_false(str_starts("san", "sand"));
	assert_true(str_ends("sandbox", "box"));
	assert_true(str_ends("sandbox", ""));
	assert_false(str_ends("box", "sandbox"));
	assert_false(str_ends(&"_at"[1], "_at")); /* nothing before its first byte is read */
}

static void numbers_are_digits_only(void **state)
{
	static const char *const bad[] = {
		"", " 1", "1 ", "+1", "-1", "0x10", "1e3", "12x", "1.0", "x"};
	uint64_t v = 77;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(str_to_u64(bad[i], 0, UINT64_MAX, &v), -EINVAL);
	assert_int_equal(v, 77);
	assert_int_equal(str_to_u64("007", 0, 10, &v), 0);
	assert_int_equal(v, 7);
}

static void numbers_have_bounds(void **state)
{
	uint64_t v;

	assert_int_equal(str_to_u64("18446744073709551615", 0, UINT64_MAX, &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(str_to_u64("18446744073709551616", 0, UINT64_MAX, &v), -ERANGE);
	assert_int_equal(str_to_u64("99999999999999999999999", 0, UINT64_MAX, &v), -ERANGE);
	assert_int_equal(str_to_u64("4", 5, 9, &v), -ERANGE);
	assert_int_equal(str_to_u64("10", 5, 9, &v), -ERANGE);
	assert_int_equal(str_to_u64("5", 5, 9, &v), 0);
	assert_int_equal(str_to_u64("9", 5, 9, &v), 0);
}

static void sizes_know_binary_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"0", 0}, {"512", 512}, {"512b", 512}, {"512B", 512}, {"1k", 1024},
		{"1K", 1024}, {"1kb", 1024}, {"1KiB", 1024}, {"512m", 512ull << 20},
		{"8g", 8ull << 30}, {"8GiB", 8ull << 30}, {"8gb", 8ull << 30}, {"1t", 1ull << 40},
		{"16777215t", 16777215ull << 40}};
	uint64_t v;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(str_to_size(good[i].text, &v), 0);
		assert_true(v == good[i].bytes);
	}
}

static void sizes_refuse_the_rest(void **state)
{
	static const char *const bad[] = {"", "g", "1x", "1 g", "1gg", "1gibb", "1ib", "1bb",
		"1.5g", "-1g", "1g ", "1p", "1kbb", "1gi"};
	uint64_t v = 77;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(str_to_size(bad[i], &v), -EINVAL);
	assert_int_equal(str_to_size("16777216t", &v), -ERANGE);
	assert_int_equal(str_to_size("18446744073709551615k", &v), -ERANGE);
	assert_int_equal(v, 77);
}

static void durations_have_a_unit(void **state)
{
	static const char *const bad[] = {"", "5", "s", "5x", "5ms", "5 s", "5S", "-5s"};
	uint64_t v = 77;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(str_to_seconds(bad[i], &v), -EINVAL);
	assert_int_equal(str_to_seconds("18446744073709551615d", &v), -ERANGE);
	assert_int_equal(v, 77);
	assert_int_equal(str_to_seconds("90s", &v), 0);
	assert_int_equal(v, 90);
	assert_int_equal(str_to_seconds("30m", &v), 0);
	assert_int_equal(v, 1800);
	assert_int_equal(str_to_seconds("24h", &v), 0);
	assert_int_equal(v, 86400);
	assert_int_equal(str_to_seconds("7d", &v), 0);
	assert_int_equal(v, 604800);
}

static const char *shown(uint64_t bytes)
{
	static char buf[32];

	str_from_size(bytes, buf, sizeof(buf));
	return buf;
}

static void sizes_are_shown_short(void **state)
{
	assert_string_equal(shown(0), "0 B");
	assert_string_equal(shown(1023), "1023 B");
	assert_string_equal(shown(1024), "1 KiB");
	assert_string_equal(shown(1536), "1.5 KiB");
	assert_string_equal(shown(8ull << 30), "8 GiB");
	assert_string_equal(shown(1ull << 50), "1024 TiB");
	assert_string_equal(shown(UINT64_MAX), "16777216 TiB");
}

/* 1 MiB less one byte was once "1024.0 KiB". */
static void rounding_up_moves_to_the_next_unit(void **state)
{
	assert_string_equal(shown((1 << 20) - 1), "1.0 MiB");
	assert_string_equal(shown((1ull << 30) - 1), "1.0 GiB");
	assert_string_equal(shown(1023 * 1024), "1023 KiB");
}

static void random_hex_is_hex_and_differs(void **state)
{
	char a[25], b[25];

	memset(a, 'x', sizeof(a));
	str_random_hex(a, 12);
	str_random_hex(b, 12);
	assert_int_equal(strlen(a), 24);
	assert_int_equal(strspn(a, "0123456789abcdef"), 24);
	assert_string_not_equal(a, b);
	str_random_hex(a, 0);
	assert_string_equal(a, "");
}

static void only_printable_ascii_is_printable(void **state)
{
	char text[] = "a\tb\x7f\xc3\xa4 ~";

	assert_true(str_is_printable(""));
	assert_true(str_is_printable(" ~"));
	assert_false(str_is_printable("a\n"));
	assert_false(str_is_printable("\x7f"));
	assert_false(str_is_printable("\xc3\xa4"));
	str_make_printable(text);
	assert_string_equal(text, "a?b??? ~");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_fit_or_are_empty),
		cmocka_unit_test(both_ends_compare),
		cmocka_unit_test(numbers_are_digits_only),
		cmocka_unit_test(numbers_have_bounds),
		cmocka_unit_test(sizes_know_binary_units),
		cmocka_unit_test(sizes_refuse_the_rest),
		cmocka_unit_test(durations_have_a_unit),
		cmocka_unit_test(sizes_are_shown_short),
		cmocka_unit_test(rounding_up_moves_to_the_next_unit),
		cmocka_unit_test(only_printable_ascii_is_printable),
		cmocka_unit_test(random_hex_is_hex_and_differs),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
