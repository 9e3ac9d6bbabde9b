/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port against a simulated kernel, on the host, without a VM: notices about the host's presence
 * use another queue than its data, so the two arrive in any order. read, poll and write of this fd
 * are replaced (meson.build wraps them); the host's end is a real session.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "src/guest/net/port.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define QUEUE 65536

struct bytes {
	uint8_t p[QUEUE];
	size_t n;
};

static struct {
	int fd;
	bool host_connected; /* presence of the host according to the kernel */
	struct bytes to_guest, to_host;
} kernel = {.fd = -1};

struct end {
	struct wire *wire;
	bool ready;
};

struct rig {
	struct loop loop;
	struct port port;
	struct end guest, host;
	unsigned begun, ended;
};

/* ---- the kernel ---- */

ssize_t __real_read(int fd, void *p, size_t n);
ssize_t __real_write(int fd, const void *p, size_t n);
int __real_poll(struct pollfd *fds, nfds_t n, int ms);
ssize_t __wrap_read(int fd, void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);

ssize_t __wrap_read(int fd, void *p, size_t n)
{
	struct bytes *b = &kernel.to_guest;

	if (fd != kernel.fd)
		return __real_read(fd, p, n);
	if (b->n == 0 && kernel.host_connected)
		errno = EAGAIN;
	if (b->n == 0)
		return kernel.host_connected ? -1 : 0;
	n = n < b->n ? n : b->n;
	memcpy(p, b->p, n);
	b->n -= n;
	memmove(b->p, b->p + n, b->n);
	return (ssize_t)n;
}

ssize_t __wrap_write(int fd, const void *p, size_t n)
{
	struct bytes *b = &kernel.to_host;

	if (fd != kernel.fd)
		return __real_write(fd, p, n);
	if (!kernel.host_connected) {
		errno = EAGAIN;
		return -1;
	}
	assert_true(n <= QUEUE - b->n);
	memcpy(b->p + b->n, p, n);
	b->n += n;
	return (ssize_t)n;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	if (n != 1 || fds->fd != kernel.fd)
		return __real_poll(fds, n, ms);
	fds->revents = (short)((kernel.to_guest.n ? POLLIN : 0) |
			       (kernel.host_connected ? POLLOUT : POLLHUP));
	return 1;
}

/* ---- the two ends ---- */

static void on_ready(void *ctx)
{
	((struct end *)ctx)->ready = true;
}

static const struct wire_ops ops = {.on_ready = on_ready};

static void on_session(void *ctx, struct wire *w)
{
	struct rig *r = (struct rig *)((char *)ctx - offsetof(struct rig, guest));

	r->guest.ready = false;
	if (w)
		r->begun++;
	else
		r->ended++;
}

/* A host, or its replacement: its first data is in transit. */
static void host_comes(struct rig *r)
{
	struct bytes *b = &kernel.to_guest;
	ssize_t n;

	wire_free(TAKE(r->host.wire));
	r->host.ready = false;
	r->host.wire = wire_new(r->port.role == WIRE_CLIENT ? WIRE_SERVER : WIRE_CLIENT,
		r->port.kind, &ops, &r->host);
	while ((n = wire_pull(r->host.wire, b->p + b->n, QUEUE - b->n)) > 0)
		b->n += (size_t)n;
	kernel.to_host.n = 0;
}

static void turn(struct rig *r)
{
	if (r->port.in_epoll)
		port_on_event(&r->port, kernel.host_connected ? EPOLLIN : EPOLLIN | EPOLLHUP);
	if (r->port.probe.pos) {
		loop_timer_clear(&r->loop, &r->port.probe);
		port_on_probe(&r->port);
	}
	port_pump(&r->port);
}

/* The host reads and sends what it can; false if its session is broken. */
static bool host_turn(struct rig *r)
{
	struct bytes *in = &kernel.to_host, *out = &kernel.to_guest;
	ssize_t n;

	if (wire_feed(r->host.wire, slice_of(in->p, in->n), 0) < 0)
		return false;
	in->n = 0;
	while ((n = wire_pull(r->host.wire, out->p + out->n, QUEUE - out->n)) > 0)
		out->n += (size_t)n;
	return n == 0;
}

static void must_be_ready(struct rig *r)
{
	for (int i = 0; i < 10; i++) {
		turn(r);
		assert_true(host_turn(r));
	}
	assert_true(r->guest.ready && r->host.ready);
}

static struct rig *rig_new(enum wire_role role, enum wire_port kind)
{
	struct rig *r = xcalloc(1, sizeof(*r));

	kernel.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	kernel.host_connected = true;
	kernel.to_guest.n = kernel.to_host.n = 0;
	assert_true(kernel.fd >= 0);
	assert_int_equal(loop_init(&r->loop), 0);
	r->port = (struct port){.name = "played",
		.role = role,
		.kind = kind,
		.ops = &ops,
		.ctx = &r->guest,
		.on_session = on_session};
	host_comes(r);
	port_start(&r->port, &r->loop, kernel.fd);
	must_be_ready(r);
	assert_int_equal(r->begun, 1);
	return r;
}

static void rig_free(struct rig *r)
{
	wire_free(r->port.wire);
	wire_free(r->host.wire);
	loop_done(&r->loop);
	fd_close(&kernel.fd);
	free(r);
}

/* ---- events ---- */

static void host_leaves(struct rig *r)
{
	kernel.host_connected = false;
	turn(r);
	assert_int_equal(r->ended, 1);
	assert_null(r->port.wire);
}

/* Regression: first data before the notice of its presence was lost, and with it ten seconds. */
static void first_bytes_before_the_hang_up_ends(enum wire_role role, enum wire_port kind)
{
	struct rig *r = rig_new(role, kind);

	host_leaves(r);
	host_comes(r);
	for (int i = 0; i < 3; i++)
		turn(r);
	kernel.host_connected = true;
	must_be_ready(r);
	/* One session got the data that waited for the host, and still exists. */
	assert_int_equal(r->ended, 1);
	assert_int_equal(r->begun, 2);
	rig_free(r);
}

static void net_first_bytes(void **state)
{
	first_bytes_before_the_hang_up_ends(WIRE_CLIENT, WIRE_NET);
}

static void ctl_first_bytes(void **state)
{
	first_bytes_before_the_hang_up_ends(WIRE_SERVER, WIRE_CTL);
}

/* The kernel reports that the old host left after the new one has sent data. */
static void hang_up_after_the_next_hosts_first_bytes(void **state)
{
	struct rig *r = rig_new(WIRE_CLIENT, WIRE_NET);

	host_comes(r);
	turn(r);
	assert_int_equal(r->begun, 2);
	kernel.host_connected = false;
	for (int i = 0; i < 3; i++)
		turn(r);
	kernel.host_connected = true;
	must_be_ready(r);
	assert_int_equal(r->begun, 2);
	rig_free(r);
}

/* It sent data and left: its session is not kept, and the next one finds a clean port. */
static void came_and_went(void **state)
{
	const struct timespec pause = {.tv_sec = PORT_PAUSE_MS / 1000, .tv_nsec = 50000000};
	struct rig *r = rig_new(WIRE_CLIENT, WIRE_NET);

	host_leaves(r);
	host_comes(r);
	for (int i = 0; i < 3; i++)
		turn(r);
	assert_non_null(r->port.wire);
	(void)nanosleep(&pause, NULL);
	turn(r);
	assert_null(r->port.wire);
	assert_int_equal(r->ended, 2);
	kernel.host_connected = true;
	host_comes(r);
	must_be_ready(r);
	assert_int_equal(r->begun, 3);
	rig_free(r);
}

/* And another host connects before that is noticed. */
static void came_and_went_and_another_came(void **state)
{
	struct rig *r = rig_new(WIRE_CLIENT, WIRE_NET);

	host_leaves(r);
	host_comes(r);
	for (int i = 0; i < 3; i++)
		turn(r);
	host_comes(r);
	kernel.host_connected = true;
	must_be_ready(r);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(net_first_bytes),
		cmocka_unit_test(ctl_first_bytes),
		cmocka_unit_test(hang_up_after_the_next_hosts_first_bytes),
		cmocka_unit_test(came_and_went),
		cmocka_unit_test(came_and_went_and_another_came),
	};

	cmocka_set_message_output(CM_OUTPUT_STDOUT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
