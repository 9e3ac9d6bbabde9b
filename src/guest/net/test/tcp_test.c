/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's end of published ports, between a wire in memory and real sockets on loopback.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "src/guest/base/event.h"
#include "src/guest/net/tcp.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define MAX_STREAMS WIRE_MAX_STREAMS

/* One stream from the host's view. */
struct seen {
	uint32_t sid;
	unsigned status;
	bool has_end, is_closed;
	int error;
	size_t n_in;
	char text[64]; /* the first bytes */
	size_t to_send, sent;
	bool end_after; /* half-close after the data to send */
	bool is_slow;	/* reads nothing */
};

static struct loop loop;
static struct net_conns tcps;
static struct wire *host, *guest;
static struct seen seen[MAX_STREAMS];
static int has_timer_fired;
static uint64_t now_ms; /* for the wire: resets are not a flood here */

/* ---- the guest's side, as service.c does it ---- */

static int guest_open(void *ctx, uint32_t id, const char *path, uint32_t *ret_slot)
{
	uint16_t port = 0;

	return tcp_is_path(path, &port) ? tcp_open(&tcps, id, port, ret_slot) : -EINVAL;
}

static void guest_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	net_conn_on_data(&tcps, slot, bytes);
}

static void guest_end(void *ctx, uint32_t id, uint32_t slot)
{
	net_conn_on_end(&tcps, slot);
}

static void guest_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
	net_conn_on_close(&tcps, slot, error);
}

static ssize_t guest_pull(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n)
{
	return net_conn_pull(&tcps, slot, buf, n);
}

static const struct wire_ops guest_ops = {.on_open = guest_open,
	.on_data = guest_data,
	.on_end = guest_end,
	.on_close = guest_close,
	.pull = guest_pull};

/* ---- the host's ---- */

static void host_reply(void *ctx, uint32_t id, uint32_t slot, unsigned status)
{
	seen[slot].status = status;
}

static void host_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	struct seen *s = &seen[slot];
	size_t n = s->n_in < sizeof(s->text) - 1 ? MIN(bytes.n, sizeof(s->text) - 1 - s->n_in) : 0;

	memcpy(s->text + MIN(s->n_in, sizeof(s->text) - 1), bytes.p, n);
	s->n_in += bytes.n;
	if (!s->is_slow)
		wire_consumed(host, id, bytes.n);
}

static void host_end(void *ctx, uint32_t id, uint32_t slot)
{
	seen[slot].has_end = true;
}

static void host_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
	seen[slot].is_closed = true;
	seen[slot].error = error;
}

static ssize_t host_pull(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n)
{
	struct seen *s = &seen[slot];
	size_t k = MIN(n, s->to_send - s->sent);

	if (k == 0)
		return s->end_after ? 0 : -EAGAIN;
	memset(buf, 'x', k);
	s->sent += k;
	return (ssize_t)k;
}

static const struct wire_ops host_ops = {.on_reply = host_reply,
	.on_data = host_data,
	.on_end = host_end,
	.on_close = host_close,
	.pull = host_pull};

/* ---- the rig ---- */

static bool carry(struct wire *from, struct wire *to)
{
	static uint8_t buf[65536];
	ssize_t n = wire_pull(from, buf, sizeof(buf));

	assert_true(n >= 0);
	if (n > 0)
		assert_int_equal(wire_feed(to, slice_of(buf, (size_t)n), now_ms += 2), 0);
	return n > 0;
}

static void on_tick(void)
{
	struct loop_event ev;

	loop_next(&loop, &ev);
	if (ev.key.kind == GUEST_EV_TCP)
		tcp_on_event(&tcps, &ev);
	else
		has_timer_fired = 1;
}

/* Runs everything that happens within a moment. */
static void run(unsigned ms)
{
	struct loop_timer timer = {0};
	uint64_t end = clock_mono_ms() + ms;

	has_timer_fired = 0;
	loop_timer_set(&loop, &timer, end, (struct loop_key){.kind = 255});
	while (!has_timer_fired) {
		while (carry(host, guest) || carry(guest, host))
			;
		on_tick();
	}
	while (carry(host, guest) || carry(guest, host))
		;
	loop_timer_clear(&loop, &timer);
}

static int up(void **state)
{
	memset(seen, 0, sizeof(seen));
	memset(&tcps, 0, sizeof(tcps));
	assert_int_equal(loop_init(&loop), 0);
	host = wire_new(WIRE_CLIENT, WIRE_CTL, &host_ops, NULL);
	guest = wire_new(WIRE_SERVER, WIRE_CTL, &guest_ops, NULL);
	tcps.loop = &loop;
	tcps.kind = GUEST_EV_TCP;
	tcps.max = TCP_MAX;
	tcps.wire = guest;
	run(1);
	return 0;
}

static int down(void **state)
{
	net_conn_drop_all(&tcps);
	assert_int_equal(tcps.n_used, 0);
	wire_free(host);
	wire_free(guest);
	loop_done(&loop);
	return 0;
}

static int listen_at(int family, const char *ip, uint16_t *ret_port)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct sockaddr *sa = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
	socklen_t n = family == AF_INET ? sizeof(v4) : sizeof(v6);

	assert_int_equal(
		inet_pton(family, ip, family == AF_INET ? (void *)&v4.sin_addr : &v6.sin6_addr), 1);
	assert_int_equal(bind(fd, sa, n), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, sa, &n), 0);
	*ret_port = ntohs(family == AF_INET ? v4.sin_port : v6.sin6_port);
	return fd;
}

static void open_stream(uint32_t slot, uint16_t port)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/tcp/%u", port);
	assert_int_equal(wire_open(host, path, slot, &seen[slot].sid), 0);
}

static size_t read_all(int fd)
{
	static char buf[65536];
	size_t all = 0;
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		all += (size_t)n;
	return all;
}

/* ---- tests ---- */

static void paths_are_strict(void **state)
{
	static const char *const bad[] = {"/tcp/", "/tcp/0", "/tcp/080", "/tcp/65536", "/tcp/-1",
		"/tcp/80/", "/tcp/ 80", "/tcp/80 ", "/tcp/99999999999999999999", "/tcp/8o"};
	uint16_t port = 7;

	assert_false(tcp_is_path("/exec", &port));
	assert_false(tcp_is_path("/tcp", &port));
	assert_true(tcp_is_path("/tcp/65535", &port));
	assert_int_equal(port, 65535);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_true(tcp_is_path(bad[i], &port));
		assert_int_equal(port, 0);
	}
	assert_int_equal(wire_open(host, "/tcp/0", 0, &seen[0].sid), 0);
	run(5);
	assert_true(seen[0].is_closed);
	assert_int_equal(seen[0].error, -ECONNRESET);
}

static void speak(int listener)
{
	AUTO_CLOSE int service = -1;
	char buf[8] = "";

	seen[0].to_send = 3;
	run(20);
	assert_int_equal(seen[0].status, 200);
	service = accept(listener, NULL, NULL);
	assert_int_equal(recv(service, buf, sizeof(buf), MSG_DONTWAIT), 3);
	assert_int_equal(send(service, "hello", 5, 0), 5);
	run(20);
	assert_string_equal(seen[0].text, "hello");
	/* The service closes first, as with HTTP/1.0; the host may still send. */
	assert_int_equal(shutdown(service, SHUT_WR), 0);
	run(20);
	assert_true(seen[0].has_end);
	assert_false(seen[0].is_closed);
	seen[0].to_send = 5;
	seen[0].end_after = true;
	wire_resume(host, seen[0].sid);
	run(20);
	assert_int_equal(recv(service, buf, sizeof(buf), MSG_DONTWAIT), 2);
	assert_int_equal(recv(service, buf, sizeof(buf), MSG_DONTWAIT), 0);
	assert_true(seen[0].is_closed);
	assert_int_equal(seen[0].error, 0);
	assert_int_equal(tcps.n_used, 0);
}

static void bytes_and_ends_pass_both_ways(void **state)
{
	uint16_t port;
	AUTO_CLOSE int listener = listen_at(AF_INET, "127.0.0.1", &port);

	open_stream(0, port);
	speak(listener);
}

static void a_service_on_every_address_is_reached(void **state)
{
	uint16_t port;
	AUTO_CLOSE int listener = listen_at(AF_INET, "0.0.0.0", &port);

	open_stream(0, port);
	speak(listener);
}

static void a_service_on_ipv6_alone_is_reached(void **state)
{
	uint16_t port;
	AUTO_CLOSE int listener = listen_at(AF_INET6, "::1", &port);

	open_stream(0, port);
	speak(listener);
}

static void the_host_ends_first(void **state)
{
	uint16_t port;
	AUTO_CLOSE int listener = listen_at(AF_INET, "127.0.0.1", &port);
	AUTO_CLOSE int service = -1;

	seen[0].end_after = true; /* before it is even connected */
	seen[0].to_send = 2;
	open_stream(0, port);
	run(20);
	service = accept(listener, NULL, NULL);
	assert_int_equal(read_all(service), 2);
	assert_int_equal(recv(service, &(char){0}, 1, MSG_DONTWAIT), 0);
	assert_false(seen[0].is_closed);
	assert_int_equal(send(service, "late", 4, 0), 4);
	fd_close(&service);
	run(20);
	assert_string_equal(seen[0].text, "late");
	assert_true(seen[0].has_end && seen[0].is_closed);
	assert_int_equal(seen[0].error, 0);
}

static void nobody_there_is_a_reset(void **state)
{
	uint16_t port;
	int listener = listen_at(AF_INET, "127.0.0.1", &port);

	fd_close(&listener);
	seen[0].to_send = 100;
	open_stream(0, port);
	run(20);
	assert_true(seen[0].is_closed);
	assert_int_equal(seen[0].error, -ECONNRESET);
	assert_int_equal(seen[0].status, 0);
	assert_int_equal(tcps.n_used, 0);
}

/* The kernel may assign a socket the very port that it connects to. It assigns every second port in
 * order, from the range of /proc/sys/net/ipv4/ip_local_port_range. */
static void nobody_is_connected_to_himself(void **state)
{
	for (int i = 0; i < 16000; i++) {
		seen[0] = (struct seen){0};
		open_stream(0, 40000);
		/* Two addresses: an event each. */
		for (int k = 0; k < 3 && !seen[0].is_closed; k++) {
			while (carry(host, guest) || carry(guest, host))
				;
			if (!seen[0].is_closed)
				on_tick();
		}
		assert_int_equal(seen[0].status, 0);
		assert_true(seen[0].is_closed);
	}
}

static void a_reset_passes_both_ways(void **state)
{
	const struct linger now = {.l_onoff = 1};
	uint16_t port;
	AUTO_CLOSE int listener = listen_at(AF_INET, "127.0.0.1", &port);
	int service;

	open_stream(0, port);
	open_stream(1, port);
	run(20);
	service = accept(listener, NULL, NULL);
	assert_int_equal(setsockopt(service, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	fd_close(&service);
	run(20);
	assert_true(seen[0].is_closed);
	assert_int_equal(seen[0].error, -ECONNRESET);

	service = accept(listener, NULL, NULL);
	wire_reset(host, seen[1].sid);
	run(20);
	assert_int_equal(recv(service, &(char){0}, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, ECONNRESET);
	fd_close(&service);
	assert_int_equal(tcps.n_used, 0);
}

static void who_does_not_read_stops_who_writes(void **state)
{
	uint16_t port;
	AUTO_CLOSE int listener = listen_at(AF_INET, "127.0.0.1", &port);
	AUTO_CLOSE int service = -1;
	static char piece[65536];
	size_t held, all = 0;
	ssize_t n;

	/* The service does not read: the host's window closes, the queue has its size. */
	seen[0].to_send = 64u << 20;
	open_stream(0, port);
	run(50);
	service = accept(listener, NULL, NULL);
	held = seen[0].sent;
	assert_true(held < 16u << 20);
	run(30);
	assert_int_equal(seen[0].sent, held);
	assert_true(bufq_len(&tcps.conns[0].queue) <= WIRE_STREAM_WINDOW);
	for (int i = 0; i < 2000 && all < 64u << 20; i++) {
		all += read_all(service);
		run(1);
	}
	assert_int_equal(all, 64u << 20);

	/* The host does not read: the service is stopped by the kernel. */
	seen[0].is_slow = true;
	for (int i = 0; i < 400; i++) {
		n = send(service, piece, sizeof(piece), MSG_DONTWAIT);
		run(1);
		if (n < 0)
			break;
	}
	assert_int_equal(n, -1);
	assert_true(seen[0].n_in <= WIRE_STREAM_WINDOW);
}

static void the_table_has_an_end(void **state)
{
	uint16_t port;
	AUTO_CLOSE int listener = listen_at(AF_INET, "127.0.0.1", &port);
	int services[MAX_STREAMS];

	for (uint32_t i = 0; i < MAX_STREAMS; i++) {
		open_stream(i, port);
		run(1);
		services[i] = accept(listener, NULL, NULL);
	}
	assert_int_equal(tcps.n_used, MAX_STREAMS);
	assert_int_equal(wire_open(host, "/tcp/1", 0, &(uint32_t){0}), -EBUSY);
	/* Edge has closed. */
	net_conn_drop_all(&tcps);
	assert_int_equal(tcps.n_used, 0);
	for (uint32_t i = 0; i < MAX_STREAMS; i++) {
		assert_int_equal(recv(services[i], &(char){0}, 1, MSG_DONTWAIT), -1);
		assert_int_equal(errno, ECONNRESET);
		fd_close(&services[i]);
	}
}

#define RIG(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG(paths_are_strict),
		RIG(bytes_and_ends_pass_both_ways),
		RIG(a_service_on_every_address_is_reached),
		RIG(a_service_on_ipv6_alone_is_reached),
		RIG(the_host_ends_first),
		RIG(nobody_there_is_a_reset),
		RIG(nobody_is_connected_to_himself),
		RIG(a_reset_passes_both_ways),
		RIG(who_does_not_read_stops_who_writes),
		RIG(the_table_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
