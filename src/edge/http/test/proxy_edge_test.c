/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP through a real, sealed sbx-edge: the engine on the wire of sbx.net, with the real channel
 * and sockets of the keeper; and its memory while others are slow. */
#include "src/edge/test/net_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define HOST NET_RIG_HOST
#define MIB (1024 * 1024)
#define LARGE (16 * MIB)

static const char get[] = "GET http://" HOST "/a HTTP/1.1\r\nHost: " HOST "\r\n\r\n";

/* Allows the pending ask; keeps the raw output of edge. */
static struct net_way *allow(struct net_rig *n)
{
	struct net_way *w;

	net_until(n, net_asked(n, EDGE_ASK_HTTP, HOST, 80));
	w = net_allow(n, net_asked(n, EDGE_ASK_HTTP, HOST, 80));
	w->has_head = true;
	return w;
}

/* HEAD and END of a request without a body were received. */
static bool has_request(const struct net_way *w, const char *path)
{
	struct slice in = slice_of(w->side.got, w->side.n_got);
	struct canon_reader rd;
	struct canon_frame frame;
	struct http_req req;
	struct arena arena;
	bool ok;

	if (w->side.n_got == 0)
		return false;
	canon_reader_init(&rd);
	arena_init(&arena, HTTP_ARENA_SIZE);
	ok = canon_reader_feed(&rd, &in, &frame) == 1 && frame.kind == CANON_HEAD &&
	     canon_get_req(frame.payload, &arena, &req) == 0 && slice_eq_str(req.host, HOST) &&
	     req.port == 80 && slice_eq_str(req.path, path) &&
	     canon_reader_feed(&rd, &in, &frame) == 1 && frame.kind == CANON_END && in.n == 0;
	canon_reader_done(&rd);
	arena_done(&arena);
	return ok;
}

static void test_requests_of_one_connection(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/proxy");
	struct net_way *w;

	net_say(n, c, get, strlen(get));
	net_say(n, c, get, strlen(get)); /* pipelined */
	w = allow(n);
	net_until(n, has_request(w, "/a"));
	assert_int_equal(n->n_asks, 1);
	assert_string_equal(n->asks[0].ask.method, "GET");
	assert_string_equal(n->asks[0].ask.target, "/a");
	way_say_head(w, 200, HTTP_BODY_LENGTH, 5);
	way_say_data(w, slice_from_str("hello"));
	way_say_end(w);
	net_until(n, net_got_text(&c->side, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"));
	net_until(n, net_asked(n, EDGE_ASK_HTTP, HOST, 80));
	assert_int_equal(n->n_asks, 2);
	net_deny(n, net_asked(n, EDGE_ASK_HTTP, HOST, 80), "");
	net_until(n, net_got_text(&c->side, "HTTP/1.1 403 Forbidden\r\n"));
	net_until(n, net_got_text(&c->side, "Blocked by network policy: " HOST ":80\n"));
	assert_true(c->open);
	net_say(n, c, get, strlen(get));
	w = allow(n);
	net_until(n, has_request(w, "/a"));
	fd_close(&w->fd); /* egress dies */
	net_until(n, net_got_text(&c->side, "HTTP/1.1 502 Bad Gateway\r\n"));
	net_end(n, c);
	net_until(n, c->closed);
	assert_false(c->reset);
	net_free(n);
}

/* Rules name headers: the keeper decides when it has them. */
static void test_headers_that_the_keeper_wants(void **state)
{
	static const char asked[] = "GET http://" HOST "/a HTTP/1.1\r\nHost: " HOST
				    "\r\nX-A: 1\r\nX-B: 2\r\nX-A:  3 \r\nConnection: x-c\r\n"
				    "X-C: 4\r\n\r\n";
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/proxy");
	struct net_ask *a;
	struct net_way *w;

	net_say(n, c, asked, strlen(asked));
	net_until(n, net_asked(n, EDGE_ASK_HTTP, HOST, 80));
	a = net_asked(n, EDGE_ASK_HTTP, HOST, 80);
	assert_int_equal(a->ask.wants_id, 0);
	assert_string_equal(a->ask.named, "");
	net_want(n, a, "x-a,x-c", 7);
	net_until(n, n->n_asks == 2);
	a = net_asked(n, EDGE_ASK_HTTP, HOST, 80);
	assert_int_equal(a->ask.wants_id, 7);
	assert_string_equal(a->ask.named, "x-a:1\nx-a:3\n"); /* x-c was for this connection */
	assert_string_equal(a->ask.target, "/a");
	/* other rules meanwhile */
	net_want(n, a, "x-b", 8);
	net_until(n, n->n_asks == 3);
	assert_string_equal(net_asked(n, EDGE_ASK_HTTP, HOST, 80)->ask.named, "x-b:2\n");
	w = allow(n);
	net_until(n, has_request(w, "/a"));
	net_end(n, c);
	net_free(n);
}

/* A keeper that wants headers again and again gets no more, and the guest an answer. */
static void test_wants_are_bounded(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/proxy");

	net_say(n, c, get, strlen(get));
	for (unsigned i = 1; i <= 5; i++) {
		net_until(n, n->n_asks == i);
		net_want(n, net_asked(n, EDGE_ASK_HTTP, HOST, 80), "x-a", i);
	}
	net_until(n, net_got_text(&c->side, "HTTP/1.1 403 Forbidden\r\n"));
	assert_int_equal(n->n_asks, 5);
	net_free(n);
}

/* Redirected, inside a CONNECT, and to the proxy: the same asks and the same data. */
static void test_three_ways_are_one(void **state)
{
	static const char plain[] = "GET /a HTTP/1.1\r\nHost: " HOST "\r\n\r\n";
	static const char wrong[] = "GET /a HTTP/1.1\r\nHost: other.test\r\n\r\n";
	struct net_rig *n = net_new();
	struct net_conn *c = net_open_caught(n, HOST, 80);
	struct net_way *w;

	for (int i = 0; i < 2; i++) {
		if (i == 1) {
			c = net_open_connect(n, HOST ":80");
			(void)net_accept_tunnel(n, HOST, 80);
		}
		net_say(n, c, plain, strlen(plain));
		w = allow(n);
		net_until(n, has_request(w, "/a"));
		way_say_head(w, 204, HTTP_BODY_NONE, 0);
		way_say_end(w);
		net_until(n, net_got_text(&c->side, "HTTP/1.1 204 No Content\r\n\r\n"));
		net_say(n, c, wrong, strlen(wrong));
		net_until(n, net_faulted(n, "the Host header is not the target"));
		net_until(n, net_got_text(&c->side, "HTTP/1.1 421 "));
		net_until(n, c->side.eof);
	}
	net_free(n);
}

/* The keeper's record must name the target of this request, never of an earlier one. */
static void test_a_fault_names_its_target(void **state)
{
	static const char wrong[] = "GET http://" HOST ":81/ HTTP/1.1\r\nHost: other.test\r\n\r\n";
	static const char none[] = "GET / HTTP/1.1\r\nHost: " HOST "\r\n\r\n";
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/proxy");
	struct net_ask *a;

	net_say(n, c, wrong, strlen(wrong));
	net_until(n, net_faulted(n, "the Host header is not the target"));
	a = &n->asks[n->n_asks - 1];
	assert_string_equal(a->ask.host, HOST);
	assert_int_equal(a->ask.port, 81);
	c = net_open(n, "/proxy");
	net_say(n, c, get, strlen(get));
	net_until(n, net_asked(n, EDGE_ASK_HTTP, HOST, 80));
	net_deny(n, net_asked(n, EDGE_ASK_HTTP, HOST, 80), "");
	net_say(n, c, none, strlen(none));
	net_until(n, net_faulted(n, "invalid proxy request"));
	a = &n->asks[n->n_asks - 1];
	assert_string_equal(a->ask.host, "");
	assert_int_equal(a->ask.port, 0);
	net_free(n);
}

static void test_slow_ones_hold_little(void **state)
{
	static uint8_t block[65536];
	struct net_rig *n = net_new();
	struct net_conn *down = net_open(n, "/proxy"), *up = net_open(n, "/proxy");
	uint64_t before, after;
	struct net_way *w;
	char head[256];

	net_say(n, down, get, strlen(get));
	w = allow(n);
	before = rig_memory(n->rig, "RssAnon:");
	net_pause(n, down, true);
	way_say_head(w, 200, HTTP_BODY_CHUNKED, 0);
	for (int i = 0; i < LARGE / 65536; i++)
		way_say_data(w, slice_of(block, sizeof(block)));
	way_say_end(w);
	(void)snprintf(head, sizeof(head),
		"PUT http://" HOST "/up HTTP/1.1\r\nHost: " HOST "\r\nContent-Length: %d\r\n\r\n",
		LARGE);
	net_say(n, up, head, strlen(head));
	allow(n)->side.paused = true;
	for (int i = 0; i < LARGE / 65536; i++)
		net_say(n, up, block, sizeof(block));
	net_for(n, 500);
	after = rig_memory(n->rig, "RssAnon:");
	assert_true(after < before + MIB);
	assert_true(up->side.sent < LARGE / 2 && w->side.sent < LARGE / 2);
	net_pause(n, down, false);
	n->ways[1]->side.paused = false;
	net_until(n, down->side.n_got > LARGE && n->ways[1]->side.n_got > LARGE);
	way_say_head(n->ways[1], 201, HTTP_BODY_LENGTH, 0);
	way_say_end(n->ways[1]);
	net_until(n, net_got_text(&up->side, "HTTP/1.1 201 Created\r\n"));
	/* Head, a size line and a line end for each frame, the last chunk. */
	assert_int_equal(down->side.n_got, 47 + (LARGE / 65536) * (65536 + 9) + 5);
	net_free(n);
}

static unsigned count_answers(const struct net_rig *n)
{
	unsigned k = 0;

	for (unsigned i = 0; i < n->n_conns; i++)
		k += net_got_text(
			&n->conns[i]->side, "transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n");
	return k;
}

/* A thousand event streams that are silent after some data. */
static void test_1000_streams_at_once(void **state)
{
	struct net_rig *n = net_new();
	uint64_t before, during;

	before = rig_memory(n->rig, "RssAnon:");
	for (unsigned i = 0; i < 1000; i++) {
		struct net_conn *c = net_open(n, "/proxy");
		struct net_way *w;

		net_say(n, c, get, strlen(get));
		w = allow(n);
		way_say_head(w, 200, HTTP_BODY_CHUNKED, 0);
		way_say_data(w, slice_from_str("hi"));
	}
	net_until(n, count_answers(n) == 1000);
	during = rig_memory(n->rig, "RssAnon:");
	print_message(
		"1000 open streams: %llu KiB\n", (unsigned long long)(during - before) / 1024);
	assert_true(during < before + 8 * MIB);
	for (unsigned i = 0; i < 1000; i++)
		fd_close(&n->ways[i]->fd); /* cut: the guest sees it */
	for (unsigned i = 0; i < 1000; i++)
		net_until(n, n->conns[i]->side.eof);
	assert_null(strstr((char *)n->conns[7]->side.got, "0\r\n\r\n"));
	net_free(n);
}

static void test_websocket(void **state)
{
	static const char upgrade[] =
		"GET http://" HOST "/w HTTP/1.1\r\nHost: " HOST "\r\n"
		"Connection: Upgrade\r\nUpgrade: websocket\r\n"
		"Sec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n";
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/proxy");
	struct net_way *w;

	net_say(n, c, upgrade, strlen(upgrade));
	w = allow(n);
	net_until(n, w->side.n_got > 0);
	w->side.n_got = 0;
	way_say_head(w, 101, HTTP_BODY_TUNNEL, 0);
	way_say(w, "first", 5);
	net_until(n, net_got_text(&c->side, "\r\n\r\nfirst"));
	net_say(n, c, "raw", 3);
	net_until(n, net_got(&w->side, "raw", 3));
	c->side.endless = w->side.endless = 4 * MIB;
	net_say(n, c, "", 0);
	net_until(n, c->side.n_got > 4 * MIB && w->side.n_got == 3 + 4 * MIB);
	net_end(n, c);
	net_until(n, w->side.eof);
	w->side.end = true;
	net_until(n, c->closed);
	assert_false(c->reset);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_of_one_connection),
		cmocka_unit_test(test_headers_that_the_keeper_wants),
		cmocka_unit_test(test_wants_are_bounded),
		cmocka_unit_test(test_three_ways_are_one),
		cmocka_unit_test(test_a_fault_names_its_target),
		cmocka_unit_test(test_slow_ones_hold_little),
		cmocka_unit_test(test_1000_streams_at_once),
		cmocka_unit_test(test_websocket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
