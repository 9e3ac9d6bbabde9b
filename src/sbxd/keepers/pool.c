/* SPDX-License-Identifier: Apache-2.0 */
#include "keepers_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/hands/hands.h"
#include "src/sbxd/http/http.h"
#include "lib/base/fs/dir.h"
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/rules/settings/settings.h"
#include "lib/vm/store/store.h"

#define MARK "pool"

static char *file_of(const char *id, const char *name)
{
	return paths_get(PATHS_STATE, "sandboxes/%s/%s", id, name);
}

static void remove_file(const char *id, const char *name)
{
	AUTO_FREE char *path = file_of(id, name);

	(void)unlink(path);
}

/* Removes the files of a VM from the directory of a sandbox that never ran. */
static void remove_machine(const char *id)
{
	static const char *const names[] = {"root.qcow2", "docker.qcow2", MARK};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		remove_file(id, names[i]);
}

static bool is_free(const struct keeper *k)
{
	return k->used && keeper_is_pooled(k) && !k->pool.is_taken && !k->asked_stop;
}

/* ---- which ones ---- */

static bool is_class(const struct pool_class *a, const struct pool_class *b)
{
	return a->cpus == b->cpus && a->memory == b->memory && a->disk == b->disk &&
	       a->accel == b->accel && strcmp(a->template_id, b->template_id) == 0;
}

/* Reads the wanted number and fills in the spec; 0 if the template does not exist. */
static size_t read_wish(struct spec *spec)
{
	AUTO_SETTINGS struct settings set = {0};
	uint64_t n;

	if (settings_load(&set, NULL) < 0)
		return 0;
	n = settings_get_u64(&set, SETTINGS_POOL_SIZE);
	if (n == 0 || str_copy(spec->template, sizeof(spec->template),
			      settings_get(&set, SETTINGS_POOL_TEMPLATE)) < 0)
		return 0;
	spec_set_defaults(spec, (uint32_t)settings_get_u64(&set, SETTINGS_VM_CPUS),
		settings_get_u64(&set, SETTINGS_VM_MEMORY));
	spec->disk = settings_get_u64(&set, SETTINGS_VM_DISK);
	templates_pin(spec);
	if (!spec->template_id[0] ||
		spec_accel_parse(settings_get(&set, SETTINGS_VM_ACCEL), &spec->accel) < 0)
		return 0;
	return n;
}

static void fill_class(const struct spec *spec, struct pool_class *ret)
{
	*ret = (struct pool_class){.cpus = spec->cpus,
		.memory = spec->memory,
		.disk = spec->disk,
		.accel = spec->accel};
	memcpy(ret->template_id, spec->template_id, sizeof(ret->template_id));
}

static void set_timer(struct sbxd *d, uint64_t ms)
{
	loop_timer_set(&d->loop, &d->pool->timer, clock_mono_ms() + ms,
		(struct loop_key){.kind = SBXD_EV_POOL_TIMER});
}

static uint64_t pause_ms(const struct pool *p)
{
	uint64_t ms = POOL_AGAIN_MS;

	if (p->n_failed == 0)
		return POOL_DELAY_MS;
	for (unsigned i = 1; i < p->n_failed && ms < POOL_MAX_AGAIN_MS; i++)
		ms *= 2;
	return MIN(ms, (uint64_t)POOL_MAX_AGAIN_MS);
}

/* The exit follows. */
static void end_one(struct sbxd *d, struct keeper *k)
{
	log_info("stopping the unclaimed VM %s", k->id);
	keeper_stop(d, k, 0);
}

void pool_count(struct sbxd *d, unsigned *ret_ready, unsigned *ret_size)
{
	AUTO_SPEC struct spec spec = {0};

	*ret_size = (unsigned)read_wish(&spec);
	*ret_ready = 0;
	for (size_t i = 0; i < d->keepers->n_slots; i++)
		*ret_ready += is_free(d->keepers->slot[i]) && d->keepers->slot[i]->pool.is_ready;
}

void pool_look(struct sbxd *d)
{
	AUTO_SPEC struct spec spec = {0};
	size_t wanted = read_wish(&spec), n = 0;
	struct pool_class class;
	bool busy = false;

	fill_class(&spec, &class);
	for (size_t i = 0; i < d->keepers->n_slots; i++) {
		struct keeper *k = d->keepers->slot[i];

		if (!is_free(k))
			continue;
		if (n == wanted || k->other_build || !is_class(&k->pool.class, &class)) {
			end_one(d, k);
			continue;
		}
		n++;
		busy = busy || !k->pool.is_ready;
	}
	if (n == wanted)
		loop_timer_clear(&d->loop, &d->pool->timer);
	else if (!busy)
		set_timer(d, pause_ms(d->pool));
}

void pool_on_image(struct sbxd *d)
{
	d->pool->n_failed = 0;
	pool_look(d);
}

/* ---- one more ---- */

static int spawn_machine(struct sbxd *d, struct spec *spec, struct err *err)
{
	AUTO_FREE char *dir = NULL;
	AUTO_FREE char *mark = NULL;
	struct pool_seat seat = {.place = POOL_WAITS};
	int r;

	str_random_hex(spec->id, SPEC_ID_LEN / 2);
	(void)snprintf(spec->name, sizeof(spec->name), "pool-%s", spec->id);
	spec->generation = 1;
	fill_class(spec, &seat.class);
	mark = file_of(spec->id, MARK);
	dir = paths_get(PATHS_STATE, "sandboxes/%s", spec->id);
	r = paths_make(dir, err);
	if (r == 0)
		r = file_save(mark, slice_of(NULL, 0), err);
	return r < 0 ? r : keeper_spawn_pooled(d, spec, &seat, err);
}

void pool_on_timer(struct sbxd *d)
{
	AUTO_SPEC struct spec spec = {0};
	size_t wanted = read_wish(&spec), n = 0;
	struct err err = {0};
	int r;

	for (size_t i = 0; i < d->keepers->n_slots; i++)
		n += is_free(d->keepers->slot[i]);
	if (n >= wanted)
		return;
	r = spawn_machine(d, &spec, &err);
	if (r == 0)
		return;
	log_warn("cannot start a VM for the pool: %s", err_text(&err, r));
	if (spec.id[0])
		wipe_start(d, spec.id);
	d->pool->n_failed++;
	set_timer(d, pause_ms(d->pool));
}

void pool_on_state(struct sbxd *d, struct keeper *k)
{
	if (k->state.how != KEEPER_HOW_POOL || k->state.phase != KEEPER_STARTING)
		return;
	if (!k->pool.is_ready)
		log_info("the VM %s is ready for a sandbox", k->id);
	k->pool.is_ready = true;
	if (!k->asked_stop)
		k->kill_at_ms = 0;
	d->pool->n_failed = 0;
	pool_look(d);
}

/* ---- exit ---- */

static void reap_machine(const struct keeper *k)
{
	struct hands_end end;

	if (k->child)
		(void)!hands_reap(k->pid, &end);
}

/* Kills the keeper and waits for its exit, for callers that cannot wait for the event. */
static bool end_now(struct sbxd *d, struct keeper *k)
{
	struct pollfd p = {.fd = k->pidfd, .events = POLLIN};

	keeper_kill(k);
	if (poll(&p, 1, POOL_END_MS) <= 0)
		return false;
	reap_machine(k);
	keeper_free(d, k);
	return true;
}

/* A sandbox that waited for its VM, and has none now. */
static void start_without(struct sbxd *d, const char *id, enum spec_accel accel)
{
	AUTO_ROW struct store_row row = {0};
	struct err err = {0};
	int r = store_get(d->store, id, &row, &err);

	remove_machine(id);
	if (r == 0) {
		row.spec.accel = accel;
		r = keeper_spawn(d, &row.spec, false, &err);
	}
	if (r < 0) {
		log_error("cannot start %s: %s", id, err_text(&err, r));
		(void)!store_stamp(d->store, id, STORE_STOPPED, clock_wall_ms(), err.text, NULL);
	}
	d->keepers->ops->on_change(d, id);
	conns_wake(d, id);
}

static void forget_machine(struct sbxd *d, struct keeper *k)
{
	struct pool_seat seat = k->pool;
	char id[SPEC_ID_LEN + 1];

	memcpy(id, k->id, sizeof(id));
	if (!seat.is_ready && !k->asked_stop) {
		d->pool->n_failed++;
		log_warn("the VM %s did not become ready: %s", id, k->state.text);
		if (k->state.cold_why[0])
			images_want_class(d,
				&(struct hands_image){.cpus = seat.class.cpus,
					.memory = seat.class.memory,
					.disk = seat.class.disk},
				seat.class.template_id, k->state.accel);
	}
	reap_machine(k);
	keeper_free(d, k);
	wipe_runtime(id);
	if (seat.is_taken)
		remove_machine(id);
	else
		wipe_start(d, id);
	pool_look(d);
}

bool pool_on_exit(struct sbxd *d, struct keeper *k)
{
	enum spec_accel accel = k->pool.accel;
	char id[SPEC_ID_LEN + 1];

	memcpy(id, k->id, sizeof(id));
	if (keeper_is_pooled(k)) {
		forget_machine(d, k);
		return true;
	}
	if (k->pool.place != POOL_CLAIMED)
		return false;
	if (k->asked_stop) {
		remove_machine(id);
		return false;
	}
	log_warn("the VM of %s exited when it was claimed: starting another VM", id);
	reap_machine(k);
	keeper_free(d, k);
	start_without(d, id, accel);
	return true;
}

/* ---- a sandbox for it ---- */

/* A spec without an accelerator uses the setting, and so does the pool. */
static bool fits_spec(const struct keeper *k, const struct spec *spec)
{
	const struct pool_class *c = &k->pool.class;

	return spec->cpus == c->cpus && spec->memory == c->memory && spec->disk == c->disk &&
	       strcmp(spec->template_id, c->template_id) == 0 &&
	       (spec->accel == SPEC_ACCEL_AUTO || spec->accel == c->accel ||
		       strcmp(spec_accel_name(spec->accel), k->state.accel) == 0);
}

void pool_offer(struct sbxd *d, struct spec *spec)
{
	for (size_t i = 0; i < d->keepers->n_slots; i++) {
		const struct keeper *k = d->keepers->slot[i];

		if (is_free(k) && k->pool.is_ready && k->sock >= 0 && fits_spec(k, spec)) {
			memcpy(spec->id, k->id, sizeof(spec->id));
			return;
		}
	}
}

void pool_take(struct sbxd *d, const char *id)
{
	struct keeper *k = keeper_find_any(d, id);

	if (!k || !keeper_is_pooled(k))
		return;
	k->pool.is_taken = true;
	k->kill_at_ms = clock_mono_ms() + POOL_TAKEN_MS;
	keeper_set_timer(d, k);
	pool_look(d);
}

/* From now on an ordinary keeper, except that it may still reject the claim. */
static int claim_machine(struct sbxd *d, struct keeper *k, const struct spec *spec, struct err *err)
{
	AUTO_FREE char *dir = NULL;
	int r = keeper_make_folders(spec, &dir, err);

	if (r == 0)
		r = store_stamp(d->store, spec->id, STORE_STARTED, clock_wall_ms(), "", err);
	if (r < 0)
		return r;
	/* Before CLAIM: the next sbxd must not stop a VM that belongs to a sandbox. */
	remove_file(spec->id, MARK);
	k->pool.ask = keeper_next_ask(d);
	k->pool.accel = spec->accel;
	r = reload_send_policy(d, k, spec, k->pool.ask);
	if (r == 0)
		r = chan_send_plain(k->sock, KEEPER_CLAIM, k->pool.ask, -1);
	if (r < 0)
		return err_errno(err, r, "cannot claim a VM");
	k->pool.place = POOL_CLAIMED;
	k->used_stamp_ms = clock_wall_ms();
	k->state.text[0] = '\0';
	k->kill_at_ms = clock_mono_ms() + KEEPER_ANSWER_MS;
	keeper_set_timer(d, k);
	return 0;
}

bool pool_has(struct sbxd *d, const char *id)
{
	const struct keeper *k = keeper_find_any(d, id);

	return k && keeper_is_pooled(k);
}

bool pool_claim(struct sbxd *d, const struct spec *spec, bool cold)
{
	struct keeper *k = keeper_find_any(d, spec->id);
	struct err err = {0};
	int r;

	if (!k || !keeper_is_pooled(k))
		return false;
	if (!cold && k->sock >= 0 && !k->asked_stop && fits_spec(k, spec)) {
		r = claim_machine(d, k, spec, &err);
		if (r == 0)
			return true;
		log_warn("starting %s without the pool: %s", spec->name, err_text(&err, r));
	}
	pool_drop(d, spec->id);
	return false;
}

void pool_drop(struct sbxd *d, const char *id)
{
	struct keeper *k = keeper_find_any(d, id);

	if (!k || !keeper_is_pooled(k))
		return;
	if (!end_now(d, k))
		log_error("the VM of %s does not exit", id);
	remove_machine(id);
}

bool pool_on_done(struct sbxd *d, struct keeper *k, uint32_t ask_id, int code, const char *text)
{
	if (k->pool.place != POOL_CLAIMED || k->pool.ask != ask_id)
		return false;
	if (code < 0) {
		log_warn("cannot claim the VM of %s: %.200s", k->id, text);
		keeper_kill(k); /* pool_on_exit continues */
		return true;
	}
	k->pool.place = POOL_NONE;
	if (!k->asked_stop)
		k->kill_at_ms = 0;
	return true;
}

/* ---- the beginning and the end of sbxd ---- */

static void kill_holder(const char *id)
{
	pid_t pid = 0;
	AUTO_CLOSE int fd = keeper_find_holder(id, &pid);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		return;
	hands_signal(fd, HANDS_KILL);
	(void)poll(&p, 1, POOL_END_MS);
}

static void sweep_one(struct sbxd *d, const char *id)
{
	AUTO_ROW struct store_row row = {0};
	AUTO_FREE char *mark = file_of(id, MARK);

	if (access(mark, F_OK) < 0)
		return;
	kill_holder(id);
	wipe_runtime(id);
	if (store_get(d->store, id, &row, NULL) == 0)
		remove_machine(id);
	else
		wipe_start(d, id);
}

void pool_sweep(struct sbxd *d)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes");
	AUTO_DIR DIR *dir = opendir(path);
	struct dirent *e;

	while ((e = dir_next(dir)))
		if (spec_is_id(e->d_name))
			sweep_one(d, e->d_name);
}

void pool_done(struct sbxd *d)
{
	for (size_t i = 0; i < d->keepers->n_slots; i++)
		if (d->keepers->slot[i]->used && keeper_is_pooled(d->keepers->slot[i]))
			keeper_kill(d->keepers->slot[i]); /* all, then waits for each */
	for (size_t i = 0; i < d->keepers->n_slots; i++) {
		struct keeper *k = d->keepers->slot[i];
		bool is_taken = k->pool.is_taken;
		char id[SPEC_ID_LEN + 1];

		if (!k->used || !keeper_is_pooled(k))
			continue;
		memcpy(id, k->id, sizeof(id));
		if (!end_now(d, k))
			continue; /* it exits when sbxd exits */
		wipe_runtime(id);
		if (is_taken)
			remove_machine(id);
		else
			(void)!wipe_sandbox(id);
	}
	loop_timer_clear(&d->loop, &d->pool->timer);
}
