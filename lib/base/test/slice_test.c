/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/slice.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static void equality_is_by_length_and_bytes(void **state)
{
	assert_true(slice_eq(slice_of(NULL, 0), slice_from_str("")));
	assert_true(slice_eq_str(slice_of("ab\0c", 2), "ab"));
	assert_false(slice_eq_str(slice_of("ab\0c", 4), "ab"));
	assert_false(slice_eq_str(slice_of("ab", 2), "abc"));
	assert_false(slice_eq_str(slice_of("ab", 2), "ac"));
}

static void likeness_is_place_by_place(void **state)
{
	static const struct {
		const char *text, *pattern;
		bool like;
	} rows[] = {
		{"", "", true},
		{"abc", "abc", true},
		{"aZ09z", "a****", true},
		{"a-c", "a*c", false},
		{"a*c", "a*c", false},
		{"a*", "ab", false},
		{"ab", "a*c", false},
		{"abcd", "a*c", false},
		{"a\x80", "a*", false},
		{"a[", "a*", false},
		{"a@", "a*", false},
		{"a`", "a*", false},
		{"a{", "a*", false},
		{"a/", "a*", false},
		{"a:", "a*", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (slice_is_like(slice_from_str(rows[i].text), slice_from_str(rows[i].pattern)) !=
			rows[i].like)
			fail_msg("%s like %s", rows[i].text, rows[i].pattern);
	assert_false(slice_is_like(slice_of("a\0", 2), slice_from_str("a*")));
}

static void c_strings_hold_no_nul_and_fit(void **state)
{
	char buf[4];

	assert_int_equal(slice_to_cstr(slice_from_str("abc"), buf, sizeof(buf)), 0);
	assert_string_equal(buf, "abc");
	assert_int_equal(slice_to_cstr(slice_of(NULL, 0), buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
	assert_int_equal(slice_to_cstr(slice_from_str("abcd"), buf, sizeof(buf)), -ENAMETOOLONG);
	assert_int_equal(slice_to_cstr(slice_of("a\0b", 3), buf, sizeof(buf)), -EINVAL);
	assert_null(slice_dup(slice_of("a\0b", 3)));
}

static void dup_is_terminated(void **state)
{
	char *p = slice_dup(slice_of("abcdef", 3));
	char *empty = slice_dup(slice_of(NULL, 0));

	assert_string_equal(p, "abc");
	assert_string_equal(empty, "");
	free(p);
	free(empty);
}

static size_t write_sample(uint8_t *buf, size_t size, int *ret_r)
{
	struct wr wr = wr_init(buf, size);

	wr_u8(&wr, 0xfe);
	wr_u16(&wr, 0xfedc);
	wr_u24(&wr, 0xfedcba);
	wr_u32(&wr, 0xfedcba98);
	wr_u64(&wr, 0xfedcba9876543210);
	wr_cstr(&wr, "name");
	wr_str(&wr, slice_of(NULL, 0));
	wr_bytes(&wr, slice_of("xy", 2));
	*ret_r = wr_finish(&wr);
	return wr.n;
}

static void check_sample(struct rd *rd)
{
	char name[8];

	assert_int_equal(rd_u8(rd), 0xfe);
	assert_int_equal(rd_u16(rd), 0xfedc);
	assert_int_equal(rd_u24(rd), 0xfedcba);
	assert_int_equal(rd_u32(rd), 0xfedcba98);
	assert_true(rd_u64(rd) == 0xfedcba9876543210);
	rd_cstr(rd, name, sizeof(name));
	assert_string_equal(name, "name");
	assert_int_equal(rd_str(rd).n, 0);
	assert_true(slice_eq_str(rd_bytes(rd, 2), "xy"));
}

static void what_is_written_reads_back(void **state)
{
	uint8_t buf[64];
	int r;
	size_t n = write_sample(buf, sizeof(buf), &r);
	struct rd rd = rd_init(slice_of(buf, n));

	assert_int_equal(r, 0);
	assert_int_equal(n, 1 + 2 + 3 + 4 + 8 + 6 + 2 + 2);
	assert_memory_equal(buf, "\xfe\xdc\xfe\xba\xdc\xfe\x98\xba\xdc\xfe", 10);
	check_sample(&rd);
	assert_int_equal(rd_finish(&rd), 0);
}

/* A heap copy of the exact size lets the address sanitizer see one byte too far. */
static void every_cut_is_an_error_without_reading_past(void **state)
{
	uint8_t buf[64];
	int r;
	size_t n = write_sample(buf, sizeof(buf), &r);

	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *copy = malloc(cut ? cut : 1);
		struct rd rd = rd_init(slice_of(copy, cut));
		char name[8];

		assert_non_null(copy);
		memcpy(copy, buf, cut);
		(void)rd_u8(&rd), (void)rd_u16(&rd), (void)rd_u24(&rd);
		(void)rd_u32(&rd), (void)rd_u64(&rd);
		rd_cstr(&rd, name, sizeof(name));
		(void)rd_str(&rd);
		(void)rd_bytes(&rd, 2);
		assert_int_equal(rd_finish(&rd), -EBADMSG);
		free(copy);
	}
}

static void every_short_buffer_is_an_error_without_writing_past(void **state)
{
	for (size_t size = 0; size < 28; size++) {
		uint8_t *buf = malloc(size ? size : 1);
		int r;

		assert_non_null(buf);
		(void)write_sample(buf, size, &r);
		assert_int_equal(r, -EMSGSIZE);
		free(buf);
	}
}

static void bad_is_sticky_and_reads_zero(void **state)
{
	struct rd rd = rd_init(slice_of("\x05\x06", 2));
	char text[4] = "old";

	assert_int_equal(rd_u32(&rd), 0);
	assert_int_equal(rd_u8(&rd), 0);
	rd_cstr(&rd, text, sizeof(text));
	assert_string_equal(text, "");
	assert_null(rd_bytes(&rd, 0).p);
	assert_int_equal(rd_finish(&rd), -EBADMSG);
}

static void trailing_bytes_are_refused(void **state)
{
	struct rd rd = rd_init(slice_of("\x05\x06", 2));

	assert_int_equal(rd_u8(&rd), 5);
	assert_int_equal(rd_finish(&rd), -EBADMSG);
}

static void names_too_long_or_with_nul_are_bad(void **state)
{
	struct rd too_long = rd_init(slice_of("\x04\0abcd", 6));
	struct rd with_nul = rd_init(slice_of("\x03\0a\0c", 5));
	char text[4];

	rd_cstr(&too_long, text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(rd_finish(&too_long), -EBADMSG);
	rd_cstr(&with_nul, text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(rd_finish(&with_nul), -EBADMSG);
}

/* NULL + 0 is undefined in C, and the sanitizer says so. */
static void empty_messages_have_no_address(void **state)
{
	struct rd rd = rd_init(slice_of(NULL, 0));

	assert_int_equal(rd_bytes(&rd, 0).n, 0);
	assert_int_equal(rd_finish(&rd), 0);
	assert_int_equal(rd_u8(&rd), 0);
	assert_int_equal(rd_finish(&rd), -EBADMSG);
}

static void numbers_and_strings_too_big_are_refused(void **state)
{
	static uint8_t buf[70000], big[65536];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_u24(&wr, 0x1000000);
	assert_int_equal(wr_finish(&wr), -EMSGSIZE);
	wr = wr_init(buf, sizeof(buf));
	wr_str(&wr, slice_of(big, 65535));
	assert_int_equal(wr_finish(&wr), 0);
	wr_str(&wr, slice_of(big, 65536));
	assert_int_equal(wr_finish(&wr), -EMSGSIZE);
	wr_u8(&wr, 1);
	assert_int_equal(wr.n, 65537);
}

static void lines_come_one_by_one_and_the_last_needs_no_newline(void **state)
{
	struct slice rest = slice_from_str(" a\t\n\n b c");

	(void)state;
	assert_true(slice_eq_str(slice_trim(slice_next_line(&rest)), "a"));
	assert_int_equal(slice_next_line(&rest).n, 0);
	assert_true(slice_eq_str(slice_trim(slice_next_line(&rest)), "b c"));
	assert_int_equal(rest.n, 0);
	assert_int_equal(slice_next_line(&rest).n, 0);
	assert_int_equal(slice_trim(slice_from_str(" \t ")).n, 0);
}

static void formatted_text_is_written_without_its_nul(void **state)
{
	char long_text[1025];
	uint8_t buf[8];
	struct wr wr = wr_init(buf, sizeof(buf));

	wr_printf(&wr, "%s:%u", "ab", 443);
	assert_int_equal(wr_finish(&wr), 0);
	assert_int_equal(wr.n, 6);
	assert_memory_equal(buf, "ab:443", 6);
	wr_printf(&wr, "%s", "xy"); /* just fits */
	assert_int_equal(wr_finish(&wr), 0);
	wr_printf(&wr, "z");
	assert_int_equal(wr_finish(&wr), -EMSGSIZE);
	memset(long_text, 'x', sizeof(long_text));
	long_text[1024] = '\0';
	wr = wr_init(buf, sizeof(buf));
	wr_printf(&wr, "%s", long_text);
	assert_int_equal(wr_finish(&wr), -EMSGSIZE);
	assert_int_equal(wr.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equality_is_by_length_and_bytes),
		cmocka_unit_test(likeness_is_place_by_place),
		cmocka_unit_test(c_strings_hold_no_nul_and_fit),
		cmocka_unit_test(dup_is_terminated),
		cmocka_unit_test(what_is_written_reads_back),
		cmocka_unit_test(every_cut_is_an_error_without_reading_past),
		cmocka_unit_test(every_short_buffer_is_an_error_without_writing_past),
		cmocka_unit_test(bad_is_sticky_and_reads_zero),
		cmocka_unit_test(trailing_bytes_are_refused),
		cmocka_unit_test(names_too_long_or_with_nul_are_bad),
		cmocka_unit_test(empty_messages_have_no_address),
		cmocka_unit_test(numbers_and_strings_too_big_are_refused),
		cmocka_unit_test(lines_come_one_by_one_and_the_last_needs_no_newline),
		cmocka_unit_test(formatted_text_is_written_without_its_nul),
	};

	return cmocka_run_group_tests_name("slice", tests, NULL, NULL);
}
