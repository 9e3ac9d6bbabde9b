/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret/mint/der.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>

static void a_length_is_as_short_as_it_can_be(void **state)
{
	static const struct {
		size_t n;
		uint8_t head[4];
		size_t n_head;
	} rows[] = {{0, {4, 0}, 2}, {127, {4, 127}, 2}, {128, {4, 0x81, 128}, 3},
		{255, {4, 0x81, 255}, 3}, {256, {4, 0x82, 1, 0}, 4}, {300, {4, 0x82, 1, 44}, 4}};
	static const uint8_t zero[300];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t buf[320];
		struct der d = der_init(buf, sizeof(buf));
		size_t mark = der_mark(&d);
		struct slice all;

		der_put(&d, slice_of(zero, rows[i].n));
		der_wrap(&d, DER_OCTET_STRING, mark);
		assert_int_equal(der_end(&d, &all), 0);
		assert_int_equal(all.n, rows[i].n + rows[i].n_head);
		assert_memory_equal(all.p, rows[i].head, rows[i].n_head);
	}
}

static void what_does_not_fit_is_said_once_and_for_all(void **state)
{
	for (size_t size = 0; size < 6; size++) {
		uint8_t buf[8] = {0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee};
		struct der d = der_init(buf + 2, size);
		struct slice all;

		der_put(&d, slice_from_str("abcd"));
		der_wrap(&d, DER_UTF8_STRING, size);
		der_put(&d, slice_of("", 0));
		assert_int_equal(der_end(&d, &all), -EMSGSIZE);
		assert_int_equal(buf[0], 0xee);
		assert_int_equal(buf[1], 0xee);
		assert_int_equal(buf[2 + size], 0xee);
	}
}

static void expect_time(uint64_t seconds, const char *text, enum der_tag tag)
{
	uint8_t buf[32];
	struct der d = der_init(buf, sizeof(buf));
	struct slice all;

	der_time(&d, seconds);
	assert_int_equal(der_end(&d, &all), 0);
	assert_int_equal(all.p[0], tag);
	assert_int_equal(all.p[1], all.n - 2);
	if (!slice_eq_str(slice_of(all.p + 2, all.n - 2), text))
		fail_msg("%llu is %.*s, not %s", (unsigned long long)seconds, (int)all.n - 2,
			(const char *)all.p + 2, text);
}

static void times_are_those_of_the_calendar(void **state)
{
	expect_time(0, "700101000000Z", DER_UTC_TIME);
	expect_time(951782399, "000228235959Z", DER_UTC_TIME);
	expect_time(951782400, "000229000000Z", DER_UTC_TIME);
	expect_time(2524607999, "491231235959Z", DER_UTC_TIME);
	expect_time(2524608000, "20500101000000Z", DER_GENERALIZED_TIME);
	expect_time(4107542400, "21000301000000Z", DER_GENERALIZED_TIME);
	expect_time(253402300799, "99991231235959Z", DER_GENERALIZED_TIME);
	/* libc as the judge, in steps that meet every day of a leap year and every hour. */
	for (uint64_t s = 0; s < 8000000000; s += 86400 * 37 + 3671) {
		time_t t = (time_t)s;
		struct tm tm;
		char text[64];
		bool late;

		assert_non_null(gmtime_r(&t, &tm));
		late = tm.tm_year >= 150;
		(void)strftime(text, sizeof(text), "%Y%m%d%H%M%SZ", &tm);
		expect_time(s, late ? text : text + 2, late ? DER_GENERALIZED_TIME : DER_UTC_TIME);
	}
}

static void there_is_no_year_10000(void **state)
{
	uint8_t buf[32];
	struct der d = der_init(buf, sizeof(buf));
	struct slice all;

	der_time(&d, 253402300800);
	assert_int_equal(der_end(&d, &all), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_length_is_as_short_as_it_can_be),
		cmocka_unit_test(what_does_not_fit_is_said_once_and_for_all),
		cmocka_unit_test(times_are_those_of_the_calendar),
		cmocka_unit_test(there_is_no_year_10000),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
