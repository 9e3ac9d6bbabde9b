/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "lib/wire/guestapi/probe_frame.h"

static size_t put(uint8_t *buf, uint32_t number, uint32_t status, const char *text)
{
	assert_int_equal(probe_answer_put(buf, number, status, strlen(text)), 0);
	memcpy(buf + PROBE_FRAME_HEAD, text, strlen(text));
	return PROBE_FRAME_HEAD + strlen(text);
}

static void test_answers_in_any_pieces(void **state)
{
	uint8_t buf[256];
	size_t n = put(buf, 3, 77, "no docker\n");

	(void)state;
	n += put(buf + n, 4, 0, "");
	for (size_t step = 1; step <= n; step++) {
		struct probe_reader r = {0};
		struct probe_answer a = {0};
		unsigned seen = 0;

		for (size_t at = 0; at < n; at += step) {
			struct slice in = slice_of(buf + at, MIN(step, n - at));

			while (probe_reader_feed(&r, &in, &a) == 1) {
				assert_int_equal(a.number, 3 + seen);
				assert_int_equal(a.status, seen == 0 ? 77 : 0);
				assert_true(slice_eq_str(a.out, seen == 0 ? "no docker\n" : ""));
				seen++;
			}
		}
		assert_int_equal(seen, 2);
	}
}

static void test_what_is_no_answer_ends_it(void **state)
{
	uint8_t good[64], bad[64];
	size_t n = put(good, 1, 0, "x");
	struct probe_reader r = {0};
	struct probe_answer a;
	struct slice in = slice_of(bad, n);

	(void)state;
	memcpy(bad, good, n);
	bad[0] ^= 1;
	assert_int_equal(probe_reader_feed(&r, &in, &a), -EBADMSG);
	in = slice_of(good, n);
	assert_int_equal(probe_reader_feed(&r, &in, &a), -EBADMSG);

	r = (struct probe_reader){0};
	memcpy(bad, good, n);
	bad[14] = 1; /* 64 KiB and one byte */
	in = slice_of(bad, n);
	assert_int_equal(probe_reader_feed(&r, &in, &a), -EBADMSG);
}

static void test_requests(void **state)
{
	uint8_t buf[PROBE_FRAME_ASK];
	struct probe_ask ask = {7, 10, PROBE_FRAME_MAX_SCRIPT}, got;

	(void)state;
	assert_int_equal(probe_ask_put(buf, &ask), 0);
	assert_int_equal(probe_ask_get(buf, &got), 0);
	assert_memory_equal(&ask, &got, sizeof(ask));
	ask.n_script++;
	assert_int_equal(probe_ask_put(buf, &ask), -EMSGSIZE);
	memset(buf, 0xff, sizeof(buf));
	assert_int_equal(probe_ask_get(buf, &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_in_any_pieces),
		cmocka_unit_test(test_what_is_no_answer_ends_it),
		cmocka_unit_test(test_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
