/* SPDX-License-Identifier: Apache-2.0 */
#include "keepers.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "src/sbxd/api/api.h"
#include "src/sbxd/hands/hands.h"
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "ports.h"
#include "src/sbxd/keepers/reload.h"
#include "src/sbxd/sbxd.h"

void keepers_init(struct keepers *ks)
{
	*ks = (struct keepers){0};
	for (size_t i = 0; i < KEEPER_MAX; i++) {
		ks->bucket[i] = -1;
		ks->slot[i].sock = ks->slot[i].pidfd = ks->slot[i].qemu_pidfd = -1;
	}
}

static uint32_t bucket_of(const char *id)
{
	uint32_t h = 2166136261u;

	for (; *id; id++)
		h = (h ^ (uint8_t)*id) * 16777619u;
	return h % KEEPER_MAX;
}

static uint32_t index_of(struct sbxd *d, const struct keeper *k)
{
	return (uint32_t)(k - d->keepers.slot);
}

static struct loop_key key_of(struct sbxd *d, const struct keeper *k, enum sbxd_ev kind)
{
	return (struct loop_key){.kind = (uint8_t)kind, .gen = k->gen, .idx = index_of(d, k)};
}

struct keeper *keeper_find_any(struct sbxd *d, const char *id)
{
	int32_t i = d->keepers.bucket[bucket_of(id)];

	while (i >= 0 && strcmp(d->keepers.slot[i].id, id) != 0)
		i = d->keepers.slot[i].next;
	return i >= 0 ? &d->keepers.slot[i] : NULL;
}

struct keeper *keeper_find(struct sbxd *d, const char *id)
{
	struct keeper *k = keeper_find_any(d, id);

	return k && pool_waits(k) ? NULL : k;
}

struct keeper *keeper_new(struct sbxd *d, const char *id)
{
	struct keepers *ks = &d->keepers;

	for (size_t i = 0; i < KEEPER_MAX; i++) {
		struct keeper *k = &ks->slot[i];
		uint32_t b = bucket_of(id);

		if (k->used)
			continue;
		k->used = true;
		(void)snprintf(k->id, sizeof(k->id), "%s", id);
		k->born_ms = k->last_word_ms = clock_mono_ms();
		k->next = ks->bucket[b];
		ks->bucket[b] = (int32_t)i;
		return k;
	}
	return NULL;
}

static void close_channel(struct sbxd *d, struct keeper *k)
{
	if (k->sock >= 0)
		loop_del(&d->loop, k->sock);
	fd_close(&k->sock);
}

void keeper_free(struct sbxd *d, struct keeper *k)
{
	int32_t *link = &d->keepers.bucket[bucket_of(k->id)];

	while (*link != (int32_t)index_of(d, k))
		link = &d->keepers.slot[*link].next;
	*link = k->next;
	close_channel(d, k);
	if (k->pidfd >= 0)
		loop_del(&d->loop, k->pidfd);
	fd_close(&k->pidfd);
	fd_close(&k->qemu_pidfd);
	loop_timer_clear(&d->loop, &k->timer);
	free(k->ports);
	hands_sweep(); /* what a keeper that was killed has left */
	*k = (struct keeper){
		.gen = (k->gen + 1) & 0xffffff, .sock = -1, .pidfd = -1, .qemu_pidfd = -1};
}

void keepers_done(struct sbxd *d)
{
	for (size_t i = 0; i < KEEPER_MAX; i++)
		if (d->keepers.slot[i].used)
			keeper_free(d, &d->keepers.slot[i]);
}

int keeper_watch_exit(struct sbxd *d, struct keeper *k)
{
	return loop_add(&d->loop, k->pidfd, EPOLLIN, key_of(d, k, SBXD_EV_KEEPER_EXIT));
}

int keeper_watch_channel(struct sbxd *d, struct keeper *k)
{
	return loop_add(&d->loop, k->sock, EPOLLIN, key_of(d, k, SBXD_EV_KEEPER));
}

void keeper_set_timer(struct sbxd *d, struct keeper *k)
{
	uint64_t at_ms = k->kill_at_ms;

	if (k->seeking) {
		uint64_t retry = clock_mono_ms() + KEEPER_RETRY_MS;

		at_ms = at_ms ? MIN(at_ms, retry) : retry;
	}
	if (at_ms)
		loop_timer_set(&d->loop, &k->timer, at_ms, key_of(d, k, SBXD_EV_KEEPER_TIMER));
}

bool keeper_is_owned(const struct keeper *k)
{
	return k->used && !pool_waits(k);
}

uint32_t keeper_next_ask(struct sbxd *d)
{
	/* 0 stands for "no question". */
	if (++d->keepers.next_ask == 0)
		d->keepers.next_ask = 1;
	return d->keepers.next_ask;
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
	/* One that does not even empty its channel has been silent for long. */
	note_owed(k, keeper_ask_ping(k->sock, 0) == 0 ? now : now - KEEPER_PATIENCE_MS);
}

static uint64_t patience(const struct keeper *k)
{
	return k->has_state || !k->child ? KEEPER_PATIENCE_MS : KEEPER_HELLO_MS;
}

static bool is_silent(const struct keeper *k)
{
	uint64_t since = k->has_state ? k->ping_ms : k->born_ms;

	return since && clock_mono_ms() - since >= patience(k);
}

bool keeper_is_pending(const struct keeper *k)
{
	/* A spawned one that has not spoken yet is starting: that is known and needs no waiting. */
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
	(void)snprintf(buf, size, "its keeper (pid %d) has not answered for %llu s", (int)k->pid,
		(unsigned long long)((clock_wall_ms() - since) / 1000));
}

static bool same_state(const struct keeper_state *a, const struct keeper_state *b)
{
	return a->phase == b->phase && a->progress == b->progress && a->sessions == b->sessions &&
	       a->boot_ms == b->boot_ms && a->qemu_pid == b->qemu_pid && a->stalled == b->stalled &&
	       a->how == b->how && a->suspended == b->suspended && a->paused == b->paused &&
	       strcmp(a->accel, b->accel) == 0 && strcmp(a->text, b->text) == 0 &&
	       strcmp(a->cold_why, b->cold_why) == 0;
}

/* It had to boot for lack of an image, and has just done so. */
static bool misses_image(const struct keeper_state *was, const struct keeper_state *is)
{
	return is->phase == KEEPER_RUNNING && was->phase == KEEPER_STARTING &&
	       is->how == KEEPER_HOW_COLD && is->cold_why[0] &&
	       strcmp(is->cold_why, KEEPER_COLD_ASKED) != 0 &&
	       strcmp(is->cold_why, KEEPER_COLD_OWN) != 0;
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
	if (pool_waits(k)) {
		pool_on_state(d, k);
	} else if (changed) {
		api_watch_changed(d, k->id);
		conns_wake(d, k->id);
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
	/* The list may have changed while no sbxd was there to tell it. */
	k->ports_due = k->ports_due || !k->child;
	ports_push(d, k);
	return 0;
}

static int take_done(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	struct keeper_done done;
	struct conn *c;
	int r = keeper_get_done(msg, &done);

	if (r < 0)
		return r;
	if (reload_on_done(d, k, msg->id, done.code, done.text) ||
		pool_on_done(d, k, msg->id, done.code, done.text))
		return 0;
	c = conns_find_asker(d, k->id, msg->id);
	if (c)
		api_on_done(d, c, done.code, done.text);
	return 0;
}

static int take_stats(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	struct keeper_stats stats;
	struct conn *c;
	int r = keeper_get_stats(msg, &stats);

	if (r < 0)
		return r;
	c = conns_find_asker(d, k->id, msg->id);
	return c ? api_on_stats(d, c, &stats) : 0;
}

static int take_frozen(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	struct keeper_frozen frozen;
	struct conn *c;
	int r = keeper_get_frozen(msg, &frozen);

	if (r < 0)
		return r;
	c = conns_find_asker(d, k->id, msg->id);
	if (c)
		api_on_frozen(d, c, &frozen);
	return 0;
}

static int take_want(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	int r = keeper_get_nothing(msg);

	if (r == 0)
		vault_link_on_want(d, k);
	return r;
}

static int take_message(struct sbxd *d, struct keeper *k, const struct ipc_msg *msg)
{
	if (msg->fd >= 0 || (msg->type != KEEPER_HELLO && !k->has_hello))
		return -EBADMSG;
	k->last_word_ms = clock_mono_ms();
	switch (msg->type) {
	case KEEPER_HELLO:
		return take_hello(d, k, msg);
	case KEEPER_STATE:
		return take_state(d, k, msg);
	case KEEPER_DONE:
		return take_done(d, k, msg);
	case KEEPER_STATS_IS:
		return take_stats(d, k, msg);
	case KEEPER_PORTS_ARE:
		return ports_on_message(d, k, msg);
	case KEEPER_FROZEN:
		return take_frozen(d, k, msg);
	case KEEPER_WANT_VAULT:
		return take_want(d, k, msg);
	default:
		return -EBADMSG;
	}
}

/* It has closed its side, or may not be listened to: what is left is to see it end. */
static void lose_channel(struct sbxd *d, struct keeper *k, uint64_t grace_ms)
{
	uint64_t at = clock_mono_ms() + grace_ms;

	close_channel(d, k);
	if (!k->kill_at_ms || at < k->kill_at_ms)
		k->kill_at_ms = at;
	keeper_set_timer(d, k);
}

/* True while there may be more. */
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
		log_error("keeper of %s (pid %d) broke the rules of its channel: killed", k->id,
			(int)k->pid);
		(void)snprintf(k->state.text, sizeof(k->state.text),
			"its keeper broke the rules of its channel and was killed");
		k->broken = true;
		lose_channel(d, k, 0);
		return false;
	}
	return k->sock >= 0;
}

static struct keeper *at(struct sbxd *d, uint32_t idx, uint32_t gen)
{
	struct keeper *k = &d->keepers.slot[idx];

	assert(idx < KEEPER_MAX);
	return k->used && k->gen == gen ? k : NULL;
}

void keeper_on_message(struct sbxd *d, uint32_t idx, uint32_t gen)
{
	struct keeper *k = at(d, idx, gen);

	for (int i = 0; k && k->sock >= 0 && i < KEEPER_BURST; i++)
		if (!read_one(d, k))
			break;
	k = at(d, idx, gen);
	if (k)
		reload_push(d, k);
	if (k)
		ports_push(d, k);
}

void keeper_on_exit(struct sbxd *d, uint32_t idx, uint32_t gen)
{
	struct keeper *k = at(d, idx, gen);

	/* Its last words say why. */
	for (int i = 0; k && k->sock >= 0 && i < KEEPER_BURST; i++)
		if (!read_one(d, k))
			break;
	k = at(d, idx, gen);
	/* What it may have forked has its group's number and goes with it: nobody else has the
	 * number before it is waited for. */
	if (k && k->child)
		hands_signal(k->pidfd, HANDS_KILL_GROUP);
	else if (k)
		hands_kill_rest(k->id);
	if (k && !pool_on_exit(d, k))
		keeper_gone(d, k);
}

void keeper_on_timer(struct sbxd *d, uint32_t idx, uint32_t gen)
{
	struct keeper *k = at(d, idx, gen);
	uint64_t now = clock_mono_ms();

	if (!k)
		return;
	if (k->seeking)
		keeper_reconnect(d, k);
	if (k->gen != gen || !k->kill_at_ms)
		return;
	/* At work on its stop: the guest got its time, now the keeper gets a little for itself. */
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

void keeper_stop(struct sbxd *d, struct keeper *k, uint64_t timeout_ms)
{
	uint64_t now = clock_mono_ms(),
		 at_ms = now + MAX(timeout_ms, (uint64_t)KEEPER_LEAST_STOP_MS);

	k->stop_asked_ms = now;
	if (k->sock >= 0 && keeper_ask_stop(k->sock, keeper_next_ask(d), (uint32_t)timeout_ms) < 0)
		log_warn("keeper of %s takes no message; it will be killed", k->id);
	if (!k->asked_stop || at_ms < k->kill_at_ms)
		k->kill_at_ms = at_ms;
	k->asked_stop = true;
	keeper_set_timer(d, k);
	if (!pool_waits(k))
		api_watch_changed(d, k->id);
}

static void reap(struct keeper *k, char *why, size_t size)
{
	struct hands_end end;

	if (!k->child || hands_reap(k->pid, &end) < 0)
		return;
	if (end.was_killed)
		(void)snprintf(why, size, "its keeper was killed by signal %d", end.status);
	else if (end.status != 0)
		(void)snprintf(
			why, size, "its keeper ended with status %d; see keeper.log", end.status);
}

/* The line that the keeper left at its end; removed, so that it is told once. */
static void read_last(const char *id, char *why, size_t size)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/last", id);
	AUTO_FREE char *text = NULL;
	size_t n;

	/* A compromised keeper may have put a link there. */
	if (file_load_no_link(path, 4096, &text, &n, NULL) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	(void)snprintf(why, size, "%.*s", (int)size - 1, text);
}

/* Why it stopped when nobody asked; empty when somebody did. */
static void find_reason(struct keeper *k, char *why, size_t size)
{
	(void)snprintf(why, size, "its keeper ended without a word");
	reap(k, why, size);
	read_last(k->id, why, size);
	if (k->state.text[0] && (k->state.phase == KEEPER_STOPPED || k->broken))
		(void)snprintf(why, size, "%s", k->state.text);
	if (k->asked_stop)
		why[0] = '\0';
}

void keeper_gone(struct sbxd *d, struct keeper *k)
{
	char id[SPEC_ID_LEN + 1], why[STORE_MAX_ERROR];
	bool removing = k->removing;
	struct err err = {0};

	memcpy(id, k->id, sizeof(id));
	find_reason(k, why, sizeof(why));
	keeper_free(d, k);
	log_info("%s stopped%s%s", id, why[0] ? ": " : "", why);
	if (store_stamp(d->store, id, STORE_STOPPED, clock_wall_ms(), why, &err) < 0)
		log_error("%s", err.text);
	wipe_runtime(id);
	if (removing)
		wipe_start(d, id);
	else
		api_watch_changed(d, id);
	conns_wake(d, id);
	keep_look(d);
}
