/* SPDX-License-Identifier: Apache-2.0 */
/* Connections for sbx-origin: the same checks as for a tunnel, and no copy is kept. */
#include "egress_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/test/flight_rig.h"
#include "lib/os/jail/unsealed.h"

#define ALLOW_ALL "policy 1\nallow network **:1-65535\nend\n"
#define PROXY "proxy.corp.example.com"

static int listener = -1;

static int setup(void **state)
{
	rig_dns_clear();
	(void)rig_dns_add("origin.example.com", RIG_PUBLIC);
	listener = rig_listen(443);
	return 0;
}

static int teardown(void **state)
{
	fd_close(&listener);
	return 0;
}

static void assert_quiet(void)
{
	assert_true(rig_accept(listener, 50) < 0);
}

/* The socket has the properties that sbx-origin needs, and its peer is addr. */
static void check_socket(int fd, const char *addr, uint16_t port)
{
	struct sockaddr_in peer;
	char text[INET_ADDRSTRLEN];
	socklen_t n = sizeof(peer);
	int on = 0;

	assert_int_equal(getpeername(fd, (struct sockaddr *)&peer, &n), 0);
	assert_int_equal(peer.sin_family, AF_INET);
	assert_non_null(inet_ntop(AF_INET, &peer.sin_addr, text, sizeof(text)));
	assert_string_equal(text, addr);
	assert_int_equal(ntohs(peer.sin_port), port);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	n = sizeof(on);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &n), 0);
	assert_true(on);
}

/* No more fds than before: egress has closed everything it passed on, rejected or dropped. */
static void check_nothing_left(const struct rig *r, unsigned n_fds)
{
	uint64_t end = clock_mono_ms() + 60000;

	while (rig_n_fds(r) > n_fds && clock_mono_ms() < end)
		(void)usleep(10000);
	assert_true(rig_n_fds(r) > 0 && rig_n_fds(r) <= n_fds);
}

/* Blocking from here on, so that the helpers for data can be used. */
static void make_blocking(int fd)
{
	const struct timeval wait = {.tv_sec = 60};

	assert_int_equal(fd_set_nonblock(fd, false), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
}

static void refused(struct rig *r, const char *host, enum egress_outcome outcome)
{
	struct egress_result *result;
	int fd;

	rig_open_socket(r, host, 443);
	result = rig_socket(r, &fd);
	if (result->outcome != outcome)
		fail_msg("%s: %s (%s)", host, egress_outcome_text(result->outcome), result->text);
	assert_int_equal(fd, -1);
	assert_true(result->text[0]);
}

static void given(struct rig *r, const char *host, const char *addr)
{
	struct egress_result *result;
	int fd, upstream;

	rig_open_socket(r, host, 443);
	result = rig_socket(r, &fd);
	if (result->outcome != EGRESS_CONNECTED)
		fail_msg("%s: %s", host, result->text);
	assert_string_equal(result->addr, addr);
	check_socket(fd, addr, 443);
	make_blocking(fd);
	upstream = rig_accept(listener, 60000);
	assert_true(upstream >= 0);
	rig_passes(fd, upstream);
	/* Egress holds no copy: closing our end ends the connection. */
	(void)close(fd);
	assert_true(rig_is_ended(upstream, 2000));
	(void)close(upstream);
}

static void test_the_connection_itself_is_given(void **state)
{
	struct rig *r = rig_new();
	unsigned n_fds;

	rig_up(r, "policy 1\nallow network origin.example.com\nend\n", NULL);
	given(r, "origin.example.com", RIG_PUBLIC);
	n_fds = rig_n_fds(r);
	for (unsigned i = 0; i < 20; i++)
		given(r, "origin.example.com", RIG_PUBLIC);
	check_nothing_left(r, n_fds);
	fd_close(&r->keeper);
	assert_int_equal(rig_exit(r), 0);
	rig_free(r);
}

static void test_in_all_of_its_jail(void **state)
{
	struct rig *r = rig_new_jailed();

	rig_up(r, ALLOW_ALL, NULL);
	given(r, "origin.example.com", RIG_PUBLIC);
	rig_free(r);
}

static void test_it_outlives_egress_and_the_policy(void **state)
{
	struct rig *r = rig_new();
	int fd, upstream;

	rig_up(r, ALLOW_ALL, NULL);
	rig_open_socket(r, "origin.example.com", 443);
	assert_int_equal(rig_socket(r, &fd)->outcome, EGRESS_CONNECTED);
	make_blocking(fd);
	upstream = rig_accept(listener, 60000);
	/* From then on the keeper handles it. */
	rig_policy(r, "policy 1\nend\n");
	rig_passes(fd, upstream);
	fd_close(&r->keeper);
	assert_int_equal(rig_exit(r), 0);
	rig_passes(fd, upstream);
	(void)close(fd);
	(void)close(upstream);
	rig_free(r);
}

static void test_a_denied_name_sends_no_packet(void **state)
{
	static const char *const policies[] = {
		"policy 1\nallow network other.example.com\nend\n",
		"policy 1\nallow network **\ndeny network origin.example.com\nend\n",
		"policy 1\nallow network origin.example.com:80\nend\n",
		"policy 1\nallow network origin.example.com for sandbox another\nend\n",
		"",
	};
	struct rig *r = rig_new();

	rig_up(r, "policy 1\nend\n", NULL);
	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		rig_policy(r, policies[i]);
		refused(r, "origin.example.com", EGRESS_DENIED_POLICY);
	}
	rig_policy(r, ALLOW_ALL);
	refused(r, "Origin.example.com", EGRESS_BAD_REQUEST);
	refused(r, "127.1", EGRESS_BAD_REQUEST);
	assert_int_equal(rig_dns->n_queries, 0);
	assert_quiet();
	rig_free(r);
}

/* One or two of each class; egress_test.c has them all, with the same code. */
static void test_addresses_that_lie_inside(void **state)
{
	static const char *const inside[] = {"10.0.0.1", "127.0.0.1", "169.254.169.254",
		"100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "192.0.2.1", "::1",
		"::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "fe80::1", "fd00::1",
		"ff02::1", "2001:db8::1", RIG_PUBLIC " 10.0.0.1", RIG_PUBLIC " ::1",
		"1.1.1.1 1.0.0.1 8.8.8.8 8.8.4.4 9.9.9.9 10.1.1.1"};
	struct rig *r = rig_new();
	unsigned n_fds;

	rig_up(r, ALLOW_ALL, NULL);
	refused(r, "nobody.example.com", EGRESS_NO_NAME);
	n_fds = rig_n_fds(r);
	for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
		rig_dns_clear();
		(void)rig_dns_add("inside.example.com", inside[i]);
		refused(r, "inside.example.com", EGRESS_DENIED_ADDRESS);
	}
	refused(r, "127.0.0.1", EGRESS_DENIED_POLICY);
	assert_quiet();
	check_nothing_left(r, n_fds);
	rig_free(r);
}

static void test_rebinding(void **state)
{
	struct rig_name *name = rig_dns_add("rebind.example.com", RIG_PUBLIC);
	struct rig *r = rig_new();

	name->has_later = true;
	memcpy(name->later, (const uint8_t[]){127, 0, 0, 1}, 4);
	rig_up(r, ALLOW_ALL, NULL);
	given(r, "rebind.example.com", RIG_PUBLIC);
	assert_int_equal(name->n_asked[0], 1);
	refused(r, "rebind.example.com", EGRESS_DENIED_ADDRESS);
	assert_int_equal(name->n_asked[0], 2);
	assert_quiet();
	rig_free(r);
}

static void test_pins(void **state)
{
	struct egress_config config = {.n_pins = 1,
		.pins = {{.host = "pinned.example.com",
			.port = 443,
			.addr = "127.0.0.1",
			.addr_port = 443}}};
	struct rig *r = rig_new();

	rig_up(r, ALLOW_ALL, &config);
	given(r, "pinned.example.com", "127.0.0.1");
	rig_policy(r, "policy 1\nallow network pinned.example.com:80\nend\n");
	refused(r, "pinned.example.com", EGRESS_DENIED_POLICY);
	assert_int_equal(rig_dns->n_queries, 0);
	rig_free(r);
}

static void test_a_new_policy_while_it_resolves(void **state)
{
	struct rig *r = rig_new();
	struct egress_result *result;
	unsigned n_fds;
	int fd;

	rig_dns_add("slow.example.com", RIG_PUBLIC)->silent_a = true;
	rig_up(r, ALLOW_ALL, NULL);
	n_fds = rig_n_fds(r);
	rig_open_socket(r, "slow.example.com", 443);
	(void)usleep(50000);
	rig_policy(r, "policy 1\nallow network origin.example.com\nend\n");
	assert_true(r->seen[r->n_ids].closed); /* before LOADED */
	result = rig_socket(r, &fd);
	assert_int_equal(result->outcome, EGRESS_DENIED_POLICY);
	assert_quiet();
	/* the query to the resolver has a socket until it is cancelled */
	assert_true(rig_n_fds(r) <= n_fds + 1);
	rig_free(r);
}

static void test_servers_that_are_not_there(void **state)
{
	struct rig *r = rig_new();
	int fd;

	rig_up(r, ALLOW_ALL, NULL);
	rig_open_socket(r, "origin.example.com", 4443);
	assert_int_equal(rig_socket(r, &fd)->outcome, EGRESS_REFUSED);
	assert_int_equal(fd, -1);
	rig_free(r);
}

/* ---- a company's proxy ---- */

static struct rig *rig_with_proxy(void)
{
	static const struct egress_config through_proxy = {.proxy_host = PROXY, .proxy_port = 443};
	struct rig *r = rig_new();

	(void)rig_dns_add(PROXY, "10.9.8.7");
	rig_up(r, ALLOW_ALL, &through_proxy);
	return r;
}

static void say(int fd, const char *text)
{
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void test_through_the_proxy_not_one_byte_is_lost(void **state)
{
	struct rig *r = rig_with_proxy();
	struct egress_result *result;
	char head[2048], buf[16];
	int fd, proxy;

	rig_open_socket(r, "far.example.com", 8443);
	proxy = rig_accept(listener, 60000);
	rig_read_http(proxy, head, sizeof(head));
	assert_string_equal(head, "CONNECT far.example.com:8443 HTTP/1.1\r\n"
				  "host: far.example.com:8443\r\n\r\n");
	assert_false(r->seen[1].has_result);
	/* all in one packet, after a head that is not an answer */
	say(proxy, "HTTP/1.1 100 Continue\r\n\r\n"
		   "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nfirst");
	result = rig_socket(r, &fd);
	assert_int_equal(result->outcome, EGRESS_CONNECTED);
	assert_string_equal(result->addr, "10.9.8.7");
	check_socket(fd, "10.9.8.7", 443);
	make_blocking(fd);
	rig_read_all(fd, buf, 5);
	assert_memory_equal(buf, "first", 5);
	rig_passes(fd, proxy);
	(void)close(fd);
	assert_true(rig_is_ended(proxy, 2000));
	(void)close(proxy);
	assert_int_equal(rig_dns->n_queries, 2);
	rig_free(r);
}

static void test_a_head_in_pieces(void **state)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nVia: x\r\n\r\nfirst";
	struct rig *r = rig_with_proxy();

	for (size_t cut = 1; cut < sizeof(answer) - 1; cut += 5) {
		char head[2048], buf[16];
		int fd, proxy;

		rig_open_socket(r, "far.example.com", 443);
		proxy = rig_accept(listener, 60000);
		rig_read_http(proxy, head, sizeof(head));
		assert_int_equal(write(proxy, answer, cut), (ssize_t)cut);
		(void)usleep(3000);
		say(proxy, answer + cut);
		assert_int_equal(rig_socket(r, &fd)->outcome, EGRESS_CONNECTED);
		make_blocking(fd);
		rig_read_all(fd, buf, 5);
		assert_memory_equal(buf, "first", 5);
		(void)close(fd);
		(void)close(proxy);
	}
	rig_free(r);
}

static void test_a_proxy_that_refuses(void **state)
{
	static const struct {
		const char *says;
		enum egress_outcome outcome;
	} rows[] = {
		{"HTTP/1.1 407 Authenticate\r\nContent-Length: 0\r\n\r\n", EGRESS_PROXY_LOGIN},
		{"HTTP/1.1 403 No\r\n\r\n", EGRESS_PROXY_REFUSED},
		{"HTTP/1.1 200 OK\n\n", EGRESS_PROXY_DOWN},
		{"SSH-2.0-x\r\n", EGRESS_PROXY_DOWN},
		{"", EGRESS_PROXY_DOWN},
		{"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 1\r\n\r\nx",
			EGRESS_PROXY_REFUSED},
	};
	struct rig *r = rig_with_proxy();
	unsigned n_fds = rig_n_fds(r);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char head[2048];
		int fd, proxy;

		rig_open_socket(r, "far.example.com", 443);
		proxy = rig_accept(listener, 60000);
		rig_read_http(proxy, head, sizeof(head));
		say(proxy, rows[i].says);
		(void)shutdown(proxy, SHUT_WR);
		assert_int_equal(rig_socket(r, &fd)->outcome, rows[i].outcome);
		assert_int_equal(fd, -1);
		(void)close(proxy);
	}
	/* an internal address does not reach the proxy */
	refused(r, "10.0.0.1", EGRESS_DENIED_POLICY);
	assert_quiet();
	assert_true(rig_n_fds(r) <= n_fds + 2); /* the resolver's */
	rig_free(r);
}

/* ---- a keeper that does not read, and one that violates the protocol ---- */

static void test_a_keeper_that_does_not_read(void **state)
{
	struct rig *r = rig_new();
	struct egress_open open = {
		.kind = EGRESS_SOCKET, .host = "origin.example.com", .port = 443};
	unsigned n_fds, n = 0, n_given = 0;

	rig_up(r, ALLOW_ALL, NULL);
	given(r, "origin.example.com", RIG_PUBLIC);
	n_fds = rig_n_fds(r);
	/* as many as possible without reading an answer */
	while (n < 200 && egress_ask_open(r->keeper, r->n_ids + 1, &open, -1) == 0) {
		r->n_ids++;
		n++;
	}
	(void)usleep(300000);
	for (uint32_t id = r->n_ids - n + 1; id <= r->n_ids; id++) {
		rig_until(r, r->seen[id].closed);
		assert_int_equal(r->seen[id].result.outcome, EGRESS_CONNECTED);
		assert_true(r->seen[id].fd > 0);
		(void)close(r->seen[id].fd);
		n_given++;
	}
	assert_int_equal(n_given, n);
	check_nothing_left(r, n_fds);
	rig_free(r);
}

/* Another program of the user has too many descriptors in flight. */
static void a_connection_that_cannot_be_passed_on_waits(void **state)
{
	struct rig *r = rig_new();
	int pair[2], fd, tunnel;

	rig_up(r, ALLOW_ALL, NULL);
	flight_fill(pair);
	flight_limit(r->pid);
	rig_open_socket(r, "origin.example.com", 443);
	fd = rig_accept(listener, 60000);
	assert_true(fd >= 0);
	(void)close(fd);
	/* requests without descriptors are not affected */
	tunnel = rig_connect(r, "origin.example.com", 443);
	assert_int_equal(rig_result(r, r->n_ids)->outcome, EGRESS_CONNECTED);
	(void)close(tunnel);
	assert_false(r->seen[1].has_result);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	rig_until(r, r->seen[1].has_result);
	assert_int_equal(r->seen[1].result.outcome, EGRESS_CONNECTED);
	(void)close(r->seen[1].fd);
	rig_free(r);
}

static void test_a_socket_that_comes_with_one(void **state)
{
	struct egress_open open = {
		.kind = EGRESS_SOCKET, .host = "origin.example.com", .port = 443};
	struct rig *r = rig_new();
	int fds[2];

	rig_up(r, ALLOW_ALL, NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(egress_ask_open(r->keeper, 1, &open, fds[1]), 0);
	assert_int_equal(rig_exit(r), 4);
	(void)close(fds[0]);
	(void)close(fds[1]);
	assert_quiet();
	rig_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_connection_itself_is_given),
		TEST(test_it_outlives_egress_and_the_policy),
		TEST(test_a_denied_name_sends_no_packet),
		TEST(test_addresses_that_lie_inside),
		TEST(test_rebinding),
		TEST(test_pins),
		TEST(test_a_new_policy_while_it_resolves),
		TEST(test_servers_that_are_not_there),
		TEST(test_through_the_proxy_not_one_byte_is_lost),
		TEST(test_a_head_in_pieces),
		TEST(test_a_proxy_that_refuses),
		TEST(test_a_keeper_that_does_not_read),
		TEST(a_connection_that_cannot_be_passed_on_waits),
		TEST(test_a_socket_that_comes_with_one),
	};
	/* effects of jail and seal, unless disabled: see lib/os/jail/unsealed.h */
	const struct CMUnitTest jail_tests[] = {
		TEST(test_in_all_of_its_jail),
	};
	int n_failed;

	rig_enter_world();
	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (JAIL_SEALS)
		n_failed += cmocka_run_group_tests(jail_tests, NULL, NULL);
	return n_failed;
}
