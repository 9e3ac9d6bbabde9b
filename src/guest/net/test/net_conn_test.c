/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of programs of the guest, between real sockets on loopback and a wire in memory.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "src/guest/net/net_conn.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define EV_CONN 1

static struct loop loop;
static struct net_conns conns;
static struct wire *host, *guest;
static uint64_t now_ms;
/* The stream as the host sees it. */
static struct {
	char path[WIRE_MAX_PATH], text[64];
	size_t n;
	bool has_end, is_closed;
	int error;
} seen;

/* ---- the host's side ---- */

static int host_open(void *ctx, uint32_t id, const char *path, uint32_t *ret_slot)
{
	(void)strncpy(seen.path, path, sizeof(seen.path) - 1);
	*ret_slot = 0;
	return wire_reply(host, id, 200);
}

static void host_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	assert_true(seen.n + bytes.n < sizeof(seen.text));
	memcpy(seen.text + seen.n, bytes.p, bytes.n);
	seen.n += bytes.n;
	wire_consumed(host, id, bytes.n);
}

static void host_end(void *ctx, uint32_t id, uint32_t slot)
{
	seen.has_end = true;
}

static void host_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
	seen.is_closed = true;
	seen.error = error;
}

static ssize_t host_pull(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n)
{
	return -EAGAIN;
}

static const struct wire_ops host_ops = {.on_open = host_open,
	.on_data = host_data,
	.on_end = host_end,
	.on_close = host_close,
	.pull = host_pull};

/* ---- the guest's side, as net.c does it ---- */

static void guest_reply(void *ctx, uint32_t id, uint32_t slot, unsigned status)
{
}

static void guest_data(void *ctx, uint32_t id, uint32_t slot, struct slice bytes)
{
	net_conn_on_data(&conns, slot, bytes);
}

static void guest_end(void *ctx, uint32_t id, uint32_t slot)
{
	net_conn_on_end(&conns, slot);
}

static void guest_close(void *ctx, uint32_t id, uint32_t slot, int error)
{
	net_conn_on_close(&conns, slot, error);
}

static ssize_t guest_pull(void *ctx, uint32_t id, uint32_t slot, uint8_t *buf, size_t n)
{
	return net_conn_pull(&conns, slot, buf, n);
}

static const struct wire_ops guest_ops = {.on_reply = guest_reply,
	.on_data = guest_data,
	.on_end = guest_end,
	.on_close = guest_close,
	.pull = guest_pull};

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

static void carry_all(void)
{
	while (carry(guest, host) || carry(host, guest))
		;
}

/* One event of a connection, and everything that follows from it. */
static void on_tick(void)
{
	struct loop_event ev;

	loop_next(&loop, &ev);
	assert_int_equal(ev.key.kind, EV_CONN);
	net_conn_on_event(&conns, &ev);
	carry_all();
}

static int up(void **state)
{
	memset(&seen, 0, sizeof(seen));
	memset(&conns, 0, sizeof(conns));
	assert_int_equal(loop_init(&loop), 0);
	host = wire_new(WIRE_SERVER, WIRE_NET, &host_ops, NULL);
	guest = wire_new(WIRE_CLIENT, WIRE_NET, &guest_ops, NULL);
	conns.loop = &loop;
	conns.wire = guest;
	conns.kind = EV_CONN;
	conns.max = 2;
	carry_all();
	return 0;
}

static int down(void **state)
{
	net_conn_drop_all(&conns);
	assert_int_equal(conns.n_used, 0);
	wire_free(host);
	wire_free(guest);
	loop_done(&loop);
	return 0;
}

/* The program's end; the other one is a stream. */
static int connect_program(void)
{
	AUTO_CLOSE int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int program = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(sa);

	assert_int_equal(bind(listener, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&sa, &n), 0);
	assert_int_equal(connect(program, (struct sockaddr *)&sa, n), 0);
	net_conn_open(
		&conns, accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), "/proxy");
	carry_all();
	return program;
}

/* ---- tests ---- */

static void bytes_that_come_before_a_reset_reach_the_host(void **state)
{
	int program = connect_program();

	assert_string_equal(seen.path, "/proxy");
	assert_int_equal(send(program, "last words", 10, 0), 10);
	net_conn_refuse(program); /* a close with RST */
	on_tick();
	assert_string_equal(seen.text, "last words");
	/* and it does not look complete */
	assert_false(seen.has_end);
	assert_true(seen.is_closed);
	assert_int_equal(seen.error, -ECONNRESET);
	assert_int_equal(conns.n_used, 0);
}

static void a_program_may_end_its_direction_alone(void **state)
{
	AUTO_CLOSE int program = connect_program();

	assert_int_equal(send(program, "GET", 3, 0), 3);
	assert_int_equal(shutdown(program, SHUT_WR), 0);
	on_tick();
	assert_string_equal(seen.text, "GET");
	assert_true(seen.has_end);
	assert_false(seen.is_closed);
}

static void a_connection_too_many_is_reset(void **state)
{
	AUTO_CLOSE int first = connect_program(), second = connect_program();
	AUTO_CLOSE int third = connect_program();

	assert_int_equal(conns.n_used, 2);
	assert_int_equal(recv(third, &(char){0}, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(recv(first, &(char){0}, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(recv(second, &(char){0}, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

#define RIG(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG(bytes_that_come_before_a_reset_reach_the_host),
		RIG(a_program_may_end_its_direction_alone),
		RIG(a_connection_too_many_is_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
