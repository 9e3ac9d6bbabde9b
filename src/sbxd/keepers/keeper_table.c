/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keepers: one slot per running sandbox, found by id, and the sandbox's status that
 * follows from a slot. */
#include "keepers_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "src/sbxd/hands/hands.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/rules/settings/settings.h"

void keepers_init(struct keepers *ks, const struct keeper_ops *ops)
{
	*ks = (struct keepers){.ops = ops};
	for (size_t i = 0; i < KEEPER_MAX; i++)
		ks->bucket[i] = -1;
}

static uint32_t bucket_of(const char *id)
{
	uint32_t h = 2166136261u;

	for (; *id; id++)
		h = (h ^ (uint8_t)*id) * 16777619u;
	return h % KEEPER_MAX;
}

struct loop_key keeper_key(struct sbxd *d, const struct keeper *k, enum sbxd_ev kind)
{
	return (struct loop_key){.kind = (uint8_t)kind, .gen = k->gen, .idx = k->idx};
}

struct keeper *keeper_at(struct sbxd *d, struct loop_key key)
{
	struct keeper *k;

	assert(key.idx < d->keepers->n_slots);
	k = d->keepers->slot[key.idx];
	return k->used && k->gen == key.gen ? k : NULL;
}

struct keeper *keeper_find_any(struct sbxd *d, const char *id)
{
	int32_t i = d->keepers->bucket[bucket_of(id)];

	while (i >= 0 && strcmp(d->keepers->slot[i]->id, id) != 0)
		i = d->keepers->slot[i]->next;
	return i >= 0 ? d->keepers->slot[i] : NULL;
}

bool keeper_is_pooled(const struct keeper *k)
{
	return k->pool.place == POOL_WAITS;
}

struct keeper *keeper_find(struct sbxd *d, const char *id)
{
	struct keeper *k = keeper_find_any(d, id);

	return k && keeper_is_pooled(k) ? NULL : k;
}

static void reset_slot(struct keeper *k, uint32_t idx, uint32_t gen)
{
	*k = (struct keeper){.idx = idx, .gen = gen, .sock = -1, .pidfd = -1, .qemu_pidfd = -1};
}

static struct keeper *free_slot(struct keepers *ks)
{
	struct keeper *k;

	for (size_t i = 0; i < ks->n_slots; i++)
		if (!ks->slot[i]->used)
			return ks->slot[i];
	if (ks->n_slots == KEEPER_MAX)
		return NULL;
	k = xcalloc(1, sizeof(*k));
	reset_slot(k, (uint32_t)ks->n_slots, 0);
	ks->slot[ks->n_slots++] = k;
	return k;
}

struct keeper *keeper_new(struct sbxd *d, const char *id)
{
	struct keepers *ks = d->keepers;
	struct keeper *k = free_slot(ks);
	uint32_t b = bucket_of(id);

	if (!k)
		return NULL;
	k->used = true;
	(void)snprintf(k->id, sizeof(k->id), "%s", id);
	k->born_ms = k->last_word_ms = clock_mono_ms();
	k->next = ks->bucket[b];
	ks->bucket[b] = (int32_t)k->idx;
	return k;
}

int keeper_check_room(struct sbxd *d, struct err *err)
{
	AUTO_SETTINGS struct settings set = {0};
	size_t n = d->starts->n, max;

	if (settings_load(&set, err) < 0)
		return -EINVAL;
	max = (size_t)settings_get_u64(&set, SETTINGS_DAEMON_SANDBOXES);
	max = max ? max : KEEPER_MAX;
	for (size_t i = 0; i < d->keepers->n_slots; i++)
		n += d->keepers->slot[i]->used;
	if (n < max)
		return 0;
	return err_set(err, -EBUSY,
		"%zu VMs are running or waiting to start, and daemon.max-sandboxes is %zu: run "
		"'sbx stop SANDBOX', or 'sbx settings set daemon.max-sandboxes %zu'",
		n, max, MIN(2 * max, (size_t)KEEPER_MAX));
}

void keeper_close_channel(struct sbxd *d, struct keeper *k)
{
	if (k->sock >= 0)
		loop_del(&d->loop, k->sock);
	fd_close(&k->sock);
	holds_drop(d, k);
}

void keeper_free(struct sbxd *d, struct keeper *k)
{
	int32_t *link = &d->keepers->bucket[bucket_of(k->id)];

	while (*link != (int32_t)k->idx)
		link = &d->keepers->slot[*link]->next;
	*link = k->next;
	keeper_close_channel(d, k);
	if (k->pidfd >= 0)
		loop_del(&d->loop, k->pidfd);
	fd_close(&k->pidfd);
	fd_close(&k->qemu_pidfd);
	loop_timer_clear(&d->loop, &k->timer);
	loop_timer_clear(&d->loop, &k->autosave.timer);
	free(k->ports);
	hands_sweep(); /* processes that a killed keeper left behind */
	reset_slot(k, k->idx, (k->gen + 1) & 0xffffff);
}

void keepers_done(struct sbxd *d)
{
	for (size_t i = 0; i < d->keepers->n_slots; i++)
		if (d->keepers->slot[i]->used)
			keeper_free(d, d->keepers->slot[i]);
	for (size_t i = 0; i < d->keepers->n_slots; i++)
		free(d->keepers->slot[i]);
	d->keepers->n_slots = 0;
}

int keeper_watch_exit(struct sbxd *d, struct keeper *k)
{
	return loop_add(&d->loop, k->pidfd, EPOLLIN, keeper_key(d, k, SBXD_EV_KEEPER_EXIT));
}

int keeper_watch_channel(struct sbxd *d, struct keeper *k)
{
	char label[IPC_MAX_LABEL];

	(void)snprintf(label, sizeof(label), "of %s ", k->id);
	ipc_trace(k->sock, &keeper_chan, KEEPER_FROM_SBXD, label);
	return loop_add(&d->loop, k->sock, EPOLLIN, keeper_key(d, k, SBXD_EV_KEEPER));
}

void keeper_set_timer(struct sbxd *d, struct keeper *k)
{
	uint64_t at_ms = k->kill_at_ms;

	if (k->seeking) {
		uint64_t retry = clock_mono_ms() + KEEPER_RETRY_MS;

		at_ms = at_ms ? MIN(at_ms, retry) : retry;
	}
	if (at_ms)
		loop_timer_set(&d->loop, &k->timer, at_ms, keeper_key(d, k, SBXD_EV_KEEPER_TIMER));
}

bool keeper_is_owned(const struct keeper *k)
{
	return k->used && !keeper_is_pooled(k);
}

uint32_t keeper_next_ask(struct sbxd *d)
{
	/* 0 is "no request". */
	if (++d->keepers->next_ask == 0)
		d->keepers->next_ask = 1;
	return d->keepers->next_ask;
}

static void note_owed(struct keeper *k, uint64_t since_ms)
{
	if (!k->ping_ms) {
		k->ping_ms = since_ms;
		k->silent_wall_ms = clock_wall_ms();
	}
}

void keeper_freshen(struct keeper *k)
{
	uint64_t now = clock_mono_ms();

	if (k->sock < 0 || !k->has_state || k->ping_ms || now - k->last_word_ms < KEEPER_FRESH_MS)
		return;
	/* A keeper with a full channel has been silent for long. */
	note_owed(k,
		chan_send_plain(k->sock, KEEPER_PING, 0, -1) == 0 ? now : now - KEEPER_PATIENCE_MS);
}

static uint64_t patience_ms(const struct keeper *k)
{
	return k->has_state || !k->child ? KEEPER_PATIENCE_MS : KEEPER_HELLO_MS;
}

static bool is_silent(const struct keeper *k)
{
	uint64_t since = k->has_state ? k->ping_ms : k->born_ms;

	return since && clock_mono_ms() - since >= patience_ms(k);
}

bool keeper_is_pending(const struct keeper *k)
{
	/* A spawned keeper without a message is starting: that needs no wait. */
	if (!k->has_state)
		return !k->child && !is_silent(k);
	return k->ping_ms && !is_silent(k);
}

const char *keeper_status(const struct keeper *k)
{
	if (!k)
		return "stopped";
	if (is_silent(k) || k->state.stalled)
		return "unresponsive";
	if (k->asked_stop || k->state.phase == KEEPER_STOPPING || k->state.phase == KEEPER_STOPPED)
		return "stopping";
	if (k->state.phase == KEEPER_STARTING)
		return "starting";
	return k->state.paused ? "paused" : "running";
}

void keeper_detail(const struct keeper *k, char *buf, size_t size)
{
	uint64_t since =
		k->has_state ? k->silent_wall_ms : clock_wall_ms() - (clock_mono_ms() - k->born_ms);

	if (!is_silent(k)) {
		(void)snprintf(buf, size, "%s", k->state.text);
		return;
	}
	(void)snprintf(buf, size, "sbx-keeper (pid %d) has not responded for %llu s", (int)k->pid,
		(unsigned long long)((clock_wall_ms() - since) / 1000));
}
