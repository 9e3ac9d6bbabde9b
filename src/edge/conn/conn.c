/* SPDX-License-Identifier: Apache-2.0 */
#include "conn.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/wire/dns/dns_reply.h"
#include "lib/wire/dns/dns_query.h"

/* Without EPOLLOUT, which a Unix socket reports for each read of its peer. */
#define FD_EVENTS (EPOLLIN | EPOLLRDHUP | EPOLLET)

static struct loop_key key_of(const struct conn *c, enum edge_ev kind)
{
	return (struct loop_key){.kind = (uint8_t)kind, .gen = c->gen, .idx = c->idx};
}

/* A slot is free: the caller has counted. */
struct conn *conn_new(struct edge *e, enum conn_kind kind, uint32_t sid)
{
	struct net *net = e->net;
	struct conn *c = xcalloc(1, sizeof(*c));

	while (net->conns[net->next_free])
		net->next_free = (net->next_free + 1) % NET_MAX_CONNS;
	*c = (struct conn){
		.kind = kind, .idx = net->next_free, .gen = net->next_gen++, .sid = sid, .fd = -1};
	bufq_init(&c->in, kind == CONN_DNS ? DNS_MAX_QUERY : WIRE_NET_WINDOW);
	bufq_init(&c->out, kind == CONN_DNS ? DNS_MAX_REPLY : CONN_OUT);
	net->conns[c->idx] = c;
	net->next_free = (net->next_free + 1) % NET_MAX_CONNS;
	net->n_conns++;
	net->n_most = MAX(net->n_most, net->n_conns);
	return c;
}

static void leave_room_list(struct net *net, struct conn *c)
{
	struct conn **at = &net->room;

	if (!c->in_room)
		return;
	while (*at != c)
		at = &(*at)->next_room;
	*at = c->next_room;
	c->in_room = false;
}

/* Frees the state of the target and of the engine that has the connection. */
static void drop_parts(struct edge *e, struct conn *c)
{
	e->conn_ops->drop_engine(e, c);
	conn_drop_fd(e, c);
	free(TAKE(c->hello));
	free(TAKE(c->retry));
	if (c->reader)
		canon_reader_done(c->reader);
	free(TAKE(c->reader));
	conn_set_timer(e, c, 0);
	asks_forget(e, c);
}

void conn_over(struct edge *e, struct conn *c)
{
	if (c->stream)
		e->conn_ops->stream_over(e, c);
	drop_parts(e, c);
	leave_room_list(e->net, c);
	e->conn_ops->free_tls(c);
	bufq_done(&c->in);
	bufq_done(&c->out);
	if (c->holds_synth)
		synth_release(e->net->synth, c->synth_id);
	c->holds_synth = false;
	c->sid = 0;
	c->state = CONN_ENDING;
	conn_free_if_over(e, c);
}

void conn_free_if_over(struct edge *e, struct conn *c)
{
	if (c->sid || conn_has_peer(c) || c->asking || c->reporting)
		return;
	e->net->conns[c->idx] = NULL;
	e->net->n_conns--;
	free(c->own_wants);
	free(c);
}

void conn_eat(struct edge *e, struct conn *c, size_t n)
{
	bufq_consume(&c->in, n);
	if (bufq_len(&c->in) == 0)
		bufq_trim(&c->in);
	/* The window was returned when TLS consumed the data, and TLS has room again. */
	if (c->open)
		conn_note_room(e, c);
	else if (c->stream)
		e->conn_ops->stream_consumed(e, c, n);
	else if (c->sid)
		wire_consumed(e->net->port.wire, c->sid, n);
}

static void resume_conn(struct edge *e, struct conn *c)
{
	if (c->stream)
		e->conn_ops->stream_resume(e, c);
	else
		wire_resume(e->net->port.wire, c->sid);
}

void conn_say(struct edge *e, struct conn *c, struct slice bytes)
{
	size_t n = bufq_put(&c->out, bytes);

	assert(n == bytes.n);
	resume_conn(e, c);
}

void conn_end(struct edge *e, struct conn *c)
{
	drop_parts(e, c);
	conn_eat(e, c, bufq_len(&c->in));
	if (c->open)
		e->conn_ops->deafen_tls(e, c);
	c->state = CONN_ENDING;
	c->out_end = true;
	c->n_pulled_then = c->n_pulled;
	conn_set_timer(e, c, CONN_END_MS);
	resume_conn(e, c);
}

void conn_reset(struct edge *e, struct conn *c)
{
	if (c->stream)
		e->conn_ops->stream_reset(e, c);
	else if (c->sid)
		wire_reset(e->net->port.wire, c->sid);
	conn_over(e, c);
}

void conn_alert(struct edge *e, struct conn *c, uint8_t alert)
{
	const uint8_t record[] = {0x15, 3, 1, 0, 2, 2 /* fatal */, alert};

	if (conn_room(c) < sizeof(record)) {
		conn_reset(e, c);
		return;
	}
	conn_say(e, c, slice_of(record, sizeof(record)));
	conn_end(e, c);
}

void conn_ask(struct edge *e, struct conn *c, const struct edge_ask *ask)
{
	assert(!c->asking);
	c->asking = true;
	asks_put(e, c, ask);
}

void conn_report_named_fault(struct edge *e, struct conn *c, enum edge_ask_kind kind,
	const char *host, uint16_t port, const char *fault)
{
	struct edge_ask ask = {.kind = kind, .via = c->via, .proto = c->proto, .port = port};

	ask.tls = kind == EDGE_ASK_HTTP && conn_is_opened(c);
	if (c->reporting)
		return;
	c->reporting = true;
	(void)snprintf(ask.host, sizeof(ask.host), "%s", host);
	(void)snprintf(ask.fault, sizeof(ask.fault), "%s", fault);
	asks_put(e, c, &ask);
}

void conn_report_fault(struct edge *e, struct conn *c, enum edge_ask_kind kind, const char *fault)
{
	const struct conn_target *t = &c->target;

	conn_report_named_fault(e, c, kind, t->given ? t->host.name : "",
		kind == EDGE_ASK_DNS ? 0 : t->port, fault);
}

int conn_take_fd(struct edge *e, struct conn *c, int fd)
{
	int r;

	conn_drop_fd(e, c);
	c->fd = fd;
	c->fd_waits = c->fd_eof = false;
	r = loop_add(&e->loop, fd, FD_EVENTS, key_of(c, EDGE_EV_CONN));
	if (r < 0)
		fd_close(&c->fd);
	return r;
}

static void watch_room(struct edge *e, struct conn *c, bool waits)
{
	if (c->fd < 0 || c->fd_waits == waits)
		return;
	c->fd_waits = waits;
	(void)!loop_mod(
		&e->loop, c->fd, waits ? FD_EVENTS | EPOLLOUT : FD_EVENTS, key_of(c, EDGE_EV_CONN));
}

void conn_want_room(struct edge *e, struct conn *c)
{
	watch_room(e, c, true);
}

void conn_ignore_room(struct edge *e, struct conn *c)
{
	watch_room(e, c, false);
}

void conn_drop_fd(struct edge *e, struct conn *c)
{
	if (e->net->gathered == c)
		e->net->gathered = NULL;
	if (c->fd >= 0)
		loop_del(&e->loop, c->fd);
	fd_close(&c->fd);
	if (c->link)
		mux_close(TAKE(c->link));
}

int conn_take_stream(struct edge *e, struct conn *c, uint32_t channel, uint32_t stream)
{
	struct channel *ch = channel_find(e, channel);

	conn_drop_fd(e, c);
	e->net->due_stream = 0;
	c->link = ch ? mux_open(&ch->mux, stream) : NULL;
	if (!c->link)
		return -EPIPE;
	c->link->idx = c->idx;
	c->link->gen = c->gen;
	return 0;
}

ssize_t conn_send(struct conn *c, struct slice a, struct slice b)
{
	struct iovec iov[2] = {{(void *)a.p, a.n}, {(void *)b.p, b.n}};
	const struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t r;

	if (c->link) {
		r = (ssize_t)mux_send(c->link, a, b);
		return r ? r : c->link->is_gone ? -EPIPE : -EAGAIN;
	}
	do {
		r = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

/* What mux_peek has may be used up to n bytes. */
static struct slice peek_link(struct conn *c, size_t n)
{
	struct slice in = mux_peek(c->link);

	return slice_of(in.p, MIN(in.n, n));
}

ssize_t conn_recv(struct conn *c, uint8_t *buf, size_t n)
{
	ssize_t r;

	if (c->link) {
		struct slice in = peek_link(c, n);

		if (!in.n)
			return mux_is_at_end(c->link) ? 0 : -EAGAIN;
		memcpy(buf, in.p, in.n);
		mux_take(c->link, in.n);
		return (ssize_t)in.n;
	}
	do {
		r = recv(c->fd, buf, n, MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

ssize_t conn_recv_out(struct conn *c, size_t max)
{
	struct slice in;
	size_t n;

	if (!c->link)
		return bufq_recv(&c->out, c->fd, max);
	in = peek_link(c, max);
	if (!in.n)
		return mux_is_at_end(c->link) ? 0 : -EAGAIN;
	n = bufq_put(&c->out, in);
	mux_take(c->link, n);
	return (ssize_t)n;
}

void conn_shut(struct conn *c)
{
	if (c->link)
		mux_shut(c->link);
	else
		(void)shutdown(c->fd, SHUT_WR);
}

void conn_set_timer(struct edge *e, struct conn *c, uint64_t ms)
{
	if (ms)
		loop_timer_set(
			&e->loop, &c->timer, clock_mono_ms() + ms, key_of(c, EDGE_EV_CONN_TIMER));
	else
		loop_timer_clear(&e->loop, &c->timer);
}

void conn_ask_tunnel(struct edge *e, struct conn *c)
{
	struct edge_ask ask = {
		.kind = EDGE_ASK_TUNNEL, .via = c->via, .proto = c->proto, .port = c->target.port};

	memcpy(ask.host, c->target.host.name, (size_t)c->target.host.n + 1);
	c->state = CONN_ASKED;
	conn_set_timer(e, c, 0);
	conn_ask(e, c, &ask);
}

void conn_connect(struct edge *e, struct conn *c, const struct host *host, uint16_t port)
{
	c->target = (struct conn_target){.given = true, .host = *host, .port = port};
	c->answered = false;
	conn_ask_tunnel(e, c);
}

void conn_runs(const struct bufq *q, struct slice ret[2])
{
	ret[0] = bufq_peek(q);
	ret[1] = slice_of(q->ring, q->n - ret[0].n);
}

struct conn *conn_find(struct edge *e, uint32_t idx, uint32_t gen)
{
	struct conn *c = e->net->conns[idx];

	return c && c->gen == gen ? c : NULL;
}

void conn_note_room(struct edge *e, struct conn *c)
{
	struct net *net = e->net;

	bool wants = c->state == CONN_HTTP || c->state == CONN_H2 || c->open || c->retry;

	if (c->in_room || c->state == CONN_ENDING || !wants)
		return;
	c->in_room = true;
	c->next_room = net->room;
	net->room = c;
}

size_t budget_used;

bool budget_is_over(const struct edge *e)
{
	return budget_used >= e->net->budget;
}

void budget_report(struct edge *e, struct conn *c, const char *what)
{
	char fault[EDGE_MAX_TEXT];

	(void)snprintf(fault, sizeof(fault),
		"connections of the sandbox use more than %d MiB of memory: %s",
		EDGE_BUDGET / (1024 * 1024), what);
	conn_report_fault(e, c, c->proxy || c->h2 ? EDGE_ASK_HTTP : EDGE_ASK_TUNNEL, fault);
}
