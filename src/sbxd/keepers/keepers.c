/* SPDX-License-Identifier: Apache-2.0 */
/* The events of keepers: messages, exits and timers. */
#include "keepers_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/hands/hands.h"
#include "src/sbxd/http/http.h"
#include "lib/base/log.h"

static bool same_state(const struct keeper_state *a, const struct keeper_state *b)
{
	return a->phase == b->phase && a->progress == b->progress && a->sessions == b->sessions &&
	       a->boot_ms == b->boot_ms && a->qemu_pid == b->qemu_pid && a->stalled == b->stalled &&
	       a->how == b->how && a->suspended == b->suspended && a->paused == b->paused &&
	       strcmp(a->accel, b->accel) == 0 && strcmp(a->text, b->text) == 0 &&
	       strcmp(a->cold_why, b->cold_why) == 0;
}

/* The VM had to boot for lack of a snapshot, and is now up. */
static bool misses_image(const struct keeper_state *was, const struct keeper_state *is)
{
	return is->phase == KEEPER_RUNNING && was->phase == KEEPER_STARTING &&
	       is->how == KEEPER_HOW_COLD && is->cold_why[0] &&
	       strcmp(is->cold_why, KEEPER_COLD_ASKED) != 0 &&
	       strcmp(is->cold_why, KEEPER_COLD_OWN) != 0;
}

static void tally_start(struct sbxd *d, struct keeper *k)
{
	struct tally *t = &d->keepers->runs.starts[k->state.how];

	if (k->is_counted || !k->child || k->state.phase != KEEPER_RUNNING)
		return;
	k->is_counted = true;
	t->n++;
	t->us += (uint64_t)k->state.boot_ms * 1000;
}

static int take_state(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	struct keeper_state state;
	bool changed;
	int r = keeper_get_state(msg, &state);

	if (r < 0)
		return r;
	changed = !k->has_state || k->ping_ms || !same_state(&state, &k->state);
	if (state.qemu_pid != k->state.qemu_pid)
		keeper_note_qemu(k, state.qemu_pid);
	if (k->child && k->has_state && misses_image(&k->state, &state))
		images_want(d, k->id, state.accel);
	k->state = state;
	k->has_state = true;
	k->ping_ms = 0;
	if (keeper_is_pooled(k)) {
		pool_on_state(d, k);
	} else if (changed) {
		tally_start(d, k);
		autosave_look(d, k->id);
		d->keepers->ops->on_change(d, k->id);
		conns_wake(d, k->id);
		starts_look(d);
	}
	return 0;
}

static int take_hello(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	struct keeper_hello hello;
	int r = keeper_get_hello(msg, &hello);

	if (r < 0)
		return r;
	if (k->has_hello || strcmp(hello.id, k->id) != 0 || hello.pid != (uint32_t)k->pid)
		return -EBADMSG;
	k->other_build = strcmp(hello.build, SBX_VERSION) != 0;
	if (k->other_build)
		log_warn("keeper of %s is of build %.40s, not " SBX_VERSION, k->id, hello.build);
	k->has_hello = true;
	if (k->child)
		reload_push(d, k);
	else
		reload_adopted(d, k);
	/* The list may have changed while no sbxd was running. */
	k->ports_due = k->ports_due || !k->child;
	ports_push(d, k);
	return 0;
}

static int take_done(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	struct keeper_done done;
	int r = keeper_get_done(msg, &done);

	if (r < 0)
		return r;
	if (!reload_on_done(d, k, msg->id, done.code, done.text) &&
		!pool_on_done(d, k, msg->id, done.code, done.text))
		d->keepers->ops->on_done(d, k, msg->id, &done);
	return 0;
}

static int take_stats(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	struct keeper_stats stats;
	int r = keeper_get_stats(msg, &stats);

	return r < 0 ? r : d->keepers->ops->on_stats(d, k, msg->id, &stats);
}

static int take_frozen(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	struct keeper_frozen frozen;
	int r = keeper_get_frozen(msg, &frozen);

	if (r == 0)
		d->keepers->ops->on_frozen(d, k, msg->id, &frozen);
	return r;
}

static int take_want(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	int r = keeper_get_nothing(msg);

	if (r == 0)
		d->keepers->ops->on_want_vault(d, k);
	return r;
}

static int take_message(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	static int (*const takes[KEEPER_N_MSGS])(
		struct sbxd * d, struct keeper * k, const struct ipc_msg *msg) = {
		[KEEPER_HELLO] = take_hello,
		[KEEPER_STATE] = take_state,
		[KEEPER_DONE] = take_done,
		[KEEPER_STATS_IS] = take_stats,
		[KEEPER_PORTS_ARE] = ports_on_message,
		[KEEPER_FROZEN] = take_frozen,
		[KEEPER_WANT_VAULT] = take_want,
		[KEEPER_HELD] = holds_on_held,
		[KEEPER_UNHELD] = holds_on_unheld,
	};

	if (msg->fd >= 0 || (msg->type != KEEPER_HELLO && !k->has_hello))
		return -EBADMSG;
	k->last_word_ms = clock_mono_ms();
	return msg->type < KEEPER_N_MSGS && takes[msg->type] ? takes[msg->type](d, k, msg)
							     : -EBADMSG;
}

/* The keeper closed its side or violated the protocol: only its exit is awaited now. */
static void lose_channel(struct sbxd *d, struct keeper *k, uint64_t grace_ms)
{
	uint64_t at = clock_mono_ms() + grace_ms;

	keeper_close_channel(d, k);
	if (!k->kill_at_ms || at < k->kill_at_ms)
		k->kill_at_ms = at;
	keeper_set_timer(d, k);
}

/* Returns true while there may be more messages. */
static bool read_one(struct sbxd *d, struct keeper *k)
{
	struct ipc_msg msg = {.fd = -1};
	uint32_t gen = k->gen;
	int r = ipc_recv(k->sock, &msg);

	if (r == -EAGAIN)
		return false;
	if (r == 0) {
		lose_channel(d, k, KEEPER_GRACE_MS);
		return false;
	}
	if (r > 0) {
		r = take_message(d, k, &msg);
		ipc_msg_done(&msg);
	}
	if (k->gen != gen)
		return false;
	if (r < 0) {
		log_error(
			"keeper of %s (pid %d) violated its protocol: killed", k->id, (int)k->pid);
		(void)snprintf(k->state.text, sizeof(k->state.text),
			"sbx-keeper violated its protocol and was killed");
		k->broken = true;
		lose_channel(d, k, 0);
		return false;
	}
	return k->sock >= 0;
}

/* Returns NULL if the slot was freed meanwhile. */
static struct keeper *read_messages(struct sbxd *d, struct loop_key key)
{
	struct keeper *k = keeper_at(d, key);

	for (int i = 0; k && k->sock >= 0 && i < KEEPER_BURST; i++)
		if (!read_one(d, k))
			break;
	return keeper_at(d, key);
}

void keeper_on_message(struct sbxd *d, const struct loop_event *ev)
{
	struct keeper *k = read_messages(d, ev->key);

	if (!k)
		return;
	reload_push(d, k);
	ports_push(d, k);
}

void keeper_on_exit(struct sbxd *d, const struct loop_event *ev)
{
	struct keeper *k = read_messages(d, ev->key); /* its last message has the reason */

	if (!k)
		return;
	/* Processes that it forked have its group's number and are killed too. The number is not
	 * reused before the keeper is reaped. */
	if (k->child)
		hands_signal(k->pidfd, HANDS_KILL_GROUP);
	else
		hands_kill_rest(k->id);
	if (!pool_on_exit(d, k))
		keeper_gone(d, k);
}

void keeper_on_timer(struct sbxd *d, const struct loop_event *ev)
{
	struct keeper *k = keeper_at(d, ev->key);
	uint64_t now = clock_mono_ms();

	if (!k)
		return;
	if (k->seeking)
		keeper_reconnect(d, k);
	if (k->gen != ev->key.gen || !k->kill_at_ms)
		return;
	/* Stopping: the guest had its timeout, now the keeper gets a little more. */
	if (k->sock >= 0 && k->stop_asked_ms && k->last_word_ms > k->stop_asked_ms) {
		k->stop_asked_ms = 0;
		k->kill_at_ms = now + KEEPER_GRACE_MS;
	}
	if (k->kill_at_ms <= now) {
		keeper_kill(k);
		k->kill_at_ms = now + KEEPER_GRACE_MS;
	}
	keeper_set_timer(d, k);
}
