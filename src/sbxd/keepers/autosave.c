/* SPDX-License-Identifier: Apache-2.0 */
#include "keepers_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/journal/journal.h"
#include "lib/base/clock.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/rules/settings/settings.h"
#include "lib/vm/store/store.h"

/* 0: automatic checkpoints are off. A broken file changes nothing: other commands report it. */
static uint64_t every_ms(void)
{
	AUTO_SETTINGS struct settings set = {0};

	return settings_load(&set, NULL) < 0
		       ? 0
		       : settings_get_u64(&set, SETTINGS_CHECKPOINT_EVERY) * 1000;
}

static void set_timer(struct sbxd *d, struct keeper *k, uint64_t ms)
{
	loop_timer_set(&d->loop, &k->autosave.timer, clock_mono_ms() + ms,
		keeper_key(d, k, SBXD_EV_AUTOSAVE));
}

static void look_at(struct sbxd *d, struct keeper *k, uint64_t every)
{
	if (!every)
		loop_timer_clear(&d->loop, &k->autosave.timer);
	else if (keeper_is_owned(k) && strcmp(keeper_status(k), "running") == 0)
		set_timer(d, k, every);
}

void autosave_look(struct sbxd *d, const char *id)
{
	struct keeper *k = keeper_find(d, id);

	/* Once per run: the timer sets itself again. */
	if (k && !k->autosave.is_seen && strcmp(keeper_status(k), "running") == 0) {
		k->autosave.is_seen = true;
		look_at(d, k, every_ms());
	}
}

void autosave_look_all(struct sbxd *d)
{
	uint64_t every = every_ms();

	for (size_t i = 0; i < d->keepers->n_slots; i++)
		look_at(d, d->keepers->slot[i], every);
}

/* ---- one sandbox ---- */

/* True if a top has data that is not what a guest writes after each checkpoint. */
static bool is_written(const char *id, uint64_t last_ms, uint64_t every)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id);
	uint64_t slack = MIN(every / 2, (uint64_t)AUTOSAVE_SLACK_MS);

	for (enum template_disk i = 0; i < TEMPLATE_N_DISKS; i++) {
		AUTO_FREE char *top = layers_path(dir, i, 0);
		struct stat st;

		if (lstat(top, &st) == 0 &&
			((uint64_t)st.st_blocks * 512 > AUTOSAVE_SMALL ||
				(uint64_t)st.st_mtim.tv_sec * 1000 +
						(uint64_t)st.st_mtim.tv_nsec / 1000000 >
					last_ms + slack))
			return true;
	}
	return false;
}

/* A name for messages; the id if the row cannot be read. */
static void name_of(struct sbxd *d, const char *id, char buf[SPEC_MAX_NAME + 1])
{
	AUTO_ROW struct store_row row = {0};

	(void)snprintf(buf, SPEC_MAX_NAME + 1, "%s",
		store_get(d->store, id, &row, NULL) == 0 ? row.spec.name : id);
}

void autosave_failed(struct sbxd *d, const char *id, const char *why)
{
	char name[SPEC_MAX_NAME + 1];

	name_of(d, id, name);
	log_warn("automatic checkpoint of %s failed: %s", name, why);
}

static const char *request_one(struct sbxd *d, struct keeper *k, struct checkpoints *list)
{
	char label[CHECKPOINTS_MAX_LABEL + 1];

	if (strcmp(keeper_status(k), "running") != 0 || k->sock < 0 || k->other_build)
		return keeper_status(k);
	checkpoints_auto_label(clock_wall_ms(), label);
	if (!label[0] || checkpoints_find(list, label))
		return "the label already exists";
	(void)snprintf(k->autosave.label, sizeof(k->autosave.label), "%s", label);
	return keeper_ask_freeze(k->sock, keeper_next_ask(d), label, false) < 0
		       ? "sbx-keeper is not responding"
		       : NULL;
}

/* Requests one if it is due. Returns the time until the next look. */
static uint64_t save_if_due(struct sbxd *d, struct keeper *k, uint64_t every)
{
	static struct checkpoints list;
	uint64_t now = clock_wall_ms(), last, due;
	struct err err = {0};
	int r = checkpoints_load(k->id, &list, &err);
	const char *why;

	last = list.n ? list.v[list.n - 1].time_ms : 0;
	due = last + every;
	if (r == 0 && last <= now && due > now)
		return due - now;
	if (r == 0 && last && !is_written(k->id, last, every))
		return every;
	why = r < 0 ? err_text(&err, r) : request_one(d, k, &list);
	if (why)
		autosave_failed(d, k->id, why);
	return every;
}

void autosave_on_timer(struct sbxd *d, const struct loop_event *ev)
{
	struct keeper *k = keeper_at(d, ev->key);
	uint64_t every = k && keeper_is_owned(k) ? every_ms() : 0;

	if (every)
		set_timer(d, k, save_if_due(d, k, every));
}

/* ---- the limit ---- */

static int remove_oldest(struct sbxd *d, const char *id, struct checkpoints *list,
	struct checkpoint *c, struct err *err)
{
	AUTO_FREE char *reason =
		xasprintf("checkpoint %s, by the setting checkpoint.keep", c->label);
	char name[SPEC_MAX_NAME + 1];
	struct journal_entry e = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = "checkpoint-rm",
		.sandbox = name,
		.reason = reason};
	int r;

	name_of(d, id, name);
	r = journal_append(d, &e, err);
	if (r < 0)
		return r;
	checkpoints_remove(list, c);
	return checkpoints_save(id, list, err);
}

void autosave_trim(struct sbxd *d, const char *id)
{
	AUTO_SETTINGS struct settings set = {0};
	static struct checkpoints list;
	struct checkpoint *c;
	struct err err = {0};
	uint64_t keep;
	int r = settings_load(&set, &err);

	if (r == 0)
		r = checkpoints_load(id, &list, &err);
	keep = r == 0 ? settings_get_u64(&set, SETTINGS_CHECKPOINT_KEEP) : 0;
	while (r == 0 && (c = checkpoints_over(&list, keep)))
		r = remove_oldest(d, id, &list, c, &err);
	if (r < 0)
		log_warn("cannot remove an automatic checkpoint of %s: %s", id, err_text(&err, r));
}
