/* SPDX-License-Identifier: Apache-2.0 */
/* TLS intercepted by a real, sealed sbx-edge: bodies, slow ends, cuts, and memory. */
#include "open_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/os/jail/unsealed.h"

#define HOST NET_RIG_HOST
#define MIB (1024 * 1024)
#define LARGE (8 * MIB)
#define BLOCK 65536
#define MANY 300
#define FEW 60

static const char get[] = "GET /a HTTP/1.1\r\nHost: " HOST "\r\n\r\n";
static const char upgrade[] = "GET /w HTTP/1.1\r\nHost: " HOST "\r\n"
			      "Connection: Upgrade\r\nUpgrade: websocket\r\n"
			      "Sec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n";

static uint8_t *pattern(size_t n)
{
	uint8_t *p = xmalloc(n);

	for (size_t i = 0; i < n; i++)
		p[i] = rig_pattern(i);
	return p;
}

static void say_large(struct net_way *w, const uint8_t *p)
{
	way_say_head(w, 200, HTTP_BODY_LENGTH, LARGE);
	for (size_t at = 0; at < LARGE; at += BLOCK)
		way_say_data(w, slice_of(p + at, BLOCK));
	way_say_end(w);
}

static void check_large(const struct client *cl, const uint8_t *p)
{
	assert_memory_equal(cl->got + cl->n_got - LARGE, p, LARGE);
}

static void start_upload(struct client *cl, const uint8_t *p)
{
	char head[128];

	(void)snprintf(head, sizeof(head),
		"PUT /up HTTP/1.1\r\nHost: " HOST "\r\nContent-Length: %d\r\n\r\n", LARGE);
	client_say_text(cl, head);
	client_say(cl, p, LARGE);
}

/* The payload that a way received, without frames. */
struct body {
	struct canon_reader rd;
	uint64_t n;
	bool over;
};

static void on_frames(void *ctx, struct slice in)
{
	struct body *b = ctx;
	struct canon_frame frame;

	while (canon_reader_feed(&b->rd, &in, &frame) == 1) {
		for (size_t i = 0; frame.kind == CANON_DATA && i < frame.payload.n; i++)
			assert_int_equal(frame.payload.p[i], rig_pattern(b->n + i));
		b->n += frame.kind == CANON_DATA ? frame.payload.n : 0;
		b->over = b->over || frame.kind == CANON_END;
	}
}

static void watch_body(struct net_way *w, struct body *b)
{
	*b = (struct body){0};
	canon_reader_init(&b->rd);
	w->side.on_got = on_frames;
	w->side.ctx = b;
}

static void test_large_bodies_both_ways(void **state)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	AUTO_FREE uint8_t *p = pattern(LARGE);
	struct net_rig *n = net_new();

	for (unsigned i = 0; i < 2; i++) {
		struct client *cl = client_up(n, &(struct client_plan){.version = versions[i]});
		uint64_t began = clock_mono_ms();
		struct net_way *w;
		struct body body;

		start_upload(cl, p);
		w = client_allow(cl, "PUT", "/up");
		watch_body(w, &body);
		client_until(cl, body.over);
		assert_int_equal(body.n, LARGE);
		say_large(w, p);
		client_until(cl, cl->n_got > LARGE);
		check_large(cl, p);
		print_message("8 MiB each way: %u ms\n", (unsigned)(clock_mono_ms() - began));
		canon_reader_done(&body.rd);
		client_free(cl);
	}
	net_free(n);
}

/* A slow reader stops its writer, and edge holds only its queues. */
static void test_slow_ones_hold_little(void **state)
{
	AUTO_FREE uint8_t *p = pattern(LARGE);
	struct net_rig *n = net_new();
	struct client *down = client_up(n, &(struct client_plan){0});
	struct client *up = client_up(n, &(struct client_plan){0});
	struct net_way *w_down, *w_up;
	uint64_t before, after;
	struct body body;

	client_say_text(down, get);
	w_down = client_allow(down, "GET", "/a");
	before = rig_memory(n->rig, "RssAnon:");
	net_pause(n, down->c, true);
	say_large(w_down, p);
	start_upload(up, p);
	w_up = client_allow(up, "PUT", "/up");
	watch_body(w_up, &body);
	w_up->side.paused = true;
	for (unsigned i = 0; i < 50; i++) {
		client_pump(up);
		net_step(n, 10);
	}
	after = rig_memory(n->rig, "RssAnon:");
	print_message("two that wait: %u KiB\n", (unsigned)(after - before) / 1024);
	assert_true(after < before + MIB);
	assert_true(up->c->side.sent < LARGE / 2 && w_down->side.sent < LARGE / 2);
	net_pause(n, down->c, false);
	w_up->side.paused = false;
	client_until(down, down->n_got > LARGE);
	check_large(down, p);
	client_until(up, body.over && body.n == LARGE);
	canon_reader_done(&body.rd);
	client_free(down);
	client_free(up);
	net_free(n);
}

/* An event is sent to the guest immediately, as its own record. */
static void test_events_are_not_held(void **state)
{
	struct net_rig *n = net_new();
	struct client *cl = client_up(n, &(struct client_plan){0});
	struct net_way *w;

	client_say_text(cl, get);
	w = client_allow(cl, "GET", "/a");
	way_say_head(w, 200, HTTP_BODY_CHUNKED, 0);
	for (unsigned i = 0; i < 100; i++) {
		char event[32];

		(void)snprintf(event, sizeof(event), "data: %u\n\n", i);
		way_say_data(w, slice_from_str(event));
		client_until(cl, client_got_text(cl, event));
	}
	way_say_end(w);
	client_until(cl, client_got_text(cl, "\r\n0\r\n\r\n"));
	client_free(cl);
	net_free(n);
}

/* ---- ends ---- */

/* The origin closes within its answer: the guest must not get close_notify. */
static void test_a_cut_is_no_clean_end(void **state)
{
	static const enum http_body_kind kinds[] = {
		HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED, HTTP_BODY_CLOSE};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct client *cl = client_up(n, &(struct client_plan){0});
		struct net_way *w;

		client_say_text(cl, get);
		w = client_allow(cl, "GET", "/a");
		way_say_head(w, 200, kinds[i], kinds[i] == HTTP_BODY_LENGTH ? 100 : 0);
		way_say_data(w, slice_from_str("half of it"));
		client_until(cl, client_got_text(cl, "half of it"));
		fd_close(&w->fd);
		client_until(cl, cl->cut || cl->goodbye);
		assert_false(cl->goodbye);
		client_free(cl);
	}
	net_free(n);
}

/* HTTP/1.0 ends an answer only by closing the connection. */
static void test_the_end_is_the_end_of_the_answer(void **state)
{
	for (unsigned whole = 0; whole < 2; whole++) {
		struct net_rig *n = net_new();
		struct client *cl = client_up(n, &(struct client_plan){0});
		struct net_way *w;

		client_say_text(cl, "GET /a HTTP/1.0\r\nHost: " HOST "\r\n\r\n");
		w = client_allow(cl, "GET", "/a");
		way_say_head(w, 200, HTTP_BODY_CLOSE, 0);
		way_say_data(w, slice_from_str("until the end"));
		client_until(cl, client_got_text(cl, "until the end"));
		if (whole)
			way_say_end(w);
		else
			fd_close(&w->fd);
		client_until(cl, cl->cut || cl->goodbye);
		assert_int_equal(cl->goodbye, whole);
		client_free(cl);
		net_free(n);
	}
}

static struct client *start_websocket(struct net_rig *n, struct net_way **ret)
{
	struct client *cl = client_up(n, &(struct client_plan){0});
	struct net_way *w;

	client_say_text(cl, upgrade);
	w = client_allow(cl, "GET", "/w");
	client_until(cl, way_has_request(w, "/w"));
	w->side.n_got = 0;
	way_say_head(w, 101, HTTP_BODY_TUNNEL, 0);
	way_say(w, "first", 5);
	client_until(cl, client_got_text(cl, "\r\n\r\nfirst"));
	client_say_text(cl, "raw");
	client_until(cl, net_got(&w->side, "raw", 3));
	*ret = w;
	return cl;
}

static void test_websocket(void **state)
{
	AUTO_FREE uint8_t *p = pattern(LARGE);
	struct net_rig *n = net_new();
	struct net_way *w;
	struct client *cl = start_websocket(n, &w);

	w->side.n_got = cl->n_got = 0;
	w->side.check = true;
	w->side.endless = LARGE;
	client_say(cl, p, LARGE);
	client_until(cl, cl->n_got == LARGE && w->side.n_got == LARGE);
	check_large(cl, p);
	/* The guest's close_notify closes its direction only. */
	client_goodbye(cl);
	client_until(cl, w->side.eof);
	way_say(w, "last", 4);
	client_until(cl, client_got_text(cl, "last"));
	w->side.end = true;
	client_until(cl, cl->goodbye);
	client_free(cl);
	net_free(n);
}

/* Without close_notify the origin must not see a clean end. */
static void test_websocket_whose_guest_is_cut(void **state)
{
	struct net_rig *n = net_new();
	struct net_way *w;
	struct client *cl = start_websocket(n, &w);

	net_end(n, cl->c);
	client_until(cl, w->side.eof);
	/* Both directions have ended, not only the guest's. */
	client_until(cl, send(w->fd, "x", 1, MSG_NOSIGNAL) < 0);
	client_until(cl, cl->c->closed);
	client_free(cl);
	net_free(n);
}

/* ---- many ---- */

static void pump_all(struct net_rig *n, struct client **cl)
{
	net_step(n, 5);
	for (unsigned i = 0; i < MANY; i++)
		client_pump(cl[i]);
}

static unsigned count(struct client **cl, const char *text)
{
	unsigned k = 0;

	for (unsigned i = 0; i < MANY; i++)
		k += text ? client_got_text(cl[i], text) : cl[i]->c->closed;
	return k;
}

static void answer_all(struct net_rig *n)
{
	for (unsigned i = 0; i < n->n_asks; i++) {
		if (!n->asks[i].answered) {
			struct net_way *w = net_allow(n, &n->asks[i]);

			w->has_head = true;
			way_answer(w, "idle now");
		}
	}
}

static void test_many_and_their_memory(void **state)
{
	struct net_rig *n = net_new();
	static struct client *cl[MANY];
	uint64_t before = rig_memory(n->rig, "RssAnon:"), during, after, end;

	for (unsigned i = 0; i < MANY; i++) {
		cl[i] = client_up(n, &(struct client_plan){.alpn = "\x8http/1.1"});
		client_say_text(cl[i], get);
	}
	end = clock_mono_ms() + 120000;
	while (count(cl, "idle now") < MANY && clock_mono_ms() < end) {
		pump_all(n, cl);
		answer_all(n);
	}
	assert_int_equal(count(cl, "idle now"), MANY);
	during = rig_memory(n->rig, "RssAnon:");
	for (unsigned i = 0; i < MANY; i++)
		net_end(n, cl[i]->c);
	while (count(cl, NULL) < MANY && clock_mono_ms() < end)
		pump_all(n, cl);
	assert_int_equal(count(cl, NULL), MANY);
	/* Memory is returned after the last connection is freed, when the guest has seen its
	 * end. */
	net_until(n, rig_memory(n->rig, "RssAnon:") < before + MIB);
	after = rig_memory(n->rig, "RssAnon:");
	print_message("%u idle: %u KiB before, %u during (%u each), %u after\n", MANY,
		(unsigned)(before / 1024), (unsigned)(during / 1024),
		(unsigned)((during - before) / MANY / 1024), (unsigned)(after / 1024));
	assert_true(during < before + MANY * (uint64_t)40 * 1024);
	for (unsigned i = 0; i < MANY; i++)
		client_free(cl[i]);
	net_free(n);
}

static void stall(struct net_rig *n, struct client **cl, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		cl[i] = client_new(n, &(struct client_plan){0});
		client_pump(cl[i]);
		cl[i]->held = true;
		client_until(cl[i], cl[i]->c->side.n_got > 0);
	}
}

static void ended(struct net_rig *n, struct client **cl, unsigned count, uint64_t before)
{
	n->decide = NET_DENY;
	for (unsigned i = 0; i < count; i++)
		net_until(n, cl[i]->c->closed);
	net_until(n, rig_memory(n->rig, "RssAnon:") < before + MIB);
	for (unsigned i = 0; i < count; i++)
		client_free(cl[i]);
	net_free(n);
}

/* A guest that begins handshakes and stalls holds little memory. No handshake may reach its timeout
 * while a slow machine begins the others. */
static void test_many_that_stall(void **state)
{
	rig_first_ms = "600000";

	struct net_rig *n = net_new();
	static struct client *cl[MANY];
	uint64_t before = rig_memory(n->rig, "RssAnon:"), during;

	rig_first_ms = NULL;

	stall(n, cl, MANY);
	during = rig_memory(n->rig, "RssAnon:");
	print_message(
		"%u stalled: %u KiB each\n", MANY, (unsigned)((during - before) / MANY / 1024));
	for (unsigned i = 0; i < MANY; i++)
		assert_false(cl[i]->c->closed);
	assert_true(during < before + MANY * (uint64_t)80 * 1024);
	for (unsigned i = 0; i < MANY; i++)
		net_end(n, cl[i]->c);
	ended(n, cl, MANY, before);
}

/* And it does not hold the memory for long: all end at their timeout, with nothing more sent. */
static void test_all_that_stall_end(void **state)
{
	struct net_rig *n = net_new();
	static struct client *cl[FEW];
	uint64_t before = rig_memory(n->rig, "RssAnon:");

	stall(n, cl, FEW);
	assert_true(rig_memory(n->rig, "RssAnon:") > before + MIB / JAIL_MEMORY_FACTOR);
	ended(n, cl, FEW, before);
}

/* All queues of a connection full: an unread upload with an unread answer. */
static void test_the_most_that_one_holds(void **state)
{
	static uint8_t block[BLOCK];
	struct net_rig *n = net_new();
	struct client *cl[FEW];
	uint64_t before = rig_memory(n->rig, "RssAnon:"), each;

	for (unsigned i = 0; i < FEW; i++) {
		struct net_way *w;

		cl[i] = client_up(n, &(struct client_plan){0});
		client_say_text(cl[i],
			"PUT /up HTTP/1.1\r\nHost: " HOST "\r\nContent-Length: 1048576\r\n\r\n");
		for (unsigned k = 0; k < 16; k++)
			client_say(cl[i], block, BLOCK);
		w = client_allow(cl[i], "PUT", "/up");
		w->side.paused = true;
		net_pause(n, cl[i]->c, true);
		way_say_head(w, 200, HTTP_BODY_CHUNKED, 0);
		for (unsigned k = 0; k < 16; k++)
			way_say_data(w, slice_of(block, BLOCK));
	}
	for (unsigned i = 0; i < 50; i++) {
		net_step(n, 20);
		for (unsigned k = 0; k < FEW; k++)
			client_pump(cl[k]);
	}
	each = (rig_memory(n->rig, "RssAnon:") - before) / FEW;
	print_message("%u with all queues full: %u KiB each\n", FEW, (unsigned)(each / 1024));
	assert_true(each > 64 * 1024 && each < 200 * 1024);
	for (unsigned i = 0; i < FEW; i++) {
		assert_true(cl[i]->c->side.sent < MIB);
		client_free(cl[i]);
	}
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large_bodies_both_ways),
		cmocka_unit_test(test_slow_ones_hold_little),
		cmocka_unit_test(test_events_are_not_held),
		cmocka_unit_test(test_a_cut_is_no_clean_end),
		cmocka_unit_test(test_the_end_is_the_end_of_the_answer),
		cmocka_unit_test(test_websocket),
		cmocka_unit_test(test_websocket_whose_guest_is_cut),
		cmocka_unit_test(test_many_that_stall),
		cmocka_unit_test(test_all_that_stall_end),
	};
	/* memory of the allocator of a real build: see lib/os/jail/unsealed.h */
	const struct CMUnitTest measured[] = {
		cmocka_unit_test(test_many_and_their_memory),
		cmocka_unit_test(test_the_most_that_one_holds),
	};
	int n_failed;

	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (JAIL_SEALS)
		n_failed += cmocka_run_group_tests(measured, NULL, NULL);
	return n_failed;
}
