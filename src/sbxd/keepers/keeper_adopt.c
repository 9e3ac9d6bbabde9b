/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "keepers_internal.h"
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/hands/hands.h"
#include "lib/base/fs/dir.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/vm/store/store.h"

static int connect_keeper(const char *id, int *ret_fd)
{
	AUTO_CLOSE int fd = hands_to_keeper(id, NULL);

	if (fd < 0)
		return fd;
	if (!fd_is_same_user(fd))
		return -EPERM;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int know_process(struct sbxd *d, struct keeper *k, int pidfd, pid_t pid)
{
	k->pidfd = pidfd;
	k->pid = pid;
	return keeper_watch_exit(d, k);
}

/* Finds the keeper's process by its note. An earlier version has no note: its lock and command line
 * identify it. The listener of the socket is not used: the keeper chooses it. */
static int open_process(const char *id, pid_t *ret_pid)
{
	int fd = keeper_note_open(id, ret_pid);

	return fd < 0 ? keeper_find_holder(id, ret_pid) : fd;
}

static int reach_keeper(struct sbxd *d, struct keeper *k)
{
	AUTO_CLOSE int sock = -1, pidfd = -1;
	pid_t pid = 0;
	int r = connect_keeper(k->id, &sock);

	if (r == 0 && k->pidfd < 0) {
		pidfd = open_process(k->id, &pid);
		r = pidfd < 0 ? pidfd : !keeper_lock_is_held(k->id) ? -ESRCH : 0;
		if (r == 0)
			r = know_process(d, k, TAKE_FD(pidfd), pid);
	}
	if (r < 0)
		return r;
	k->sock = TAKE_FD(sock);
	r = keeper_watch_channel(d, k);
	if (r < 0)
		fd_close(&k->sock);
	return r;
}

/* Not reachable, but identified, so that it can be killed on request. */
static void find_process(struct sbxd *d, struct keeper *k)
{
	pid_t pid = 0;
	int fd = k->pidfd < 0 ? open_process(k->id, &pid) : -1;

	if (fd >= 0 && know_process(d, k, fd, pid) < 0)
		log_error("cannot watch the keeper of %s", k->id);
	/* The keeper has exited, and a process that it forked holds its lock. */
	if (fd < 0 && k->pidfd < 0)
		hands_kill_rest(k->id);
}

void keeper_reconnect(struct sbxd *d, struct keeper *k)
{
	int r;

	if (!keeper_lock_is_held(k->id)) {
		/* A keeper whose sbxd died right after the fork may not have its lock yet. */
		if (k->pidfd < 0 && clock_mono_ms() - k->born_ms < KEEPER_BIRTH_MS &&
			keeper_log_is_held(k->id))
			keeper_set_timer(d, k);
		else
			keeper_gone(d, k);
		return;
	}
	r = reach_keeper(d, k);
	if (r < 0) {
		log_debug("cannot connect to the keeper of %s: %s", k->id, strerror(-r));
		find_process(d, k);
		keeper_set_timer(d, k);
		return;
	}
	k->seeking = false;
	if (chan_send_plain(k->sock, KEEPER_PING, 0, -1) < 0)
		log_warn("keeper of %s does not read", k->id);
	if (k->asked_stop)
		keeper_stop(d, k, 0);
}

static int adopt_keeper(struct sbxd *d, const char *id, bool removing)
{
	struct keeper *k = keeper_find(d, id);

	if (k)
		return 0;
	k = keeper_new(d, id);
	if (!k)
		return -ENOSPC;
	k->seeking = true;
	k->removing = k->asked_stop = removing;
	if (removing)
		k->kill_at_ms = clock_mono_ms() + KEEPER_LEAST_STOP_MS;
	keeper_reconnect(d, k);
	return 0;
}

static int adopt_started(void *arg, const char *id)
{
	return adopt_keeper(arg, id, false);
}

static int adopt_removed(void *arg, const char *id)
{
	return adopt_keeper(arg, id, true);
}

/* Adopts a keeper that was alive when its exit was noted. Ids unknown to the registry are not
 * touched: the registry may be wrong. */
static void adopt_folder(struct sbxd *d, const char *id)
{
	AUTO_ROW struct store_row row = {0};

	if (keeper_find(d, id))
		return;
	if (!keeper_lock_is_held(id))
		wipe_runtime(id);
	else if (store_get(d->store, id, &row, NULL) == 0)
		(void)!adopt_keeper(d, id, false);
	else
		log_warn("a keeper is running for %s, which is not in the registry", id);
}

static int adopt_folders(struct sbxd *d)
{
	AUTO_FREE char *path = paths_get(PATHS_RUNTIME, "s");
	AUTO_DIR DIR *dir = opendir(path);
	struct dirent *e;

	while ((e = dir_next(dir))) {
		if (spec_is_id(e->d_name))
			adopt_folder(d, e->d_name);
	}
	return 0;
}

int keepers_adopt(struct sbxd *d, struct err *err)
{
	int r = store_list_removed(d->store, adopt_removed, d, err);

	if (r == 0)
		r = store_list_started(d->store, adopt_started, d, err);
	return r == 0 ? adopt_folders(d) : r;
}
