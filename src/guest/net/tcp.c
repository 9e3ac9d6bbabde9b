/* SPDX-License-Identifier: Apache-2.0 */
#include "tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/str.h"
#include "lib/wire/guestapi/guest_ctl.h"

union any_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

bool tcp_is_path(const char *path, uint16_t *ret_port)
{
	uint64_t port = 0;

	if (!str_starts(path, GUEST_PATH_TCP))
		return false;
	path += strlen(GUEST_PATH_TCP);
	if (path[0] == '0' || str_to_u64(path, 1, UINT16_MAX, &port) < 0)
		port = 0;
	*ret_port = (uint16_t)port;
	return true;
}

static struct loop_key key_of(const struct tcps *t, const struct tcp *c, uint8_t kind)
{
	return (struct loop_key){.kind = kind, .gen = c->gen, .idx = (uint32_t)(c - t->slots)};
}

static void close_fd(struct tcps *t, struct tcp *c, bool reset)
{
	const struct linger now = {.l_onoff = 1};

	if (c->in_epoll)
		loop_del(t->loop, c->fd);
	c->in_epoll = false;
	if (reset && c->fd >= 0)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	fd_close(&c->fd);
}

/* Closes the socket, with RST or in order; the caller handles the stream. */
static void release_tcp(struct tcps *t, struct tcp *c, bool reset)
{
	loop_timer_clear(t->loop, &c->timer);
	close_fd(t, c, reset);
	bufq_done(&c->queue);
	*c = (struct tcp){.fd = -1, .gen = c->gen + 1};
	t->n_used--;
}

static void give_up(struct tcps *t, struct tcp *c)
{
	if (c->id && t->wire)
		wire_reset(t->wire, c->id);
	release_tcp(t, c, true);
}

/* Sets the wanted events: errors always, the others as needed. */
static int arm_tcp(struct tcps *t, struct tcp *c)
{
	uint32_t events = !c->is_connected
				  ? EPOLLOUT
				  : (c->waits ? EPOLLIN : 0) | (bufq_len(&c->queue) ? EPOLLOUT : 0);
	int r;

	if (c->hung_up || (c->in_epoll && events == c->events))
		return 0;
	r = c->in_epoll ? loop_mod(t->loop, c->fd, events, key_of(t, c, GUEST_EV_TCP))
			: loop_add(t->loop, c->fd, events, key_of(t, c, GUEST_EV_TCP));
	c->in_epoll = c->in_epoll || r == 0;
	c->events = events;
	return r;
}

static void watch_tcp(struct tcps *t, struct tcp *c)
{
	if (arm_tcp(t, c) < 0)
		give_up(t, c);
}

/* ---- connecting ---- */

static socklen_t loopback_tcp(const struct tcp *c, union any_addr *ret)
{
	*ret = (union any_addr){0};
	if (!c->is_v6) {
		ret->v4 = (struct sockaddr_in){.sin_family = AF_INET,
			.sin_port = htons(c->port),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		return sizeof(ret->v4);
	}
	ret->v6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
		.sin6_port = htons(c->port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	return sizeof(ret->v6);
}

/* A self-connection: no program listens, and sent data is returned. */
static bool is_own_peer(int fd)
{
	union any_addr own = {0}, peer = {0};
	socklen_t n = sizeof(own), m = sizeof(peer);

	return getsockname(fd, &own.sa, &n) < 0 || getpeername(fd, &peer.sa, &m) < 0 ||
	       (n == m && memcmp(&own, &peer, n) == 0);
}

/* 0, -EINPROGRESS, or why not. */
static int begin_tcp(struct tcps *t, struct tcp *c)
{
	const int one = 1;
	union any_addr a;
	socklen_t n = loopback_tcp(c, &a);

	c->fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(c->fd, &a.sa, n) < 0)
		return -errno;
	return is_own_peer(c->fd) ? -ECONNREFUSED : 0;
}

static int wait_for(struct tcps *t, struct tcp *c)
{
	loop_timer_set(
		t->loop, &c->timer, clock_mono_ms() + TCP_CONNECT_MS, key_of(t, c, GUEST_EV_TCP));
	return arm_tcp(t, c);
}

/* Reports the connection, and sends data that arrived meanwhile. */
static int connected_tcp(struct tcps *t, struct tcp *c)
{
	loop_timer_clear(t->loop, &c->timer);
	c->is_connected = true;
	return wire_reply(t->wire, c->id, 200);
}

/* Continues after the result `r` of one address: the other one, a wait, or the end. */
static int go_on(struct tcps *t, struct tcp *c, int r)
{
	if (r < 0 && r != -EINPROGRESS && !c->is_v6) {
		close_fd(t, c, true);
		c->is_v6 = true;
		r = begin_tcp(t, c);
	}
	if (r == -EINPROGRESS)
		return wait_for(t, c);
	return r < 0 ? r : connected_tcp(t, c);
}

int tcp_open(struct tcps *t, uint32_t id, uint16_t port, uint32_t *ret_idx)
{
	struct tcp *c = t->slots;
	int r;

	while (c < t->slots + TCP_MAX && c->used)
		c++;
	if (c == t->slots + TCP_MAX || !port)
		return port ? -EBUSY : -EINVAL;
	*c = (struct tcp){.used = true, .fd = -1, .gen = c->gen + 1, .id = id, .port = port};
	bufq_init(&c->queue, WIRE_STREAM_WINDOW);
	t->n_used++;
	r = go_on(t, c, begin_tcp(t, c));
	/* The wire resets a stream that was not accepted. */
	if (r < 0)
		release_tcp(t, c, true);
	*ret_idx = (uint32_t)(c - t->slots);
	return r;
}

/* ---- bytes ---- */

ssize_t tcp_pull(struct tcps *t, uint32_t idx, uint8_t *buf, size_t n)
{
	struct tcp *c = &t->slots[idx];
	ssize_t r;

	if (!c->used)
		return -ECONNRESET;
	r = read(c->fd, buf, n);
	if (r >= 0)
		return r;
	if (errno != EAGAIN && errno != EINTR)
		return -ECONNRESET;
	c->waits = true;
	/* Not watch(): the wire must not lose the stream while it requests its data. */
	return arm_tcp(t, c) < 0 ? -ECONNRESET : -EAGAIN;
}

/* The queue is empty: forwards the end, or closes. */
static void after_last(struct tcps *t, struct tcp *c)
{
	if (!c->id)
		release_tcp(t, c, false);
	else if (c->host_ended)
		(void)shutdown(c->fd, SHUT_WR);
}

static void drain_tcp(struct tcps *t, struct tcp *c)
{
	size_t all = 0;
	ssize_t n = 1;

	while (n > 0 && bufq_len(&c->queue)) {
		n = bufq_drain(&c->queue, c->fd);
		if (n > 0)
			all += (size_t)n;
	}
	if (all && c->id)
		wire_consumed(t->wire, c->id, all);
	if (n < 0 && n != -EAGAIN) {
		give_up(t, c);
	} else if (!bufq_len(&c->queue)) {
		bufq_trim(&c->queue);
		after_last(t, c);
	}
}

void tcp_on_data(struct tcps *t, uint32_t idx, struct slice bytes)
{
	struct tcp *c = &t->slots[idx];
	ssize_t n = 0;

	if (!c->used)
		return;
	if (c->is_connected && !bufq_len(&c->queue)) {
		n = send(c->fd, bytes.p, bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			give_up(t, c);
			return;
		}
		n = n < 0 ? 0 : n;
	}
	/* The window is the queue's size, and the wire holds the host to it. */
	(void)bufq_put(&c->queue, slice_of(bytes.p + n, bytes.n - (size_t)n));
	if (n > 0)
		wire_consumed(t->wire, c->id, (size_t)n);
	watch_tcp(t, c);
}

void tcp_on_end(struct tcps *t, uint32_t idx)
{
	struct tcp *c = &t->slots[idx];

	if (!c->used)
		return;
	c->host_ended = true;
	if (c->is_connected && !bufq_len(&c->queue))
		(void)shutdown(c->fd, SHUT_WR);
}

void tcp_on_close(struct tcps *t, uint32_t idx, int error)
{
	struct tcp *c = &t->slots[idx];

	if (!c->used)
		return;
	c->id = 0;
	c->waits = false;
	if (error || !bufq_len(&c->queue))
		release_tcp(t, c, error != 0);
	else
		watch_tcp(t, c);
}

/* The kernel has an outcome, or took too long (a timer has no events). */
static void on_connect(struct tcps *t, struct tcp *c, uint32_t events)
{
	int e = ETIMEDOUT;
	socklen_t n = sizeof(e);
	int r;

	if (events && getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0)
		e = errno;
	if (e == 0 && is_own_peer(c->fd))
		e = ECONNREFUSED;
	r = go_on(t, c, -e);
	if (r < 0) {
		give_up(t, c);
		return;
	}
	if (!c->is_connected)
		return;
	if (bufq_len(&c->queue))
		drain_tcp(t, c);
	else
		after_last(t, c);
	if (c->used)
		watch_tcp(t, c);
}

void tcp_on_event(struct tcps *t, const struct loop_event *ev)
{
	struct tcp *c = &t->slots[ev->key.idx];

	if (!c->used || c->gen != ev->key.gen)
		return;
	if (!c->is_connected) {
		on_connect(t, c, ev->events);
		return;
	}
	if (ev->events & EPOLLERR && !c->waits) {
		give_up(t, c);
		return;
	}
	if (c->waits && ev->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		c->waits = false;
		wire_resume(t->wire, c->id);
	}
	if (ev->events & (EPOLLOUT | EPOLLHUP) && bufq_len(&c->queue))
		drain_tcp(t, c);
	if (!c->used)
		return;
	/* It would be reported repeatedly; pending data is read when the wire requests it. */
	if (ev->events & (EPOLLHUP | EPOLLERR)) {
		loop_del(t->loop, c->fd);
		c->in_epoll = false;
		c->hung_up = true;
	}
	watch_tcp(t, c);
}

void tcp_drop_all(struct tcps *t)
{
	for (uint32_t i = 0; i < TCP_MAX; i++)
		if (t->slots[i].used && t->slots[i].id)
			release_tcp(t, &t->slots[i], true);
}
