/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/flow/out.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 7 + (i >> 8));
}

/* What goes in comes out in order, in pieces of any size, and no memory is left behind. */
static void test_bytes_come_out_in_order(void **state)
{
	struct out o = {0};
	size_t in = 0, taken = 0;

	for (unsigned round = 0; round < 2000; round++) {
		uint8_t buf[300];
		size_t n = round * 37 % sizeof(buf), take = round * 53 % 280;

		for (size_t i = 0; i < n; i++)
			buf[i] = pattern(in++);
		assert_int_equal(out_put(&o, slice_of(buf, n)), 0);
		take = MIN(take, out_len(&o));
		for (size_t i = 0; i < take; i++)
			assert_int_equal(out_peek(&o).p[i], pattern(taken++));
		out_consume(&o, take);
	}
	out_consume(&o, out_len(&o));
	assert_null(o.p);
}

static void test_full_is_full(void **state)
{
	AUTO_FREE uint8_t *bytes = xcalloc(1, OUT_MAX + 1);
	struct out o = {0};

	assert_int_equal(out_put(&o, slice_of(bytes, OUT_MAX + 1)), -EMSGSIZE);
	assert_int_equal(out_len(&o), 0);
	assert_int_equal(out_put(&o, slice_of(bytes, OUT_MAX - 1)), 0);
	assert_int_equal(out_room(&o), 1);
	assert_int_equal(out_put(&o, slice_of(bytes, 2)), -EMSGSIZE);
	assert_int_equal(out_put(&o, slice_of(bytes, 1)), 0);
	/* our own words need room too, and are left out whole */
	out_put_refusal(&o, 403, "no");
	out_put_reset(&o);
	assert_int_equal(out_len(&o), OUT_MAX);
	out_done(&o);
}

static void test_flush(void **state)
{
	AUTO_FREE uint8_t *bytes = xcalloc(1, OUT_MAX);
	struct out o = {0};
	uint64_t n_sent = 0, n_read = 0;
	uint8_t buf[4096];
	int pair[2], r;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(out_put(&o, slice_of(bytes, OUT_MAX)), 0);
	while ((r = out_flush(&o, pair[0], &n_sent)) == -EAGAIN) {
		ssize_t n = read(pair[1], buf, sizeof(buf));

		assert_true(n > 0);
		n_read += (uint64_t)n;
	}
	assert_int_equal(r, 0);
	assert_int_equal(n_sent, OUT_MAX);
	assert_true(n_read < n_sent);
	assert_int_equal(out_put(&o, slice_of(bytes, 1)), 0);
	(void)close(pair[1]);
	assert_int_equal(out_flush(&o, pair[0], &n_sent), -EPIPE);
	out_done(&o);
	(void)close(pair[0]);
}

static void test_a_refusal_is_a_head_and_an_end(void **state)
{
	struct out o = {0};
	struct canon_reader reader;
	struct canon_frame frame;
	struct http_resp resp;
	struct arena arena;
	struct slice in;

	out_put_refusal(&o, 403, "a reason");
	out_put_reset(&o);
	arena_init(&arena, HTTP_ARENA_SIZE);
	canon_reader_init(&reader);
	in = out_peek(&o);
	assert_int_equal(canon_reader_feed(&reader, &in, &frame), 1);
	assert_int_equal(frame.kind, CANON_HEAD);
	assert_int_equal(canon_get_resp(frame.payload, &arena, &resp), 0);
	assert_int_equal(resp.status, 403);
	assert_int_equal(resp.headers.n, 1);
	assert_true(slice_eq_str(resp.headers.list[0].name, "sbx-reason"));
	assert_true(slice_eq_str(resp.headers.list[0].value, "a reason"));
	assert_int_equal(canon_reader_feed(&reader, &in, &frame), 1);
	assert_int_equal(frame.kind, CANON_END);
	assert_int_equal(canon_reader_feed(&reader, &in, &frame), 1);
	assert_int_equal(frame.kind, CANON_RESET);
	assert_int_equal(in.n, 0);
	canon_reader_done(&reader);
	arena_done(&arena);
	out_done(&o);
}

static void test_only_we_say_sbx(void **state)
{
	struct http_header list[] = {
		{slice_from_str("sbx-reason"), slice_from_str("forged")},
		{slice_from_str("sbx"), slice_from_str("kept")},
		{slice_from_str("sbx-"), slice_from_str("forged")},
		{slice_from_str("x-sbx-reason"), slice_from_str("kept")},
	};
	struct http_headers headers = {.list = list, .n = 4, .max = 4};

	out_drop_ours(&headers);
	assert_int_equal(headers.n, 2);
	for (size_t i = 0; i < 2; i++)
		assert_true(slice_eq_str(headers.list[i].value, "kept"));
}

static void test_texts_are_printable(void **state)
{
	char text[] = "a\r\nb\x7f\xc3 c  ";

	out_clean_text(text);
	assert_string_equal(text, "a??b?? c");
}

static int watched_pair(int pair[2])
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, pair[0], &ev), 0);
	return ep;
}

/* Else a program that ends an exchange wakes itself without end as long as edge does not read. */
static void test_the_end_wakes_its_own_loop_once(void **state)
{
	struct epoll_event ev;
	struct out o = {0};
	bool is_shut = false;
	int pair[2], ep = watched_pair(pair);

	assert_int_equal(out_end(&o, pair[0], &is_shut), -EAGAIN);
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(out_end(&o, pair[0], &is_shut), -EAGAIN);
		assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
	}
	assert_int_equal(close(pair[0]) + close(pair[1]) + close(ep), 0);
}

static void test_the_end_waits_for_what_edge_has_to_read_and_drops_what_it_sends(void **state)
{
	static char bytes[300000];
	struct out o = {0};
	bool is_shut = false;
	char buf[8];
	int pair[2], ep = watched_pair(pair);

	assert_int_equal(out_put(&o, slice_from_str("last")), 0);
	assert_int_equal(
		setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &(int){2 * sizeof(bytes)}, sizeof(int)),
		0);
	for (size_t at = 0; at < sizeof(bytes); at += 1000)
		assert_int_equal(send(pair[1], bytes + at, 1000, MSG_DONTWAIT), 1000);
	assert_int_equal(out_end(&o, pair[0], &is_shut), 1);
	assert_int_equal(out_end(&o, pair[0], &is_shut), -EAGAIN);
	assert_int_equal(read(pair[1], buf, sizeof(buf)), 4);
	assert_memory_equal(buf, "last", 4);
	assert_int_equal(read(pair[1], buf, sizeof(buf)), 0);
	assert_int_equal(close(pair[1]), 0);
	assert_int_equal(out_end(&o, pair[0], &is_shut), 0);
	assert_int_equal(close(pair[0]) + close(ep), 0);
}

static void test_nothing_behind_the_request_is_read(void **state)
{
	uint8_t buf[512];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct http_resp resp = {.status = 204, .keep_alive = true};
	struct canon_reader rd;
	struct canon_frame frame;
	int pair[2], ep = watched_pair(pair);

	assert_int_equal(canon_put_resp(&wr, OUT_STREAM, &resp), 0);
	canon_reader_init(&rd);
	for (size_t i = 0; i < wr.n; i++) {
		assert_int_equal(out_read_request(pair[0], &rd, &frame), 0);
		assert_int_equal(send(pair[1], buf + i, 1, 0), 1);
	}
	assert_int_equal(send(pair[1], "server's", 8, 0), 8);
	assert_int_equal(out_read_request(pair[0], &rd, &frame), 1);
	assert_int_equal(frame.stream, OUT_STREAM);
	assert_int_equal(recv(pair[0], buf, sizeof(buf), 0), 8);
	assert_memory_equal(buf, "server's", 8);
	memset(buf, 0xff, sizeof(buf));
	assert_int_equal(send(pair[1], buf, sizeof(buf), 0), sizeof(buf));
	assert_int_equal(out_read_request(pair[0], &rd, &frame), 1);
	assert_int_equal(frame.kind, CANON_N_KINDS);
	canon_reader_done(&rd);
	canon_reader_init(&rd);
	while (recv(pair[0], buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(close(pair[1]), 0);
	assert_int_equal(out_read_request(pair[0], &rd, &frame), -EPIPE);
	canon_reader_done(&rd);
	assert_int_equal(close(pair[0]) + close(ep), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_come_out_in_order),
		cmocka_unit_test(test_full_is_full),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_a_refusal_is_a_head_and_an_end),
		cmocka_unit_test(test_only_we_say_sbx),
		cmocka_unit_test(test_texts_are_printable),
		cmocka_unit_test(test_the_end_wakes_its_own_loop_once),
		cmocka_unit_test(
			test_the_end_waits_for_what_edge_has_to_read_and_drops_what_it_sends),
		cmocka_unit_test(test_nothing_behind_the_request_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
