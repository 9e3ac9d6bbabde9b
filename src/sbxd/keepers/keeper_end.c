/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a keeper: requested by sbxd (keeper_stop), and recorded (keeper_gone). */
#include "keepers_internal.h"

#include <stdio.h>
#include <string.h>
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/hands/hands.h"
#include "src/sbxd/http/http.h"
#include "src/sbxd/journal/journal.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/vm/store/store.h"

void keeper_stop(struct sbxd *d, struct keeper *k, uint64_t timeout_ms)
{
	uint64_t now = clock_mono_ms(),
		 at_ms = now + MAX(timeout_ms, (uint64_t)KEEPER_LEAST_STOP_MS);

	k->stop_asked_ms = now;
	if (k->sock >= 0 && keeper_ask_stop(k->sock, keeper_next_ask(d), (uint32_t)timeout_ms) < 0)
		log_warn("keeper of %s does not read: killing it", k->id);
	if (!k->asked_stop || at_ms < k->kill_at_ms)
		k->kill_at_ms = at_ms;
	k->asked_stop = true;
	keeper_set_timer(d, k);
	if (!keeper_is_pooled(k))
		d->keepers->ops->on_change(d, k->id);
}

static void reap_keeper(struct keeper *k, char *why, size_t size)
{
	struct hands_end end;

	if (!k->child || hands_reap(k->pid, &end) < 0)
		return;
	if (end.was_killed)
		(void)snprintf(why, size, "sbx-keeper was killed by signal %d", end.status);
	else if (end.status != 0)
		(void)snprintf(
			why, size, "sbx-keeper exited with status %d: see keeper.log", end.status);
}

/* The line that the keeper left at its exit; removed, so that it is reported once. */
static void read_last(const char *id, char *why, size_t size)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/last", id);
	AUTO_FREE char *text = NULL;
	size_t n;

	/* A compromised keeper may have created a symlink. */
	if (file_load_no_link(path, 4096, &text, &n, NULL) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	(void)snprintf(why, size, "%.*s", (int)size - 1, text);
}

/* Why it stopped without a request; empty after a request. */
static void find_reason(struct keeper *k, char *why, size_t size)
{
	(void)snprintf(why, size, "sbx-keeper exited without reporting a reason");
	reap_keeper(k, why, size);
	read_last(k->id, why, size);
	if (k->state.text[0] && (k->state.phase == KEEPER_STOPPED || k->broken))
		(void)snprintf(why, size, "%s", k->state.text);
	if (k->asked_stop)
		why[0] = '\0';
}

static void tally_end(struct sbxd *d, const struct keeper *k)
{
	struct tally *t = &d->keepers->runs.ends[k->state.suspended ? RUNS_SUSPENDED
						 : k->asked_stop    ? RUNS_REQUEST
								    : RUNS_OTHER];

	t->n++;
	t->us += (clock_mono_ms() - k->born_ms) * 1000;
}

void keeper_gone(struct sbxd *d, struct keeper *k)
{
	char id[SPEC_ID_LEN + 1], why[STORE_MAX_ERROR];
	bool removing = k->removing;
	struct err err = {0};

	memcpy(id, k->id, sizeof(id));
	find_reason(k, why, sizeof(why));
	tally_end(d, k);
	keeper_free(d, k);
	log_info("%s stopped%s%s", id, why[0] ? ": " : "", why);
	if (store_stamp(d->store, id, STORE_STOPPED, clock_wall_ms(), why, &err) < 0)
		log_error("%s", err.text);
	wipe_runtime(id);
	if (removing)
		wipe_start(d, id);
	else
		merges_want(d, id);
	if (!removing)
		d->keepers->ops->on_change(d, id);
	conns_wake(d, id);
	starts_look(d);
	keep_look(d);
}
