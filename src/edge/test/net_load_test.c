/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing traffic of the guest: many connections, slow ones, and violations. */
#include "net_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define MIB (1024 * 1024)
#define HOST NET_RIG_HOST

/* ---- many, and the slow ---- */

static unsigned count_got(const struct net_rig *n, uint64_t each)
{
	unsigned k = 0;

	for (unsigned i = 0; i < n->n_conns; i++)
		k += n->conns[i]->side.n_got >= each;
	return k;
}

static unsigned count_closed(const struct net_rig *n)
{
	unsigned k = 0;

	for (unsigned i = 0; i < n->n_conns; i++)
		k += n->conns[i]->closed;
	return k;
}

static void test_1000_at_once(void **state)
{
	struct net_rig *n = net_new();
	uint64_t before, during, after;
	uint8_t hello[512];
	size_t len = net_hello(hello, sizeof(hello), HOST, false);
	char path[64];

	n->decide = NET_ALLOW;
	net_caught_path(n, HOST, 443, path);
	before = rig_memory(n->rig, "RssAnon:");
	for (unsigned i = 0; i < 1000; i++)
		net_say(n, net_open(n, path), hello, len);
	net_until(n, n->n_ways == 1000);
	for (unsigned i = 0; i < 1000; i++)
		n->ways[i]->side.endless = 10000;
	net_until(n, count_got(n, 10000) == 1000);
	assert_true(n->most_unanswered <= 64);
	during = rig_memory(n->rig, "RssAnon:");
	for (unsigned i = 0; i < 1000; i++)
		assert_true(
			n->ways[i]->side.n_got == len && !memcmp(n->ways[i]->side.got, hello, len));
	for (unsigned i = 1; i < n->n_conns; i++)
		net_end(n, n->conns[i]);
	for (unsigned i = 0; i < 1000; i++)
		n->ways[i]->side.end = true;
	net_until(n, count_closed(n) == n->n_conns);
	net_for(n, 100);
	after = rig_memory(n->rig, "RssAnon:");
	print_message("1,000 connections: %u KiB before, %u during, %u after\n",
		(unsigned)(before / 1024), (unsigned)(during / 1024), (unsigned)(after / 1024));
	assert_true(during < before + 10 * MIB);
	assert_true(after < before + MIB);
	net_free(n);
}

/* A slow reader stops its writer, and edge buffers almost nothing. */
static void test_slow_readers(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *slow, *fast, *other;
	struct net_way *ws = net_raw_tunnel(n, &slow), *wf = net_raw_tunnel(n, &fast), *wo;
	uint64_t before = rig_memory(n->rig, "RssAnon:"), sent;

	/* A guest that does not read, and a server that does not. */
	net_pause(n, slow, true);
	ws->side.endless = 1024 * (uint64_t)MIB;
	wf->side.paused = true;
	fast->side.endless = 1024 * (uint64_t)MIB;
	wire_resume(n->guest, fast->sid);
	net_for(n, 500);
	sent = ws->side.n_endless + fast->side.n_endless;
	net_for(n, 500);
	assert_true(sent > MIB / 4 && sent == ws->side.n_endless + fast->side.n_endless);
	assert_true(rig_memory(n->rig, "RssAnon:") < before + MIB);
	/* Other connections are not delayed. */
	wo = net_raw_tunnel(n, &other);
	wo->side.endless = 8 * MIB;
	other->side.check = true;
	net_until(n, other->side.n_got == 8 * MIB);
	/* And it continues. */
	wf->side.check = true;
	net_pause(n, slow, false);
	wf->side.paused = false;
	net_until(n, slow->side.n_got > 4 * MIB && wf->side.n_got > 4 * MIB);
	net_free(n);
}

static void test_bulk_both_ways(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c;
	struct net_way *w = net_raw_tunnel(n, &c);
	uint64_t at = clock_mono_ms();

	c->side.check = w->side.check = true;
	c->side.endless = w->side.endless = 64 * MIB;
	c->side.end = w->side.end = true;
	wire_resume(n->guest, c->sid);
	net_until(n, c->closed && w->side.eof);
	assert_false(c->reset);
	assert_true(c->side.n_got == 64 * MIB && w->side.n_got == 64 * MIB);
	print_message("64 MiB each way: %u ms\n", (unsigned)(clock_mono_ms() - at));
	net_free(n);
}

/* Both ends have closed, and the server reads the last data slowly. */
static void test_last_bytes_are_delivered(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c;
	struct net_way *w = net_raw_tunnel(n, &c);

	w->side.paused = w->side.end = w->side.check = true;
	c->side.endless = 260000; /* more than a socket holds, less than that plus a window */
	c->side.end = true;
	wire_resume(n->guest, c->sid);
	net_until(n, c->closed);
	assert_false(c->reset);
	net_for(n, 50);
	w->side.paused = false;
	net_until(n, w->side.eof);
	assert_int_equal(w->side.n_got, 260000);
	net_free(n);
}

/* ---- resets, limits, and a keeper or a guest that is wrong ---- */

static void test_reset_in_each_state(void **state)
{
	struct net_rig *n = net_new();
	uint8_t hello[512];
	size_t len = net_hello(hello, sizeof(hello), HOST, false);
	struct net_ask *a;
	struct net_conn *c;
	struct net_way *w;

	c = net_open_caught(n, HOST, 443); /* sniffing */
	net_until(n, c->status);
	wire_reset(n->guest, c->sid);
	c = net_open_caught(n, HOST, 443); /* asked, and the verdict arrives too late */
	net_say(n, c, hello, len);
	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	wire_reset(n->guest, c->sid);
	net_for(n, 50);
	w = net_allow(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	assert_true(w->gone);
	c = net_open_connect(n, HOST ":443"); /* opening */
	w = net_allow_tunnel(n, HOST, 443);
	wire_reset(n->guest, c->sid);
	net_until(n, w->side.eof);
	c = net_open_connect(n, HOST ":443"); /* checking */
	w = net_accept_tunnel(n, HOST, 443);
	net_say(n, c, hello, 20);
	net_until(n, c->side.n_got);
	wire_reset(n->guest, c->sid);
	net_until(n, w->side.eof);
	assert_int_equal(w->side.n_got, 0);
	w = net_raw_tunnel(n, &c); /* open */
	wire_reset(n->guest, c->sid);
	net_until(n, w->side.eof);
	w = net_raw_tunnel(n, &c); /* the server half-closes, and resets on more data */
	w->side.endless = 1000;
	net_until(n, c->side.n_got == 1000);
	assert_int_equal(shutdown(w->fd, SHUT_WR), 0);
	net_until(n, c->side.eof);
	fd_close(&w->fd);
	net_say(n, c, "late", 4);
	net_until(n, c->closed);
	w = net_raw_tunnel(n, &c); /* a reset: it must not look like an end */
	w->side.endless = 1000;
	net_until(n, c->side.n_got == 1000);
	fd_close(&w->fd);
	net_until(n, c->closed);
	assert_true(c->reset && !c->side.eof);
	c = net_ask_dns(n, "/dns/udp", HOST, 1); /* DNS */
	net_until(n, net_asked(n, EDGE_ASK_DNS, HOST, 0));
	a = net_asked(n, EDGE_ASK_DNS, HOST, 0);
	wire_reset(n->guest, c->sid);
	net_for(n, 20);
	(void)net_allow(n, a);
	/* Everything still works, and no connection is lost. */
	w = net_raw_tunnel(n, &c);
	net_free(n);
}

/* A connection that is reset before its verdict still has its slot. */
static void test_unanswered_count(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = NULL;
	unsigned n_open = 0;

	for (unsigned i = 0; i < WIRE_NET_STREAMS; i++) {
		c = net_ask_dns(n, "/dns/udp", HOST, 1);
		if (i % 100 == 99)
			net_until(n, c->status);
	}
	net_until(n, n->n_asks == 64 && c->status);
	for (unsigned i = 0; i < n->n_conns; i++)
		wire_reset(n->guest, n->conns[i]->sid);
	net_for(n, 100);
	/* 64 asks were sent, the others are dropped. */
	assert_int_equal(n->n_asks, 64);
	for (unsigned i = 0; i < WIRE_NET_STREAMS; i++) {
		c = net_open(n, "/tcp/203.0.113.1/9999");
		if (i % 100 == 99)
			net_for(n, 10);
	}
	net_for(n, 50);
	for (unsigned i = WIRE_NET_STREAMS; i < n->n_conns; i++)
		n_open += !n->conns[i]->closed;
	assert_int_equal(n_open, WIRE_NET_STREAMS - 64);
	for (unsigned i = 0; i < 64; i++)
		net_deny(n, &n->asks[i], "");
	net_for(n, 100);
	c = net_open(n, "/tcp/203.0.113.1/9999");
	net_until(n, c->status);
	assert_true(c->open);
	net_free(n);
}

static void test_keeper_reads_late(void **state)
{
	struct net_rig *n = net_new();

	n->rig->keeper_deaf = true;
	for (unsigned i = 0; i < 300; i++)
		(void)net_ask_dns(n, "/dns/udp", HOST, 1);
	net_for(n, 200);
	assert_int_equal(n->n_asks, 0);
	n->rig->keeper_deaf = false;
	n->decide = NET_ALLOW;
	net_until(n, count_closed(n) == 300);
	for (unsigned i = 0; i < 300; i++)
		assert_true(!n->conns[i]->reset && n->conns[i]->side.got[7] == 1);
	net_free(n);
}

static void test_keeper_is_wrong(void **state)
{
	static const struct {
		bool allowed, fd;
		int id; /* added to a valid one */
		const char *path;
	} rows[] = {
		{true, false, 1, "/dns/udp"},  /* unknown */
		{true, false, 64, "/dns/udp"}, /* a valid slot of an earlier generation */
		{true, true, 0, "/dns/udp"},   /* a socket for DNS */
		{true, false, 0, "tunnel"},    /* none for a tunnel */
		{true, true, 0, "fault"},      /* allows a fault */
		{true, false, 0, "fault"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct edge_verdict v = {.allowed = rows[i].allowed};
		struct net_rig *n = net_new();
		int fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		if (rows[i].path[0] == '/')
			(void)net_ask_dns(n, rows[i].path, HOST, 1);
		else if (rows[i].path[0] == 't')
			(void)net_open_connect(n, HOST ":22");
		else
			(void)net_open(n, "/tcp/198.18.0.1/1");
		net_until(n, n->n_asks == 1);
		assert_int_equal(
			edge_answer_ask(n->rig->keeper, n->asks[0].id + (uint32_t)rows[i].id, &v,
				rows[i].fd ? fds[0] : -1),
			0);
		if (rig_exit(n->rig) != 4)
			fail_msg("row %zu", i);
		fd_close(&fds[0]);
		fd_close(&fds[1]);
		net_free(n);
	}
}

static void test_keeper_says_net_twice(void **state)
{
	struct net_rig *n = net_new();
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(chan_send_plain(n->rig->keeper, EDGE_NET, 0, fds[0]), 0);
	assert_int_equal(rig_exit(n->rig), 4);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	net_free(n);
	/* A verdict without a network. */
	{
		struct rig *r = rig_new(NULL);

		rig_up(r);
		assert_int_equal(edge_answer_ask(r->keeper, 0, &(struct edge_verdict){0}, -1), 0);
		assert_int_equal(rig_exit(r), 4);
		rig_free(r);
	}
}

/* Raw frames of a guest that does not use our library; its stream 1 is open. */
static void flood(const char *frame, size_t len, unsigned times, const char *text)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/proxy");
	uint64_t before = rig_memory(n->rig, "RssAnon:"), most = before;

	net_until(n, c->status);

	n->deaf = true;
	for (unsigned i = 0; i < times && !n->rig->lost; i++) {
		(void)send(n->fd, frame, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (i % 500 == 499) {
			net_step(n, 1);
			most = MAX(most, rig_memory_or_ended(n->rig, "RssAnon:"));
		}
	}
	net_until(n, n->rig->lost);
	if (!strstr(n->rig->lost_text, text))
		fail_msg("lost, but: %s", n->rig->lost_text);
	assert_true(most < before + 8 * MIB);
	assert_int_equal(rig_exit(n->rig), 3);
	net_free(n);
}

#define FLOOD(frame, text) flood(frame, sizeof(frame) - 1, 100000, text)

static void test_floods(void **state)
{
	/* Our limit or nghttp2's, whichever is lower. */
	FLOOD("\0\0\x08\6\0\0\0\0\0whatever", "");				/* PING */
	FLOOD("\0\0\0\4\0\0\0\0\0", "");					/* SETTINGS */
	FLOOD("\0\0\1\1\0\0\0\0\3\x83\0\0\1\x09\0\0\0\0\3\x86", "unsupported"); /* CONTINUATION */
	FLOOD("\0\0\0\0\0\0\0\0\1", "without data");				/* empty DATA */
	FLOOD("\0\0\x09\1\4\0\0\0\3\x83\x86\x84\x40\1a\1b\xbe", "unsupported"); /* HPACK */
	FLOOD("\0\0\4\3\0\0\0\0\3\0\0\0\x08", "protocol");     /* RST_STREAM, idle */
	FLOOD("\0\0\4\x08\0\0\0\0\0\0\0\0\1", "without data"); /* WINDOW_UPDATE */
	FLOOD("\0\0\5\2\0\0\0\0\1\0\0\0\0\1", "unsupported");  /* PRIORITY */
}

/* Opens and resets as fast as possible. */
static void test_rapid_reset(void **state)
{
	struct net_rig *n = net_new();
	uint64_t before = rig_memory(n->rig, "RssAnon:"), most = before;
	uint8_t q[512];
	size_t len = net_query(q, sizeof(q), HOST, 1);

	n->decide = NET_DENY;
	for (unsigned i = 0; i < 4000 && !n->rig->lost; i++) {
		struct net_conn *c = net_open(n, "/dns/udp");

		net_say(n, c, q, len);
		net_end(n, c);
		net_step(n, 0);
		wire_reset(n->guest, c->sid);
		net_step(n, 0);
		if (i % 200 == 0)
			most = MAX(most, rig_memory_or_ended(n->rig, "RssAnon:"));
	}
	assert_true(most < before + 8 * MIB);
	assert_true(n->most_unanswered <= 64);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_1000_at_once),
		cmocka_unit_test(test_slow_readers),
		cmocka_unit_test(test_bulk_both_ways),
		cmocka_unit_test(test_last_bytes_are_delivered),
		cmocka_unit_test(test_reset_in_each_state),
		cmocka_unit_test(test_unanswered_count),
		cmocka_unit_test(test_keeper_reads_late),
		cmocka_unit_test(test_keeper_is_wrong),
		cmocka_unit_test(test_keeper_says_net_twice),
		cmocka_unit_test(test_floods),
		cmocka_unit_test(test_rapid_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
