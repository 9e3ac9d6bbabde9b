/* SPDX-License-Identifier: Apache-2.0 */
#include "merge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "src/sbx/clone/clone.h"
#include "src/sbx/stage/notes/notes.h"

struct merging {
	const struct area *a;
	const struct plan_input *in;
	char *dir; /* of results */
	bool fresh;
	struct bases bases;
	size_t n_merged;
	uint64_t until;
};

static void merging_done(struct merging *m)
{
	free(m->dir);
	bases_done(&m->bases);
}

/* ---- one merge ---- */

static bool is_text(struct slice s)
{
	return s.n == 0 || !memchr(s.p, '\0', s.n);
}

/* Why there is no result; NULL: it is in *ret. */
static const char *merge_texts(struct merging *m, struct slice ours, struct slice base,
	struct slice theirs, struct saved *ret)
{
	struct err err = {0};
	int r;

	if (!is_text(ours) || !is_text(base) || !is_text(theirs))
		return "the file is not text";
	r = clone_merge(m->a->id, ours, base, theirs, 2 * PLAN_HUGE, &ret->text, &ret->n, &err);
	if (r == 0)
		return NULL;
	saved_done(ret);
	return r > 0 && r < 128 ? "the host and the sandbox changed the same lines"
				: "git could not merge the file";
}

/* The mode of the host, unless the sandbox has changed whether the file is executable. */
static uint32_t merge_mode(const struct plan_step *s, uint32_t base)
{
	bool was_exec = base & 0111, is_exec = s->entry->mode & 0111;

	return was_exec == is_exec ? s->old.mode : s->entry->mode;
}

static bool is_as_planned(const struct plan_step *s, struct slice host)
{
	uint8_t sha[SHA256_BYTES];

	sha256(host, sha);
	return memcmp(sha, s->old.sha, sizeof(sha)) == 0;
}

static const char *merge_step(struct merging *m, const struct plan_step *s, struct saved *ret)
{
	AUTO_SAVED struct saved base = {0};
	AUTO_FREE char *ours = NULL, *theirs = NULL;
	size_t n_ours = 0, n_theirs = 0;
	const char *why;

	if (s->old.size > PLAN_HUGE || s->entry->size > PLAN_HUGE)
		return "the file is larger than 4 MiB";
	if (m->n_merged++ >= MERGE_MAX_FILES || clock_mono_ms() > m->until)
		return "too many conflicts to merge all of them";
	if (!base_find(&m->bases, s, &base))
		return "the version before both changes is unknown";
	if (area_load_host(m->a, s, &ours, &n_ours) < 0 ||
		!is_as_planned(s, slice_of(ours, n_ours)) ||
		bundle_load(m->in->bundle, s->entry, PLAN_HUGE, &theirs, &n_theirs, NULL) < 0)
		return "the file changed while it was read";
	why = merge_texts(m, slice_of(ours, n_ours), slice_of(base.text, base.n),
		slice_of(theirs, n_theirs), ret);
	ret->mode = merge_mode(s, base.mode);
	return why;
}

/* ---- steps ---- */

/* Returns false if nothing is left to do. */
static bool adopt_result(struct merging *m, struct plan_step *s, char *file)
{
	AUTO_SAVED struct saved have = {0};
	AUTO_FREE char *owned = file;

	if (!saved_get(file, &have)) {
		notes_add(s, "conflict",
			m->fresh ? "the merge cannot be saved"
				 : "the host changed the file since the review");
		return true;
	}
	s->merged = TAKE(owned);
	memcpy(s->new.sha, have.sha, sizeof(have.sha));
	s->new.size = have.n;
	s->new.mode = have.mode;
	s->class = plan_class_alone(m->in, s);
	if (s->class != PLAN_PLAIN)
		notes_add(s, "merged", "with the change on the host");
	return memcmp(s->new.sha, s->old.sha, sizeof(have.sha)) != 0 || s->new.mode != s->old.mode;
}

static bool do_conflict(struct merging *m, struct plan_step *s)
{
	AUTO_SAVED struct saved result = {0};
	AUTO_FREE char *file = saved_path(m->dir, s);
	const char *why = NULL;

	if (m->fresh) {
		why = merge_step(m, s, &result);
		if (!why && saved_put(file, slice_of(result.text, result.n), result.mode, NULL) < 0)
			(void)unlink(file);
	}
	if (!why)
		return adopt_result(m, s, TAKE(file));
	notes_add(s, "conflict", why);
	return true;
}

static bool can_merge(const struct merging *m, const struct plan_step *s)
{
	return s->kind == PLAN_PUT && s->class == PLAN_CONFLICT && s->old.type == LOOK_FILE &&
	       s->new.type == LOOK_FILE &&plan_class_alone(m->in, s) != PLAN_GIT;
}

/* Returns false if the step is to be dropped. */
static bool do_step(struct merging *m, struct plan_step *s)
{
	if (can_merge(m, s))
		return do_conflict(m, s);
	if (s->kind != PLAN_PUT || s->class >= PLAN_CONFLICT || !s->entry)
		return true;
	if (s->old.type == LOOK_ABSENT && base_was_there(&m->bases, s)) {
		s->class = PLAN_CONFLICT;
		notes_add(s, "conflict", "the host deleted the file");
	} else if (m->fresh) {
		base_keep(&m->bases, s);
	}
	return true;
}

void merge_conflicts(const struct area *a, const struct plan_input *in, bool fresh, struct plan *p)
{
	CLEANUP(merging_done)
	struct merging m = {.a = a,
		.in = in,
		.dir = area_path(a, "merged"),
		.fresh = fresh,
		.bases = {.a = a},
		.until = clock_mono_ms() + MERGE_MS};
	size_t n = 0;

	if (fresh) {
		area_remove(m.dir);
		(void)mkdir(m.dir, 0700);
	}
	for (size_t i = 0; i < p->n; i++) {
		struct plan_step *s = &p->v[i];

		if (do_step(&m, s)) {
			p->v[n++] = *s;
			continue;
		}
		free(s->path);
		free(s->notes);
		free(s->merged);
	}
	p->n = n;
}

void merge_name_class(struct plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].merged && p->v[i].class == PLAN_PLAIN)
			p->v[i].class = PLAN_MERGED;
}
