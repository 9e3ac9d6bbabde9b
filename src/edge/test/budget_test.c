/* SPDX-License-Identifier: Apache-2.0 */
/* One memory budget for all connections of a guest: the largest ones are closed, and the others are
 * not affected. */
#include "net_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "src/edge/edge.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define HOST NET_RIG_HOST
#define MIB (1024 * 1024)
#define KIB 1024
#define MOST 1270 /* connections of the attacker: all but a few slots */
#define MANY 600  /* exchanges with full queues in both directions */
/* Text, stacks and memory that malloc has not returned, above what is counted. */
#define AROUND (32 * MIB)

static uint64_t peak(const struct net_rig *n)
{
	return rig_memory(n->rig, "VmPeak:");
}

static unsigned count_open(const struct net_rig *n, unsigned from)
{
	unsigned k = 0;

	for (unsigned i = from; i < n->n_conns; i++)
		k += n->conns[i]->open;
	return k;
}

/* Denies each fault as the keeper; returns the number of faults about memory. */
static unsigned count_faults(struct net_rig *n)
{
	unsigned k = 0;

	for (unsigned i = 0; i < n->n_asks; i++) {
		struct net_ask *a = &n->asks[i];

		k += strstr(a->ask.fault, "memory") != NULL;
		if (a->ask.fault[0] && !a->answered)
			net_deny(n, a, "");
	}
	return k;
}

static struct net_ask *find_request(struct net_rig *n)
{
	(void)count_faults(n);
	for (unsigned i = n->n_asks; i-- > 0;)
		if (!n->asks[i].answered && n->asks[i].ask.kind == EDGE_ASK_HTTP)
			return &n->asks[i];
	return NULL;
}

static struct net_way *allow_request(struct net_rig *n)
{
	struct net_way *w;

	net_until(n, find_request(n));
	w = net_allow(n, find_request(n));
	w->has_head = true;
	return w;
}

/* The budget was reached, and edge has sent all reports about it. */
static void settle(struct net_rig *n)
{
	uint64_t end;

	net_until(n, count_faults(n) > 0);
	end = clock_mono_ms() + 300;
	while (clock_mono_ms() < end) {
		(void)count_faults(n);
		if (n->n_unanswered)
			end = clock_mono_ms() + 300;
		net_step(n, 10);
	}
}

static void assert_alive(struct net_rig *n, struct net_conn *small, struct net_way *w)
{
	static const char get[] = "GET http://" HOST "/a HTTP/1.1\r\nHost: " HOST "\r\n\r\n";
	uint64_t got = small->side.n_got, sent = w->side.n_got;
	struct net_conn *c = net_open(n, "/proxy");
	struct net_way *to;

	/* A connection that was open before. */
	net_say(n, small, "ping", 4);
	way_say(w, "pong", 4);
	net_until(n, small->side.n_got == got + 4 && w->side.n_got == sent + 4);
	/* And a new connection. */
	net_say(n, c, get, strlen(get));
	to = allow_request(n);
	way_say_head(to, 204, HTTP_BODY_NONE, 0);
	way_say_end(to);
	net_until(n, net_got_text(&c->side, "HTTP/1.1 204 No Content\r\n\r\n"));
}

/* Endless heads of nearly the maximum size: 192 KiB each. */
static void test_unfinished_heads(void **state)
{
	static const char line[] = "GET http://" HOST "/ HTTP/1.1\r\nHost: " HOST "\r\nX-Fill: ";
	static char fill[60 * KIB];
	struct net_rig *n = net_new();
	struct net_conn *small, *slow;
	struct net_way *w = net_raw_tunnel(n, &small), *lazy = net_raw_tunnel(n, &slow);
	uint64_t before = peak(n);
	unsigned first = n->n_conns;

	/* Holds one window, a third of each of the others. */
	lazy->side.paused = true;
	slow->side.endless = MIB;
	wire_resume(n->guest, slow->sid);
	memset(fill, 'a', sizeof(fill));
	for (unsigned i = 0; i < MOST; i++) {
		struct net_conn *c = net_open(n, "/proxy");

		net_say(n, c, line, strlen(line));
		net_say(n, c, fill, sizeof(fill));
		if (i % 50 == 49)
			net_until(n, c->side.sent == c->side.n_send || !c->open);
	}
	settle(n);
	assert_alive(n, small, w);
	print_message("%u KiB before, at most %u; %u of %u are open\n", (unsigned)(before / KIB),
		(unsigned)(peak(n) / KIB), count_open(n, first), MOST);
	assert_true(peak(n) < before + EDGE_BUDGET + AROUND);
	assert_true(count_open(n, first) > MOST / 2);
	assert_true(slow->open && slow->side.n_endless < MIB);
	net_free(n);
}

/* All of them begin a head in data that edge reads at the same time. */
static void test_a_byte_for_each(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *small;
	struct net_way *w = net_raw_tunnel(n, &small);
	uint64_t before = peak(n);
	unsigned first = n->n_conns;

	for (unsigned i = 0; i < MOST; i++)
		(void)net_open(n, "/proxy");
	net_until(n, n->conns[n->n_conns - 1]->status);
	for (unsigned i = first; i < n->n_conns; i++)
		net_say(n, n->conns[i], "G", 1);
	settle(n);
	assert_alive(n, small, w);
	assert_true(peak(n) < before + EDGE_BUDGET + AROUND);
	assert_true(count_open(n, first) > MOST / 2);
	net_free(n);
}

/* A request whose body the server does not read, and an answer that the guest does not read. */
static void fill_exchange(struct net_rig *n)
{
	static const char post[] = "POST http://" HOST "/ HTTP/1.1\r\nHost: " HOST
				   "\r\nContent-Length: 10000000\r\n\r\n";
	static uint8_t body[60 * KIB];
	struct net_conn *c = net_open(n, "/proxy");
	struct net_way *w;

	net_say(n, c, post, strlen(post));
	w = allow_request(n);
	w->side.paused = true;
	net_pause(n, c, true);
	c->side.endless = 10000000;
	wire_resume(n->guest, c->sid);
	way_say_head(w, 200, HTTP_BODY_CHUNKED, 0);
	for (unsigned i = 0; i < 3; i++)
		way_say_data(w, slice_of(body, sizeof(body)));
}

/* The streams of sbx.ctl are full too: they belong to the user, and none is closed. */
static void test_everything_at_once(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *small;
	struct net_way *w = net_raw_tunnel(n, &small);
	uint64_t before = peak(n);
	unsigned first;

	for (unsigned i = 0; i < 200; i++)
		rig_open(n->rig, "/pour", 0)->paused = true;
	net_for(n, 300);
	first = n->n_conns;
	for (unsigned i = 0; i < MANY; i++)
		fill_exchange(n);
	settle(n);
	assert_alive(n, small, w);
	print_message("%u KiB before, at most %u; %u of %u are open\n", (unsigned)(before / KIB),
		(unsigned)(peak(n) / KIB), count_open(n, first), MANY);
	assert_true(peak(n) < before + EDGE_BUDGET + AROUND);
	assert_true(count_open(n, first) > 200);
	for (unsigned i = 0; i < 200; i++)
		assert_true(n->rig->clients[i].opened && !n->rig->clients[i].closed);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unfinished_heads),
		cmocka_unit_test(test_a_byte_for_each),
		cmocka_unit_test(test_everything_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
