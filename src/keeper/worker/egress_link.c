/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_link - the keeper's side of lib/os/ipc/egress_chan.h, and the life of the egress process.
 *
 * How      egress_start spawns sbx-egress in its jail. After HELLO it gets settings, resolver and
 *          policy; after it has loaded the policy it gets exchanges (net.c). When egress exits, its
 *          connections are closed. Another egress starts after a pause that grows if the last one
 *          did not run long.
 * Trust    egress may be compromised by a server or a resolver. Every message is checked against
 *          the phase table. A violation kills egress; after WORKER_MAX_VIOLATIONS the sandbox is
 *          stopped.
 */
#include "worker.h"

#include <errno.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"

void egress_start(struct keeper *k)
{
	struct worker *w = &k->egress->worker;
	bool is_wanted = k->state.phase == KEEPER_STARTING || k->state.phase == KEEPER_RUNNING;
	struct err err = {0};
	int r;

	loop_timer_clear(&k->loop, &w->timer);
	if (w->alive || !is_wanted)
		return;
	/* The first loss starts the grace period of waiting asks; a later one does not extend
	 * it. */
	if (!k->egress->lost_ms)
		k->egress->lost_ms = clock_mono_ms();
	r = worker_start(k, w, &err);
	if (r < 0) {
		log_error("%s", err_text(&err, r));
		worker_restart(k, w);
	}
}

static void drop_egress(struct keeper *k, struct worker *w, const char *why)
{
	if (k->egress->has_policy)
		k->egress->lost_ms = clock_mono_ms();
	k->egress->has_policy = false;
	k->egress->n_loaded = k->egress->n_sent;
	k->egress->ops->on_end(k);
}

void egress_kill(struct keeper *k)
{
	worker_stop(k, &k->egress->worker, "");
}

/* Restarts are not limited: without egress all traffic is blocked, nothing worse. */
void egress_on_exit(struct keeper *k)
{
	worker_on_exit(k, &k->egress->worker);
	worker_restart(k, &k->egress->worker);
}

void egress_restart(struct keeper *k, const char *why)
{
	if (!k->egress->worker.alive)
		return;
	log_error("sbx-egress %s: killed", why);
	egress_kill(k);
	worker_restart(k, &k->egress->worker);
}

static void count_violation(struct keeper *k, struct worker *w)
{
	if (w->violations >= WORKER_MAX_VIOLATIONS)
		k->life->stop(k, 0, "sbx-egress violated its protocol repeatedly: see keeper.log");
	else
		worker_restart(k, w);
}

static int send_config(struct keeper *k, struct worker *w, struct err *err)
{
	/* Egress may have been killed meanwhile, which is not its fault. */
	if (k->egress->ops->configure(k) < 0)
		egress_restart(k, "did not take its configuration");
	return 0;
}

/* The number must be of a policy that was sent and not confirmed. If two were sent close together,
 * egress may confirm the second only. */
static int on_loaded(struct keeper *k, const struct ipc_msg *msg)
{
	char text[EGRESS_MAX_TEXT];
	uint32_t waiting = k->egress->n_sent - k->egress->n_loaded;
	int r = egress_get_loaded(msg, text);

	if (r < 0 || msg->id == k->egress->n_loaded || msg->id - k->egress->n_loaded > waiting)
		return -EBADMSG;
	k->egress->n_loaded = msg->id;
	k->egress->has_policy = true;
	k->egress->ops->on_loaded(k, text);
	return 0;
}

static int take_message(struct keeper *k, struct worker *w, struct ipc_msg *msg, struct err *err)
{
	switch (msg->type) {
	case EGRESS_LOADED:
		return on_loaded(k, msg);
	case EGRESS_RESULT:
		return k->egress->ops->on_result(k, msg);
	case EGRESS_LOGIN:
		return k->egress->ops->on_login(k, msg);
	case EGRESS_CLOSED:
		return k->egress->ops->on_closed(k, msg);
	default:
		return -EBADMSG;
	}
}

static void tell_room(struct keeper *k, struct worker *w)
{
	k->egress->ops->on_room(k);
}

static const struct worker_ops egress_worker = {
	.program = "sbx-egress",
	.profile = JAIL_EGRESS,
	.ev_message = EV_EGRESS,
	.ev_end = EV_EGRESS_END,
	.ev_timer = EV_TIMER_EGRESS,
	.chan = &egress_chan,
	.gap_ms = KEEPER_EGRESS_GAP_MS,
	.max_gap_ms = KEEPER_EGRESS_MAX_GAP_MS,
	.steady_ms = KEEPER_EGRESS_STEADY_MS,
	.on_hello = send_config,
	.on_message = take_message,
	.on_room = tell_room,
	.on_end = drop_egress,
	.on_violation = count_violation,
};

void egress_init(struct keeper *k, const struct egress_ops *ops)
{
	worker_init(&k->egress->worker, &egress_worker, 0);
	k->egress->ops = ops;
}

bool egress_is_live(const struct keeper *k, struct loop_key key)
{
	return worker_is_current(&k->egress->worker, key);
}

void egress_on_event(struct keeper *k, const struct loop_event *ev)
{
	worker_on_event(k, &k->egress->worker, ev);
}

void egress_want_room(struct keeper *k)
{
	worker_want_room(k, &k->egress->worker);
}

bool egress_is_alive(const struct keeper *k)
{
	return k->egress->worker.alive;
}

bool egress_is_up(const struct keeper *k)
{
	return k->egress->worker.alive && k->egress->worker.phase == EGRESS_PHASE_RUN &&
	       k->egress->has_policy;
}
