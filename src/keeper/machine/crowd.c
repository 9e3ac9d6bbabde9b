/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

#include <errno.h>
#include "machine.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

static void let_go_on(struct keeper *k)
{
	loop_timer_clear(&k->loop, &k->crowd->timer);
	for (size_t i = 0; i < k->crowd->n; i++)
		room_go_on(&k->share.room, k->crowd->held[i]);
	k->crowd->n = 0;
}

static void on_answer(struct keeper *k)
{
	k->crowd->is_asking = false;
	k->crowd->asked_ms = clock_mono_ms();
	let_go_on(k);
}

static const struct ask_kind forget_ask = {GUEST_PATH_FORGET, .on_over = on_answer};

/* True if a request to the guest is under way. */
static bool is_asked(struct keeper *k, unsigned number)
{
	struct crowd *c = k->crowd;
	bool is_last = number >= k->share.room.nofile - k->share.room.nofile / 8;

	if (c->is_asking)
		return true;
	if (c->was_asked && !is_last && clock_mono_ms() - c->asked_ms < CROWD_PAUSE_MS)
		return false;
	if (k->state.phase != KEEPER_RUNNING ||
		ask_guest(k, &forget_ask, slice_of(NULL, 0), CROWD_ASK_MS, -1, 0) < 0)
		return false;
	if (!c->was_asked)
		log_info(
			"the guest caches many workspace files: requesting it to drop unused ones (virtiofsd can open at most %u)",
			k->share.room.nofile);
	c->is_asking = c->was_asked = true;
	return true;
}

void crowd_on_lookup(struct keeper *k)
{
	struct crowd *c = k->crowd;
	struct room_wait w;
	int r = room_next(&k->share.room, &w);

	if (r == -EAGAIN)
		return;
	if (r < 0) { /* virtiofsd or the supervisor exited: EV_SHARE_END follows */
		loop_del(&k->loop, k->share.room.fd);
		return;
	}
	if (c->n == CROWD_MAX || !is_asked(k, w.number)) {
		room_go_on(&k->share.room, w.id);
		return;
	}
	if (c->n == 0)
		loop_timer_set(&k->loop, &c->timer, clock_mono_ms() + CROWD_HOLD_MS,
			(struct loop_key){.kind = EV_TIMER_CROWD});
	c->held[c->n++] = w.id;
}

void crowd_on_timer(struct keeper *k)
{
	let_go_on(k);
}

void crowd_drop(struct keeper *k)
{
	loop_timer_clear(&k->loop, &k->crowd->timer);
	k->crowd->n = 0;
	if (k->share.room.fd >= 0)
		loop_del(&k->loop, k->share.room.fd);
}
