/* SPDX-License-Identifier: Apache-2.0 */
#include "tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include "lib/base/clock.h"
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

static socklen_t loopback_tcp(const struct net_conn *c, union any_addr *ret)
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

/* Returns 0, -EINPROGRESS, or an error. */
static int begin_tcp(struct net_conn *c)
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

static int wait_for(struct net_conns *t, struct net_conn *c)
{
	loop_timer_set(t->loop, &c->timer, clock_mono_ms() + TCP_CONNECT_MS, net_conn_key(t, c));
	return net_conn_arm(t, c);
}

/* Reports the connection, and sends data that arrived meanwhile. */
static int connected_tcp(struct net_conns *t, struct net_conn *c)
{
	loop_timer_clear(t->loop, &c->timer);
	c->is_connecting = false;
	return wire_reply(t->wire, c->id, 200);
}

/* Continues after the result `r` of one address: the other one, a wait, or the end. */
static int go_on(struct net_conns *t, struct net_conn *c, int r)
{
	if (r < 0 && r != -EINPROGRESS && !c->is_v6) {
		net_conn_close(t, c, true);
		c->is_v6 = true;
		r = begin_tcp(c);
	}
	if (r == -EINPROGRESS)
		return wait_for(t, c);
	return r < 0 ? r : connected_tcp(t, c);
}

int tcp_open(struct net_conns *t, uint32_t id, uint16_t port, uint32_t *ret_idx)
{
	struct net_conn *c = port ? net_conn_take(t) : NULL;
	int r;

	if (!c)
		return port ? -EBUSY : -EINVAL;
	c->id = id;
	c->port = port;
	c->is_connecting = true;
	r = go_on(t, c, begin_tcp(c));
	/* The wire resets a stream that was not accepted. */
	if (r < 0)
		net_conn_release(t, c, true);
	*ret_idx = (uint32_t)(c - t->conns);
	return r;
}

/* The kernel has a result, or took too long (a timer has no events). */
static void on_connect(struct net_conns *t, struct net_conn *c, uint32_t events)
{
	int e = ETIMEDOUT;
	socklen_t n = sizeof(e);
	int r;

	if (events && getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0)
		e = errno;
	if (e == 0 && is_own_peer(c->fd))
		e = ECONNREFUSED;
	r = go_on(t, c, -e);
	if (r < 0)
		net_conn_give_up(t, c);
	else if (!c->is_connecting)
		net_conn_begin(t, c);
}

void tcp_on_event(struct net_conns *t, const struct loop_event *ev)
{
	struct net_conn *c = &t->conns[ev->key.idx];

	if (c->used && c->gen == ev->key.gen && c->is_connecting)
		on_connect(t, c, ev->events);
	else
		net_conn_on_event(t, ev);
}
