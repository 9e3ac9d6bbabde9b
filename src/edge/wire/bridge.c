/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"

static_assert(EDGE_MAX_STREAMS == WIRE_MAX_STREAMS, "a slot for each stream");
static_assert(EDGE_MAX_PATH <= WIRE_MAX_PATH, "each path fits");

static struct loop_key bridge_key(const struct edge *e, const struct bridge *b, enum edge_ev kind)
{
	return (struct loop_key){
		.kind = (uint8_t)kind, .gen = b->gen, .idx = (uint32_t)(b - e->bridges)};
}

/* A stale event carries an older generation. */
static struct bridge *find_bridge(struct edge *e, struct loop_key key)
{
	struct bridge *b = &e->bridges[key.idx];

	return b->used && !b->over_due && b->gen == key.gen ? b : NULL;
}

void bridge_free(struct edge *e, struct bridge *b)
{
	uint32_t gen = b->gen;

	if (b->fd >= 0)
		loop_del(&e->loop, b->fd);
	fd_close(&b->fd);
	loop_timer_clear(&e->loop, &b->linger);
	bufq_done(&b->to_host);
	*b = (struct bridge){.gen = (gen + 1) & 0xffffff, .fd = -1};
}

/* Frees everything of the bridge except its last report to the keeper. */
static void finish_bridge(struct edge *e, struct bridge *b, enum edge_reason reason)
{
	if (b->stream)
		wire_reset(e->wire, b->sid);
	b->stream = false;
	loop_timer_clear(&e->loop, &b->linger);
	if (b->fd >= 0)
		loop_del(&e->loop, b->fd);
	fd_close(&b->fd);
	bufq_done(&b->to_host);
	b->reason = reason;
	b->over_due = true;
	e->keeper->report(e, b);
}

/* Sends as much as the socket accepts; negative if it is broken. */
static ssize_t send_some(int fd, struct slice bytes)
{
	ssize_t r;

	do {
		r = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno == EAGAIN ? 0 : -errno;
	return r;
}

/* The keeper passes connections to published ports so that closing them is a reset: cut data must
 * not look complete. From here on all data was sent. */
static void end_in_order(struct bridge *b)
{
	const struct linger off = {0};

	(void)setsockopt(b->fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	(void)shutdown(b->fd, SHUT_WR);
}

/* Called when to_host is empty: forwards the guest's end, and closes a finished bridge. */
static void host_drained(struct edge *e, struct bridge *b)
{
	bufq_trim(&b->to_host);
	if (b->guest_ended)
		end_in_order(b);
	if (!b->stream)
		finish_bridge(e, b, EDGE_REASON_GUEST);
}

static void drain_to_host(struct edge *e, struct bridge *b)
{
	while (bufq_len(&b->to_host)) {
		ssize_t r = send_some(b->fd, bufq_peek(&b->to_host));

		if (r < 0) {
			finish_bridge(e, b, EDGE_REASON_GONE);
			return;
		}
		if (r == 0)
			return;
		bufq_consume(&b->to_host, (size_t)r);
		if (b->stream)
			wire_consumed(e->wire, b->sid, (size_t)r);
	}
	host_drained(e, b);
}

static struct bridge *find_free(struct edge *e)
{
	for (size_t i = 0; i < EDGE_MAX_STREAMS; i++) {
		if (!e->bridges[i].used)
			return &e->bridges[i];
	}
	return NULL;
}

static enum edge_reason reason_of(int r)
{
	return r == -EBUSY ? EDGE_REASON_FULL : r == -EPIPE ? EDGE_REASON_IDS : EDGE_REASON_GONE;
}

void bridge_open(struct edge *e, uint32_t id, const char *path, int fd)
{
	struct bridge *b = find_free(e);
	int r;

	/* Only a keeper that opens without waiting for CLOSED gets here. */
	if (!b) {
		fd_close(&fd);
		e->keeper->refuse(e, id);
		return;
	}
	b->used = true;
	b->id = id;
	b->fd = fd;
	bufq_init(&b->to_host, WIRE_STREAM_WINDOW);
	r = fd_set_nonblock(fd, true);
	/* Edge-triggered: one registration for its lifetime, and one event for a hang-up. */
	if (r == 0)
		r = loop_add(&e->loop, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
			bridge_key(e, b, EDGE_EV_BRIDGE));
	if (r == 0)
		r = wire_open(e->wire, path, (uint32_t)(b - e->bridges), &b->sid);
	if (r < 0)
		finish_bridge(e, b, reason_of(r));
	else
		b->stream = true;
}

/* The peer has closed. Its earlier data may still be sent to the guest for a short time. The guest
 * gets a reset, since its answer will not be read. */
static void on_hup(struct edge *e, struct bridge *b)
{
	if (b->hup)
		return;
	b->hup = true;
	if (!b->stream || bufq_len(&b->to_host) || (b->host_ended && !b->guest_ended))
		finish_bridge(e, b, EDGE_REASON_GONE);
	else if (!b->guest_ended)
		loop_timer_set(&e->loop, &b->linger, clock_mono_ms() + EDGE_LINGER_MS,
			bridge_key(e, b, EDGE_EV_LINGER));
}

void bridge_on_event(struct edge *e, struct loop_event ev)
{
	struct bridge *b = find_bridge(e, ev.key);

	if (b && ev.events & EPOLLOUT && bufq_len(&b->to_host)) {
		drain_to_host(e, b);
		b = find_bridge(e, ev.key);
	}
	if (b && ev.events & (EPOLLHUP | EPOLLERR)) {
		on_hup(e, b);
		b = find_bridge(e, ev.key);
	}
	if (b && b->stream && ev.events & ~EPOLLOUT)
		wire_resume(e->wire, b->sid);
}

void bridge_on_linger(struct edge *e, struct loop_key key)
{
	struct bridge *b = find_bridge(e, key);

	if (b && !b->guest_ended)
		finish_bridge(e, b, EDGE_REASON_GONE);
}

static void on_ready(void *ctx)
{
	struct edge *e = ctx;

	e->keeper->ready(e);
}

static void on_reply(void *ctx, uint32_t sid, uint32_t slot, unsigned status)
{
	struct edge *e = ctx;
	struct bridge *b = &e->bridges[slot];

	b->replied = b->opened_due = true;
	b->status = (uint16_t)status;
	e->keeper->report(e, b);
}

static void on_data(void *ctx, uint32_t sid, uint32_t slot, struct slice bytes)
{
	struct edge *e = ctx;
	struct bridge *b = &e->bridges[slot];
	ssize_t r = bufq_len(&b->to_host) ? 0 : send_some(b->fd, bytes);
	size_t put;

	if (r < 0) {
		finish_bridge(e, b, EDGE_REASON_GONE);
		return;
	}
	wire_consumed(e->wire, sid, (size_t)r);
	if ((size_t)r == bytes.n)
		return;
	put = bufq_put(&b->to_host, slice_of(bytes.p + r, bytes.n - (size_t)r));
	/* lib/wire/wire limits the data to the window, which is the size of to_host. */
	assert(put == bytes.n - (size_t)r);
}

static void on_end(void *ctx, uint32_t sid, uint32_t slot)
{
	struct edge *e = ctx;
	struct bridge *b = &e->bridges[slot];

	b->guest_ended = true;
	loop_timer_clear(&e->loop, &b->linger);
	if (bufq_len(&b->to_host) == 0)
		host_drained(e, b);
}

/* After a reset too, earlier data is delivered first: a guest that has sent everything may reset
 * its stream to reject further input. */
static void on_close(void *ctx, uint32_t sid, uint32_t slot, int error)
{
	struct edge *e = ctx;
	struct bridge *b = &e->bridges[slot];

	b->stream = false;
	if (b->hup || bufq_len(&b->to_host) == 0)
		finish_bridge(e, b, b->hup ? EDGE_REASON_GONE : EDGE_REASON_GUEST);
}

static ssize_t pull_bridge(void *ctx, uint32_t sid, uint32_t slot, uint8_t *buf, size_t n)
{
	struct edge *e = ctx;
	struct bridge *b = &e->bridges[slot];
	ssize_t r;

	do {
		r = read(b->fd, buf, n);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	if (r > 0)
		return r;
	b->host_ended = true;
	return b->hup && !b->guest_ended ? -ECONNRESET : 0;
}

const struct wire_ops bridge_wire_ops = {
	.on_ready = on_ready,
	.on_reply = on_reply,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull_bridge,
};
