/* SPDX-License-Identifier: Apache-2.0 */
/* The channels to origins: one for all requests to one intercepted host. Runs in sbx-edge and sees
 * the bytes of an sbx-origin that a server may have compromised. */
#include "conn.h"

#include <errno.h>
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/wire/mux/mux_sock.h"
#include "src/edge/wire/wire.h"

static struct loop_key key_of(const struct channel *ch)
{
	return (struct loop_key){.kind = EDGE_EV_CHANNEL, .gen = ch->id};
}

struct channel *channel_find(const struct edge *e, uint32_t id)
{
	struct channel *ch = e->net->channels;

	while (ch && ch->id != id)
		ch = ch->next;
	return ch && ch->fd >= 0 ? ch : NULL;
}

void channel_add(struct edge *e, uint32_t id, int fd)
{
	struct channel *ch = xcalloc(1, sizeof(*ch));

	*ch = (struct channel){.next = e->net->channels, .id = id, .fd = fd, .watched = EPOLLIN};
	e->net->channels = ch;
	if (loop_add(&e->loop, fd, ch->watched, key_of(ch)) < 0)
		fd_close(&ch->fd);
}

void channel_refuse(struct edge *e, uint32_t id, uint32_t stream)
{
	struct channel *ch = channel_find(e, id);
	struct mux_stream *s = ch ? mux_open(&ch->mux, stream) : NULL;

	if (s)
		mux_close(s);
}

/* Its streams get their end. */
static void drop_channel(struct edge *e, struct channel *ch)
{
	loop_del(&e->loop, ch->fd);
	fd_close(&ch->fd);
	mux_restart(&ch->mux);
}

/* A stream that is not open here was closed before origin knew. */
static int feed_channel(struct channel *ch, struct slice in)
{
	int r;

	do {
		r = mux_feed(&ch->mux, &in);
	} while (r == 1);
	return r;
}

void channel_on_event(struct edge *e, uint32_t id, uint32_t events)
{
	struct channel *ch = channel_find(e, id);
	struct slice in;
	int r = -EAGAIN;

	if (!ch)
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		r = mux_recv(ch->fd, port_buf, sizeof(port_buf), &in);
	if (r == 0)
		r = feed_channel(ch, in);
	if (r == -EBADMSG)
		log_warn("sbx-origin violated the protocol of the channel: it is closed");
	if (r < 0 && r != -EAGAIN)
		drop_channel(e, ch);
}

struct conn *channel_next(struct edge *e, uint32_t *ret_events)
{
	for (struct channel *ch = e->net->channels; ch; ch = ch->next) {
		unsigned events;
		struct mux_stream *s = mux_next(&ch->mux, &events);

		if (!s)
			continue;
		*ret_events = (events & MUX_READABLE ? EPOLLIN : 0U) |
			      (events & MUX_WRITABLE ? EPOLLOUT : 0U) |
			      (events & MUX_GONE ? EPOLLHUP : 0U);
		return e->net->conns[s->idx];
	}
	return NULL;
}

static void flush_one(struct edge *e, struct channel *ch)
{
	uint32_t events;

	if (mux_flush(&ch->mux, ch->fd) == -EPIPE) {
		drop_channel(e, ch);
		return;
	}
	events = (mux_out(&ch->mux).n ? EPOLLOUT : 0U) | (mux_may_feed(&ch->mux) ? EPOLLIN : 0U);
	if (events == ch->watched)
		return;
	ch->watched = events;
	(void)!loop_mod(&e->loop, ch->fd, events, key_of(ch));
}

bool channel_flush(struct edge *e)
{
	struct channel **at = &e->net->channels;
	bool any = false;

	while (*at) {
		struct channel *ch = *at;

		if (ch->fd >= 0)
			flush_one(e, ch);
		any = any || ch->mux.n_noted;
		if (ch->fd < 0 && !ch->mux.n_streams) {
			*at = ch->next;
			mux_done(&ch->mux);
			free(ch);
		} else {
			at = &ch->next;
		}
	}
	return any;
}
