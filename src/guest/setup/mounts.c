/* SPDX-License-Identifier: Apache-2.0 */
#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "src/guest/base/base.h"
#include "src/guest/stage/stage.h"
#include "src/guest/trust/trust.h"
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

/* A device that is being plugged in has no tag yet, and mount fails with EINVAL. */
static int mount_share(void)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	uint64_t end = clock_mono_ms() + MOUNTS_SHARE_MS;

	while (mount(GUEST_SHARE_TAG, MOUNTS_SHARE, "virtiofs", MS_NOSUID | MS_NODEV, NULL) < 0) {
		if (errno != EINVAL || clock_mono_ms() >= end)
			return -errno;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

static int need_share(struct mounts *m, struct err *err)
{
	int r;

	if (m->shared)
		return 0;
	/* The parent directory is public: it contains the CA for programs (trust.h). */
	(void)mkdir(TRUST_DIR, 0755);
	(void)mkdir(MOUNTS_DIR, 0700);
	(void)mkdir(MOUNTS_SHARE, 0700);
	r = mount_share();
	if (r < 0)
		return err_errno(err, r, "cannot mount the workspaces' share in the guest");
	m->shared = true;
	return 0;
}

/* Length of the part of the path up to the first missing component; 0 if all of it exists. */
static size_t missing_prefix(const char *path)
{
	char part[GUEST_MAX_PATH];

	for (size_t n = 1; path[n - 1]; n++) {
		if (path[n] != '/' && path[n] != '\0')
			continue;
		memcpy(part, path, n);
		part[n] = '\0';
		if (access(part, F_OK) < 0)
			return n;
	}
	return 0;
}

/* Missing parents come from the share itself: there they are empty stubs that the host keeps
 * read-only, also for guest root. */
static int bind_stub(const struct guest_mount *w, struct err *err)
{
	size_t n = missing_prefix(w->path);
	AUTO_FREE char *place = xstrndup(w->path, n);
	AUTO_FREE char *from = xasprintf("%s%s", MOUNTS_SHARE, place);

	if (n == 0 || !w->path[n] || strcmp(w->share, w->path) != 0)
		return 0;
	if (mkdir(place, 0555) < 0 || mount(from, place, NULL, MS_BIND, NULL) < 0)
		return err_errno(err, -errno, "cannot create %s in the guest", place);
	return 0;
}

/* Below the agent's home: missing parents are owned by the agent. */
static int make_home_parents(const char *path, struct err *err)
{
	char part[GUEST_MAX_PATH];
	struct guest_user agent;
	int r = users_lookup(USERS_AGENT, &agent, err);

	if (r < 0)
		return r;
	for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
		if (mkdir(part, 0755) == 0)
			r = lchown(part, agent.uid, agent.gid);
		if (r < 0)
			return err_errno(err, -errno, "cannot create %s in the guest", part);
	}
	return 0;
}

static int make_place(const struct guest_mount *w, struct err *err)
{
	int r = file_make_parents(w->path, err), fd;

	if (r < 0)
		return r;
	if (!(w->flags & GUEST_MOUNT_FILE)) {
		if (mkdir(w->path, 0755) < 0 && errno != EEXIST)
			return err_errno(err, -errno, "cannot create %s in the guest", w->path);
		return 0;
	}
	if (access(w->path, F_OK) == 0)
		return 0;
	fd = open(w->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return err_errno(err, -errno, "cannot create %s in the guest", w->path);
	fd_close(&fd);
	return 0;
}

/* What is bound: the part of the share, or the overlay over it. */
static int find_source(
	const struct mounts *m, const struct guest_mount *w, char **ret, struct err *err)
{
	AUTO_FREE char *share = xasprintf("%s%s", MOUNTS_SHARE, w->share);

	if (w->flags & GUEST_MOUNT_STAGED)
		return stage_mount(m->id ? m->id : "", w, share, ret, err);
	*ret = TAKE(share);
	return 0;
}

static int bind_one(const struct mounts *m, const struct guest_mount *w, struct err *err)
{
	AUTO_FREE char *from = NULL;
	unsigned long ro = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;
	int r = w->flags & GUEST_MOUNT_HOME ? make_home_parents(w->path, err) : bind_stub(w, err);

	if (r == 0)
		r = make_place(w, err);
	if (r == 0)
		r = find_source(m, w, &from, err);
	if (r < 0)
		return r;
	if (mount(from, w->path, NULL, MS_BIND, NULL) < 0)
		return err_errno(
			err, -errno, "cannot mount the workspace at %s in the guest", w->path);
	if (w->flags & GUEST_MOUNT_RO && mount(NULL, w->path, NULL, ro, NULL) < 0)
		return err_errno(err, -errno, "cannot make %s read-only in the guest", w->path);
	return 0;
}

static bool is_bound(const struct mounts *m, const char *path)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->places[i], path))
			return true;
	return false;
}

void mounts_gone(struct mounts *m)
{
	m->shared = false;
}

int mounts_share_again(struct mounts *m, struct err *err)
{
	return need_share(m, err);
}

void mounts_set_id(struct mounts *m, const char *id)
{
	free(m->id);
	m->id = xstrdup(id);
}

int mounts_apply(struct mounts *m, const struct guest_mounts *want, struct err *err)
{
	for (size_t i = 0; i < want->n; i++) {
		int r;

		if (is_bound(m, want->v[i].path))
			continue;
		if (m->n == MOUNTS_MAX)
			return err_set(err, -E2BIG, "too many workspaces: at most %d", MOUNTS_MAX);
		r = need_share(m, err);
		if (r == 0)
			r = bind_one(m, &want->v[i], err);
		if (r < 0)
			return r;
		m->places[m->n++] = xstrdup(want->v[i].path);
	}
	return 0;
}
