/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/wire/tls/retry.h"

#define B(text)                                           \
	{                                                 \
		(const uint8_t *)(text), sizeof(text) - 1 \
	}
#define RANDOM                                                             \
	"\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91" \
	"\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"
#define SERVER_HELLO "\2\0\0\x28\3\3"
#define HRR "\x16\3\3\0\x2c" SERVER_HELLO RANDOM "\0\x13\1\0\0\0"
/* A ClientHello without extensions but a name: a.test */
#define NAME "\0\0\0\x0b\0\x09\0\0\6a.test"
#define MESSAGE "\1\0\0\x3a\3\3" RANDOM "\0\0\2\x13\1\1\0\0\x0f" NAME
#define HELLO "\x16\3\3\0\x3e" MESSAGE
#define CCS "\x14\3\3\0\1\1"

static enum retry_answer ask(struct slice in, size_t step)
{
	struct retry r;

	retry_init(&r);
	for (size_t i = 0; i < in.n; i += step) {
		size_t n = MIN(step, in.n - i);
		AUTO_FREE uint8_t *copy = xmalloc(n);

		memcpy(copy, in.p + i, n);
		(void)retry_feed_server(&r, slice_of(copy, n));
	}
	return r.answer;
}

static void the_server_asks_for_a_second_hello(void **state)
{
	static const struct {
		struct slice in;
		enum retry_answer answer;
	} rows[] = {
		{B(""), RETRY_UNKNOWN},
		{B(HRR), RETRY_ASKED},
		{B("\x15\3\3\0\2\1\x70" HRR), RETRY_ASKED}, /* a warning in front */
		{B(CCS HRR), RETRY_ASKED},
		{B("\x16\3\3\0\0" HRR), RETRY_ASKED},
		{B("\x16\3\3\0\1\2\x16\3\3\0\x2b\0\0\x28\3\3" RANDOM "\0\x13\1\0\0\0"),
			RETRY_ASKED},
		{B("\x16\3\3\0\x2a\2\0\0\x26\3\3" RANDOM), RETRY_ASKED}, /* cut behind it */
		{B("\x16\3\3\0\x2a\2\0\0\x26\3\3"), RETRY_UNKNOWN},
		{B("\x16\3\3\0\x2a\2\0\0\x26\3\3thirty-two other and random bytes"), RETRY_NONE},
		{B("\x16\3\3\0\4\1"), RETRY_NONE}, /* another message */
		{B("\x17\3"), RETRY_NONE},
		{B("\x16\2"), RETRY_NONE},
		{B("SSH-2.0-x"), RETRY_NONE},
		{B("\x80"), RETRY_NONE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t step = 1; step <= 64; step++) {
			if (ask(rows[i].in, step) != rows[i].answer)
				fail_msg("row %zu, step %zu", i, step);
		}
	}
}

static void read_second(struct retry *r, struct slice in, size_t step)
{
	retry_init(r);
	assert_int_equal(retry_feed_server(r, (struct slice)B(HRR)), RETRY_ASKED);
	for (size_t i = 0; i < in.n; i += step) {
		size_t n = MIN(step, in.n - i);
		AUTO_FREE uint8_t *copy = xmalloc(n);

		memcpy(copy, in.p + i, n);
		(void)retry_feed_client(r, slice_of(copy, n));
	}
}

/* Whatever is in front of it, no byte of the second ClientHello may pass before it is complete. */
static void the_second_hello_is_found_behind_other_records(void **state)
{
	static const struct {
		struct slice in;
		enum hello_state is;
		size_t pass;
	} rows[] = {
		{B(""), HELLO_NEED_MORE, 0},
		{B(HELLO), HELLO_DONE, 0},
		{B(CCS HELLO), HELLO_DONE, 6},
		{B(CCS CCS HELLO), HELLO_DONE, 12},
		/* early data, that the server throws away; one record is empty */
		{B("\x17\3\3\0\3abc\x17\3\3\0\0" CCS HELLO), HELLO_DONE, 19},
		/* what looks like a record inside another one is none */
		{B("\x17\3\3\0\3\x16\3\3" HELLO), HELLO_DONE, 8},
		{B("\x15\3\3\0\2\1\0" HELLO), HELLO_DONE, 7},
		{B(CCS), HELLO_NEED_MORE, 6},
		{B(CCS "\x16"), HELLO_NEED_MORE, 6},
		{B("\x14\3\3\0"), HELLO_NEED_MORE, 0}, /* its length is not known */
		/* over several records */
		{B("\x16\3\3\0\1\1\x16\3\3\0\3\0\0\x3a\x16\3\3\0\x3a\3\3" RANDOM
		   "\0\0\2\x13\1\1\0\0\x0f" NAME),
			HELLO_DONE, 0},
		{B(CCS "\x16\3\3\0\1\1" CCS), HELLO_BAD, 6}, /* something in between */
		{B("\x16\3\3\0\0"), HELLO_BAD, 0},
		{B(CCS "\x16\3\3\0\0" HELLO), HELLO_BAD, 6},
		{B("\x16\3\3\0\x3f" MESSAGE "x"), HELLO_BAD, 0}, /* two in one record */
		{B("\x16\3\3\0\4\x10\0\0\0"), HELLO_BAD, 0},	 /* another message */
		{B("\x14\3\3\0\0"), HELLO_BAD, 0},
		{B("\x14\3\3\0\2\1\1"), HELLO_BAD, 0},
		{B("\x15\3\3\0\3"), HELLO_BAD, 0},
		{B("\x17\3\3\x41\1"), HELLO_BAD, 0},
		{B("\x18\3\3\0\1"), HELLO_BAD, 0},
		{B("\x14\2"), HELLO_BAD, 0},
		{B("GET /"), HELLO_BAD, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t step = 1; step <= rows[i].in.n; step++) {
			struct retry r;

			read_second(&r, rows[i].in, step);
			if (r.second.state != rows[i].is || r.n_pass != rows[i].pass)
				fail_msg("row %zu, step %zu: state %d, %zu bytes pass", i, step,
					(int)r.second.state, r.n_pass);
			if (rows[i].is == HELLO_DONE)
				assert_true(slice_eq_str(hello_name(&r.second.hello), "a.test"));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_server_asks_for_a_second_hello),
		cmocka_unit_test(the_second_hello_is_found_behind_other_records),
	};

	return cmocka_run_group_tests_name("tls/retry", tests, NULL, NULL);
}
