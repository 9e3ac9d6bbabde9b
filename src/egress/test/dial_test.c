/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that the server closes between the two checks of it. */
#include "src/egress/egress.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/os/jail/profiles.h"
#include "lib/rules/policy/test/policy_text.h"

#define ALLOW "policy 1\nallow network 127.0.0.1:1-65535\nend\n"

static struct egress e;
static int keeper = -1;

static int set_up(void **state)
{
	int pair[2];

	assert_int_equal(ipc_pair(pair), 0);
	keeper = fcntl(pair[0], F_DUPFD_CLOEXEC, 10);
	assert_int_equal(dup2(pair[1], CONTROL_FD), CONTROL_FD);
	e = (struct egress){.ops = &exchange_ops,
		.exchanges = xcalloc(EGRESS_SLOTS, sizeof(*e.exchanges)),
		.inbox = POLICY_INBOX_EMPTY,
		.idle_pipe = {-1, -1}};
	assert_int_equal(loop_init(&e.loop), 0);
	e.policy = policy_load(slice_from_str(ALLOW), "policy", "demo");
	assert_null(policy_fault(e.policy));
	return 0;
}

static int tear_down(void **state)
{
	policy_free(e.policy);
	free(e.exchanges);
	loop_done(&e.loop);
	(void)close(CONTROL_FD);
	fd_close(&keeper);
	return 0;
}

/* A socket that was connected and reset, and whose error was already read. */
static int reset_socket(uint16_t *ret_port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger now = {.l_onoff = 1};
	AUTO_CLOSE int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), server, err = 0;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	socklen_t n = sizeof(at), m = sizeof(err);

	assert_int_equal(bind(listener, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &n), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, n), 0);
	server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(setsockopt(server, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	(void)close(server);
	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &m), 0);
	assert_true(err);
	*ret_port = ntohs(at.sin_port);
	return fd;
}

static void a_server_that_resets_at_once_is_not_denied_by_a_rule(void **state)
{
	static const uint8_t loopback[4] = {127, 0, 0, 1};
	static struct ipc_msg msg;
	struct exchange *x = &e.exchanges[0];
	struct egress_result result;
	struct dial *d = xcalloc(1, sizeof(*d));

	*x = (struct exchange){.state = EXCHANGE_DIALING,
		.kind = EGRESS_SOCKET,
		.id = 7,
		.edge_fd = -1,
		.upstream_fd = -1,
		.given_fd = -1,
		.dial = d,
		.way = {{.pipe = {-1, -1}}, {.pipe = {-1, -1}}}};
	e.n_open = 1;
	assert_int_equal(host_from_wire(slice_from_str("127.0.0.1"), &x->host, NULL), 0);
	*d = (struct dial){.n = 1,
		.next = 1,
		.addr = {addr_from_v4(loopback)},
		.fd = {-1, -1, -1, -1},
		.failure = EGRESS_N_OUTCOMES,
		.all_until = clock_mono_ms() + 60000};
	d->fd[0] = reset_socket(&d->port);
	x->port = d->port;
	assert_int_equal(
		loop_add(&e.loop, d->fd[0], EPOLLOUT, (struct loop_key){.kind = EGRESS_EV_DIAL}),
		0);
	dial_on_event(&e, (struct loop_event){.key = {.kind = EGRESS_EV_DIAL}, .events = EPOLLOUT});
	assert_int_equal(ipc_recv(keeper, &msg), 1);
	assert_int_equal(egress_get_result(&msg, &result), 0);
	if (result.outcome != EGRESS_UNREACHABLE)
		fail_msg("%s", result.text);
}

/* Regression YN4: without one, the next exchange arrived without its socket, and egress exited. */
static void there_is_a_descriptor_for_each_try_of_each_exchange(void **state)
{
	const rlim_t exchanges = EGRESS_SLOTS * (1 + EGRESS_DIALS), pipes = 2 * EGRESS_PIPES;

	assert_true(jail_row(JAIL_EGRESS)->limit.nofile >= exchanges + pipes + 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_server_that_resets_at_once_is_not_denied_by_a_rule, set_up, tear_down),
		cmocka_unit_test(there_is_a_descriptor_for_each_try_of_each_exchange),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
