/* SPDX-License-Identifier: Apache-2.0 */
/* The side of an exchange that its request comes from: a stream of the channel to edge, or the
 * socket of a clerk. */
#include "state.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include "lib/base/mem.h"

/* Edge-triggered: one registration, and one event for a hang-up. */
#define CLERK_EVENTS (EPOLLIN | EPOLLRDHUP | EPOLLET)

int exchange_open_edge(struct origin *o, struct exchange *x, int fd)
{
	x->clerk.fd = fd;
	if (fd >= 0)
		return loop_add(&o->loop, fd, CLERK_EVENTS, exchange_key(o, x, ORIGIN_EV_CLERK));
	x->edge = mux_open(&o->mux, x->id);
	assert(x->edge); /* as the exchange, it is closed before its number is free */
	x->edge->idx = (uint32_t)(x - o->exchanges);
	return 0;
}

/* ---- a clerk's socket ---- */

/* EPOLLOUT is not registered until a send was short: a Unix socket reports it for each read of its
 * peer. What is true now is reported, also again. */
static void watch_clerk(struct origin *o, struct exchange *x, bool waits)
{
	x->clerk.waits = waits;
	(void)!loop_mod(&o->loop, x->clerk.fd, waits ? CLERK_EVENTS | EPOLLOUT : CLERK_EVENTS,
		exchange_key(o, x, ORIGIN_EV_CLERK));
}

void exchange_ignore_room(struct origin *o, struct exchange *x)
{
	if (x->clerk.fd >= 0 && x->clerk.waits)
		watch_clerk(o, x, false);
}

static ssize_t read_clerk(struct exchange *x, uint8_t *buf, size_t n)
{
	ssize_t r;

	do {
		r = recv(x->clerk.fd, buf, n, MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno == EAGAIN ? -EAGAIN : 0;
	return r;
}

static ssize_t peek_clerk(struct exchange *x, struct slice *ret)
{
	struct clerk_end *c = &x->clerk;
	static uint8_t buf[4096];

	if (!c->n_early) {
		ssize_t n = read_clerk(x, buf, sizeof(buf));

		if (n <= 0)
			return n;
		c->early = xmalloc((size_t)n);
		memcpy(c->early, buf, (size_t)n);
		c->n_early = (size_t)n;
	}
	*ret = slice_of(c->early, c->n_early);
	return (ssize_t)c->n_early;
}

static void take_early(struct clerk_end *c, size_t n)
{
	if (!n)
		return;
	memmove(c->early, c->early + n, c->n_early - n);
	c->n_early -= n;
	if (!c->n_early)
		free(TAKE(c->early));
}

/* ---- both ---- */

ssize_t exchange_peek(struct exchange *x, struct slice *ret)
{
	if (!x->edge)
		return peek_clerk(x, ret);
	*ret = mux_peek(x->edge);
	return ret->n ? (ssize_t)ret->n : mux_is_at_end(x->edge) ? 0 : -EAGAIN;
}

void exchange_take(struct exchange *x, size_t n)
{
	if (x->edge)
		mux_take(x->edge, n);
	else
		take_early(&x->clerk, n);
}

ssize_t exchange_recv(struct exchange *x, uint8_t *buf, size_t n)
{
	struct slice in;
	ssize_t r;

	if (!x->edge && !x->clerk.n_early)
		return read_clerk(x, buf, n);
	r = exchange_peek(x, &in);
	if (r <= 0)
		return r;
	n = MIN(n, in.n);
	memcpy(buf, in.p, n);
	exchange_take(x, n);
	return (ssize_t)n;
}

int exchange_flush(struct origin *o, struct exchange *x, uint64_t *n_sent)
{
	size_t n;
	int r;

	if (!out_len(&x->to_edge))
		return 0;
	if (x->clerk.fd >= 0) {
		r = out_flush(&x->to_edge, x->clerk.fd, n_sent);
		if (r == -EAGAIN && !x->clerk.waits)
			watch_clerk(o, x, true);
		return r == 0 || r == -EAGAIN ? r : -EPIPE;
	}
	if (!x->edge || x->edge->is_gone)
		return -EPIPE;
	n = mux_send(x->edge, out_peek(&x->to_edge), (struct slice){0});
	out_consume(&x->to_edge, n);
	*n_sent += n;
	return out_len(&x->to_edge) ? -EAGAIN : 0;
}

void exchange_again(struct origin *o, struct exchange *x)
{
	if (x->edge)
		mux_again(x->edge);
	else
		watch_clerk(o, x, true);
}

int exchange_end_edge(struct origin *o, struct exchange *x)
{
	uint64_t n = 0;
	int r;

	if (x->clerk.fd < 0) /* the bytes come before the end */
		return exchange_flush(o, x, &n) == -EAGAIN ? -EAGAIN : 0;
	r = out_end(&x->to_edge, x->clerk.fd, &x->clerk.is_shut);
	if (r > 0 || (r == -EAGAIN && out_len(&x->to_edge)))
		watch_clerk(o, x, true);
	return r == 0 ? 0 : -EAGAIN;
}

/* Closing a socket with unread bytes of a clerk would cut off what it has yet to read. */
bool exchange_is_settled(const struct exchange *x)
{
	bool is_read =
		x->edge || (x->talk && x->talk->up.phase == CANON_OVER && x->clerk.n_early == 0);

	return is_read && out_len(&x->to_edge) == 0;
}

void exchange_close_edge(struct origin *o, struct exchange *x)
{
	if (x->edge)
		mux_close(TAKE(x->edge));
	if (x->clerk.fd >= 0)
		loop_del(&o->loop, x->clerk.fd);
	fd_close(&x->clerk.fd);
	free(TAKE(x->clerk.early));
	x->clerk.n_early = 0;
	out_done(&x->to_edge);
}
