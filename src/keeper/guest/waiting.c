/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waiting - streams that were requested while a new edge is being started.
 *
 * How      A user's exec during a restart of edge is held and not rejected. It is opened when edge
 *          sends READY. It fails after KEEPER_WAIT_MS or when the sandbox stops.
 * Trust    Holds connections of the same user; reads no data from them.
 * Limits   KEEPER_MAX_WAITING, KEEPER_WAIT_MS (below the 5 s that sbxd waits for an answer).
 */
#include "guest.h"

#include <errno.h>
#include "lib/base/clock.h"

const struct stream_kind session_stream = {.is_session = true};

void waiting_init(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_WAITING; i++)
		k->waiting[i].fd = -1;
}

bool waiting_is_live(const struct keeper *k, struct loop_key key)
{
	return k->waiting[key.idx].fd >= 0 && k->waiting[key.idx].gen == key.gen;
}

static void answer_link(struct keeper *k, struct waiting *w, int code, const char *text)
{
	loop_timer_clear(&k->loop, &w->timer);
	fd_close(&w->fd);
	w->gen = (w->gen + 1) & 0xffffff;
	link_answer(k, w->link, w->link_gen, w->msg, code, text);
}

int waiting_add(struct keeper *k, int link, uint32_t msg, int fd)
{
	size_t i = 0;
	struct waiting *w;

	while (i < KEEPER_MAX_WAITING && k->waiting[i].fd >= 0)
		i++;
	if (i == KEEPER_MAX_WAITING) {
		fd_close(&fd);
		return -EMFILE;
	}
	w = &k->waiting[i];
	w->fd = fd;
	w->link = link;
	w->link_gen = k->links[link].gen;
	w->msg = msg;
	loop_timer_set(&k->loop, &w->timer, clock_mono_ms() + KEEPER_WAIT_MS,
		(struct loop_key){.kind = EV_TIMER_WAIT, .gen = w->gen, .idx = (uint32_t)i});
	return 0;
}

void waiting_flush(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_WAITING; i++) {
		struct waiting *w = &k->waiting[i];
		uint32_t stream;
		int r;

		if (w->fd < 0)
			continue;
		r = edge_open_stream(k, GUEST_PATH_EXEC, TAKE_FD(w->fd), &session_stream, &stream);
		answer_link(k, w, r, r < 0 ? "cannot open the stream" : "");
	}
}

void waiting_drop_all(struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_MAX_WAITING; i++)
		if (k->waiting[i].fd >= 0)
			answer_link(k, &k->waiting[i], -EAGAIN, "the sandbox is stopping");
}

void waiting_on_timeout(struct keeper *k, const struct loop_event *ev)
{
	answer_link(
		k, &k->waiting[ev->key.idx], -EAGAIN, "the connection to the guest is restarting");
}
