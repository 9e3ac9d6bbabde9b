/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/socks/socks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Gives the replies in pieces of `step` bytes at most and returns the first answer other than
 * READ; *rest is what was not taken. */
static enum socks_next give(struct socks *s, struct slice *rest, size_t step)
{
	enum socks_next next = SOCKS_READ;

	while (next == SOCKS_READ && rest->n && socks_want(s))
		next = socks_take(s, slice_take(rest, MIN(step, socks_want(s))));
	return next;
}

#define IN(text) slice_of(text, sizeof(text) - 1)

static void a_name_and_addresses_are_sent_as_they_are(void **state)
{
	static const uint8_t v4[] = {192, 0, 2, 1}, v6[16] = {0x20, 1, [15] = 9};
	uint8_t buf[SOCKS_MAX_REQUEST];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct socks_target t = {.name = slice_from_str("api.example.com"), .port = 0x1234};
	char name[256];

	assert_int_equal(socks_put_request(&t, &wr), 0);
	assert_true(slice_eq(slice_of(buf, wr.n), IN("\5\1\0\3\x0f"
						     "api.example.com\x12\x34")));
	wr = wr_init(buf, sizeof(buf));
	t = (struct socks_target){.addr = slice_of(v4, 4), .port = 80};
	assert_int_equal(socks_put_request(&t, &wr), 0);
	assert_true(slice_eq(slice_of(buf, wr.n), IN("\5\1\0\1\xc0\0\2\1\0\x50")));
	wr = wr_init(buf, sizeof(buf));
	t.addr = slice_of(v6, 16);
	assert_int_equal(socks_put_request(&t, &wr), 0);
	assert_int_equal(wr.n, 22);
	assert_int_equal(buf[3], 4);
	t.addr = slice_of(v6, 5);
	assert_int_equal(socks_put_request(&t, &wr), -EINVAL);
	memset(name, 'a', sizeof(name));
	wr = wr_init(buf, sizeof(buf));
	t = (struct socks_target){.name = slice_of(name, 255), .port = 1};
	assert_int_equal(socks_put_request(&t, &wr), 0);
	assert_int_equal(wr.n, SOCKS_MAX_REQUEST);
	t.name.n = 256;
	assert_int_equal(socks_put_request(&t, &wr), -EINVAL);
}

static void a_password_is_offered_only_with_a_login(void **state)
{
	uint8_t buf[8];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct socks s;

	socks_init(&s, false);
	socks_put_hello(&s, &wr);
	assert_true(slice_eq(slice_of(buf, wr.n), IN("\5\1\0")));
	socks_init(&s, true);
	wr = wr_init(buf, sizeof(buf));
	socks_put_hello(&s, &wr);
	assert_true(slice_eq(slice_of(buf, wr.n), IN("\5\2\0\2")));
}

/* Replies, the answers in order, and the bytes that are the server's. */
static const struct {
	const char *what;
	bool login;
	struct slice in;
	enum socks_next next[4];
	size_t n_rest;
	enum socks_fault fault;
} rows[] = {
	{"no login", false, {(const void *)"\5\0\5\0\0\1\1\2\3\4\0\x50HTTP", 16},
		{SOCKS_REQUEST, SOCKS_OPEN}, 4, SOCKS_NO_FAULT},
	{"no login needed", true, {(const void *)"\5\0\5\0\0\1\1\2\3\4\0\x50", 12},
		{SOCKS_REQUEST, SOCKS_OPEN}, 0, SOCKS_NO_FAULT},
	{"a login", true, {(const void *)"\5\2\1\0\5\0\0\1\1\2\3\4\0\x50x", 15},
		{SOCKS_LOGIN, SOCKS_REQUEST, SOCKS_OPEN}, 1, SOCKS_NO_FAULT},
	{"bound to IPv6", false,
		{(const void *)"\5\0\5\0\0\4"
			       "0123456789abcdef"
			       "\0\x50x",
			25},
		{SOCKS_REQUEST, SOCKS_OPEN}, 1, SOCKS_NO_FAULT},
	{"bound to a name", false, {(const void *)"\5\0\5\0\0\3\2ab\0\x50x", 12},
		{SOCKS_REQUEST, SOCKS_OPEN}, 1, SOCKS_NO_FAULT},
	{"bound to an empty name", false, {(const void *)"\5\0\5\0\0\3\0\0\x50x", 10},
		{SOCKS_REQUEST, SOCKS_OPEN}, 1, SOCKS_NO_FAULT},
	{"wrong password", true, {(const void *)"\5\2\1\1", 4}, {SOCKS_LOGIN, SOCKS_FAILED}, 0,
		SOCKS_LOGIN_REFUSED},
	{"a login of no version", true, {(const void *)"\5\2\5\0", 4}, {SOCKS_LOGIN, SOCKS_FAILED},
		0, SOCKS_NOT_SOCKS},
	{"a login that was not offered", false, {(const void *)"\5\2", 2}, {SOCKS_FAILED}, 0,
		SOCKS_NOT_SOCKS},
	{"GSSAPI", true, {(const void *)"\5\1", 2}, {SOCKS_FAILED}, 0, SOCKS_NOT_SOCKS},
	{"a login is missing", false, {(const void *)"\5\xff", 2}, {SOCKS_FAILED}, 0,
		SOCKS_WANTS_LOGIN},
	{"no method", true, {(const void *)"\5\xff", 2}, {SOCKS_FAILED}, 0, SOCKS_LOGIN_REFUSED},
	{"HTTP", false, {(const void *)"HT", 2}, {SOCKS_FAILED}, 0, SOCKS_NOT_SOCKS},
	{"SOCKS 4", false, {(const void *)"\4\0", 2}, {SOCKS_FAILED}, 0, SOCKS_NOT_SOCKS},
	{"rules", false, {(const void *)"\5\0\5\2\0\1\0", 7}, {SOCKS_REQUEST, SOCKS_FAILED}, 0,
		SOCKS_HOST_REFUSED},
	{"unreachable", false, {(const void *)"\5\0\5\4\0\1\0", 7}, {SOCKS_REQUEST, SOCKS_FAILED},
		0, SOCKS_CANNOT},
	{"a code of no meaning", false, {(const void *)"\5\0\5\x63\0\1\0", 7},
		{SOCKS_REQUEST, SOCKS_FAILED}, 0, SOCKS_CANNOT},
	{"another version in the reply", false, {(const void *)"\5\0\4\0\0\1\0", 7},
		{SOCKS_REQUEST, SOCKS_FAILED}, 0, SOCKS_NOT_SOCKS},
	{"no zero in the reply", false, {(const void *)"\5\0\5\0\1\1\0", 7},
		{SOCKS_REQUEST, SOCKS_FAILED}, 0, SOCKS_NOT_SOCKS},
	{"an address of no kind", false, {(const void *)"\5\0\5\0\0\2\0", 7},
		{SOCKS_REQUEST, SOCKS_FAILED}, 0, SOCKS_NOT_SOCKS},
};

static void replies_are_read_to_their_last_byte_and_no_further(void **state)
{
	for (size_t step = 1; step <= SOCKS_MAX_REPLY; step = step * 3) {
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			struct slice rest = rows[i].in;
			enum socks_next next = SOCKS_READ;
			struct socks s;

			socks_init(&s, rows[i].login);
			for (size_t k = 0; next != SOCKS_OPEN && next != SOCKS_FAILED; k++) {
				next = give(&s, &rest, step);
				if (next != rows[i].next[k])
					fail_msg("%s: answer %zu is %d", rows[i].what, k, next);
			}
			if (rest.n != rows[i].n_rest || s.fault != rows[i].fault)
				fail_msg("%s: %zu bytes left, fault %d", rows[i].what, rest.n,
					s.fault);
			assert_int_equal(socks_want(&s), 0);
			assert_true(!s.fault == !s.why);
			assert_int_equal(socks_take(&s, slice_of(NULL, 0)), next);
		}
	}
}

static void a_reply_that_is_cut_is_waited_for(void **state)
{
	static const char in[] = "\5\0\5\0\0\3\2ab\0\x50";

	for (size_t n = 0; n < sizeof(in) - 1; n++) {
		struct slice rest = slice_of(in, n);
		struct socks s;
		enum socks_next next;

		socks_init(&s, false);
		next = give(&s, &rest, 1);
		if (next == SOCKS_REQUEST)
			next = give(&s, &rest, 1);
		assert_int_equal(next, SOCKS_READ);
		assert_true(socks_want(&s) > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_and_addresses_are_sent_as_they_are),
		cmocka_unit_test(a_password_is_offered_only_with_a_login),
		cmocka_unit_test(replies_are_read_to_their_last_byte_and_no_further),
		cmocka_unit_test(a_reply_that_is_cut_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
