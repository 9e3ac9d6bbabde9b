/* SPDX-License-Identifier: Apache-2.0 */
#include "area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "lib/vm/share/place.h"
#include "lib/rules/airlock/autorun.h"
#include "src/sbx/stage/merge/merge.h"
#include "src/sbx/stage/notes/notes.h"

#define LOCK_MS 2000

void area_done(struct area *a)
{
	for (size_t i = 0; i < a->n; i++)
		fd_close(&a->roots[i]);
	if (a->dir)
		fd_close(&a->lock);
	free(a->dir);
	known_done(&a->known);
	json_decref(a->sandbox);
	*a = (struct area){0};
}

char *area_path(const struct area *a, const char *name)
{
	return xasprintf("%s/%s", a->dir, name);
}

static int open_root(struct area *a, const json_t *w, struct err *err)
{
	const char *host = api_str(w, "host");
	AUTO_CLOSE int place = place_open(host, err);
	int root = place < 0 ? place : look_dir(place, ".");

	if (place < 0)
		return place;
	if (root < 0)
		return err_errno(err, root, "cannot open the workspace %s", host);
	a->host[a->n] = host;
	a->guest[a->n] = api_str(w, "guest");
	a->roots[a->n++] = root;
	return 0;
}

static int open_roots(struct area *a, struct problem *p)
{
	const json_t *w, *glob;
	size_t i;
	int r = 0;

	json_array_foreach (json_object_get(a->sandbox, "workspaces"), i, w)
		if (r == 0 && a->n < SPEC_MAX_WORKSPACES && !json_is_true(json_object_get(w, "ro")))
			r = open_root(a, w, &p->err);
	json_array_foreach (json_object_get(a->sandbox, "hide"), i, glob)
		if (a->n_hide < SPEC_MAX_HIDE && json_is_string(glob))
			a->hide[a->n_hide++] = (char *)json_string_value(glob);
	return r;
}

static int open_dir(struct area *a, struct problem *p)
{
	AUTO_FREE char *lock = NULL, *undo = NULL, *known = NULL;
	int r;

	a->dir = paths_get(PATHS_STATE, "sandboxes/%s/stage", a->id);
	a->lock = -1;
	undo = area_path(a, "undo");
	r = paths_make(undo, &p->err);
	if (r < 0)
		return r;
	lock = area_path(a, "lock");
	a->lock = file_lock(lock, LOCK_MS, &p->err);
	if (a->lock == -EBUSY)
		return err_set(&p->err, -EBUSY,
			"another review, apply, undo or fork of sandbox '%s' is running", a->name);
	known = area_path(a, "known");
	return a->lock < 0 ? a->lock : known_load(&a->known, known, &p->err);
}

int area_open(struct area *a, const char *ref, struct problem *p)
{
	int r;

	*a = (struct area){.lock = -1};
	r = sandbox_get(ref, &a->sandbox, p);
	if (r < 0)
		return r;
	a->name = api_str(a->sandbox, "name");
	a->id = api_str(a->sandbox, "id");
	if (!json_is_true(json_object_get(a->sandbox, "staged"))) {
		(void)err_set(&p->err, -EINVAL,
			"sandbox '%s' was not created with --staged: its changes are in the workspace already",
			a->name);
		return problem_hint(p, -EINVAL, "sbx review %s --guard", a->name);
	}
	r = open_roots(a, p);
	return r < 0 ? r : open_dir(a, p);
}

/* ---- applies ---- */

unsigned area_last_apply(const struct area *a, bool *ret_open)
{
	AUTO_FREE char *path = area_path(a, "undo");
	AUTO_DIR DIR *d = opendir(path);
	AUTO_FREE char *done = NULL;
	struct dirent *e;
	uint64_t last = 0, v;

	while ((e = dir_next(d))) {
		AUTO_FREE char *journal = xasprintf("%s/%s/journal", path, e->d_name);

		if (str_to_u64(e->d_name, 1, UINT32_MAX, &v) == 0 && v > last &&
			access(journal, F_OK) == 0)
			last = v;
	}
	done = xasprintf("%s/%llu/done", path, (unsigned long long)last);
	*ret_open = last > 0 && access(done, F_OK) < 0;
	return (unsigned)last;
}

int area_require_finished(const struct area *a, struct problem *p)
{
	bool open;

	(void)area_last_apply(a, &open);
	if (!open)
		return 0;
	(void)err_set(&p->err, -EBUSY,
		"an apply to the workspace of sandbox '%s' was interrupted: continue it, or revert it with 'sbx undo %s'",
		a->name, a->name);
	return problem_hint(p, -EBUSY, "sbx apply --continue %s", a->name);
}

int area_next_apply(const struct area *a, unsigned *ret, struct err *err)
{
	bool open;
	unsigned next = area_last_apply(a, &open) + 1;
	AUTO_FREE char *path = xasprintf("%s/undo/%u", a->dir, next);

	area_remove(path); /* one that has no journal */
	*ret = next;
	return mkdir(path, 0700) < 0 ? err_errno(err, -errno, "cannot create %s", path) : 0;
}

void area_remove(const char *dir)
{
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = dir_next(d)))
		(void)unlinkat(dirfd(d), e->d_name, 0);
	(void)rmdir(dir);
}

int area_save_known(const struct area *a, struct err *err)
{
	AUTO_FREE char *path = area_path(a, "known");

	return known_save(&a->known, path, err);
}

int area_record(const struct area *a, const char *action, const struct bundle *b, size_t n,
	const char *names, struct problem *p)
{
	AUTO_JSON json_t *body = json_pack("{s:s, s:I, s:s*, s:s*}", "action", action, "count",
		(json_int_t)n, "sha256", b ? b->manifest : NULL, "names", names);

	return sandbox_call("POST", a->name, "/stage", body, API_TIMEOUT_MS, NULL, p);
}

/* ---- bundle and plan ---- */

int area_bundle(const struct area *a, struct bundle *ret, struct problem *p)
{
	AUTO_FREE char *dir = area_path(a, "bundle");
	int r;

	if (access(dir, F_OK) < 0) {
		(void)err_set(
			&p->err, -ENOENT, "the changes of sandbox '%s' were not reviewed", a->name);
		return problem_hint(p, -ENOENT, "sbx review %s", a->name);
	}
	r = bundle_open(ret, dir, &p->err);
	if (r == 0 && ret->n_ws != a->n)
		r = err_set(&p->err, -EBADMSG, "%s is not of these workspaces", dir);
	return r < 0 ? problem_hint(p, r, "sbx review %s", a->name) : 0;
}

long long area_since(const struct area *a)
{
	long long since = api_int(a->sandbox, "staged_since"); /* of a fork */

	return since ? since : api_int(a->sandbox, "created_at");
}

static bool runs_on_host(void *list, const char *path)
{
	struct autorun_match m;
	size_t tree;

	autorun_find(list, path, GUARD_DEFAULT, &m, &tree);
	return m.mode > AUTORUN_ALLOW || tree > 0;
}

static struct plan_input make_input(
	const struct area *a, const struct bundle *b, struct autorun_list *list)
{
	return (struct plan_input){.bundle = b,
		.roots = a->roots,
		.base_ns = area_since(a) * 1000000,
		.known = &a->known,
		.hide = a->hide,
		.n_hide = a->n_hide,
		.runs = runs_on_host,
		.arg = list};
}

int area_plan(
	const struct area *a, const struct bundle *b, bool fresh, struct plan *ret, struct err *err)
{
	AUTO_AUTORUN struct autorun_list *list = NULL;
	int r = autorun_load(&list, err);
	struct plan_input in = make_input(a, b, list);

	if (r == 0)
		r = plan_make(&in, ret, err);
	if (r < 0)
		return r;
	merge_conflicts(a, &in, fresh, ret);
	notes_find(a, b, list, ret);
	merge_name_class(ret);
	return 0;
}

int area_count(const struct area *a, const struct bundle *b, size_t *ret_n, size_t *ret_runs,
	struct err *err)
{
	AUTO_AUTORUN struct autorun_list *list = NULL;
	AUTO_PLAN struct plan p = {0};
	int r = autorun_load(&list, err);
	struct plan_input in = make_input(a, b, list);

	in.until_ms = clock_mono_ms() + AREA_COUNT_MS;
	if (r == 0)
		r = plan_make(&in, &p, err);
	*ret_n = *ret_runs = 0;
	for (size_t i = 0; i < p.n; i++) {
		const struct plan_step *s = &p.v[i];

		if (s->class >= PLAN_SYMLINK_OUT)
			continue;
		*ret_n += 1;
		*ret_runs += s->kind == PLAN_PUT && runs_on_host(list, s->path);
	}
	return r;
}

int area_load_host(const struct area *a, const struct plan_step *s, char **ret, size_t *ret_n)
{
	const char *base;
	AUTO_CLOSE int dir = look_parent(a->roots[s->ws], s->path, &base);
	AUTO_CLOSE int fd =
		dir < 0 ? -1 : openat(dir, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -ENOENT : fd_load(fd, PLAN_HUGE, ret, ret_n);
}

char *area_show_path(const struct area *a, size_t ws, const char *path)
{
	char *text = a->n == 1 ? xstrdup(path) : xasprintf("%s/%s", a->host[ws], path);

	ui_clean(text);
	return text;
}
