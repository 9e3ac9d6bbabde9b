/* SPDX-License-Identifier: Apache-2.0 */
/* Reverts an apply, complete or interrupted, from its journal. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply_internal.h"
#include "journal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

/* A step that is not undone: the path is not as applied. */
#define KEPT 1

static int say_kept(struct err *err)
{
	return err_set(err, KEPT, "changed since it was applied");
}

/* The temporary name has what is no longer needed. A rename does not wait for the file system to
 * free blocks; on another file system it does. */
static int throw_away(const struct apply *a, const struct spot *p, struct err *err)
{
	if (renameat(p->dir, p->temp, a->gone, p->saved) == 0 || unlinkat(p->dir, p->temp, 0) == 0)
		return 0;
	return err_errno(err, -errno, "cannot remove '%.200s'", p->base);
}

/* `now` leaves its path, if the path still has it. */
static int take_away(
	const struct apply *a, const struct spot *p, const struct look *now, struct err *err)
{
	struct look out;
	int r;

	if (renameat2(p->dir, p->base, p->dir, p->temp, RENAME_NOREPLACE) < 0)
		return err_errno(err, -errno, "cannot remove '%.200s'", p->base);
	r = look_in(p->dir, p->temp, false, &out, err);
	if (r == 0 && look_same(&out, now, true))
		return throw_away(a, p, err);
	if (r == 0)
		(void)renameat2(p->dir, p->temp, p->dir, p->base, RENAME_NOREPLACE);
	return r < 0 ? r : say_kept(err);
}

/* The temporary name has the old version. */
static int put_back(
	const struct apply *a, const struct spot *p, const struct look *now, struct err *err)
{
	bool absent = now->type == LOOK_ABSENT;
	struct look out;
	int r;

	if (renameat2(p->dir, p->temp, p->dir, p->base,
		    absent ? RENAME_NOREPLACE : RENAME_EXCHANGE) < 0)
		return err_errno(err, -errno, "cannot restore '%.200s'", p->base);
	if (absent)
		return 0;
	r = look_in(p->dir, p->temp, false, &out, err);
	if (r == 0 && look_same(&out, now, true))
		return throw_away(a, p, err);
	if (r == 0 && renameat2(p->dir, p->temp, p->dir, p->base, RENAME_EXCHANGE) == 0)
		r = spot_save(a, p, err);
	return r < 0 ? r : say_kept(err);
}

/* A path that had something before. */
static int undo_version(const struct apply *a, const struct spot *p, const struct plan_step *s,
	const struct look *now, const struct look *temp, struct err *err)
{
	bool is_saved = spot_is_saved(a, p);
	bool in_temp = !is_saved && spot_matches(temp, &s->old);
	int r = 0;

	if (spot_matches(now, &s->old) && !is_saved) {
		spot_drop_temp(p);
		return 0;
	}
	if (!spot_matches(now, &s->new)) {
		if (in_temp)
			r = spot_save(a, p, err);
		return r < 0 ? r : say_kept(err);
	}
	if (is_saved) {
		spot_drop_temp(p);
		r = spot_unsave(a, p, err);
	} else if (!in_temp) {
		return say_kept(err);
	}
	return r < 0 ? r : put_back(a, p, now, err);
}

static int undo_file(
	const struct apply *a, const struct spot *p, const struct plan_step *s, struct err *err)
{
	struct look now, temp;
	int r = look_in(p->dir, p->base, true, &now, err);

	if (r == 0)
		r = look_in(p->dir, p->temp, true, &temp, err);
	if (r < 0)
		return r;
	if (s->old.type != LOOK_ABSENT)
		return undo_version(a, p, s, &now, &temp, err);
	spot_drop_temp(p);
	if (now.type == LOOK_ABSENT)
		return 0;
	return spot_matches(&now, &s->new) ? take_away(a, p, &now, err) : say_kept(err);
}

static int undo_mkdir(const struct spot *p, struct err *err)
{
	if (unlinkat(p->dir, p->base, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return err_set(err, KEPT, "the directory is not empty");
}

static int undo_rmdir(const struct spot *p, const struct plan_step *s, struct err *err)
{
	if (mkdirat(p->dir, p->base, 0700) < 0 && errno != EEXIST)
		return err_errno(err, -errno, "cannot create '%.200s'", p->base);
	if (errno == EEXIST)
		errno = 0;
	return fchmodat(p->dir, p->base, s->old.mode, 0) < 0 ? say_kept(err) : 0;
}

static int undo_chmod(const struct apply *a, const struct plan_step *s, struct err *err)
{
	AUTO_CLOSE int fd = look_dir(a->roots[s->ws], s->path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return say_kept(err);
	if ((st.st_mode & 0777) == s->old.mode)
		return 0;
	if ((st.st_mode & 0777) != s->new.mode || fchmod(fd, s->old.mode) < 0)
		return say_kept(err);
	return 0;
}

static int undo_step(const struct apply *a, const struct plan_step *s, size_t i, struct err *err)
{
	AUTO_SPOT struct spot p = {.dir = -1};
	int r = s->kind == PLAN_CHMOD ? 0 : spot_open(a, s, i, &p);

	if (r < 0 && (s->kind == PLAN_MKDIR || (s->kind == PLAN_PUT && s->old.type == LOOK_ABSENT)))
		return 0; /* its directory is gone, and so is the path */
	if (r < 0)
		return err_set(err, KEPT, "the directory does not exist");
	switch (s->kind) {
	case PLAN_DELETE:
	case PLAN_PUT:
		return undo_file(a, &p, s, err);
	case PLAN_RMDIR:
		return undo_rmdir(&p, s, err);
	case PLAN_MKDIR:
		return undo_mkdir(&p, err);
	default:
		return undo_chmod(a, s, err);
	}
}

static void finish_undo(struct apply *a, const struct plan_step *s, int r, const struct err *why)
{
	if (r != 0) {
		a->n_skipped++;
		if (a->tell)
			a->tell(a->arg, s, err_text(why, r));
		return;
	}
	a->n_done++;
	if (s->host_changed)
		known_add(a->known, s->ws, s->path, KNOWN_MIXED);
	else if (s->old.type == LOOK_FILE || s->old.type == LOOK_LINK)
		known_add(a->known, s->ws, s->path, s->old.sha);
	else if (s->kind == PLAN_PUT)
		known_add(a->known, s->ws, s->path, KNOWN_ABSENT);
}

int apply_undo(struct apply *a, struct err *err)
{
	AUTO_FREE char *skipped = NULL, *gone = xasprintf("%s" APPLY_GONE, a->dir);
	AUTO_CLOSE int fd = -1;
	AUTO_PLAN struct plan p = {0};
	int r = journal_read(a->dir, &p, err);

	if (r < 0)
		return r;
	(void)mkdir(gone, 0700);
	fd = open(gone, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, -errno, "cannot create %s", gone);
	a->gone = fd;
	skipped = journal_skipped(a->dir, p.n);
	for (size_t i = p.n; i-- > 0;) {
		struct err why = {0};

		if (!skipped[i])
			finish_undo(a, &p.v[i], undo_step(a, &p.v[i], i, &why), &why);
	}
	known_sort(a->known);
	return 0;
}
