/* SPDX-License-Identifier: Apache-2.0 */
#include "wipe.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/os/program/run_places.h"
#include "lib/vm/store/store.h"
#include "src/sbxd/http/http.h"
#include "merges.h"
#include "templates.h"

static int empty_folder(int at, const char *name, int depth);

static int remove_entry(int dirfd, const char *name, int depth)
{
	int r;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	r = empty_folder(dirfd, name, depth + 1);
	if (r < 0)
		return r;
	return unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

static int empty_folder(int at, const char *name, int depth)
{
	int r = 0;
	struct dirent *e;
	AUTO_DIR DIR *dir = NULL;

	if (depth > WIPE_MAX_DEPTH)
		return -ELOOP;
	dir = dir_of(openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (r == 0 && (e = dir_next(dir)))
		r = remove_entry(dirfd(dir), e->d_name, depth);
	return r;
}

static int wipe_tree(const char *dir)
{
	int r = empty_folder(AT_FDCWD, dir, 0);

	if (r < 0)
		return r;
	return rmdir(dir) < 0 && errno != ENOENT ? -errno : 0;
}

int wipe_sandbox(const char *id)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id), *specs = spec_dir(id);
	int r = wipe_tree(specs);

	/* The directory last: while it exists, a sweep removes the rest. */
	return r < 0 ? r : wipe_tree(dir);
}

void wipe_runtime(const char *id)
{
	AUTO_FREE char *run = paths_get(PATHS_RUNTIME, "s/%s", id);
	int r = wipe_tree(run);

	if (r < 0)
		log_warn("cannot remove %s: %s", run, strerror(-r));
}

void wipes_init(struct wipes *ws)
{
	*ws = (struct wipes){0};
	for (size_t i = 0; i < WIPE_MAX; i++)
		ws->slot[i].pidfd = -1;
}

static void free_wipe(struct sbxd *d, struct wipe *w)
{
	if (w->pidfd >= 0) {
		loop_del(&d->loop, w->pidfd);
		d->wipes->n_running--;
	}
	fd_close(&w->pidfd);
	w->id[0] = '\0';
	w->gen = (w->gen + 1) & 0xffffff;
}

void wipes_done(struct sbxd *d)
{
	for (size_t i = 0; i < WIPE_MAX; i++)
		if (d->wipes->slot[i].id[0])
			free_wipe(d, &d->wipes->slot[i]);
}

bool wipe_is_running(struct sbxd *d, const char *id)
{
	for (size_t i = 0; i < WIPE_MAX; i++)
		if (strcmp(d->wipes->slot[i].id, id) == 0)
			return true;
	return false;
}

/* In the child. */
static void do_wipe(const char *id)
{
	int r;

	/* The instance lock and the socket in here must not outlive sbxd. */
	(void)syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	r = wipe_sandbox(id);
	wipe_runtime(id);
	if (r < 0)
		log_error("cannot remove the files of %s: %s", id, strerror(-r));
	_exit(r < 0);
}

static bool run_wipe(struct sbxd *d, struct wipe *w)
{
	struct loop_key key = {
		.kind = SBXD_EV_WIPE, .gen = w->gen, .idx = (uint32_t)(w - d->wipes->slot)};
	pid_t pid = fork();

	if (pid == 0)
		do_wipe(w->id);
	if (pid < 0)
		return false;
	w->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (w->pidfd < 0)
		return false;
	d->wipes->n_running++;
	return loop_add(&d->loop, w->pidfd, EPOLLIN, key) == 0;
}

/* Starts waiting wipes, up to the limit. */
static void run_next(struct sbxd *d)
{
	for (size_t i = 0; i < WIPE_MAX && d->wipes->n_running < WIPE_AT_ONCE; i++) {
		struct wipe *w = &d->wipes->slot[i];

		if (!w->id[0] || w->pidfd >= 0)
			continue;
		if (!run_wipe(d, w)) {
			log_error("cannot remove %s now: sbxd tries again when it starts next",
				w->id);
			free_wipe(d, w);
		}
	}
}

void wipe_start(struct sbxd *d, const char *id)
{
	merges_stop(d, id);
	for (size_t i = 0; i < WIPE_MAX; i++) {
		struct wipe *w = &d->wipes->slot[i];

		if (w->id[0])
			continue;
		(void)snprintf(w->id, sizeof(w->id), "%s", id);
		run_next(d);
		return;
	}
	log_error("too many concurrent removals: sbxd removes %s when it starts next", id);
}

void wipe_on_exit(struct sbxd *d, const struct loop_event *ev)
{
	struct wipe *w = &d->wipes->slot[ev->key.idx];
	char id[SPEC_ID_LEN + 1];
	siginfo_t si = {0};
	struct err err = {0};
	bool ok;

	assert(ev->key.idx < WIPE_MAX);
	if (!w->id[0] || w->gen != ev->key.gen)
		return;
	memcpy(id, w->id, sizeof(id));
	ok = waitid(P_PIDFD, (id_t)w->pidfd, &si, WEXITED | WNOHANG) == 0 &&
	     si.si_code == CLD_EXITED && si.si_status == 0;
	free_wipe(d, w);
	if (ok && store_forget(d->store, id, &err) < 0)
		log_error("%s", err.text);
	else if (ok)
		run_places_remove(id);
	if (ok)
		templates_collect(d);
	run_next(d);
	conns_wake(d, id);
}
