/* SPDX-License-Identifier: Apache-2.0 */
#include "net_conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"

void net_conn_refuse(int fd)
{
	const struct linger now = {.l_onoff = 1};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(fd);
}

struct net_conn *net_conn_take(struct net_conns *c)
{
	for (uint32_t i = 0; i < c->max; i++) {
		struct net_conn *k = &c->conns[(c->first_free + i) % c->max];

		if (k->used)
			continue;
		c->first_free = (uint32_t)(k - c->conns) + 1;
		c->n_used++;
		*k = (struct net_conn){.used = true, .fd = -1, .gen = k->gen + 1};
		bufq_init(&k->queue, WIRE_STREAM_WINDOW);
		return k;
	}
	return NULL;
}

struct loop_key net_conn_key(const struct net_conns *c, const struct net_conn *k)
{
	return (struct loop_key){.kind = c->kind, .gen = k->gen, .idx = (uint32_t)(k - c->conns)};
}

void net_conn_close(struct net_conns *c, struct net_conn *k, bool reset)
{
	int fd = TAKE_FD(k->fd);

	if (k->in_epoll)
		loop_del(c->loop, fd);
	k->in_epoll = false;
	if (reset && fd >= 0)
		net_conn_refuse(fd);
	else
		fd_close(&fd);
}

void net_conn_release(struct net_conns *c, struct net_conn *k, bool reset)
{
	loop_timer_clear(c->loop, &k->timer);
	net_conn_close(c, k, reset);
	bufq_done(&k->queue);
	k->used = false;
	c->n_used--;
}

void net_conn_give_up(struct net_conns *c, struct net_conn *k)
{
	if (k->id && c->wire)
		wire_reset(c->wire, k->id);
	net_conn_release(c, k, true);
}

int net_conn_arm(struct net_conns *c, struct net_conn *k)
{
	uint32_t events = k->is_connecting
				  ? EPOLLOUT
				  : (k->waits ? EPOLLIN : 0) | (bufq_len(&k->queue) ? EPOLLOUT : 0);
	int r;

	if (k->hung_up || (k->in_epoll && events == k->events))
		return 0;
	r = k->in_epoll ? loop_mod(c->loop, k->fd, events, net_conn_key(c, k))
			: loop_add(c->loop, k->fd, events, net_conn_key(c, k));
	k->in_epoll = k->in_epoll || r == 0;
	k->events = events;
	return r;
}

static void watch_conn(struct net_conns *c, struct net_conn *k)
{
	if (net_conn_arm(c, k) < 0)
		net_conn_give_up(c, k);
}

void net_conn_open(struct net_conns *c, int fd, const char *path)
{
	const int one = 1;
	struct net_conn *k = c->wire ? net_conn_take(c) : NULL;

	if (!k) {
		net_conn_refuse(fd);
		return;
	}
	k->fd = fd;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (wire_open(c->wire, path, (uint32_t)(k - c->conns), &k->id) < 0) {
		k->id = 0;
		net_conn_give_up(c, k);
		return;
	}
	watch_conn(c, k);
}

ssize_t net_conn_pull(struct net_conns *c, uint32_t idx, uint8_t *buf, size_t n)
{
	struct net_conn *k = &c->conns[idx];
	ssize_t r;

	if (!k->used)
		return -ECONNRESET;
	r = read(k->fd, buf, n);
	if (r >= 0)
		return r;
	if (errno != EAGAIN && errno != EINTR)
		return -ECONNRESET;
	k->waits = true;
	/* Not watch_conn(): the wire must not lose the stream while it requests its data. */
	return net_conn_arm(c, k) < 0 ? -ECONNRESET : -EAGAIN;
}

/* The queue is empty: forwards the end, or closes. */
static void after_last(struct net_conns *c, struct net_conn *k)
{
	if (!k->id)
		net_conn_release(c, k, false);
	else if (k->host_ended)
		(void)shutdown(k->fd, SHUT_WR);
}

static void drain_conn(struct net_conns *c, struct net_conn *k)
{
	size_t all = 0;
	ssize_t n = 1;

	while (n > 0 && bufq_len(&k->queue)) {
		n = bufq_drain(&k->queue, k->fd);
		if (n > 0)
			all += (size_t)n;
	}
	if (all && k->id)
		wire_consumed(c->wire, k->id, all);
	if (n < 0 && n != -EAGAIN)
		net_conn_give_up(c, k);
	else if (!bufq_len(&k->queue)) {
		bufq_trim(&k->queue);
		after_last(c, k);
	}
}

void net_conn_on_data(struct net_conns *c, uint32_t idx, struct slice bytes)
{
	struct net_conn *k = &c->conns[idx];
	ssize_t n = 0;

	if (!k->used)
		return;
	if (!k->is_connecting && !bufq_len(&k->queue)) {
		n = send(k->fd, bytes.p, bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			net_conn_give_up(c, k);
			return;
		}
		n = n < 0 ? 0 : n;
	}
	/* The window has the queue's size, and the wire enforces it. */
	(void)bufq_put(&k->queue, slice_of(bytes.p + n, bytes.n - (size_t)n));
	if (n > 0)
		wire_consumed(c->wire, k->id, (size_t)n);
	watch_conn(c, k);
}

void net_conn_on_end(struct net_conns *c, uint32_t idx)
{
	struct net_conn *k = &c->conns[idx];

	if (!k->used)
		return;
	k->host_ended = true;
	if (!k->is_connecting && !bufq_len(&k->queue))
		(void)shutdown(k->fd, SHUT_WR);
}

void net_conn_on_close(struct net_conns *c, uint32_t idx, int error)
{
	struct net_conn *k = &c->conns[idx];

	if (!k->used)
		return;
	k->id = 0;
	k->waits = false;
	if (error || !bufq_len(&k->queue))
		net_conn_release(c, k, error != 0);
	else
		watch_conn(c, k);
}

void net_conn_begin(struct net_conns *c, struct net_conn *k)
{
	if (bufq_len(&k->queue))
		drain_conn(c, k);
	else
		after_last(c, k);
	if (k->used)
		watch_conn(c, k);
}

void net_conn_on_event(struct net_conns *c, const struct loop_event *ev)
{
	struct net_conn *k = &c->conns[ev->key.idx];

	if (!k->used || k->gen != ev->key.gen)
		return;
	if (ev->events & EPOLLERR && !k->waits) {
		net_conn_give_up(c, k);
		return;
	}
	if (k->waits && ev->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		k->waits = false;
		wire_resume(c->wire, k->id);
	}
	if (ev->events & (EPOLLOUT | EPOLLHUP) && bufq_len(&k->queue))
		drain_conn(c, k);
	if (!k->used)
		return;
	/* It would be reported repeatedly; pending data is read when the wire requests it. */
	if (ev->events & (EPOLLHUP | EPOLLERR)) {
		loop_del(c->loop, k->fd);
		k->in_epoll = false;
		k->hung_up = true;
	}
	watch_conn(c, k);
}

void net_conn_drop_all(struct net_conns *c)
{
	for (uint32_t i = 0; i < c->max; i++)
		if (c->conns[i].used && c->conns[i].id)
			net_conn_release(c, &c->conns[i], true);
}
