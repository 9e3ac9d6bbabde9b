/* SPDX-License-Identifier: Apache-2.0 */
#include "apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply_internal.h"
#include "journal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "src/sbx/stage/merge/saved.h"

/* A step that is left out: the workspace is not as the plan has seen it. */
#define SKIPPED 1

static int skip_step(struct err *err, const char *why)
{
	return err_set(err, SKIPPED, "%s", why);
}

static int skip_changed(struct err *err)
{
	return skip_step(err, "changed on the host since the plan");
}

static int require_old(const struct spot *p, const struct plan_step *s, struct err *err)
{
	struct look now;
	int r = look_in(p->dir, p->base, false, &now, err);

	if (r < 0)
		return r;
	return look_same(&now, &s->old, false) ? 0 : skip_changed(err);
}

/* ---- files and links ---- */

static int write_file(
	const struct apply *a, const struct spot *p, const struct plan_step *s, struct err *err)
{
	AUTO_CLOSE int fd =
		openat(p->dir, p->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? err_errno(err, -errno, "cannot create a file next to '%.200s'", p->base)
		       : saved_copy_step(a->bundle, s, fd, err);

	if (r == 0 && (fchmod(fd, s->new.mode) < 0 || (a->sync_each && fsync(fd) < 0)))
		r = err_errno(err, -errno, "cannot write '%.200s'", p->base);
	return r;
}

static int write_new(
	const struct apply *a, const struct spot *p, const struct plan_step *s, struct err *err)
{
	if (s->new.type == LOOK_FILE)
		return write_file(a, p, s, err);
	if (symlinkat(s->entry->link, p->dir, p->temp) < 0)
		return err_errno(err, -errno, "cannot create a link next to '%.200s'", p->base);
	return 0;
}

/* After an exchange, or after a move away: the temporary name has the old version. */
static int keep_old(
	const struct apply *a, const struct spot *p, const struct plan_step *s, struct err *err)
{
	bool exchanged = s->kind == PLAN_PUT;
	struct look out;
	int r = look_in(p->dir, p->temp, false, &out, err);

	if (r == 0 && look_same(&out, &s->old, true)) {
		r = spot_save(a, p, err);
		if (r == 0)
			return 0;
	}
	/* Another program was faster, or the old version cannot be saved: it returns to its
	 * place. */
	if (renameat2(p->dir, p->temp, p->dir, p->base,
		    exchanged ? RENAME_EXCHANGE : RENAME_NOREPLACE) < 0)
		return err_errno(err, -errno, "'%.200s' is now called '%s'", p->base, p->temp);
	if (exchanged)
		spot_drop_temp(p);
	return r < 0 ? r : skip_changed(err);
}

static int put_in_place(
	const struct apply *a, const struct spot *p, const struct plan_step *s, struct err *err)
{
	bool is_new = s->old.type == LOOK_ABSENT;
	unsigned flags = is_new ? RENAME_NOREPLACE : RENAME_EXCHANGE;
	int r = require_old(p, s, err);

	if (r == 0 && renameat2(p->dir, p->temp, p->dir, p->base, flags) < 0)
		r = errno == EEXIST || errno == ENOENT
			    ? skip_changed(err)
			    : err_errno(err, -errno, "cannot replace '%.200s'", p->base);
	if (r != 0)
		spot_drop_temp(p);
	else if (!is_new)
		r = keep_old(a, p, s, err);
	return r;
}

/* The first half of a step: the new version next to the path. */
static int prepare_put(
	const struct apply *a, const struct spot *p, const struct plan_step *s, struct err *err)
{
	int r = require_old(p, s, err);

	if (r != 0)
		return r;
	r = write_new(a, p, s, err);
	if (r != 0)
		spot_drop_temp(p);
	return r;
}

static int delete_step(
	const struct apply *a, const struct spot *p, const struct plan_step *s, struct err *err)
{
	int r = require_old(p, s, err);

	if (r != 0)
		return r;
	if (renameat2(p->dir, p->base, p->dir, p->temp, RENAME_NOREPLACE) < 0)
		return err_errno(err, -errno, "cannot delete '%.200s'", p->base);
	return keep_old(a, p, s, err);
}

/* ---- directories ---- */

static int rmdir_step(const struct spot *p, const struct plan_step *s, struct err *err)
{
	struct look now;
	int r = look_in(p->dir, p->base, false, &now, err);

	if (r < 0)
		return r;
	if (now.type != LOOK_DIR || now.ino != s->old.ino || now.dev != s->old.dev)
		return skip_changed(err);
	if (unlinkat(p->dir, p->base, AT_REMOVEDIR) == 0)
		return 0;
	return errno == ENOTEMPTY || errno == EEXIST
		       ? skip_step(err, "the directory is not empty")
		       : err_errno(err, -errno, "cannot remove '%.200s'", p->base);
}

static int mkdir_step(const struct spot *p, const struct plan_step *s, struct err *err)
{
	if (mkdirat(p->dir, p->base, 0700) < 0)
		return errno == EEXIST ? skip_changed(err)
				       : err_errno(err, -errno, "cannot create '%.200s'", p->base);
	/* only this process knows the new directory; the mode has no set-id bit */
	if (fchmodat(p->dir, p->base, s->new.mode, 0) < 0)
		return err_errno(err, -errno, "cannot set the mode of '%.200s'", p->base);
	return 0;
}

static int chmod_step(const struct apply *a, const struct plan_step *s, struct err *err)
{
	AUTO_CLOSE int fd = look_dir(a->roots[s->ws], s->path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != s->old.ino ||
		(st.st_mode & 0777) != s->old.mode)
		return skip_changed(err);
	if (fchmod(fd, s->new.mode) < 0)
		return err_errno(err, -errno, "cannot set the mode of '%.200s'", s->path);
	return 0;
}

/* ---- all steps ---- */

enum half { PREPARE, COMMIT };

/* Steps without a first half have nothing to prepare. */
static int do_step(
	const struct apply *a, const struct plan_step *s, size_t i, enum half half, struct err *err)
{
	AUTO_SPOT struct spot p = {.dir = -1};
	int r = s->kind == PLAN_CHMOD ? 0 : spot_open(a, s, i, &p);

	if (half == PREPARE && s->kind != PLAN_PUT)
		return 0;
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return skip_step(err, "the directory does not exist");
	if (r < 0)
		return err_errno(err, r, "cannot open the directory of '%.200s'", s->path);
	switch (s->kind) {
	case PLAN_DELETE:
		return delete_step(a, &p, s, err);
	case PLAN_RMDIR:
		return rmdir_step(&p, s, err);
	case PLAN_MKDIR:
		return mkdir_step(&p, s, err);
	case PLAN_PUT:
		return half == PREPARE ? prepare_put(a, &p, s, err) : put_in_place(a, &p, s, err);
	default:
		return chmod_step(a, s, err);
	}
}

/* The version of the sandbox is the base of the next merge. */
static void note_known(struct apply *a, const struct plan_step *s)
{
	if (a->merged && s->new.type == LOOK_FILE && s->entry->size <= SAVED_MAX_BASE)
		saved_put_base(a->dir, a->bundle, s);
	if (s->merged) {
		known_add(a->known, s->ws, s->path, KNOWN_MIXED);
	} else if (s->new.type == LOOK_FILE || s->new.type == LOOK_LINK) {
		known_add(a->known, s->ws, s->path, s->new.sha);
	} else if (s->kind == PLAN_DELETE) {
		known_add(a->known, s->ws, s->path, KNOWN_ABSENT);
	}
}

/* 1: the directory is not as the step leaves it. */
static int resume_dir(const struct spot *p, const struct plan_step *s, const struct look *now)
{
	if (s->kind == PLAN_RMDIR || now->type != LOOK_DIR)
		return now->type != s->new.type;
	if (now->mode == s->new.mode)
		return 0;
	/* killed before the mode of a new directory was set */
	if (s->kind == PLAN_MKDIR && now->mode == 0700)
		return fchmodat(p->dir, p->base, s->new.mode, 0) < 0 ? -errno : 0;
	return 1;
}

/* Continues a step that a killed apply may have begun. 0: it is complete. 1: it must be done. */
static int resume_step(const struct apply *a, const struct plan_step *s, size_t i, struct err *err)
{
	AUTO_SPOT struct spot p = {.dir = -1};
	struct look temp, now;
	int r = spot_open(a, s, i, &p);

	if (r < 0)
		return 1;
	r = look_in(p.dir, p.base, true, &now, err);
	if (r == 0)
		r = look_in(p.dir, p.temp, false, &temp, err);
	if (r < 0)
		return r;
	if (s->kind != PLAN_DELETE && s->kind != PLAN_PUT)
		return resume_dir(&p, s, &now);
	if (!spot_is_saved(a, &p) && s->old.type != LOOK_ABSENT && look_same(&temp, &s->old, true))
		return spot_save(a, &p, err);
	spot_drop_temp(&p);
	return spot_is_saved(a, &p) || spot_matches(&now, &s->new) ? 0 : 1;
}

static int finish_step(struct apply *a, const struct plan_step *s, size_t i, int results, int r,
	const struct err *why)
{
	if (r == 0) {
		note_known(a, s);
		a->n_done++;
	} else {
		a->n_skipped++;
		if (a->tell)
			a->tell(a->arg, s, err_text(why, r));
	}
	return journal_result(results, i, r != 0);
}

/* Result of a step whose first half failed, or that was complete before. */
enum mark { OPEN, ENDED };

struct work {
	struct apply *a;
	const struct plan *p;
	bool again;
	int results;
	char *marks; /* by step */
};

/* A bundle that is not what was reviewed, or a full disk, ends everything; other failures concern
 * one path. */
static bool is_fatal(int r)
{
	return r == -EBADMSG || r == -ENOSPC || r == -EDQUOT;
}

static int do_half(struct work *w, size_t i, enum half half, struct err *err)
{
	const struct plan_step *s = &w->p->v[i];
	struct err why = {0};
	int k = half == PREPARE && w->again ? resume_step(w->a, s, i, &why) : 1;
	bool ended = k != 1;

	if (k == 1)
		k = do_step(w->a, s, i, half, &why);
	if (is_fatal(k)) {
		*err = why;
		return k;
	}
	if (half == PREPARE && k == 0 && !ended)
		return 0;
	w->marks[i] = ENDED;
	k = finish_step(w->a, s, i, w->results, k, &why);
	return k < 0 ? err_errno(err, k, "cannot write the journal") : 0;
}

static int do_range(struct work *w, size_t from, size_t to, enum half half, struct err *err)
{
	int r = 0;

	for (size_t i = from; r == 0 && i < to; i++)
		if (w->marks[i] == OPEN)
			r = do_half(w, i, half, err);
	return r;
}

static void sync_roots(const struct apply *a)
{
	for (size_t i = 0; i < a->bundle->n_ws; i++)
		(void)syncfs(a->roots[i]);
}

/* The first step of a kind or a later one. */
static size_t find_kind(const struct plan *p, enum plan_kind kind)
{
	size_t i = 0;

	while (i < p->n && p->v[i].kind < kind)
		i++;
	return i;
}

/* New versions are complete on the disk before the first of them gets its path. */
static int do_steps(struct work *w, struct err *err)
{
	size_t put = find_kind(w->p, PLAN_PUT), after = find_kind(w->p, PLAN_CHMOD);
	int r = do_range(w, 0, put, PREPARE, err);

	w->a->sync_each = after - put <= APPLY_SYNC_EACH;
	if (r == 0)
		r = do_range(w, 0, put, COMMIT, err);
	if (r == 0)
		r = do_range(w, put, w->p->n, PREPARE, err);
	if (r == 0 && !w->a->sync_each)
		sync_roots(w->a);
	return r < 0 ? r : do_range(w, put, w->p->n, COMMIT, err);
}

static int do_all(struct apply *a, const struct plan *p, bool again, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/results", a->dir);
	AUTO_FREE char *marks = xcalloc(p->n + 1, 1);
	AUTO_CLOSE int results = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct work w = {.a = a, .p = p, .again = again, .results = results, .marks = marks};
	int r = results < 0 ? err_errno(err, -errno, "cannot create %s", path) : do_steps(&w, err);

	if (r < 0)
		return r;
	known_sort(a->known);
	sync_roots(a);
	return journal_set_done(a->dir, err);
}

/* The selected steps only, numbered as in the journal. */
static void pick_steps(const struct plan *p, struct plan *ret)
{
	ret->v = xcalloc(p->n + 1, sizeof(*ret->v));
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].wanted) {
			ret->v[ret->n] = p->v[i];
			ret->v[ret->n].notes = NULL;
			ret->v[ret->n].merged = p->v[i].merged ? xstrdup(p->v[i].merged) : NULL;
			ret->v[ret->n++].path = xstrdup(p->v[i].path);
		}
}

int apply_run(struct apply *a, const struct plan *p, struct err *err)
{
	AUTO_PLAN struct plan picked = {0};
	int r = journal_write(a->dir, p, err);

	if (r < 0)
		return r;
	pick_steps(p, &picked);
	return do_all(a, &picked, false, err);
}

/* The bundle has it, or the review has merged it. */
static bool find_content(const struct apply *a, struct plan_step *s)
{
	if (s->entry && memcmp(s->entry->sha, s->new.sha, SHA256_BYTES) == 0)
		return true;
	if (!s->entry || !a->merged || !s->host_changed)
		return false;
	s->merged = saved_path(a->merged, s);
	return saved_has(s->merged, s->new.sha);
}

int apply_continue(struct apply *a, struct err *err)
{
	AUTO_PLAN struct plan p = {0};
	int r = journal_read(a->dir, &p, err);

	for (size_t i = 0; r == 0 && i < p.n; i++) {
		p.v[i].entry = bundle_find(a->bundle, p.v[i].ws, p.v[i].path);
		if (p.v[i].kind == PLAN_PUT && !find_content(a, &p.v[i]))
			return err_set(err, -EBADMSG, "the bundle has changed since the apply");
	}
	return r < 0 ? r : do_all(a, &p, true, err);
}
