/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels: all data, both ends, slow readers, many at the same time, and their cost. */
#include "egress_rig.h"

#include <errno.h>
#include <poll.h>
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
#define HOST "origin.example.com"
#define ALLOW_ALL "policy 1\nallow network **:1-65535\nend\n"
#define PIECE 65536

static int listener = -1;

/* All of rig_pattern, which repeats after PERIOD bytes, and a bit more. */
#define PERIOD (16 * MIB)
static uint8_t pattern[PERIOD + PIECE];

struct end {
	int fd;
	uint64_t sent, got;
	bool shut, eof;
};

static int setup(void **state)
{
	rig_dns_clear();
	(void)rig_dns_add(HOST, RIG_PUBLIC);
	listener = rig_listen(443);
	return 0;
}

static int teardown(void **state)
{
	fd_close(&listener);
	return 0;
}

static void open_tunnel(struct rig *r, struct end *edge, struct end *upstream)
{
	struct rig_head head;

	*edge = (struct end){.fd = rig_connect(r, HOST, 443)};
	(void)rig_result(r, r->n_ids);
	rig_read_head(edge->fd, &head);
	assert_int_equal(head.status, 200);
	*upstream = (struct end){.fd = rig_accept(listener, 60000)};
	assert_true(upstream->fd >= 0);
}

/* Sends as much as possible of `total` patterned bytes, then closes. */
static void send_some(struct end *e, uint64_t total)
{
	size_t n = MIN(PIECE, total - e->sent);
	const uint8_t *p = &pattern[e->sent % PERIOD];
	ssize_t r = n ? send(e->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

	if (r > 0)
		e->sent += (uint64_t)r;
	if (e->sent == total && !e->shut) {
		assert_int_equal(shutdown(e->fd, SHUT_WR), 0);
		e->shut = true;
	}
}

static void receive_some(struct end *e)
{
	uint8_t buf[PIECE];
	ssize_t r = recv(e->fd, buf, sizeof(buf), MSG_DONTWAIT);

	e->eof = e->eof || r == 0;
	if (r <= 0)
		return;
	assert_memory_equal(buf, &pattern[e->got % PERIOD], (size_t)r);
	e->got += (uint64_t)r;
}

/* Runs until both have sent `total` bytes and seen the other's end. */
static void exchange_all(struct end *a, struct end *b, uint64_t total)
{
	uint64_t until = clock_mono_ms() + 60000;
	struct end *ends[] = {a, b};

	while (!a->eof || !b->eof) {
		struct pollfd p[2];

		for (unsigned i = 0; i < 2; i++)
			p[i] = (struct pollfd){.fd = ends[i]->fd,
				.events = (short)((ends[i]->eof ? 0 : POLLIN) |
						  (ends[i]->shut ? 0 : POLLOUT))};
		(void)poll(p, 2, 1000);
		for (unsigned i = 0; i < 2; i++) {
			if (p[i].revents & POLLOUT)
				send_some(ends[i], total);
			if (p[i].revents & (POLLIN | POLLHUP))
				receive_some(ends[i]);
		}
		assert_true(clock_mono_ms() < until);
	}
	assert_true(a->got == total && b->got == total);
}

static void close_both(struct end *a, struct end *b)
{
	(void)close(a->fd);
	(void)close(b->fd);
}

static void test_64_mib_each_way(void **state)
{
	struct rig *r = rig_new();
	struct end edge, upstream;
	uint64_t at;

	rig_up(r, ALLOW_ALL, NULL);
	open_tunnel(r, &edge, &upstream);
	at = clock_mono_ms();
	exchange_all(&edge, &upstream, 64 * (uint64_t)MIB);
	print_message("64 MiB each way: %u ms\n", (unsigned)(clock_mono_ms() - at));
	rig_until(r, r->seen[1].closed);
	assert_true(r->seen[1].up == 64 * (uint64_t)MIB && r->seen[1].down == 64 * (uint64_t)MIB);
	close_both(&edge, &upstream);
	rig_free(r);
}

static void test_half_close_of_each_side(void **state)
{
	struct rig *r = rig_new();
	struct end end[2];

	rig_up(r, ALLOW_ALL, NULL);
	for (unsigned first = 0; first < 2; first++) {
		struct end *a = &end[first], *b = &end[!first];
		char c;

		open_tunnel(r, &end[0], &end[1]);
		assert_int_equal(write(a->fd, "q", 1), 1);
		assert_int_equal(shutdown(a->fd, SHUT_WR), 0);
		rig_read_all(b->fd, &c, 1);
		assert_int_equal(recv(b->fd, &c, 1, 0), 0);
		(void)usleep(50000); /* the other direction continues */
		assert_int_equal(write(b->fd, "a", 1), 1);
		rig_read_all(a->fd, &c, 1);
		assert_int_equal(c, 'a');
		assert_false(r->seen[r->n_ids].closed);
		assert_int_equal(shutdown(b->fd, SHUT_WR), 0);
		assert_int_equal(recv(a->fd, &c, 1, 0), 0);
		rig_until(r, r->seen[r->n_ids].closed);
		close_both(a, b);
	}
	rig_free(r);
}

/* Data that edge sends before the 200 waits; data before a close arrives. */
static void test_early_and_last_bytes(void **state)
{
	struct rig *r = rig_new();
	struct rig_head head;
	char buf[16];
	int fd, upstream;

	rig_up(r, ALLOW_ALL, NULL);
	fd = rig_connect(r, HOST, 443);
	assert_int_equal(write(fd, "early", 5), 5);
	upstream = rig_accept(listener, 60000);
	rig_read_all(upstream, buf, 5);
	assert_memory_equal(buf, "early", 5);
	rig_read_head(fd, &head);
	assert_int_equal(write(fd, "last", 4), 4);
	(void)close(fd);
	rig_read_all(upstream, buf, 4);
	assert_memory_equal(buf, "last", 4);
	assert_int_equal(recv(upstream, buf, 1, 0), 0);
	(void)close(upstream);
	rig_until(r, r->seen[1].closed);
	assert_true(r->seen[1].up == 9);
	rig_free(r);
}

static void test_a_reset_ends_it(void **state)
{
	const struct linger now = {.l_onoff = 1};
	struct rig *r = rig_new();
	struct end edge, upstream;

	rig_up(r, ALLOW_ALL, NULL);
	open_tunnel(r, &edge, &upstream);
	assert_int_equal(setsockopt(upstream.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	(void)close(upstream.fd);
	assert_true(rig_is_ended(edge.fd, 2000));
	rig_until(r, r->seen[1].closed);
	(void)close(edge.fd);
	/* edge closes without reading the server's data, which does not keep the tunnel open */
	open_tunnel(r, &edge, &upstream);
	assert_int_equal(write(upstream.fd, "unread", 6), 6);
	(void)usleep(50000);
	(void)close(edge.fd);
	assert_true(rig_is_ended(upstream.fd, 4000));
	rig_until(r, r->seen[2].closed);
	(void)close(upstream.fd);
	rig_free(r);
}

/* Fills a direction until it has been full for a while. */
static void fill(struct end *e)
{
	unsigned idle = 0;

	while (idle < 5) {
		uint64_t before = e->sent;

		send_some(e, UINT64_MAX);
		idle = e->sent == before ? idle + 1 : 0;
		if (idle)
			(void)usleep(2000);
	}
}

static void drain(struct end *from, struct end *to)
{
	uint64_t until = clock_mono_ms() + 60000;

	while (to->got < from->sent) {
		receive_some(to);
		assert_true(clock_mono_ms() < until);
	}
}

static void test_a_peer_that_stops_reading(void **state)
{
	struct rig *r = rig_new();
	struct end edge[2], upstream[2], other_edge, other_upstream;
	uint64_t before, at;

	rig_up(r, ALLOW_ALL, NULL);
	open_tunnel(r, &other_edge, &other_upstream);
	for (unsigned i = 0; i < 2; i++)
		open_tunnel(r, &edge[i], &upstream[i]);
	before = rig_memory(r, "RssAnon:");
	at = clock_mono_ms();
	while (clock_mono_ms() - at < 5000) { /* one stops at each end */
		char c;

		send_some(&edge[0], UINT64_MAX);
		send_some(&upstream[1], UINT64_MAX);
		assert_int_equal(write(other_edge.fd, "x", 1), 1);
		rig_read_all(other_upstream.fd, &c, 1);
		(void)usleep(1000);
	}
	print_message("grown by %u KiB while nobody reads\n",
		(unsigned)((rig_memory(r, "RssAnon:") - before) / 1024));
	assert_true(rig_memory(r, "RssAnon:") < before + 256 * 1024);
	drain(&edge[0], &upstream[0]);
	drain(&upstream[1], &edge[1]);
	for (unsigned i = 0; i < 2; i++)
		close_both(&edge[i], &upstream[i]);
	close_both(&other_edge, &other_upstream);
	rig_free(r);
}

/* More than the number of pipes. */
static void test_many_peers_that_stop_reading(void **state)
{
	enum { N = 100 };
	static struct end edge[N], upstream[N];
	struct rig *r = rig_new();
	uint64_t before;
	unsigned n_fds;

	rig_up(r, ALLOW_ALL, NULL);
	for (unsigned i = 0; i < N; i++)
		open_tunnel(r, &edge[i], &upstream[i]);
	before = rig_memory(r, "RssAnon:");
	n_fds = rig_n_fds(r);
	for (unsigned i = 0; i < N; i++) {
		fill(&edge[i]);
		fill(&upstream[i]);
	}
	print_message("%u stalled both ways: %u KiB, %u descriptors more\n", N,
		(unsigned)((rig_memory(r, "RssAnon:") - before) / 1024), rig_n_fds(r) - n_fds);
	assert_true(rig_memory(r, "RssAnon:") < before + 512 * 1024);
	assert_true(rig_n_fds(r) <= n_fds + 130);
	for (unsigned i = 0; i < N; i++) {
		drain(&edge[i], &upstream[i]);
		drain(&upstream[i], &edge[i]);
		close_both(&edge[i], &upstream[i]);
	}
	for (uint32_t i = 1; i <= N; i++)
		rig_until(r, r->seen[i].closed);
	assert_true(rig_n_fds(r) < n_fds);
	rig_free(r);
}

static void test_as_many_as_there_may_be(void **state)
{
	static struct end edge[EGRESS_MAX_OPEN], upstream[EGRESS_MAX_OPEN];
	struct rig *r = rig_new();
	uint64_t before, at;
	struct rig_head head;
	int fd;

	rig_up(r, ALLOW_ALL, NULL);
	before = rig_memory(r, "RssAnon:");
	at = clock_mono_ms();
	for (unsigned i = 0; i < EGRESS_MAX_OPEN; i++)
		open_tunnel(r, &edge[i], &upstream[i]);
	print_message("%u tunnels: %u ms, %u KiB + %u KiB\n", EGRESS_MAX_OPEN,
		(unsigned)(clock_mono_ms() - at), (unsigned)(before / 1024),
		(unsigned)((rig_memory(r, "RssAnon:") - before) / 1024));
	assert_true(rig_memory(r, "RssAnon:") - before < EGRESS_MAX_OPEN * 4096);
	/* one too many is rejected, and affects no other */
	fd = rig_open(r, EGRESS_TUNNEL, HOST, 443);
	assert_int_equal(rig_result(r, r->n_ids)->outcome, EGRESS_BUSY);
	rig_read_head(fd, &head);
	assert_int_equal(head.status, 502);
	(void)close(fd);
	for (unsigned i = 0; i < EGRESS_MAX_OPEN; i++) {
		char c = 0;

		assert_int_equal(write(edge[i].fd, "u", 1), 1);
		rig_read_all(upstream[i].fd, &c, 1);
		assert_int_equal(write(upstream[i].fd, "d", 1), 1);
		rig_read_all(edge[i].fd, &c, 1);
		assert_int_equal(c, 'd');
	}
	for (unsigned i = 0; i < EGRESS_MAX_OPEN; i++)
		close_both(&edge[i], &upstream[i]);
	for (uint32_t i = 1; i <= EGRESS_MAX_OPEN; i++)
		rig_until(r, r->seen[i].closed);
	/* and the slots are free again */
	open_tunnel(r, &edge[0], &upstream[0]);
	close_both(&edge[0], &upstream[0]);
	rig_free(r);
}

/* A keeper that does not read delays only itself. */
static void test_a_deaf_keeper(void **state)
{
	enum { N = 600 };
	struct rig *r = rig_new();
	struct end edge, upstream;
	unsigned n = 0;
	char c;

	rig_up(r, ALLOW_ALL, NULL);
	open_tunnel(r, &edge, &upstream);
	for (; n < N; n++) {
		struct egress_open open = {.host = "nobody.example.org", .port = 443};
		int pair[2], sent = -EAGAIN;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		for (unsigned i = 0; i < 2000 && sent == -EAGAIN; i++) {
			sent = egress_ask_open(r->keeper, r->n_ids + 1, &open, pair[1]);
			if (sent == -EAGAIN)
				(void)usleep(5000);
		}
		(void)close(pair[1]);
		(void)close(pair[0]); /* closed immediately: RESULT and CLOSED for each */
		if (sent < 0)
			break;
		r->n_ids++;
	}
	assert_int_equal(write(edge.fd, "x", 1), 1);
	rig_read_all(upstream.fd, &c, 1);
	for (uint32_t i = 2; i <= r->n_ids; i++)
		rig_until(r, r->seen[i].closed);
	print_message("%u exchanges opened towards a keeper that does not read\n", n);
	close_both(&edge, &upstream);
	rig_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_64_mib_each_way),
		TEST(test_half_close_of_each_side),
		TEST(test_early_and_last_bytes),
		TEST(test_a_reset_ends_it),
		TEST(test_a_peer_that_stops_reading),
		TEST(test_many_peers_that_stop_reading),
		TEST(test_as_many_as_there_may_be),
		TEST(test_a_deaf_keeper),
	};

	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = rig_pattern(i);
	rig_enter_world();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
