/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle - suspends a sandbox that is idle for spec.idle_s, or when it is stopped.
 *
 * How      A sandbox is idle if no session and no connection to a published port is open, and the
 *          guest's programs used less than KEEPER_IDLE_PERCENT of one CPU between two checks. An
 *          agent that works without a terminal is not suspended; an agent that waits for input is.
 *          A check requests /stats; use of the sandbox restarts the time. A sandbox with network
 *          traffic in the last KEEPER_IDLE_TRAFFIC_MS is not suspended either. One that sbxd is to
 *          stop is idle if no stream is open as above, and no session runs in the guest without a
 *          client. It is suspended if its memory is a file: then only the device state is written.
 * Trust    The numbers come from the guest: wrong ones suspend it too early or too late, nothing
 *          else.
 * Limits   KEEPER_IDLE_LOOK_MS: longest time between two checks. KEEPER_IDLE_TRAFFIC_MS.
 */
#include "memory.h"

#include <errno.h>
#include <string.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define LEAST_LOOK_MS 1000

static void look_later(struct keeper *k)
{
	uint64_t ms = MIN((uint64_t)k->spec.idle_s * 1000 / 2, (uint64_t)KEEPER_IDLE_LOOK_MS);

	loop_timer_set(&k->loop, &k->idle->timer,
		clock_mono_ms() + MAX(ms, (uint64_t)LEAST_LOOK_MS),
		(struct loop_key){.kind = EV_TIMER_IDLE});
}

static void restart_time(struct keeper *k)
{
	k->idle->since_ms = clock_mono_ms();
	k->idle->has_look = false;
}

void idle_start(struct keeper *k)
{
	restart_time(k);
	if (k->spec.idle_s)
		look_later(k);
}

static bool is_in_use(const struct keeper *k)
{
	return k->state.phase != KEEPER_RUNNING || k->state.sessions > 0 || k->ports->n_conns > 0 ||
	       !edge_is_up(k);
}

/* A suspend closes connections to the outside: no exchange is open, and neither exchanges nor
 * published ports had traffic for KEEPER_IDLE_TRAFFIC_MS. */
static bool has_traffic(struct keeper *k)
{
	uint64_t now = clock_mono_ms();

	if (net_is_open(k->net) || origins_are_busy(k) || clerks_are_busy(k))
		k->net->last_ms = now;
	return (k->net->last_ms && now - k->net->last_ms < KEEPER_IDLE_TRAFFIC_MS) ||
	       (k->ports->last_ms && now - k->ports->last_ms < KEEPER_IDLE_TRAFFIC_MS);
}

/* sbxd resumes the sandbox when a client connects to a published port. */
static bool can_be_woken(const struct keeper *k)
{
	return !k->ports->n || link_is_up(k);
}

static bool has_worked(const struct idle *i, const struct keeper_stats *now)
{
	uint64_t cpu = now->cpu_ms - i->cpu_ms, time = now->uptime_ms - i->uptime_ms;

	return now->cpu_ms < i->cpu_ms || now->uptime_ms <= i->uptime_ms ||
	       cpu * 100 >= time * KEEPER_IDLE_PERCENT;
}

static void on_stats(struct keeper *k, const struct ask *a, struct slice body)
{
	struct keeper_stats stats = {0};
	struct err err = {0};
	int r;

	if (guest_get_stats(body, &stats) < 0)
		return;
	if (is_in_use(k) || (k->idle->has_look && has_worked(k->idle, &stats)))
		restart_time(k);
	k->idle->has_look = !is_in_use(k);
	k->idle->cpu_ms = stats.cpu_ms;
	k->idle->uptime_ms = stats.uptime_ms;
	if (is_in_use(k) || has_traffic(k) || !can_be_woken(k) ||
		clock_mono_ms() - k->idle->since_ms < (uint64_t)k->spec.idle_s * 1000)
		return;
	log_info("idle for %u s: suspending", (unsigned)k->spec.idle_s);
	r = suspend_begin(k, SUSPEND_BY_IDLE, -1, 0, &err);
	if (r < 0) {
		log_warn("%s", err_text(&err, r));
		restart_time(k);
	}
}

static const struct ask_kind idle_ask = {GUEST_PATH_STATS, .on_body = on_stats};

void idle_on_timer(struct keeper *k)
{
	if (k->state.phase == KEEPER_STOPPING || k->state.phase == KEEPER_STOPPED)
		return;
	look_later(k);
	if (is_in_use(k))
		restart_time(k);
	else if (ask_guest(k, &idle_ask, slice_of(NULL, 0), KEEPER_ASK_MS, -1, 0) < 0)
		log_warn("cannot check whether the sandbox is idle");
}

/* ---- stop ---- */

static bool has_session(const struct keeper_stats *s)
{
	for (uint32_t i = 0; i < s->n_sessions; i++)
		if (!(s->sessions[i].flags & KEEPER_SESSION_ENDED))
			return true;
	return false;
}

static void suspend_to_stop(struct keeper *k, const struct ask *a, struct slice body)
{
	struct keeper_stats stats = {0};
	struct err err = {0};
	int r;

	if (!link_find(k, a->link, a->link_gen))
		return;
	if (guest_get_stats(body, &stats) < 0)
		r = err_set(&err, -EBUSY, "the guest did not respond");
	else if (is_in_use(k) || has_session(&stats))
		r = err_set(&err, -EBUSY, "the sandbox is in use");
	else
		r = suspend_begin(k, SUSPEND_BY_STOP, a->link, a->link_msg, &err);
	if (r < 0)
		link_answer(k, a->link, a->link_gen, a->link_msg, r, err_text(&err, r));
}

static const struct ask_kind stop_ask = {GUEST_PATH_STATS, .on_body = suspend_to_stop};

void idle_begin_stop(struct keeper *k, int link, uint32_t msg)
{
	int r = -EBUSY;

	if (k->memory_dir && !is_in_use(k) && !k->state.paused && !machine_is_stalled(k))
		r = ask_guest(k, &stop_ask, slice_of(NULL, 0), KEEPER_ASK_MS, link, msg);
	if (r < 0)
		link_answer(k, link, k->links[link].gen, msg, r,
			"the sandbox is in use, or its memory is not in a file");
}
