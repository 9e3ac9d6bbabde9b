/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/os/ipc/keeper_ports.h"

static struct ipc_msg msg;

/* What the other side gets. */
static void pass(bool answer, const struct keeper_ports *ports)
{
	int fds[2];

	assert_int_equal(ipc_pair(fds), 0);
	assert_int_equal(
		answer ? keeper_send_ports(fds[0], 7, ports) : keeper_ask_ports(fds[0], 7, ports),
		0);
	assert_int_equal(ipc_recv(fds[1], &msg), 1);
	assert_int_equal(msg.id, 7);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static struct keeper_ports full(void)
{
	struct keeper_ports ports = {.n = KEEPER_MAX_PORTS};

	for (size_t i = 0; i < ports.n; i++) {
		struct keeper_port *p = &ports.v[i];

		(void)snprintf(p->ip, sizeof(p->ip), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:%04zx", i);
		p->host_port = (uint16_t)(i * 1000);
		p->port = (uint16_t)(65535 - i);
		p->bound = i % 2 ? 0 : (uint16_t)(i + 1);
		p->code = i % 2 ? -EADDRINUSE : 0;
	}
	return ports;
}

static void a_full_list_passes_both_ways(void **state)
{
	struct keeper_ports in = full(), out = {0};

	pass(false, &in);
	assert_int_equal(keeper_get_ports(&msg, &out), 0);
	assert_int_equal(out.n, KEEPER_MAX_PORTS);
	assert_string_equal(out.v[63].ip, in.v[63].ip);
	assert_int_equal(out.v[63].host_port, 63000);
	assert_int_equal(out.v[63].port, 65535 - 63);
	assert_int_equal(out.v[63].code, 0); /* not said in a question */
	assert_int_equal(keeper_get_ports_are(&msg, &out), -EBADMSG);

	pass(true, &in);
	assert_int_equal(keeper_get_ports_are(&msg, &out), 0);
	for (size_t i = 0; i < in.n; i++) {
		assert_int_equal(out.v[i].bound, in.v[i].bound);
		assert_int_equal(out.v[i].code, in.v[i].code);
	}
	assert_int_equal(keeper_get_ports(&msg, &out), -EBADMSG);
}

static void no_ports_are_a_list_too(void **state)
{
	struct keeper_ports none = {0}, out = {.n = 9};

	pass(true, &none);
	assert_int_equal(keeper_get_ports_are(&msg, &out), 0);
	assert_int_equal(out.n, 0);
}

static void what_is_out_of_bounds_is_refused(void **state)
{
	struct keeper_ports one = {
		.n = 1, .v = {{.ip = "127.0.0.1", .host_port = 1, .port = 2, .bound = 1}}};
	struct keeper_ports out, bad;

	bad = one;
	bad.v[0].port = 0;
	pass(true, &bad);
	assert_int_equal(keeper_get_ports_are(&msg, &out), -EBADMSG);
	bad = one;
	bad.v[0].code = 1;
	pass(true, &bad);
	assert_int_equal(keeper_get_ports_are(&msg, &out), -EBADMSG);
	bad = one; /* open, but nowhere */
	bad.v[0].bound = 0;
	pass(true, &bad);
	assert_int_equal(keeper_get_ports_are(&msg, &out), -EBADMSG);
	bad = one;
	bad.v[0].ip[0] = '\n';
	pass(true, &bad);
	assert_int_equal(keeper_get_ports_are(&msg, &out), -EBADMSG);
	pass(true, &one);
	msg.body[0] = KEEPER_MAX_PORTS + 1;
	assert_int_equal(keeper_get_ports_are(&msg, &out), -EBADMSG);
	msg.body[0] = 2; /* one is missing */
	assert_int_equal(keeper_get_ports_are(&msg, &out), -EBADMSG);
	msg.body[0] = 0; /* something is left over */
	assert_int_equal(keeper_get_ports_are(&msg, &out), -EBADMSG);
	bad.n = KEEPER_MAX_PORTS + 1;
	assert_int_equal(keeper_ask_ports(-1, 0, &bad), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_list_passes_both_ways),
		cmocka_unit_test(no_ports_are_a_list_too),
		cmocka_unit_test(what_is_out_of_bounds_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
