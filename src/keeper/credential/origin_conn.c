/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_conn - connections for origins: egress connects, the keeper checks the socket and passes
 * it on.
 *
 * How      A WANT becomes an OPEN of the kind SOCKET, or waits while egress does not read or
 *          restarts. The peer of the new socket (getpeername) must match the report of egress. It
 *          must also be the address pinned by the user, the upstream proxy, or an address that the
 *          current policy permits for this host. Passed connections are remembered, because NEED
 *          names one.
 * Trust    Origin and egress may both be compromised. Together they can only get a connection that
 *          the policy of this host allows.
 * Limits   ORIGIN_MAX_CONNS pending WANTs, KEEPER_ORIGIN_CONNS remembered, KEEPER_EGRESS_GRACE_MS.
 */
#include "credential.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

void conns_drop(struct origin *o)
{
	for (size_t i = 0; o->conns && i < KEEPER_ORIGIN_CONNS; i++)
		fd_close(&o->conns[i].fd);
	free(TAKE(o->conns));
}

static bool is_pending(const struct origin_conn *c)
{
	return c->state == CONN_WANTED || c->state == CONN_ASKED || c->state == CONN_DUE;
}

/* Stores the answer to a WANT; takes fd. */
static void settle_conn(struct origin_conn *c, const struct egress_result *result, int fd)
{
	c->result = *result;
	c->fd = fd;
	c->state = CONN_DUE;
}

static void fail_conn(struct origin_conn *c, enum egress_outcome outcome, const char *text)
{
	struct egress_result result = {.outcome = outcome};

	(void)snprintf(result.text, sizeof(result.text), "%s", text);
	settle_conn(c, &result, -1);
}

int conns_push(struct origin *o)
{
	for (size_t i = 0; i < KEEPER_ORIGIN_CONNS; i++) {
		struct origin_conn *c = &o->conns[i];
		int r;

		if (c->state != CONN_DUE)
			continue;
		r = origin_answer_want(o->worker.sock, c->id, &c->result, c->fd);
		if (r < 0)
			return r;
		fd_close(&c->fd);
		c->state = c->result.outcome == EGRESS_CONNECTED ? CONN_GIVEN : CONN_FREE;
	}
	return 0;
}

/* ---- requests to egress ---- */

static void try_ask(struct keeper *k, struct origin *o, struct origin_conn *c)
{
	int r;

	if (!egress_is_up(k)) {
		if (clock_mono_ms() >= k->egress->lost_ms + KEEPER_EGRESS_GRACE_MS)
			fail_conn(c, EGRESS_UNREACHABLE,
				"sbx-egress is not running: see keeper.log of this sandbox");
		return;
	}
	r = k->origins->open_socket(k, o, c->id, &c->exchange);
	if (r == 0)
		c->state = CONN_ASKED;
	else if (r == -EAGAIN)
		egress_want_room(k);
	else if (r == -EMFILE)
		fail_conn(c, EGRESS_BUSY, egress_outcome_text(EGRESS_BUSY));
	else
		fail_conn(c, EGRESS_UNREACHABLE, "sbx-egress is restarting");
}

/* Returns a free slot, or the slot of the oldest passed connection. One always exists: at most
 * ORIGIN_MAX_CONNS are pending. */
static_assert(ORIGIN_MAX_CONNS < KEEPER_ORIGIN_CONNS, "a place for every WANT");
static struct origin_conn *new_conn(struct origin *o)
{
	for (size_t i = 0; i < KEEPER_ORIGIN_CONNS; i++) {
		struct origin_conn *c = &o->conns[(o->next_conn + i) % KEEPER_ORIGIN_CONNS];

		if (is_pending(c))
			continue;
		o->next_conn = (size_t)(c - o->conns + 1) % KEEPER_ORIGIN_CONNS;
		return c;
	}
	return NULL;
}

int conns_on_want(struct keeper *k, struct origin *o, const struct ipc_msg *msg)
{
	struct origin_conn *c, *same = NULL;
	size_t n_pending = 0;
	int r = chan_get_plain(&origin_chan, msg, ORIGIN_WANT);

	if (r < 0)
		return r;
	for (size_t i = 0; i < KEEPER_ORIGIN_CONNS; i++) {
		c = &o->conns[i];
		if (c->state != CONN_FREE && c->id == msg->id)
			same = c;
		n_pending += is_pending(c);
	}
	/* A number may be reused after its connection was passed on. */
	if (n_pending == ORIGIN_MAX_CONNS || (same && is_pending(same)))
		return -EBADMSG;
	c = same ? same : new_conn(o);
	*c = (struct origin_conn){.state = CONN_WANTED, .id = msg->id, .fd = -1};
	try_ask(k, o, c);
	origins_push(k, o);
	return 0;
}

void conns_on_room(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		struct origin *o = &k->origins->list[i];

		for (size_t n = 0; o->worker.alive && n < KEEPER_ORIGIN_CONNS; n++) {
			if (o->conns[n].state == CONN_WANTED)
				try_ask(k, o, &o->conns[n]);
		}
		if (o->worker.alive)
			origins_push(k, o);
	}
}

void conns_on_egress_end(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_ORIGINS; i++) {
		struct origin *o = &k->origins->list[i];

		for (size_t n = 0; o->worker.alive && n < KEEPER_ORIGIN_CONNS; n++) {
			if (o->conns[n].state == CONN_ASKED)
				fail_conn(&o->conns[n], EGRESS_UNREACHABLE,
					"sbx-egress is restarting");
		}
		if (o->worker.alive)
			origins_push(k, o);
	}
}

/* ---- answers of egress ---- */

static int from_sockaddr(const struct sockaddr_storage *s, struct addr *ret, uint16_t *ret_port)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)s;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)s;

	if (s->ss_family == AF_INET) {
		*ret = addr_from_v4((const uint8_t *)&v4->sin_addr);
		*ret_port = ntohs(v4->sin_port);
		return 0;
	}
	*ret = addr_from_v6(v6->sin6_addr.s6_addr);
	*ret_port = ntohs(v6->sin6_port);
	return s->ss_family == AF_INET6 ? 0 : -EBADMSG;
}

/* Gets both addresses. Returns -ENOTCONN if the connection is closed already, -EBADMSG if fd is not
 * a connection. */
static int get_ends(int fd, struct origin_conn *c)
{
	struct sockaddr_storage peer = {0}, own = {0};
	struct addr addr = {0};
	socklen_t n = sizeof(int), n_own = sizeof(own);
	uint16_t port;
	int protocol = 0, listens = 1;

	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &n) < 0 || protocol != IPPROTO_TCP ||
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 || listens)
		return -EBADMSG;
	n = sizeof(peer);
	if (getpeername(fd, (struct sockaddr *)&peer, &n) < 0)
		return errno == ENOTCONN ? -ENOTCONN : -EBADMSG;
	if (getsockname(fd, (struct sockaddr *)&own, &n_own) < 0 ||
		from_sockaddr(&own, &addr, &port) < 0 ||
		from_sockaddr(&peer, &c->addr, &c->port) < 0)
		return -EBADMSG;
	c->is_own = addr_eq(&addr, &c->addr);
	return 0;
}

static const struct egress_pin *find_pin(const struct keeper *k, const struct origin *o)
{
	const struct egress_config *config = &k->egress->config;

	for (size_t i = 0; i < config->n_pins; i++) {
		if (config->pins[i].port == o->port && strcmp(config->pins[i].host, o->host) == 0)
			return &config->pins[i];
	}
	return NULL;
}

/* Whether egress goes through the upstream proxy for this origin. */
static bool is_proxied(const struct keeper *k, const struct origin *o)
{
	const struct egress_config *config = &k->egress->config;
	struct host h;

	if (!config->proxy_host[0] || host_from_wire(slice_from_str(o->host), &h, NULL) < 0)
		return false;
	return !host_is_here(&h) && !egress_is_direct(config, h.name,
					    slice_of(h.addr.b, h.is_addr ? h.addr.n : 0), o->port);
}

/* Whether the origin may use this address: pinned, upstream proxy, or permitted by policy. */
bool conns_may_lead(const struct keeper *k, const struct origin *o, const struct origin_conn *c)
{
	const struct egress_pin *pin = find_pin(k, o);
	struct addr there;

	if (pin)
		return addr_parse(slice_from_str(pin->addr), &there) == 0 &&
		       addr_eq(&there, &c->addr) && c->port == pin->addr_port;
	if (is_proxied(k, o))
		return c->port == k->egress->config.proxy_port;
	return c->port == o->port &&
	       gate_passes_address(k->gate, o->host, o->port, &c->addr, c->is_own, clock_wall_ms());
}

bool conns_all_may_lead(const struct keeper *k, const struct origin *o)
{
	for (size_t i = 0; i < KEEPER_ORIGIN_CONNS; i++) {
		const struct origin_conn *c = &o->conns[i];
		bool is_there = c->state == CONN_GIVEN || (c->state == CONN_DUE && c->fd >= 0);

		if (is_there && !conns_may_lead(k, o, c))
			return false;
	}
	return true;
}

/* Returns 0 with the conn settled, or -EBADMSG if egress reported another peer. Takes fd. */
static int take_connection(struct keeper *k, const struct origin *o, struct origin_conn *c,
	const struct egress_result *result, int fd)
{
	AUTO_CLOSE int owned = fd;
	struct addr said;
	int r = get_ends(owned, c);

	if (r == -ENOTCONN) {
		fail_conn(c, EGRESS_UNREACHABLE, "the server closed the connection immediately");
		return 0;
	}
	if (r == 0 &&
		(addr_parse(slice_from_str(result->addr), &said) < 0 || !addr_eq(&said, &c->addr)))
		r = -EBADMSG;
	if (r < 0) {
		fail_conn(c, EGRESS_DENIED_ADDRESS, "the connection does not match the request");
		return r;
	}
	if (!conns_may_lead(k, o, c)) {
		fail_conn(c, EGRESS_DENIED_ADDRESS, egress_outcome_text(EGRESS_DENIED_ADDRESS));
		(void)snprintf(c->result.addr, sizeof(c->result.addr), "%s", result->addr);
		return 0;
	}
	settle_conn(c, result, TAKE_FD(owned));
	return 0;
}

int conns_on_result(struct keeper *k, const struct conn_order *order,
	const struct egress_result *result, int fd)
{
	struct origin *o = origins_find(k, order->origin, order->origin_gen);
	struct edge_ask ask = {.kind = EDGE_ASK_TUNNEL, .proto = EDGE_PROTO_TLS};
	AUTO_CLOSE int owned = fd;
	struct origin_conn *c = NULL;
	int r = 0;

	if ((result->outcome == EGRESS_CONNECTED) != (fd >= 0))
		return -EBADMSG;
	for (size_t i = 0; o && i < KEEPER_ORIGIN_CONNS; i++) {
		if (o->conns[i].state == CONN_ASKED && o->conns[i].id == order->want)
			c = &o->conns[i];
	}
	if (!c) /* the origin has exited meanwhile */
		return 0;
	if (owned >= 0)
		r = take_connection(k, o, c, result, TAKE_FD(owned));
	else
		settle_conn(c, result, -1);
	ask.port = o->port;
	(void)!str_copy(ask.host, sizeof(ask.host), o->host);
	gate_result(k->gate, &ask, &c->result, clock_wall_ms());
	origins_push(k, o);
	return r;
}

const struct origin_conn *conns_find_given(const struct origin *o, uint32_t id)
{
	for (size_t i = 0; i < KEEPER_ORIGIN_CONNS; i++) {
		if (o->conns[i].state == CONN_GIVEN && o->conns[i].id == id)
			return &o->conns[i];
	}
	return NULL;
}
