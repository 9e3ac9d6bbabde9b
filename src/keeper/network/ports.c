/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/policy/addr.h"

bool ports_is_live(const struct keeper *k, struct loop_key key)
{
	return k->ports->list[key.idx].fd >= 0 && k->ports->list[key.idx].gen == key.gen;
}

void ports_init(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_PORTS; i++)
		k->ports->list[i].fd = -1;
}

static int bound_port(int fd, uint16_t *ret)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = {0};
	socklen_t n = sizeof(a);

	if (getsockname(fd, &a.sa, &n) < 0)
		return -errno;
	*ret = ntohs(a.sa.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
	return 0;
}

/* ---- sockets of sbxd ---- */

void ports_give(struct keeper *k, int fd)
{
	struct ports *s = k->ports;

	if (!s->is_open && s->n_given < ARRAY_LEN(s->given))
		s->given[s->n_given++] = fd;
	else
		fd_close(&fd);
}

static void close_given(struct ports *s)
{
	while (s->n_given)
		fd_close(&s->given[--s->n_given]);
}

static int take_given(struct ports *s, const struct spec_port *p)
{
	for (size_t i = 0; i < s->n_given; i++)
		if (spec_port_is_at(p, s->given[i])) {
			int fd = s->given[i];

			s->given[i] = s->given[--s->n_given];
			return fd;
		}
	return -1;
}

/* Returns a listening fd, or a negative errno. */
static int make_listener(struct ports *s, struct keeper_port *p)
{
	struct spec_port port = {.host_port = p->host_port};
	AUTO_CLOSE int fd = -1;
	int r;

	(void)!str_copy(port.host_ip, sizeof(port.host_ip), p->ip);
	fd = take_given(s, &port);
	if (fd < 0)
		fd = spec_port_listen(&port, KEEPER_PORT_BACKLOG);
	r = fd < 0 ? fd : bound_port(fd, &p->bound);
	return r < 0 ? r : TAKE_FD(fd);
}

static void close_one(struct keeper *k, struct listener *l, int code)
{
	if (l->is_watched)
		loop_del(&k->loop, l->fd);
	l->is_watched = false;
	fd_close(&l->fd);
	l->gen = (l->gen + 1) & 0xffffff;
	l->port.bound = 0;
	l->port.code = code;
}

static void open_one(struct ports *s, struct listener *l)
{
	struct keeper_port *p = &l->port;
	int r;

	if (l->fd >= 0)
		return;
	r = make_listener(s, p);
	l->fd = r < 0 ? -1 : r;
	p->code = r < 0 ? r : 0;
	if (r < 0)
		p->bound = 0;
	if (r < 0)
		log_warn("cannot publish port %s:%u: %s", p->ip, p->host_port, strerror(-r));
	else
		log_info("published port %s:%u for %u", p->ip, p->bound, p->port);
}

static bool is_same(const struct keeper_port *a, const struct keeper_port *b)
{
	return a->host_port == b->host_port && a->port == b->port && strcmp(a->ip, b->ip) == 0;
}

/* Moves an open port to its slot in a new list. */
static void take_over(struct listener *to, struct listener *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (from[i].fd < 0 || !is_same(&from[i].port, &to->port))
			continue;
		to->fd = TAKE_FD(from[i].fd);
		to->port = from[i].port;
		to->is_watched = from[i].is_watched;
		return;
	}
}

static void put_ports(struct keeper *k, const struct keeper_ports *wanted)
{
	struct ports *s = k->ports;
	static struct listener old[KEEPER_MAX_PORTS];
	size_t n_old = s->n;

	memcpy(old, s->list, sizeof(old));
	s->n = wanted->n;
	for (size_t i = 0; i < KEEPER_MAX_PORTS; i++) {
		struct listener *l = &s->list[i];

		*l = (struct listener){.fd = -1, .gen = (old[i].gen + 1) & 0xffffff};
		if (i >= s->n)
			continue;
		l->port = wanted->v[i];
		l->port.bound = 0;
		l->port.code = -EINPROGRESS;
		take_over(l, old, n_old);
		/* Its key contains its index in the list. */
		if (l->is_watched)
			loop_del(&k->loop, l->fd);
		l->is_watched = false;
	}
	for (size_t i = 0; i < n_old; i++)
		if (old[i].fd >= 0)
			close_one(k, &old[i], 0);
	/* Closes all first, so that an address can be reused. */
	for (size_t i = 0; s->is_open && i < s->n; i++)
		open_one(s, &s->list[i]);
}

void ports_open(struct keeper *k)
{
	struct keeper_ports wanted = {.n = MIN(k->spec.n_ports, (size_t)KEEPER_MAX_PORTS)};

	if (k->ports->is_open)
		return;
	for (size_t i = 0; i < wanted.n; i++) {
		const struct spec_port *p = &k->spec.ports[i];

		(void)!str_copy(wanted.v[i].ip, sizeof(wanted.v[i].ip), p->host_ip);
		wanted.v[i].host_port = p->host_port;
		wanted.v[i].port = p->port;
	}
	k->ports->is_open = true;
	put_ports(k, &wanted);
	close_given(k->ports);
	if (wanted.n)
		link_push_all(k, NULL, ports_send);
}

int ports_set(struct keeper *k, const struct keeper_ports *wanted)
{
	struct spec_port *list;
	struct addr addr;

	for (size_t i = 0; i < wanted->n; i++)
		if (addr_parse(slice_from_str(wanted->v[i].ip), &addr) < 0)
			return -EBADMSG;
	/* Ports that are not open yet are copied from the spec. */
	list = wanted->n ? xcalloc(wanted->n, sizeof(*list)) : NULL;
	for (size_t i = 0; i < wanted->n; i++) {
		(void)!str_copy(list[i].host_ip, sizeof(list[i].host_ip), wanted->v[i].ip);
		list[i].host_port = wanted->v[i].host_port;
		list[i].port = wanted->v[i].port;
	}
	free(k->spec.ports);
	k->spec.ports = list;
	k->spec.n_ports = wanted->n;
	put_ports(k, wanted);
	ports_watch(k);
	return 0;
}

void ports_close(struct keeper *k)
{
	loop_timer_clear(&k->loop, &k->ports->timer);
	close_given(k->ports);
	for (size_t i = 0; i < k->ports->n; i++)
		close_one(k, &k->ports->list[i], -EINPROGRESS);
	k->ports->is_open = false;
}

int ports_send(struct keeper *k, int sock, uint32_t id)
{
	static struct keeper_ports now;

	now.n = k->ports->n;
	for (size_t i = 0; i < now.n; i++)
		now.v[i] = k->ports->list[i].port;
	return keeper_send_ports(sock, id, &now);
}

/* Time at which the next connection may be accepted: a bucket of KEEPER_PORT_BURST. */
static uint64_t next_ms(const struct ports *s)
{
	const uint64_t burst_us = UINT64_C(1000000) * KEEPER_PORT_BURST / KEEPER_PORT_RATE;

	return s->spent_us > burst_us ? (s->spent_us - burst_us) / 1000 : 0;
}

static void spend_token(struct ports *s)
{
	uint64_t now_us = clock_mono_ms() * 1000;

	s->spent_us = MAX(s->spent_us, now_us) + 1000000 / KEEPER_PORT_RATE;
}

/* Edge must have room for the message: an accepted connection cannot be put back. */
static bool edge_has_room(const struct keeper *k)
{
	struct pollfd p = {.fd = k->edge->worker.sock, .events = POLLOUT};

	return poll(&p, 1, 0) == 1 && p.revents & POLLOUT;
}

static bool may_take(struct keeper *k)
{
	return k->ports->is_open && k->state.phase == KEEPER_RUNNING && edge_is_up(k) &&
	       k->ports->n_conns < KEEPER_MAX_PORT_CONNS;
}

static void pause_until(struct keeper *k, uint64_t at_ms)
{
	loop_timer_set(
		&k->loop, &k->ports->timer, at_ms, (struct loop_key){.kind = EV_TIMER_PORTS});
}

static void watch_one(struct keeper *k, struct listener *l, bool on)
{
	struct loop_key key = {
		.kind = EV_PORT, .gen = l->gen, .idx = (uint32_t)(l - k->ports->list)};

	if (l->fd < 0 || l->is_watched == on)
		return;
	if (!on)
		loop_del(&k->loop, l->fd);
	else if (loop_add(&k->loop, l->fd, EPOLLIN, key) < 0)
		return;
	l->is_watched = on;
}

void ports_watch(struct keeper *k)
{
	struct ports *s = k->ports;
	uint64_t now = clock_mono_ms(), at = next_ms(s);
	bool on = may_take(k);

	loop_timer_clear(&k->loop, &s->timer);
	if (on && !edge_has_room(k))
		at = MAX(at, now + KEEPER_PORT_PAUSE_MS);
	if (on && at > now) {
		pause_until(k, at);
		on = false;
	}
	for (size_t i = 0; i < s->n; i++)
		watch_one(k, &s->list[i], on);
}

/* Keepalive frees the slot of a client whose host disappeared. Linger 0: a connection that edge
 * does not close in order ends with RST. */
static void prepare_socket(int fd)
{
	const int one = 1, idle = KEEPER_PORT_IDLE_S, gap = KEEPER_PORT_IDLE_S / KEEPER_PORT_PROBES;
	const int probes = KEEPER_PORT_PROBES;
	const struct linger reset = {.l_onoff = 1};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &gap, sizeof(gap));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

static void on_closed(struct keeper *k)
{
	bool was_full = k->ports->n_conns == KEEPER_MAX_PORT_CONNS;

	k->ports->n_conns--;
	k->ports->last_ms = clock_mono_ms();
	if (was_full)
		ports_watch(k);
}

/* Quiet: a port without a listener in the guest is common. */
static const struct stream_kind port_stream = {.is_quiet = true, .on_closed = on_closed};

/* Returns false if no connection is waiting or can be accepted now. */
static bool take_one(struct keeper *k, struct listener *l)
{
	char path[EDGE_MAX_PATH];
	uint32_t stream;
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		/* Out of descriptors or memory: pause, do not spin. */
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
			k->ports->spent_us = (clock_mono_ms() + 1000) * 1000;
		return false;
	}
	spend_token(k->ports);
	prepare_socket(fd);
	(void)snprintf(path, sizeof(path), GUEST_PATH_TCP "%u", l->port.port);
	if (edge_open_stream(k, path, fd, &port_stream, &stream) < 0)
		return false;
	k->ports->n_conns++;
	k->ports->n_accepted++;
	k->ports->last_ms = clock_mono_ms();
	return true;
}

void ports_on_accept(struct keeper *k, const struct loop_event *ev)
{
	struct listener *l = &k->ports->list[ev->key.idx];

	for (int i = 0; i < KEEPER_PORT_BATCH; i++)
		if (!may_take(k) || !edge_has_room(k) || next_ms(k->ports) > clock_mono_ms() ||
			!take_one(k, l))
			break;
	ports_watch(k);
}

void ports_on_edge_end(struct keeper *k)
{
	k->ports->n_conns = 0;
	ports_watch(k);
}
