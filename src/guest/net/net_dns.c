/* SPDX-License-Identifier: Apache-2.0 */
#include "net_dns.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "net_main.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define PATH_UDP "/dns/udp"
#define PATH_TCP "/dns/tcp"
#define TURN_DATAGRAMS 64

static void sweep_later(struct net_dns *d)
{
	if (d->n_queries + d->n_conns > 0 && !d->sweep.pos)
		loop_timer_set(d->loop, &d->sweep, clock_mono_ms() + NET_DNS_SWEEP_MS,
			(struct loop_key){.kind = NET_EV_DNS_TIMER});
}

/* ---- queries ---- */

/* Copies msg; returns NULL if there are too many or the wire is full. */
static struct net_query *ask_dns(struct net_dns *d, const char *path, struct slice msg)
{
	struct net_query *q = NULL;

	for (uint32_t i = 0; d->wire && i < NET_MAX_QUERIES && !q; i++)
		if (!d->queries[i].used)
			q = &d->queries[i];
	if (!q)
		return NULL;
	*q = (struct net_query){.at_ms = clock_mono_ms()};
	if (wire_open(d->wire, path, NET_DNS_SLOT | (uint32_t)(q - d->queries), &q->id) < 0)
		return NULL;
	q->used = true;
	q->msg = xmalloc(msg.n);
	memcpy(q->msg, msg.p, msg.n);
	q->n_msg = msg.n;
	d->n_queries++;
	sweep_later(d);
	return q;
}

static void query_done(struct net_dns *d, struct net_query *q)
{
	free(TAKE(q->msg));
	free(TAKE(q->answer));
	q->used = false;
	d->n_queries--;
}

ssize_t net_dns_pull(struct net_dns *d, uint32_t idx, uint8_t *buf, size_t n)
{
	struct net_query *q = &d->queries[idx];
	size_t k = MIN(n, q->n_msg - q->at);

	if (!q->used)
		return -ECONNRESET;
	memcpy(buf, q->msg + q->at, k);
	q->at += k;
	return (ssize_t)k;
}

void net_dns_on_data(struct net_dns *d, uint32_t idx, struct slice bytes)
{
	struct net_query *q = &d->queries[idx];

	if (!q->used)
		return;
	wire_consumed(d->wire, q->id, bytes.n);
	/* Too long for DNS: a truncated answer is useless, and the client times out. */
	if (bytes.n > NET_MAX_DNS - q->n_answer || bytes.n == 0)
		return;
	q->answer = xrealloc(q->answer, q->n_answer + bytes.n);
	memcpy(q->answer + q->n_answer, bytes.p, bytes.n);
	q->n_answer += bytes.n;
}

/* ---- UDP ---- */

void net_dns_on_datagram(struct net_dns *d, int fd)
{
	static uint8_t buf[NET_MAX_DNS_UDP];

	for (int i = 0; i < TURN_DATAGRAMS; i++) {
		struct sockaddr_in6 from;
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC,
			(struct sockaddr *)&from, &len);
		struct net_query *q = NULL;

		if (n < 0)
			return;
		if (n > 0 && n <= (ssize_t)sizeof(buf))
			q = ask_dns(d, PATH_UDP, slice_of(buf, (size_t)n));
		if (!q)
			continue;
		q->udp_fd = fd;
		q->from = from;
		q->from_len = len;
	}
}

/* ---- TCP ---- */

static void conn_done(struct net_dns *d, struct net_dns_conn *c, bool reset)
{
	int fd = TAKE_FD(c->fd);

	loop_del(d->loop, fd);
	if (reset)
		net_conn_refuse(fd);
	else
		(void)close(fd);
	free(TAKE(c->in));
	bufq_done(&c->queue);
	c->used = false;
	d->n_conns--;
}

static void watch_dns(struct net_dns *d, struct net_dns_conn *c)
{
	bool reads = !c->ended && c->n_open < NET_MAX_PIPELINE;
	uint32_t events = (reads ? EPOLLIN : 0) | (bufq_len(&c->queue) ? EPOLLOUT : 0);
	struct loop_key key = {
		.kind = NET_EV_DNS_CONN, .gen = c->gen, .idx = (uint32_t)(c - d->conns)};

	if (events == c->events)
		return;
	c->events = events;
	if (loop_mod(d->loop, c->fd, events, key) < 0)
		conn_done(d, c, true);
}

void net_dns_open(struct net_dns *d, int fd)
{
	struct net_dns_conn *c = NULL;
	struct loop_key key = {.kind = NET_EV_DNS_CONN};

	for (uint32_t i = 0; i < NET_MAX_DNS_CONNS && !c; i++)
		if (!d->conns[i].used)
			c = &d->conns[i];
	if (!c || !d->wire) {
		net_conn_refuse(fd);
		return;
	}
	*c = (struct net_dns_conn){.fd = fd,
		.gen = c->gen + 1,
		.events = EPOLLIN,
		.used_ms = clock_mono_ms(),
		.in = xmalloc(NET_MAX_DNS + 2)};
	key.gen = c->gen;
	key.idx = (uint32_t)(c - d->conns);
	if (loop_add(d->loop, fd, EPOLLIN, key) < 0) {
		free(TAKE(c->in));
		net_conn_refuse(fd);
		return;
	}
	bufq_init(&c->queue, NET_DNS_QUEUE);
	c->used = true;
	d->n_conns++;
	sweep_later(d);
}

/* Sends each complete message; negative if the connection must be closed. */
static int ask_all(struct net_dns *d, struct net_dns_conn *c)
{
	while (c->n_in >= 2 && c->n_open < NET_MAX_PIPELINE) {
		size_t n = (size_t)c->in[0] << 8 | c->in[1];
		struct net_query *q;

		if (n == 0)
			return -EPROTO;
		if (c->n_in < n + 2)
			return 0;
		q = ask_dns(d, PATH_TCP, slice_of(c->in + 2, n));
		if (!q)
			return -EBUSY;
		q->is_tcp = true;
		q->conn = (uint32_t)(c - d->conns);
		q->conn_gen = c->gen;
		c->n_open++;
		c->n_in -= n + 2;
		memmove(c->in, c->in + n + 2, c->n_in);
	}
	return 0;
}

/* Closes a connection without further input and output. */
static void settle_dns(struct net_dns *d, struct net_dns_conn *c)
{
	if (ask_all(d, c) < 0)
		conn_done(d, c, true);
	else if (c->ended && c->n_open == 0 && !bufq_len(&c->queue))
		conn_done(d, c, false);
	else
		watch_dns(d, c);
}

void net_dns_on_event(struct net_dns *d, const struct loop_event *ev)
{
	struct net_dns_conn *c = &d->conns[ev->key.idx];
	ssize_t n;

	if (!c->used || c->gen != ev->key.gen)
		return;
	if (ev->events & (EPOLLERR | EPOLLHUP)) {
		conn_done(d, c, true);
		return;
	}
	c->used_ms = clock_mono_ms();
	if (ev->events & EPOLLIN && c->n_in < NET_MAX_DNS + 2) {
		n = read(c->fd, c->in + c->n_in, NET_MAX_DNS + 2 - c->n_in);
		c->ended = n == 0;
		c->n_in += n > 0 ? (size_t)n : 0;
	}
	if (ev->events & EPOLLOUT && bufq_len(&c->queue)) {
		n = bufq_drain(&c->queue, c->fd);
		if (n < 0 && n != -EAGAIN) {
			conn_done(d, c, true);
			return;
		}
	}
	settle_dns(d, c);
}

/* ---- answers ---- */

static struct net_dns_conn *asker_dns(struct net_dns *d, const struct net_query *q)
{
	struct net_dns_conn *c = &d->conns[q->conn];

	return q->is_tcp && c->used && c->gen == q->conn_gen ? c : NULL;
}

/* Without an answer the connection closes: TCP has no other way to report it. */
static void answer_tcp(struct net_dns *d, const struct net_query *q)
{
	struct net_dns_conn *c = asker_dns(d, q);
	const uint8_t len[2] = {(uint8_t)(q->n_answer >> 8), (uint8_t)q->n_answer};

	if (!c)
		return;
	c->n_open--;
	c->used_ms = clock_mono_ms();
	if (q->n_answer == 0 || bufq_space(&c->queue) < q->n_answer + 2) {
		conn_done(d, c, true);
		return;
	}
	(void)bufq_put(&c->queue, slice_of(len, 2));
	(void)bufq_put(&c->queue, slice_of(q->answer, q->n_answer));
	settle_dns(d, c);
}

static void answer_dns(struct net_dns *d, const struct net_query *q)
{
	if (q->is_tcp)
		answer_tcp(d, q);
	else if (q->n_answer)
		(void)sendto(q->udp_fd, q->answer, q->n_answer, MSG_DONTWAIT | MSG_NOSIGNAL,
			(const struct sockaddr *)&q->from, q->from_len);
}

void net_dns_on_end(struct net_dns *d, uint32_t idx)
{
	struct net_query *q = &d->queries[idx];

	if (!q->used)
		return;
	answer_dns(d, q);
	/* Answered; later events of the stream are ignored. */
	q->is_tcp = false;
	q->n_answer = 0;
}

void net_dns_on_close(struct net_dns *d, uint32_t idx, int error)
{
	struct net_query *q = &d->queries[idx];

	if (!q->used)
		return;
	if (error && q->is_tcp) {
		q->n_answer = 0;
		answer_tcp(d, q);
	}
	query_done(d, q);
}

void net_dns_on_timer(struct net_dns *d)
{
	uint64_t now = clock_mono_ms();

	for (uint32_t i = 0; i < NET_MAX_QUERIES; i++) {
		struct net_query *q = &d->queries[i];

		if (!q->used || now - q->at_ms < NET_QUERY_MS)
			continue;
		wire_reset(d->wire, q->id);
		net_dns_on_close(d, i, -ETIMEDOUT);
	}
	for (uint32_t i = 0; i < NET_MAX_DNS_CONNS; i++)
		if (d->conns[i].used && now - d->conns[i].used_ms >= NET_DNS_IDLE_MS)
			conn_done(d, &d->conns[i], false);
	sweep_later(d);
}

void net_dns_drop_all(struct net_dns *d)
{
	for (uint32_t i = 0; i < NET_MAX_DNS_CONNS; i++)
		if (d->conns[i].used)
			conn_done(d, &d->conns[i], true);
	for (uint32_t i = 0; i < NET_MAX_QUERIES; i++)
		if (d->queries[i].used)
			query_done(d, &d->queries[i]);
}
