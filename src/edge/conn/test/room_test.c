/* SPDX-License-Identifier: Apache-2.0 */
/* When a connection hears that its socket has room: only after a short send, and then always. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "src/edge/conn/conn.h"
#include "src/edge/test/net_free.h"

struct room {
	struct edge e;
	struct conn *c;
	int far, port;
};

static struct room *start(void)
{
	struct room *r = xcalloc(1, sizeof(*r));
	int pair[2], port[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, port), 0);
	assert_int_equal(loop_init(&r->e.loop), 0);
	net_start(&r->e, port[0]);
	r->port = port[1];
	/* blocking: a call of edge that waits would never return */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	r->c = conn_new(&r->e, CONN_TCP, 1);
	r->far = pair[1];
	assert_int_equal(conn_take_fd(&r->e, r->c, pair[0]), 0);
	return r;
}

static void stop(struct room *r)
{
	r->c->sid = 0;
	net_free(&r->e);
	loop_done(&r->e.loop);
	(void)close(r->far);
	(void)close(r->port);
	free(r);
}

/* The events that are there now. */
static uint32_t heard(struct room *r)
{
	struct pollfd p = {.fd = r->e.loop.epfd, .events = POLLIN};
	struct loop_event ev;

	if (poll(&p, 1, 0) == 0)
		return 0;
	loop_next(&r->e.loop, &ev);
	assert_int_equal(ev.key.kind, EDGE_EV_CONN);
	return ev.events;
}

static void fill(struct room *r)
{
	static const char bytes[4096];

	while (send(r->c->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	assert_int_equal(errno, EAGAIN);
}

static void empty(struct room *r)
{
	static char bytes[65536];

	while (recv(r->far, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(errno, EAGAIN);
}

static void nothing_is_heard_while_all_is_sent(void **state)
{
	struct room *r = start();

	assert_int_equal(heard(r), 0);
	assert_int_equal(send(r->c->fd, "request", 7, MSG_DONTWAIT), 7);
	empty(r);
	assert_int_equal(heard(r), 0);
	assert_int_equal(send(r->far, "answer", 6, 0), 6);
	assert_int_equal(heard(r), EPOLLIN);
	stop(r);
}

static void room_is_heard_after_a_short_send(void **state)
{
	struct room *r = start();

	for (unsigned i = 0; i < 3; i++) {
		fill(r);
		conn_want_room(&r->e, r->c);
		assert_int_equal(heard(r), 0);
		empty(r);
		assert_int_equal(heard(r), EPOLLOUT);
	}
	conn_ignore_room(&r->e, r->c);
	assert_int_equal(send(r->c->fd, "more", 4, MSG_DONTWAIT), 4);
	empty(r);
	assert_int_equal(heard(r), 0);
	stop(r);
}

/* The peer reads between the short send and the registration: no later read reports the room. */
static void room_that_was_made_before_is_heard(void **state)
{
	struct room *r = start();

	for (unsigned i = 0; i < 3; i++) {
		fill(r);
		empty(r);
		conn_want_room(&r->e, r->c);
		assert_int_equal(heard(r), EPOLLOUT);
		conn_ignore_room(&r->e, r->c);
		assert_int_equal(heard(r), 0);
	}
	stop(r);
}

/* Registering changes no report of input, and a new socket begins without it. */
static void input_and_a_new_socket(void **state)
{
	struct room *r = start();
	int pair[2];

	fill(r);
	conn_want_room(&r->e, r->c);
	assert_int_equal(send(r->far, "answer", 6, 0), 6);
	assert_int_equal(heard(r), EPOLLIN);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(conn_take_fd(&r->e, r->c, pair[0]), 0);
	assert_int_equal(heard(r), 0);
	(void)close(r->far);
	r->far = pair[1];
	fill(r);
	empty(r);
	conn_want_room(&r->e, r->c);
	assert_int_equal(heard(r), EPOLLOUT);
	stop(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_heard_while_all_is_sent),
		cmocka_unit_test(room_is_heard_after_a_short_send),
		cmocka_unit_test(room_that_was_made_before_is_heard),
		cmocka_unit_test(input_and_a_new_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
