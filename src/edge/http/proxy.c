/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy_internal.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

void proxy_rest_add(struct proxy_rest *rest, struct slice bytes)
{
	if (bytes.n == 0)
		return;
	if (rest->at > 0 && rest->n > 0)
		memmove(rest->buf, rest->buf + rest->at, rest->n);
	rest->at = 0;
	rest->buf = xrealloc(rest->buf, rest->n + bytes.n);
	memcpy(rest->buf + rest->n, bytes.p, bytes.n);
	rest->n += bytes.n;
}

static void free_rest(struct proxy_rest *rest)
{
	free(rest->buf);
	*rest = (struct proxy_rest){0};
}

void proxy_rest_eat(struct proxy_rest *rest, size_t n)
{
	rest->at += n;
	rest->n -= n;
	if (rest->n == 0)
		free_rest(rest);
}

void proxy_free(struct edge *e, struct conn *c)
{
	struct proxy *p = TAKE(c->proxy);

	if (!p)
		return;
	arena_done(&p->arena);
	canon_reader_done(&p->reader);
	free_rest(&p->to_fd);
	free_rest(&p->to_guest);
	free(p);
}

enum proxy_step proxy_finish(struct edge *e, struct conn *c)
{
	proxy_free(e, c);
	conn_drop_fd(e, c);
	conn_end(e, c);
	return PROXY_GONE;
}

enum proxy_step proxy_hang_up(struct edge *e, struct conn *c)
{
	proxy_free(e, c);
	conn_drop_fd(e, c);
	conn_reset(e, c);
	return PROXY_GONE;
}

/* Frees the memory of the request: an idle connection has no buffer and no arena. */
enum proxy_step proxy_next(struct edge *e, struct conn *c)
{
	struct proxy *p = c->proxy;

	arena_done(&p->arena);
	arena_init(&p->arena, HTTP_ARENA_SIZE);
	http1_next(&p->h, &p->arena);
	canon_reader_done(&p->reader);
	canon_reader_init(&p->reader);
	free_rest(&p->to_fd);
	free_rest(&p->to_guest);
	p->x = (struct proxy_exchange){0};
	p->in_head = false;
	p->state = PROXY_HEAD;
	conn_set_timer(e, c, PROXY_IDLE_MS);
	return PROXY_AGAIN;
}

static enum proxy_step wait_for_verdict(struct edge *e, struct conn *c)
{
	return PROXY_WAIT;
}

static enum proxy_step exchange_proxy(struct edge *e, struct conn *c)
{
	if (proxy_send_body(e, c) == PROXY_GONE)
		return PROXY_GONE;
	return proxy_read_answer(e, c);
}

static void raw_to_fd(struct edge *e, struct conn *c)
{
	struct proxy_exchange *x = &c->proxy->x;

	while (bufq_len(&c->in) > 0) {
		size_t n = proxy_send_some(e, c, (struct slice){0}, bufq_peek(&c->in));

		if (n == 0)
			return;
		conn_eat(e, c, n);
	}
	if (c->in_end && !c->in_cut && !x->shut) {
		x->shut = true;
		conn_shut(c);
	}
}

static enum proxy_step pass_raw(struct edge *e, struct conn *c)
{
	struct proxy_exchange *x = &c->proxy->x;

	raw_to_fd(e, c);
	/* The guest closed without close_notify: its last data may be incomplete. */
	if (c->in_end && c->in_cut && bufq_len(&c->in) == 0)
		return proxy_hang_up(e, c);
	while (proxy_flush_guest(e, c) && x->readable && conn_room(c) > 0) {
		ssize_t r = conn_recv_out(c, SIZE_MAX);

		if (r > 0)
			conn_say(e, c, (struct slice){0});
		else if (r == -EAGAIN)
			x->readable = false;
		else
			return proxy_on_fd_end(e, c, r);
	}
	return PROXY_WAIT;
}

static enum proxy_step (*const states[])(struct edge *, struct conn *) = {
	[PROXY_HEAD] = proxy_read_head,
	[PROXY_ASKED] = wait_for_verdict,
	[PROXY_EXCHANGE] = exchange_proxy,
	[PROXY_DISCARD] = proxy_discard,
	[PROXY_RAW] = pass_raw,
};
static_assert(ARRAY_LEN(states) == PROXY_N_STATES, "a function for each state");

/* Each PROXY_AGAIN has ended a request or left a state that only a new request enters, so the loop
 * ends with the data in c->in. */
void proxy_pump(struct edge *e, struct conn *c)
{
	enum proxy_step step;

	do {
		step = states[c->proxy->state](e, c);
	} while (step == PROXY_AGAIN);
}

struct proxy *proxy_new(struct conn *c, const struct proxy_tongue *tongue)
{
	struct proxy *p = xcalloc(1, sizeof(*p));

	p->tongue = tongue;
	arena_init(&p->arena, HTTP_ARENA_SIZE);
	canon_reader_init(&p->reader);
	c->proxy = p;
	c->state = CONN_HTTP;
	return p;
}

void proxy_begin(struct edge *e, struct conn *c)
{
	struct proxy *p = proxy_new(c, &proxy_h1);

	http1_init_requests(&p->h, &p->arena);
	conn_set_timer(e, c, PROXY_IDLE_MS);
	proxy_pump(e, c);
}

void proxy_on_bytes(struct edge *e, struct conn *c)
{
	if (c->proxy)
		proxy_pump(e, c);
}

void proxy_on_room(struct edge *e, struct conn *c)
{
	if (c->proxy)
		proxy_pump(e, c);
}

void proxy_on_fd(struct edge *e, struct conn *c, uint32_t events)
{
	struct proxy *p = c->proxy;

	if (!p)
		return;
	if (events & ~(uint32_t)EPOLLOUT)
		p->x.readable = true;
	if (events & EPOLLOUT && p->x.writable)
		conn_ignore_room(e, c);
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		p->x.writable = true;
	proxy_pump(e, c);
}

void proxy_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict, int fd)
{
	static const char no_way[] = "no connection to the network";
	struct proxy *p = c->proxy;
	enum proxy_step step;
	AUTO_CLOSE int own = fd;

	if (!p || p->state != PROXY_ASKED)
		return;
	if (verdict->wants_id && p->x.n_asks++ < PROXY_ASKS)
		step = proxy_ask(e, c, p->x.req, verdict->wants, verdict->wants_id);
	else if (!verdict->allowed)
		step = proxy_deny(e, c, verdict);
	else if (verdict->stream ? conn_take_stream(e, c, verdict->channel, verdict->stream) < 0
				 : own < 0 || conn_take_fd(e, c, TAKE_FD(own)) < 0)
		step = proxy_fail(e, c, 502, slice_from_str(no_way));
	else
		step = proxy_start_exchange(e, c);
	if (step == PROXY_AGAIN)
		proxy_pump(e, c);
}

void proxy_on_timer(struct edge *e, struct conn *c)
{
	static const struct http_fault late = {408, "timed out reading the request head"};
	struct proxy *p = c->proxy;

	if (!p)
		return;
	if (p->state == PROXY_HEAD && p->in_head)
		(void)proxy_refuse(e, c, &late);
	else if (p->state == PROXY_HEAD || p->state == PROXY_DISCARD)
		(void)proxy_finish(e, c);
}
