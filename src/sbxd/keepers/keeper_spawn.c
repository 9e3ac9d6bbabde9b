/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include "keepers_internal.h"
#include "src/sbxd/hands/hands.h"
#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/vm/store/store.h"

static bool is_held(const char *id, const char *file)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s/%s", id, file);

	return file_is_locked(path);
}

bool keeper_lock_is_held(const char *id)
{
	return is_held(id, "lock");
}

bool keeper_log_is_held(const char *id)
{
	return is_held(id, "keeper.log");
}

/* The keeper's own output, over all its starts. */
static int open_log(const char *dir, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/keeper.log", dir);
	int fd = child_open_log(path, err);

	/* The child inherits this with its stdout: see keeper_log_is_held. */
	if (fd >= 0)
		(void)flock(fd, LOCK_EX | LOCK_NB);
	return fd;
}

static enum hands_way way_of(const struct keeper *k)
{
	return keeper_is_pooled(k) ? HANDS_POOL : k->cold ? HANDS_COLD : HANDS_WARM;
}

int keeper_make_folders(const struct spec *spec, char **ret_dir, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", spec->id);
	AUTO_FREE char *run = paths_get(PATHS_RUNTIME, "s/%s", spec->id);
	AUTO_FREE char *specs = spec_dir(spec->id), *file = spec_path(spec->id);
	AUTO_FREE char *last = xasprintf("%s/last", dir);
	int r = paths_make(dir, err);

	if (r == 0)
		r = paths_make(run, err);
	if (r == 0)
		r = paths_make(specs, err);
	if (r == 0)
		r = spec_save(spec, file, err);
	if (r < 0)
		return r;
	(void)unlink(last);
	*ret_dir = TAKE(dir);
	return 0;
}

static int launch_keeper(struct sbxd *d, struct keeper *k, const char *dir, struct err *err)
{
	AUTO_CLOSE int log_fd = open_log(dir, err);
	AUTO_CLOSE int theirs = -1;
	struct hands_child child;
	int pair[2], r;

	if (log_fd < 0)
		return log_fd;
	r = ipc_pair(pair);
	if (r < 0)
		return err_errno(err, r, "cannot create a channel");
	k->sock = pair[0];
	theirs = pair[1];
	r = hands_keeper(k->id, way_of(k), theirs, log_fd, &child, err);
	if (r < 0)
		return r;
	k->pid = child.pid;
	k->pidfd = child.pidfd;
	k->child = true;
	r = keeper_watch_exit(d, k);
	if (r == 0)
		r = keeper_watch_channel(d, k);
	return r < 0 ? err_errno(err, r, "cannot watch a keeper") : 0;
}

static int launch_or_undo(struct sbxd *d, struct keeper *k, const char *dir, struct err *err)
{
	int r = launch_keeper(d, k, dir, err);

	if (r < 0) {
		keeper_kill(k);
		if (k->child)
			hands_reap_killed(&(struct hands_child){.pid = k->pid, .pidfd = k->pidfd});
		keeper_free(d, k);
	}
	return r;
}

int keeper_spawn_pooled(
	struct sbxd *d, const struct spec *spec, const struct pool_seat *seat, struct err *err)
{
	AUTO_FREE char *dir = NULL;
	struct keeper *k;
	int r = keeper_check_room(d, err);

	if (r == 0)
		r = keeper_make_folders(spec, &dir, err);
	if (r < 0)
		return r;
	k = keeper_new(d, spec->id);
	if (!k)
		return err_set(err, -ENOSPC, "%d sandboxes are already running", KEEPER_MAX);
	k->pool = *seat;
	k->kill_at_ms = clock_mono_ms() + POOL_RESTORE_MS;
	keeper_set_timer(d, k);
	return launch_or_undo(d, k, dir, err);
}

int keeper_spawn(struct sbxd *d, const struct spec *spec, bool cold, struct err *err)
{
	AUTO_FREE char *dir = NULL;
	struct keeper *k;
	int r;

	if (keeper_lock_is_held(spec->id))
		return err_set(err, -EBUSY,
			"the previous sbx-keeper of %s is still running: try again later",
			spec->name);
	r = keeper_check_room(d, err);
	if (r == 0)
		r = keeper_make_folders(spec, &dir, err);
	/* Before the process, so that a crash right after is handled at the next start. */
	if (r == 0)
		r = store_stamp(d->store, spec->id, STORE_STARTED, clock_wall_ms(), "", err);
	if (r < 0)
		return r;
	k = keeper_new(d, spec->id);
	if (!k)
		return err_set(err, -ENOSPC, "%d sandboxes are already running", KEEPER_MAX);
	k->used_stamp_ms = clock_wall_ms();
	k->cold = cold;
	r = launch_or_undo(d, k, dir, err);
	if (r < 0)
		(void)!store_stamp(
			d->store, spec->id, STORE_STOPPED, clock_wall_ms(), err->text, NULL);
	else
		reload_first(d, k, spec);
	return r;
}
