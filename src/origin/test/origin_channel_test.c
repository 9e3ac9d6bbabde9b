/* SPDX-License-Identifier: Apache-2.0 */
/* The channel to edge: streams without a ticket, an edge that breaks its protocol, a new edge, and
 * one response that nobody reads. */
#include "origin_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define OK "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"

static char head[8192];

/* A channel whose bytes the test writes itself. */
static int raw_channel(struct rig *r)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(chan_send_plain(r->keeper, ORIGIN_CHANNEL, 0, pair[1]), 0);
	(void)close(pair[1]);
	mux_rig_stop(&r->edge);
	return pair[0];
}

static void write_frame(int fd, enum mux_kind kind, uint32_t id, const void *p, size_t n)
{
	uint8_t text[8];
	struct wr wr = wr_init(text, sizeof(text));

	wr_u32(&wr, (uint32_t)n);
	wr_u32(&wr, (uint32_t)kind | id << 8);
	assert_int_equal(send(fd, text, sizeof(text), MSG_NOSIGNAL), sizeof(text));
	/* or it is closed already */
	(void)!send(fd, p, n, MSG_NOSIGNAL);
}

static void expect_reset(int fd, uint32_t id)
{
	uint8_t got[8], want[8] = {0, 0, 0, 0, MUX_RESET, (uint8_t)id};

	assert_int_equal(fd_read_full(fd, got, sizeof(got)), sizeof(got));
	assert_memory_equal(got, want, sizeof(want));
}

/* The head of GET / as edge sends it. */
static size_t request_bytes(uint8_t *buf, size_t size)
{
	int pair[2];
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	rig_send_head(pair[0], &(struct rig_req){0});
	rig_send_end(pair[0], NULL);
	n = read(pair[1], buf, size);
	assert_true(n > 0);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return (size_t)n;
}

static void test_a_stream_without_a_ticket_is_refused(void **state)
{
	struct rig *r = rig_new();
	int edge = raw_channel(r);
	uint8_t request[1024];
	size_t n = request_bytes(request, sizeof(request));

	for (uint32_t id = 1; id < 200; id++) {
		write_frame(edge, MUX_DATA, id, request, n);
		expect_reset(edge, id);
	}
	assert_false(rig_next(r, 50));
	assert_int_equal(r->n_wants, 0);
	(void)close(edge);
	rig_free(r);
}

/* Not again after its exchange was closed either. */
static void test_a_ticket_is_valid_once(void **state)
{
	struct rig *r = rig_new();
	struct rig_answer a;
	int edge, first = rig_ask(r, &(struct rig_req){0});
	uint8_t request[1024];
	size_t n = request_bytes(request, sizeof(request));
	SSL *ssl = rig_serve(r);

	rig_give_value(r, RIG_VALUE);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	rig_write(ssl, OK);
	rig_read_answer(first, &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	(void)close(first);
	rig_until_closed(r, 1);
	edge = raw_channel(r);
	write_frame(edge, MUX_DATA, 1, request, n);
	expect_reset(edge, 1);
	(void)close(edge);
	rig_hang_up(ssl);
	rig_free(r);
}

/* What a request was permitted to the edge before does not pass to the next one. */
static void test_a_new_channel_ends_all_tickets(void **state)
{
	struct rig *r = rig_new();
	uint8_t request[1024];
	size_t n = request_bytes(request, sizeof(request));
	int edge, unused = rig_open(r, &(struct rig_req){0}), waiting;

	waiting = rig_ask(r, &(struct rig_req){0});
	(void)rig_expect(r, ORIGIN_WANT);
	edge = raw_channel(r);
	for (uint32_t id = 1; id <= 2; id++) {
		assert_int_equal(rig_result(r, id)->outcome, ORIGIN_GONE);
		rig_until_closed(r, id);
		write_frame(edge, MUX_DATA, id, request, n);
		expect_reset(edge, id);
	}
	(void)close(unused);
	(void)close(waiting);
	(void)close(edge);
	rig_free(r);
}

static void test_an_edge_that_breaks_the_channel(void **state)
{
	static uint8_t block[MUX_DATA_MAX];
	struct rig *r = rig_new();
	int open = rig_ask(r, &(struct rig_req){0}), edge;
	char none;

	(void)rig_expect(r, ORIGIN_WANT);
	for (unsigned i = 0; i < 4; i++) {
		edge = raw_channel(r);
		if (i == 0)
			assert_int_equal(write(edge, "GET / HTTP/1.1\r\n", 16), 16);
		if (i == 1)
			write_frame(edge, MUX_DATA, 0, "x", 1);
		if (i == 2)
			write_frame(edge, MUX_RESET, 1, "x", 1);
		if (i == 3) { /* more than the window */
			assert_int_equal(origin_ask_open(r->keeper, ++r->n_ids,
						 &(struct ticket){TICKET_VERSION, {0}}, -1),
				0);
			write_frame(edge, MUX_DATA, r->n_ids, block, sizeof(block));
		}
		while (recv(edge, &none, 1, 0) > 0)
			;
		rig_until_closed(r, r->n_ids);
		(void)close(edge);
	}
	(void)close(open);
	rig_free(r);
}

/* It has a ticket of the same form, and is no stream of edge. */
static void test_a_clerk_has_a_socket_beside_the_channel(void **state)
{
	struct rig *r = rig_new();
	struct rig_req req = {0};
	uint8_t request[1024];
	size_t n = request_bytes(request, sizeof(request));
	int clerk = rig_open_clerk(r, &req), edge;
	struct rig_answer a;
	SSL *ssl;

	edge = raw_channel(r);
	write_frame(edge, MUX_DATA, r->n_ids, request, n);
	expect_reset(edge, r->n_ids);
	rig_send_head(clerk, &req);
	rig_send_end(clerk, NULL);
	ssl = rig_serve(r);
	rig_give_value(r, RIG_VALUE);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	/* another edge, and one that breaks the channel, are not its end */
	(void)close(edge);
	edge = raw_channel(r);
	write_frame(edge, MUX_DATA, 0, "x", 1);
	rig_write(ssl, OK);
	rig_read_answer(clerk, &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	(void)close(clerk);
	rig_until_closed(r, r->n_ids);
	clerk = rig_open_clerk(r, &req);
	rig_send_head(clerk, &(struct rig_req){.path = "/other"});
	rig_read_answer(clerk, &a);
	assert_int_equal(a.status, 403);
	rig_answer_done(&a);
	(void)close(clerk);
	(void)close(edge);
	rig_hang_up(ssl);
	rig_free(r);
}

/* Edge reads no push. */
static void test_a_judged_ticket_is_for_no_stream(void **state)
{
	struct rig *r = rig_new();

	assert_int_equal(origin_ask_open(r->keeper, ++r->n_ids,
				 &(struct ticket){TICKET_VERSION, {0}, true}, -1),
		0);
	assert_int_equal(rig_exit(r), 4);
	rig_free(r);
}

/* Requests whose clients leave before they are sent take no place. */
static void test_streams_that_are_closed_at_once(void **state)
{
	struct rig *r = rig_new();
	int edge = raw_channel(r);

	for (unsigned i = 0; i < ORIGIN_MAX_OPEN + 100; i++) {
		assert_int_equal(origin_ask_open(r->keeper, ++r->n_ids,
					 &(struct ticket){TICKET_VERSION, {0}}, -1),
			0);
		write_frame(edge, MUX_RESET, r->n_ids, NULL, 0);
		if (i % 8 == 7) {
			assert_int_equal(rig_result(r, r->n_ids)->outcome, ORIGIN_GONE);
			rig_until_closed(r, r->n_ids);
		}
	}
	(void)close(edge);
	rig_free(r);
}

/* 100 responses, of which the first is not read. */
static void test_one_that_is_not_read_stops_no_other(void **state)
{
	struct rig *r = rig_new();
	AUTO_FREE char *large = xcalloc(1, 8u << 20);
	int slow = rig_ask(r, &(struct rig_req){0});
	SSL *ssl = rig_serve(r), *other;
	struct rig_answer a;
	uint64_t before;

	rig_give_value(r, RIG_VALUE);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	before = rig_memory(r);
	rig_write(ssl, "HTTP/1.1 200 OK\r\ncontent-length: 8388608\r\n\r\n");
	(void)SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE);
	(void)SSL_write(ssl, large, 200000);
	other = NULL;
	for (unsigned i = 0; i < 100; i++) {
		int edge = rig_ask(r, &(struct rig_req){0});

		if (!other)
			other = rig_serve(r);
		assert_true(rig_read_http(other, head, sizeof(head)));
		rig_write(other, OK);
		rig_read_answer(edge, &a);
		assert_int_equal(a.status, 200);
		rig_answer_done(&a);
		(void)close(edge);
		rig_until_closed(r, r->n_ids);
	}
	assert_true(rig_memory(r) < before + (1u << 20));
	(void)close(slow);
	rig_hang_up(other);
	rig_hang_up(ssl);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_stream_without_a_ticket_is_refused),
		cmocka_unit_test(test_a_ticket_is_valid_once),
		cmocka_unit_test(test_a_new_channel_ends_all_tickets),
		cmocka_unit_test(test_an_edge_that_breaks_the_channel),
		cmocka_unit_test(test_a_clerk_has_a_socket_beside_the_channel),
		cmocka_unit_test(test_a_judged_ticket_is_for_no_stream),
		cmocka_unit_test(test_streams_that_are_closed_at_once),
		cmocka_unit_test(test_one_that_is_not_read_stops_no_other),
	};

	rig_make_pki();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
