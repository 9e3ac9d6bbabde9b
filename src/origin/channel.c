/* SPDX-License-Identifier: Apache-2.0 */
/* The channel to sbx-edge, with all exchanges as streams. Runs in sbx-origin and sees the bytes of
 * an edge that may be compromised. A stream exists if the keeper has sent an OPEN with its number,
 * which it does before edge gets that number: so a stream that is not known after all messages of
 * the keeper were received is refused. */
#include "origin.h"

#include <errno.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/wire/mux/mux_sock.h"

static uint8_t buf[65536];
static struct slice rest; /* of buf: read and not fed */
static uint32_t watched;
/* The next frame may need an OPEN that the keeper cannot send, because it does not read. */
static bool is_stalled;
static struct loop_timer again;

static void watch_channel(struct origin *o)
{
	uint32_t events = mux_out(&o->mux).n ? EPOLLOUT : 0;

	if (!is_stalled && mux_may_feed(&o->mux))
		events |= EPOLLIN;
	if (o->channel < 0 || events == watched)
		return;
	watched = events;
	(void)!loop_mod(&o->loop, o->channel, events, (struct loop_key){.kind = ORIGIN_EV_CHANNEL});
}

/* Each exchange gets the end of its stream in this turn. */
static void drop_channel(struct origin *o)
{
	if (o->channel >= 0)
		loop_del(&o->loop, o->channel);
	fd_close(&o->channel);
	rest = (struct slice){0};
	is_stalled = false;
	mux_restart(&o->mux);
}

void channel_take(struct origin *o, int fd)
{
	static bool is_used;

	if (is_used) {
		drop_channel(o);
		exchange_run_streams(o);
	}
	is_used = true;
	o->channel = fd;
	watched = EPOLLIN;
	if (loop_add(&o->loop, fd, watched, (struct loop_key){.kind = ORIGIN_EV_CHANNEL}) < 0)
		drop_channel(o);
}

static void feed_channel(struct origin *o)
{
	int r;

	is_stalled = false;
	while ((r = mux_feed(&o->mux, &rest)) == 1) {
		uint32_t id = mux_unknown(&o->mux);

		control_drain(&o->control);
		/* a message may have been another channel, which has no such stream */
		is_stalled = rest.p && !mux_find(&o->mux, id) && o->control.is_due;
		if (is_stalled)
			return;
	}
	if (r < 0) {
		log_warn("sbx-edge violated the protocol of the channel: it is closed");
		drop_channel(o);
	}
}

void channel_on_event(struct origin *o, uint32_t events)
{
	int r = -EAGAIN;

	if (events & (EPOLLHUP | EPOLLERR) && is_stalled)
		r = -EPIPE;
	else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		r = mux_recv(o->channel, buf, sizeof(buf), &rest);
	if (r == -EPIPE)
		drop_channel(o);
	else if (r == 0)
		feed_channel(o);
}

void channel_resume(struct origin *o)
{
	if (!is_stalled)
		return;
	control_drain(&o->control);
	if (is_stalled && !o->control.is_due)
		feed_channel(o);
}

void channel_turn(struct origin *o)
{
	if (o->mux.n_noted)
		loop_timer_set(&o->loop, &again, clock_mono_ms(),
			(struct loop_key){.kind = ORIGIN_EV_CHANNEL_TURN});
	if (o->channel < 0 || loop_has_more(&o->loop))
		return;
	if (mux_flush(&o->mux, o->channel) == -EPIPE)
		drop_channel(o);
	watch_channel(o);
}
