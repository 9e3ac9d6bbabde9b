/* SPDX-License-Identifier: Apache-2.0 */
#include "keepers_internal.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "src/sbxd/http/http.h"
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/rules/settings/settings.h"
#include "lib/vm/store/store.h"

static const char never_began[] = "sbxd exited while the start waited for others: start it again\n";

void starts_init(struct starts *s, start_fn *begin)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	s->begin = begin;
	s->most = (size_t)n * STARTS_PER_CPU;
}

static size_t most_starts(const struct starts *s)
{
	AUTO_SETTINGS struct settings set = {0};
	size_t n;

	if (settings_load(&set, NULL) < 0)
		return s->most;
	n = (size_t)settings_get_u64(&set, SETTINGS_DAEMON_STARTS);
	return n ? n : s->most;
}

/* Also one whose keeper does not respond for a while: a busy host must not get more starts. */
static bool is_starting(const struct keeper *k)
{
	if (!keeper_is_owned(k) || k->asked_stop || k->broken ||
		clock_mono_ms() - k->born_ms >= STARTS_MAX_MS)
		return false;
	return k->has_state ? k->state.phase == KEEPER_STARTING : k->child;
}

static bool has_place(struct sbxd *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->keepers->n_slots; i++)
		n += is_starting(d->keepers->slot[i]);
	return n < most_starts(d->starts);
}

bool starts_must_wait(struct sbxd *d)
{
	return d->starts->n || !has_place(d);
}

static char *last_of(const char *id)
{
	return paths_get(PATHS_STATE, "sandboxes/%s/last", id);
}

/* As keeper_spawn: a registry entry of a start that has no keeper is repaired by the next sbxd. */
int starts_add(struct sbxd *d, const char *id, enum spec_accel wish, bool cold, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id), *last = last_of(id);
	struct start_wait *w = &d->starts->list[d->starts->n];
	int r = keeper_check_room(d, err);

	if (r == 0)
		r = paths_make(dir, err);
	if (r == 0)
		r = file_save(last, slice_of(never_began, strlen(never_began)), err);
	if (r == 0)
		r = store_stamp(d->store, id, STORE_STARTED, clock_wall_ms(), "", err);
	if (r < 0)
		return r;
	*w = (struct start_wait){.wish = wish, .cold = cold};
	(void)snprintf(w->id, sizeof(w->id), "%s", id);
	d->starts->n++;
	log_info("the start of %s waits: %zu before it", id, d->starts->n - 1);
	return 0;
}

size_t starts_place(const struct starts *s, const char *id)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->list[i].id, id) == 0)
			return i + 1;
	return 0;
}

static bool remove_one(struct starts *s, const char *id, struct start_wait *ret)
{
	size_t place = starts_place(s, id);

	if (!place)
		return false;
	*ret = s->list[place - 1];
	s->n--;
	memmove(&s->list[place - 1], &s->list[place], (s->n - place + 1) * sizeof(s->list[0]));
	return true;
}

static void end_wait(struct sbxd *d, const char *id, const char *why)
{
	AUTO_FREE char *last = last_of(id);
	struct err err = {0};

	(void)unlink(last);
	if (store_stamp(d->store, id, STORE_STOPPED, clock_wall_ms(), why, &err) < 0)
		log_error("%s", err.text);
}

bool starts_drop(struct sbxd *d, const char *id)
{
	struct start_wait w;

	if (!remove_one(d->starts, id, &w))
		return false;
	log_info("the waiting start of %s was removed", w.id);
	end_wait(d, w.id, "");
	return true;
}

static void begin_next(struct sbxd *d)
{
	struct start_wait w;
	struct err err = {0};
	int r;

	if (!remove_one(d->starts, d->starts->list[0].id, &w))
		return;
	r = d->starts->begin(d, w.id, w.wish, w.cold, &err);
	if (r < 0) {
		log_error("%s", err_text(&err, r));
		end_wait(d, w.id, err_text(&err, r));
		d->keepers->ops->on_change(d, w.id);
	}
	conns_wake(d, w.id);
}

void starts_look(struct sbxd *d)
{
	if (d->starts->is_looking)
		return;
	d->starts->is_looking = true;
	while (d->starts->n && has_place(d))
		begin_next(d);
	d->starts->is_looking = false;
}
