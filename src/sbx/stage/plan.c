/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define TEXT_LOOK 8192 /* bytes that decide whether a file is text */

struct steps {
	struct plan_step *v;
	size_t n, room;
};

struct making {
	const struct plan_input *in;
	struct steps removed, dirs, files, modes;
};

static const char *const class_names[PLAN_N_CLASSES] = {
	[PLAN_PLAIN] = "plain",
	[PLAN_MERGED] = "merged",
	[PLAN_LOCKFILE] = "lockfile",
	[PLAN_EXEC] = "exec-bit",
	[PLAN_AUTORUN] = "autorun",
	[PLAN_CI] = "ci",
	[PLAN_CONTAINER] = "container",
	[PLAN_DEPENDENCY] = "dependency",
	[PLAN_SCRIPT] = "script-change",
	[PLAN_UNICODE] = "unicode",
	[PLAN_SYMLINK] = "symlink",
	[PLAN_BINARY] = "binary",
	[PLAN_LARGE] = "huge",
	[PLAN_GIT] = "git",
	[PLAN_CASE] = "case-clash",
	[PLAN_SECRET] = "secret",
	[PLAN_CONFLICT] = "conflict",
	[PLAN_SYMLINK_OUT] = "symlink-out",
	[PLAN_HIDDEN] = "hidden",
	[PLAN_MOVING] = "moving",
	[PLAN_SPECIAL] = "special",
};

const char *plan_class_name(enum plan_class class)
{
	return class_names[class];
}

static void free_steps(struct steps *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].path);
		free(s->v[i].notes);
		free(s->v[i].merged);
	}
	free(s->v);
	*s = (struct steps){0};
}

static void making_done(struct making *m)
{
	free_steps(&m->removed);
	free_steps(&m->dirs);
	free_steps(&m->files);
	free_steps(&m->modes);
}

void plan_done(struct plan *p)
{
	struct steps s = {.v = p->v, .n = p->n};

	free_steps(&s);
	*p = (struct plan){0};
}

/* ---- classes ---- */

static bool is_hidden(const struct plan_input *in, const char *path)
{
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; i < in->n_hide; i++)
		if (fnmatch(in->hide[i], slash ? slash + 1 : path, 0) == 0)
			return true;
	return false;
}

static bool is_in_git(const char *path)
{
	for (const char *p = path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (strcspn(p, "/") == 4 && strncasecmp(p, ".git", 4) == 0)
			return true;
	}
	return false;
}

/* Whether the target of a link leaves the workspace, by its text. A target that goes through
 * another link is judged where that link is. */
static bool leads_out(const char *path, const char *target)
{
	long depth = 0;

	if (target[0] == '/')
		return true;
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/'))
		depth++;
	for (const char *p = target; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.')
			depth--;
		else if (n > 0 && !(n == 1 && p[0] == '.'))
			depth++;
		if (depth < 0)
			return true;
		p += n + (p[n] == '/');
	}
	return false;
}

static bool is_text(const struct making *m, const struct bundle_entry *e)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0;

	return bundle_load(m->in->bundle, e, TEXT_LOOK, &text, &n, NULL) == 0 &&
	       !memchr(text, '\0', n);
}

static bool host_has_changed(const struct making *m, const struct plan_step *s)
{
	return (s->old.type == LOOK_FILE || s->old.type == LOOK_LINK) &&
	       s->old.ctime_ns > m->in->base_ns &&
	       !known_has(m->in->known, s->ws, s->path, s->old.sha);
}

static enum plan_class class_of_file(const struct making *m, const struct plan_step *s)
{
	bool was_exec = s->old.type == LOOK_FILE && s->old.mode & 0111;

	if (m->in->runs && m->in->runs(m->in->arg, s->path))
		return PLAN_AUTORUN;
	if (s->new.type == LOOK_LINK)
		return PLAN_SYMLINK;
	if (s->new.mode & 0111 && !was_exec)
		return PLAN_EXEC;
	if (s->new.size > PLAN_HUGE)
		return PLAN_LARGE;
	return s->merged || is_text(m, s->entry) ? PLAN_PLAIN : PLAN_BINARY;
}

static enum plan_class class_of(const struct making *m, const struct plan_step *s)
{
	const struct bundle_entry *e = s->entry;

	if (s->old.type == LOOK_OTHER || (e && e->op == STAGE_SPECIAL))
		return PLAN_SPECIAL;
	if (e && e->op == STAGE_MOVING)
		return PLAN_MOVING;
	if (is_hidden(m->in, s->path))
		return PLAN_HIDDEN;
	if (s->new.type == LOOK_LINK && leads_out(s->path, e->link))
		return PLAN_SYMLINK_OUT;
	if (s->host_changed)
		return PLAN_CONFLICT;
	if (is_in_git(s->path))
		return PLAN_GIT;
	return s->kind == PLAN_PUT ? class_of_file(m, s) : PLAN_PLAIN;
}

enum plan_class plan_class_alone(const struct plan_input *in, const struct plan_step *s)
{
	struct making m = {.in = in};

	return is_in_git(s->path) ? PLAN_GIT : class_of_file(&m, s);
}

/* ---- steps ---- */

static bool is_late(const struct making *m)
{
	return m->in->until_ms && clock_mono_ms() > m->in->until_ms;
}

static int add_step(struct making *m, struct steps *to, struct plan_step step, struct err *err)
{
	if (m->removed.n + m->dirs.n + m->files.n + m->modes.n >= STAGE_MAX_ENTRIES)
		return err_set(err, -E2BIG, "more than %u changes", STAGE_MAX_ENTRIES);
	if (is_late(m))
		return err_set(err, -ETIMEDOUT, "the comparison takes too long");
	if (to->n == to->room) {
		to->room = to->room ? to->room * 2 : 64;
		to->v = xrealloc(to->v, to->room * sizeof(*to->v));
	}
	step.path = xstrdup(step.path);
	step.host_changed = host_has_changed(m, &step);
	step.class = class_of(m, &step);
	to->v[to->n++] = step;
	return 0;
}

static int remove_path(
	struct making *m, size_t ws, const char *path, const struct look *old, struct err *err);

/* Children of a directory of the host; `kept`: without those that the bundle has. */
static int remove_children(
	struct making *m, size_t ws, const char *path, bool kept, struct err *err)
{
	AUTO_DIR DIR *d = dir_of(look_dir(m->in->roots[ws], path));
	struct dirent *e;

	if (!d)
		return err_errno(err, -errno, "cannot read the directory '%.200s'", path);
	while ((e = dir_next(d))) {
		AUTO_FREE char *child = strcmp(path, ".") == 0
						? xstrdup(e->d_name)
						: xasprintf("%s/%s", path, e->d_name);
		struct look old;
		int r;

		if (kept && bundle_find(m->in->bundle, ws, child))
			continue;
		r = look_at(m->in->roots[ws], child, &old, err);
		if (r == 0)
			r = remove_path(m, ws, child, &old, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The parent first: the order of these steps is reversed at the end. */
static int remove_path(
	struct making *m, size_t ws, const char *path, const struct look *old, struct err *err)
{
	struct plan_step s = {.kind = old->type == LOOK_DIR ? PLAN_RMDIR : PLAN_DELETE,
		.ws = ws,
		.path = (char *)path,
		.old = *old};
	int r = old->type == LOOK_ABSENT ? 0 : add_step(m, &m->removed, s, err);

	return r < 0 || old->type != LOOK_DIR ? r : remove_children(m, ws, path, false, err);
}

static int plan_dir(
	struct making *m, const struct bundle_entry *e, const struct look *old, struct err *err)
{
	struct plan_step s = {.ws = e->ws,
		.path = e->path,
		.entry = e,
		.new = {.type = LOOK_DIR, .mode = e->mode}};
	int r = 0;

	if (old->type == LOOK_DIR) {
		s.kind = PLAN_CHMOD;
		s.old = *old;
		if (old->mode != e->mode)
			r = add_step(m, &m->modes, s, err);
		return r < 0 || e->op != STAGE_OPAQUE
			       ? r
			       : remove_children(m, e->ws, e->path, true, err);
	}
	r = remove_path(m, e->ws, e->path, old, err);
	s.kind = PLAN_MKDIR;
	return r < 0 ? r : add_step(m, &m->dirs, s, err);
}

static int plan_leaf(
	struct making *m, const struct bundle_entry *e, const struct look *old, struct err *err)
{
	enum look_type type = e->op == STAGE_LINK ? LOOK_LINK : LOOK_FILE;
	struct plan_step s = {.kind = PLAN_PUT,
		.ws = e->ws,
		.path = e->path,
		.entry = e,
		.old = *old,
		.new = {.type = type, .mode = e->mode, .size = e->size}};
	int r = 0;

	memcpy(s.new.sha, e->sha, sizeof(e->sha));
	if (old->type == type && memcmp(old->sha, e->sha, sizeof(e->sha)) == 0 &&
		(type == LOOK_LINK || old->mode == e->mode))
		return 0;
	if (old->type == LOOK_DIR) {
		r = remove_path(m, e->ws, e->path, old, err);
		s.old = (struct look){0};
	}
	return r < 0 ? r : add_step(m, &m->files, s, err);
}

static int plan_entry(struct making *m, const struct bundle_entry *e, struct err *err)
{
	struct plan_step mark = {.kind = PLAN_PUT, .ws = e->ws, .path = e->path, .entry = e};
	struct look old;
	int r = look_at(m->in->roots[e->ws], e->path, &old, err);

	if (r < 0)
		return r;
	switch (e->op) {
	case STAGE_DIR:
	case STAGE_OPAQUE:
		return plan_dir(m, e, &old, err);
	case STAGE_FILE:
	case STAGE_LINK:
		return plan_leaf(m, e, &old, err);
	case STAGE_DELETE:
		return remove_path(m, e->ws, e->path, &old, err);
	default:
		return add_step(m, &m->files, mark, err);
	}
}

static void append_steps(struct plan *p, struct steps *from)
{
	if (from->n)
		memcpy(p->v + p->n, from->v, from->n * sizeof(*p->v));
	p->n += from->n;
	from->n = 0;
}

int plan_make(const struct plan_input *in, struct plan *ret, struct err *err)
{
	CLEANUP(making_done) struct making m = {.in = in};
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->bundle->n; i++)
		r = plan_entry(&m, &in->bundle->v[i], err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < m.removed.n / 2; i++) {
		struct plan_step s = m.removed.v[i];

		m.removed.v[i] = m.removed.v[m.removed.n - 1 - i];
		m.removed.v[m.removed.n - 1 - i] = s;
	}
	*ret = (struct plan){
		.v = xcalloc(m.removed.n + m.dirs.n + m.files.n + m.modes.n + 1, sizeof(*ret->v))};
	append_steps(ret, &m.removed);
	append_steps(ret, &m.dirs);
	append_steps(ret, &m.files);
	append_steps(ret, &m.modes);
	return 0;
}

/* ---- selection ---- */

void plan_want_class(struct plan *p, enum plan_class class)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].class == class && class < PLAN_SYMLINK_OUT)
			p->v[i].wanted = true;
}

static bool is_at_or_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strcmp(dir, ".") == 0 ||
	       (strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/'));
}

size_t plan_want_path(struct plan *p, size_t ws, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct plan_step *s = &p->v[i];
		bool is_it = strcmp(s->path, path) == 0;

		if (s->ws != ws || !is_at_or_below(s->path, path))
			continue;
		n++;
		if (s->class < PLAN_GIT || (is_it && s->class < PLAN_SYMLINK_OUT))
			s->wanted = true;
	}
	return n;
}

/* Steps that make or free a place for a directory, sorted. */
struct place {
	size_t ws, n;
	enum plan_kind kind;
	const char *path; /* n bytes of it */
	struct plan_step *step;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *x = left, *y = right;
	int c = memcmp(x->path, y->path, MIN(x->n, y->n));

	if (x->ws != y->ws)
		return x->ws < y->ws ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return c || x->n == y->n ? c : x->n < y->n ? -1 : 1;
}

static size_t list_places(const struct plan *p, struct place *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct plan_step *s = &p->v[i];

		if (s->kind != PLAN_MKDIR && s->kind != PLAN_DELETE)
			continue;
		ret[n] = (struct place){.ws = s->ws,
			.n = strlen(s->path),
			.kind = s->kind,
			.path = s->path,
			.step = s};
		n++;
	}
	qsort(ret, n, sizeof(*ret), compare_places);
	return n;
}

/* Selects a step for the first `n` bytes of the path of another one. */
static void want_place(struct place *places, size_t n_places, const struct plan_step *s, size_t n,
	enum plan_kind kind, enum plan_class below)
{
	struct place key = {.ws = s->ws, .n = n, .kind = kind, .path = s->path},
		     *found = bsearch(&key, places, n_places, sizeof(key), compare_places);

	if (found && found->step->class < below)
		found->step->wanted = true;
}

/* A new directory is needed by what is in it, and the file or link that is in its place must go. */
void plan_want_parents(struct plan *p)
{
	AUTO_FREE struct place *places = xcalloc(p->n + 1, sizeof(*places));
	size_t n_places = list_places(p, places);

	for (size_t i = 0; i < p->n; i++) {
		const struct plan_step *s = &p->v[i];

		if (!s->wanted || s->kind < PLAN_MKDIR)
			continue;
		for (size_t n = strlen(s->path); n-- > 0;)
			if (s->path[n] == '/')
				want_place(places, n_places, s, n, PLAN_MKDIR, PLAN_SYMLINK_OUT);
	}
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].wanted && p->v[i].kind == PLAN_MKDIR)
			want_place(places, n_places, &p->v[i], strlen(p->v[i].path), PLAN_DELETE,
				PLAN_GIT);
}
