/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/rules/settings/settings.h"

void space_add(struct space *s, const char *path)
{
	struct stat st;

	if (s->n_places == SPACE_MAX_PLACES || !file_is_local(path) || stat(path, &st) < 0)
		return;
	for (size_t i = 0; i < s->n_places; i++)
		if (s->dev[i] == st.st_dev)
			return;
	s->dev[s->n_places] = st.st_dev;
	s->place[s->n_places++] = path;
}

/* Returns -1 if it is unknown. */
static int look_at(const struct keeper *k, const char *path, uint64_t *ret_free, uint64_t *ret_need)
{
	uint64_t reserve = k->memory_dir ? MAX(k->disk_reserve, SPACE_MEMORY) : k->disk_reserve;
	struct statfs st;

	if (statfs(path, &st) < 0)
		return -1;
	*ret_free = (uint64_t)st.f_bavail * (uint64_t)st.f_bsize;
	*ret_need = space_reserve(reserve, (uint64_t)st.f_blocks * (uint64_t)st.f_bsize);
	return 0;
}

int space_check(const struct keeper *k, uint64_t bytes, struct err *err)
{
	uint64_t free, need;

	if (look_at(k, k->dir, &free, &need) < 0 || free >= need + bytes)
		return 0;
	return err_set(err, -ENOSPC, "not enough disk space: %llu MiB required, %llu MiB free",
		(unsigned long long)((need + bytes) >> 20), (unsigned long long)(free >> 20));
}

/* The file system that is closest to its reserve, or below it. */
static void find_least(const struct keeper *k, uint64_t *ret_free, uint64_t *ret_need)
{
	*ret_free = UINT64_MAX;
	*ret_need = 0;
	for (size_t i = 0; i < k->space->n_places; i++) {
		uint64_t free, need;

		if (look_at(k, k->space->place[i], &free, &need) < 0)
			continue;
		if (*ret_free == UINT64_MAX || free < need || free - need < *ret_free - *ret_need) {
			*ret_free = free;
			*ret_need = need;
		}
		if (free < need)
			return;
	}
}

static bool has_written(struct keeper *k)
{
	pid_t share = k->has_share ? k->share.child.pid : 0;
	uint64_t now = worker_written(vmm_child(k->vmm)->pid) + worker_written(share);
	uint64_t before = k->space->written;

	k->space->written = now;
	return before != UINT64_MAX && now > before + SPACE_WRITES;
}

static bool is_using_space(struct keeper *k)
{
	return k->memory_dir || has_written(k);
}

static void look_later(struct keeper *k, uint64_t ms)
{
	loop_timer_set(&k->loop, &k->space->timer, clock_mono_ms() + ms,
		(struct loop_key){.kind = EV_TIMER_SPACE});
}

static void set_paused(struct keeper *k, bool paused)
{
	k->state.paused = paused;
	link_progress(k, k->state.progress,
		paused ? SPACE_PAUSED
			": the sandbox continues when the host has free disk space again"
		       : "");
}

static void pause_machine(struct keeper *k)
{
	int r = vmm_pause(k->vmm);

	if (r < 0) {
		log_warn("cannot pause the VM: %s", strerror(-r));
		return;
	}
	log_error("free disk space is below disk.reserve and this sandbox %s: paused",
		k->memory_dir ? "has its memory there" : "writes");
	set_paused(k, true);
}

static void continue_running(struct keeper *k)
{
	int r = vmm_resume(k->vmm);

	if (r < 0) {
		log_warn("cannot continue the VM: %s", strerror(-r));
		return;
	}
	log_info("the host has free disk space again: the sandbox continues");
	set_paused(k, false);
	ask_give_time(k);
	k->life->give_time(k);
}

/* Not while the sandbox is being suspended: that is STOPPING too, and may be undone. */
static bool is_ending(const struct keeper *k)
{
	return k->state.phase == KEEPER_STOPPED ||
	       (k->state.phase == KEEPER_STOPPING && k->suspend->step == SUSPEND_NONE);
}

void space_on_full(struct keeper *k)
{
	log_error("disk full: the sandbox is paused");
	if (!k->space->timer.pos && k->plan != START_MAKE && !is_ending(k))
		space_start(k); /* not started before the sandbox runs */
	set_paused(k, true);
	suspend_on_full(k);
}

/* A boot and a restored VM touch memory long before the sandbox runs. */
static bool is_guest_starting(const struct keeper *k)
{
	return k->memory_dir && k->state.phase == KEEPER_STARTING &&
	       (k->plan == START_COLD || (k->plan == START_WARM && k->warm->step == WARM_RUNNING));
}

/* Not while the VM is saved or restored. A VM that found no space continues at every other step;
 * only a running VM is paused. */
static bool is_free_to_act(const struct keeper *k)
{
	if (!k->vmm || k->plan == START_MAKE || k->freeze->state != FREEZE_IDLE || is_ending(k))
		return false;
	if (!k->state.paused)
		return (k->state.phase == KEEPER_RUNNING || is_guest_starting(k)) &&
		       k->suspend->step == SUSPEND_NONE;
	return k->plan != START_RESUME && k->suspend->step < SUSPEND_SAVING;
}

void space_on_timer(struct keeper *k)
{
	uint64_t free, need;
	int what;

	if (is_ending(k))
		return;
	find_least(k, &free, &need);
	look_later(k, space_interval(k->state.paused, k->memory_dir, free, need));
	if (free >= need)
		k->space->written = UINT64_MAX; /* writes are not counted */
	if (!is_free_to_act(k))
		return;
	what = space_decide(k->state.paused, free < need && is_using_space(k), free, need);
	if (what > 0)
		pause_machine(k);
	else if (what < 0)
		continue_running(k);
	if (what)
		machine_on_qmp(k); /* sets its timer */
}

void space_place_memory(struct keeper *k)
{
	AUTO_SETTINGS struct settings s = {0};
	struct err err = {0};
	int r;

	(void)!settings_load(&s, NULL); /* a broken file: the default */
	k->disk_reserve = settings_get_u64(&s, SETTINGS_DISK_RESERVE);
	k->memory_dir = NULL;
	/* The memory of a snapshot is copied once, in the densest form. */
	if (k->plan == START_MAKE ||
		strcmp(settings_get(&s, SETTINGS_VM_MEMORY_BACKING), "file") != 0)
		return;
	k->memory_dir = k->dir; /* space_check uses it */
	r = vmm_memory_check(k->dir, &err);
	if (r == 0)
		r = space_check(k, k->spec.memory, &err);
	if (r == 0)
		return;
	log_warn("the memory of the VM is a memfd: %s", err_text(&err, r));
	k->memory_dir = NULL;
}

void space_start(struct keeper *k)
{
	k->space->n_places = 0;
	space_add(k->space, k->dir);
	for (size_t i = 0; i < k->spec.n_workspaces; i++)
		if (!k->spec.workspaces[i].ro)
			space_add(k->space, k->spec.workspaces[i].host);
	k->space->written = UINT64_MAX;
	look_later(k, k->memory_dir ? SPACE_FAST_MS : SPACE_LOOK_MS);
}

void space_stop(struct keeper *k)
{
	loop_timer_clear(&k->loop, &k->space->timer);
	k->state.paused = false;
}
