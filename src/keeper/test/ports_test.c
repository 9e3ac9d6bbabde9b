/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published ports in the keeper: real sockets, a fake edge, a fake sbxd.
 */
#include "net_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/str.h"

static struct keeper_ports seen;

static int dial(uint16_t port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	fd_close(&fd);
	return -errno;
}

/* A host port that another socket uses. */
static int occupy(uint16_t *ret)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	*ret = ntohs(sa.sin_port);
	return fd;
}

static void ask_ports(size_t n, const struct keeper_port *v)
{
	struct keeper_ports list = {.n = n};

	memcpy(list.v, v, n * sizeof(*v));
	assert_int_equal(keeper_ask_ports(rig_sbxd, 9, &list), 0);
	rig_must_get(rig_sbxd, KEEPER_PORTS_ARE);
	assert_int_equal(rig_msg.id, 9);
	assert_int_equal(keeper_get_ports_are(&rig_msg, &seen), 0);
	assert_int_equal(seen.n, n);
}

/* Publishes port 80 of the guest; returns the host port. */
static uint16_t open_one(void)
{
	const struct keeper_port p = {.ip = "127.0.0.1", .port = 80};

	ports_open(&rig_k);
	ask_ports(1, &p);
	assert_int_equal(seen.v[0].code, 0);
	return seen.v[0].bound;
}

/* Receives the OPEN of a connection; returns edge's end. */
static int must_open(uint32_t *ret_id, const char *path)
{
	char got[EDGE_MAX_PATH];

	rig_must_get(rig_edge, EDGE_OPEN);
	assert_int_equal(edge_get_open(&rig_msg, got), 0);
	assert_string_equal(got, path);
	*ret_id = rig_msg.id;
	return TAKE_FD(rig_msg.fd);
}

static int ports_down(void **state)
{
	ports_close(&rig_k);
	free(rig_k.spec.ports);
	return rig_down(state);
}

static void a_connection_goes_to_edge_and_is_no_session(void **state)
{
	AUTO_CLOSE int client = dial(open_one()), edge = -1;
	uint32_t id;
	char buf[4] = "";

	edge = must_open(&id, "/tcp/80");
	assert_int_equal(rig_k.state.sessions, 0);
	assert_int_equal(rig_k.ports->n_conns, 1);
	assert_true(rig_k.ports->last_ms > 0);
	/* It is the same connection. */
	assert_int_equal(send(client, "abc", 3, 0), 3);
	assert_int_equal(recv(edge, buf, 3, MSG_WAITALL), 3);
	assert_int_equal(edge_send_opened(rig_edge, id, 200), 0);
	assert_int_equal(chan_send_plain(rig_edge, EDGE_CLOSED, id, -1), 0);
	RIG_UNTIL(rig_k.ports->n_conns == 0);
	assert_true(rig_k.edge->worker.alive);
}

static void a_closed_with_fields_is_a_violation(void **state)
{
	AUTO_CLOSE int client = dial(open_one()), edge = -1;
	uint32_t id;

	assert_true(client >= 0);
	edge = must_open(&id, "/tcp/80");
	assert_int_equal(edge_send_opened(rig_edge, id, 200), 0);
	assert_int_equal(ipc_send(rig_edge, EDGE_CLOSED, id, slice_of("x", 1), -1), 0);
	RIG_MUST_KILL_EDGE();
}

static void what_edge_cuts_is_no_clean_end(void **state)
{
	AUTO_CLOSE int client = dial(open_one());
	uint32_t id;
	int edge = must_open(&id, "/tcp/80");
	ssize_t r;
	char c;

	assert_int_equal(send(edge, "half", 4, 0), 4);
	assert_int_equal(recv(client, &c, 1, 0), 1);
	fd_close(&edge); /* as when edge is killed */
	do {
		r = recv(client, &c, 1, 0);
	} while (r == 1);
	assert_int_equal(r, -1);
	assert_int_equal(errno, ECONNRESET);
}

static void the_spec_is_opened_and_what_fails_is_told(void **state)
{
	uint16_t taken;
	AUTO_CLOSE int other = occupy(&taken);
	struct spec_port *v = calloc(3, sizeof(*v));

	v[0] = (struct spec_port){.host_ip = "127.0.0.1", .host_port = taken, .port = 1};
	v[1] = (struct spec_port){.host_ip = "127.0.0.1", .port = 2};
	v[2] = (struct spec_port){.host_ip = "203.0.113.7", .host_port = 5555, .port = 3};
	rig_k.spec.ports = v;
	rig_k.spec.n_ports = 3;
	ports_open(&rig_k);
	rig_must_get(rig_sbxd, KEEPER_PORTS_ARE);
	assert_int_equal(rig_msg.id, 0);
	assert_int_equal(keeper_get_ports_are(&rig_msg, &seen), 0);
	assert_int_equal(seen.v[0].code, -EADDRINUSE);
	assert_int_equal(seen.v[1].code, 0);
	assert_int_equal(seen.v[2].code, -EADDRNOTAVAIL);
	assert_int_equal(seen.v[2].bound, 0);
	/* Requested again after it is free, the port opens. */
	fd_close(&other);
	ask_ports(1, seen.v);
	assert_int_equal(seen.v[0].code, 0);
	assert_int_equal(seen.v[0].bound, taken);
}

static void a_low_port_needs_what_we_have_not(void **state)
{
	const struct keeper_port p = {.ip = "127.0.0.1", .host_port = 1, .port = 80};

	if (geteuid() == 0)
		skip();
	ports_open(&rig_k);
	ask_ports(1, &p);
	assert_int_equal(seen.v[0].code, -EACCES);
}

static void a_change_leaves_the_others_open(void **state)
{
	uint16_t first = open_one(), second;
	struct keeper_port two[2] = {
		{.ip = "127.0.0.1", .port = 443}, {.ip = "127.0.0.1", .port = 80}};
	AUTO_CLOSE int client = -1, edge = -1;
	uint32_t id;

	ask_ports(2, two);
	assert_int_equal(seen.v[1].bound, first);
	second = seen.v[0].bound;
	assert_int_not_equal(second, first);
	client = dial(second);
	edge = must_open(&id, "/tcp/443");
	fd_close(&client);
	client = dial(first);
	fd_close(&edge);
	edge = must_open(&id, "/tcp/80");
	/* Unpublished: new connections are refused, existing ones stay. */
	ask_ports(1, two);
	assert_int_equal(dial(first), -ECONNREFUSED);
	assert_int_equal(send(edge, "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(rig_k.spec.n_ports, 1);
	ask_ports(0, two);
	assert_int_equal(dial(second), -ECONNREFUSED);
}

static void nothing_is_open_before_the_guest_and_after_it(void **state)
{
	const struct keeper_port p = {.ip = "127.0.0.1", .port = 80};
	uint16_t port;

	rig_k.state.phase = KEEPER_STARTING;
	ask_ports(1, &p);
	assert_int_equal(seen.v[0].code, -EINPROGRESS);
	ports_open(&rig_k); /* the guest runs: the list set meanwhile applies */
	rig_must_get(rig_sbxd, KEEPER_PORTS_ARE);
	assert_int_equal(keeper_get_ports_are(&rig_msg, &seen), 0);
	assert_int_equal(seen.v[0].code, 0);
	port = seen.v[0].bound;
	ports_close(&rig_k);
	assert_int_equal(dial(port), -ECONNREFUSED);
}

static void without_edge_who_connects_waits(void **state)
{
	uint16_t port = open_one();
	AUTO_CLOSE int client = -1, edge = -1;
	uint32_t id;

	edge_kill(&rig_k);
	client = dial(port);
	assert_true(client >= 0);
	(void)rig_run_until(-1, 50);
	assert_int_equal(rig_k.ports->n_accepted, 0);
	rig_put_edge(EDGE_PHASE_CONNECT);
	assert_int_equal(chan_send_plain(rig_edge, EDGE_READY, 0, -1), 0);
	edge = must_open(&id, "/tcp/80");
	assert_int_equal(rig_k.ports->n_conns, 1);
	edge_kill(&rig_k);
	assert_int_equal(rig_k.ports->n_conns, 0);
}

static void so_many_at_once_and_the_next_waits(void **state)
{
	uint16_t port = open_one();
	int clients[KEEPER_MAX_PORT_CONNS + 1], edges[KEEPER_MAX_PORT_CONNS];
	uint32_t ids[KEEPER_MAX_PORT_CONNS], id;
	AUTO_CLOSE int last = -1;

	for (size_t i = 0; i < KEEPER_MAX_PORT_CONNS; i++) {
		clients[i] = dial(port);
		assert_true(clients[i] >= 0);
		edges[i] = must_open(&ids[i], "/tcp/80");
	}
	clients[KEEPER_MAX_PORT_CONNS] = dial(port);
	rig_must_be_quiet(rig_edge);
	/* A user's exec still has its slot. */
	assert_int_equal(edge_open_stream(&rig_k, "/exec", dup(0), &session_stream, &id), 0);
	rig_must_get(rig_edge, EDGE_OPEN);
	assert_int_equal(edge_send_refused(rig_edge, ids[7], EDGE_REASON_GUEST), 0);
	last = must_open(&id, "/tcp/80");
	for (size_t i = 0; i < KEEPER_MAX_PORT_CONNS; i++) {
		fd_close(&clients[i]);
		fd_close(&edges[i]);
	}
	fd_close(&clients[KEEPER_MAX_PORT_CONNS]);
}

static void a_flood_is_taken_at_a_bounded_rate(void **state)
{
	uint16_t port = open_one();
	uint64_t began = clock_mono_ms(), took;
	uint32_t id;

	for (unsigned i = 0; i < 3 * KEEPER_PORT_BURST; i++) {
		int client = dial(port), edge = must_open(&id, "/tcp/80");

		assert_int_equal(edge_send_refused(rig_edge, id, EDGE_REASON_GUEST), 0);
		fd_close(&edge);
		fd_close(&client);
	}
	took = clock_mono_ms() - began;
	assert_true(took >= UINT64_C(1000) * 2 * KEEPER_PORT_BURST / KEEPER_PORT_RATE - 50);
	RIG_UNTIL(rig_k.ports->n_conns == 0);
}

static void an_address_that_is_none_drops_who_sent_it(void **state)
{
	struct keeper_ports list = {.n = 1, .v = {{.ip = "localhost", .port = 80}}};

	ports_open(&rig_k);
	assert_int_equal(keeper_ask_ports(rig_sbxd, 9, &list), 0);
	RIG_UNTIL(rig_k.links[0].fd < 0);
	assert_int_equal(rig_k.ports->n, 0);
}

/* sbxd listened while the sandbox was suspended. */
static void a_socket_of_sbxd_is_used_with_its_backlog(void **state)
{
	struct keeper_port p = {.ip = "127.0.0.1", .port = 80};
	AUTO_CLOSE int given = occupy(&p.host_port), client = dial(p.host_port), edge = -1;
	char buf[4] = "";
	uint32_t id;

	assert_int_equal(fd_set_nonblock(given, true), 0);
	assert_true(client >= 0);
	assert_int_equal(send(client, "abc", 3, 0), 3);
	ask_ports(1, &p);
	assert_int_equal(chan_send_plain(rig_sbxd, KEEPER_LISTENER, 0, given), 0);
	fd_close(&given);
	RIG_UNTIL(rig_k.ports->n_given == 1);
	ports_open(&rig_k);
	ports_watch(&rig_k); /* the guest runs */
	assert_int_equal(rig_k.ports->n_given, 0);
	assert_int_equal(rig_k.ports->list[0].port.code, 0);
	assert_int_equal(rig_k.ports->list[0].port.bound, p.host_port);
	edge = must_open(&id, "/tcp/80");
	assert_int_equal(recv(edge, buf, 3, MSG_WAITALL), 3);
	assert_string_equal(buf, "abc");
}

static bool is_closed(uint16_t port)
{
	AUTO_CLOSE int fd = dial(port);

	return fd == -ECONNREFUSED;
}

/* Of another address, or not a listening socket: the keeper opens its own. */
static void a_socket_that_is_at_no_port_is_closed(void **state)
{
	struct keeper_port p = {.ip = "127.0.0.1", .port = 80};
	uint16_t other;
	int wrong = occupy(&other), idle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fd_close(&(int){occupy(&p.host_port)}); /* a free port */
	ask_ports(1, &p);
	ports_give(&rig_k, wrong);
	ports_give(&rig_k, idle);
	ports_open(&rig_k);
	assert_int_equal(rig_k.ports->list[0].port.bound, p.host_port);
	assert_true(is_closed(other));
	assert_int_equal(fcntl(idle, F_GETFD), -1);
	wrong = occupy(&other);
	ports_give(&rig_k, wrong); /* too late */
	assert_true(is_closed(other));
}

static void a_stop_closes_the_sockets_of_sbxd(void **state)
{
	uint16_t port;

	ports_give(&rig_k, occupy(&port));
	ports_close(&rig_k);
	assert_true(is_closed(port));
}

#define PORTS_TEST(f) cmocka_unit_test_setup_teardown(f, rig_up, ports_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PORTS_TEST(a_connection_goes_to_edge_and_is_no_session),
		PORTS_TEST(a_closed_with_fields_is_a_violation),
		PORTS_TEST(what_edge_cuts_is_no_clean_end),
		PORTS_TEST(the_spec_is_opened_and_what_fails_is_told),
		PORTS_TEST(a_low_port_needs_what_we_have_not),
		PORTS_TEST(a_change_leaves_the_others_open),
		PORTS_TEST(nothing_is_open_before_the_guest_and_after_it),
		PORTS_TEST(without_edge_who_connects_waits),
		PORTS_TEST(so_many_at_once_and_the_next_waits),
		PORTS_TEST(a_flood_is_taken_at_a_bounded_rate),
		PORTS_TEST(an_address_that_is_none_drops_who_sent_it),
		PORTS_TEST(a_socket_of_sbxd_is_used_with_its_backlog),
		PORTS_TEST(a_socket_that_is_at_no_port_is_closed),
		PORTS_TEST(a_stop_closes_the_sockets_of_sbxd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
