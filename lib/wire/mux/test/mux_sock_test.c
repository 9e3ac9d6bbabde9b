/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/mux/mux_sock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static void test_bytes_cross_a_socket(void **state)
{
	static uint8_t buf[4096];
	struct mux a = {0}, b = {0};
	struct mux_stream *x = mux_open(&a, 1), *y = mux_open(&b, 1);
	struct slice in;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(mux_recv(pair[1], buf, sizeof(buf), &in), -EAGAIN);
	assert_int_equal(mux_send(x, slice_from_str("hello"), (struct slice){0}), 5);
	assert_int_equal(mux_flush(&a, pair[0]), 0);
	assert_int_equal(mux_recv(pair[1], buf, sizeof(buf), &in), 0);
	assert_int_equal(mux_feed(&b, &in), 0);
	assert_true(slice_eq_str(mux_peek(y), "hello"));
	(void)close(pair[1]);
	assert_int_equal(mux_send(x, slice_from_str("lost"), (struct slice){0}), 4);
	assert_int_equal(mux_flush(&a, pair[0]), -EPIPE);
	assert_int_equal(mux_recv(pair[0], buf, sizeof(buf), &in), -EPIPE);
	(void)close(pair[0]);
	mux_done(&a);
	mux_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes_cross_a_socket)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
