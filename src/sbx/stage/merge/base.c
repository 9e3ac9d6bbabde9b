/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "src/sbx/clone/clone.h"

void bases_done(struct bases *b)
{
	for (size_t i = 0; i < ARRAY_LEN(b->trees); i++)
		clone_tree_free(b->trees[i]);
	*b = (struct bases){0};
}

/* ---- the commit at the start of the sandbox ---- */

static struct clone_tree *tree_of(struct bases *b, size_t ws)
{
	if (!b->tried[ws])
		b->trees[ws] = clone_tree_open(b->a->host[ws], b->a->id, area_since(b->a));
	b->tried[ws] = true;
	return b->trees[ws];
}

static bool get_blob(struct bases *b, const struct plan_step *s, struct saved *ret)
{
	struct clone_tree *t = tree_of(b, s->ws);
	bool exec;

	if (!t || !clone_tree_load(t, s->path, PLAN_HUGE, &ret->text, &ret->n, &exec))
		return false;
	ret->mode = exec ? 0755 : 0644;
	sha256(slice_of(ret->text, ret->n), ret->sha);
	return true;
}

/* ---- copies ---- */

/* What the last apply of the path has put there. */
static bool get_applied(const struct bases *b, const struct plan_step *s, struct saved *ret)
{
	bool open, found = false;

	for (unsigned i = area_last_apply(b->a, &open); i > 0 && !found; i--) {
		AUTO_FREE char *dir = xasprintf("%s/undo/%u", b->a->dir, i),
			       *file = saved_base_path(dir, s->ws, s->path);

		found = saved_get(file, ret);
	}
	return found;
}

static char *copy_path(const struct bases *b, const struct plan_step *s)
{
	AUTO_FREE char *dir = area_path(b->a, "base");

	return saved_base_path(dir, s->ws, s->path);
}

static bool get_copy(const struct bases *b, const struct plan_step *s, struct saved *ret)
{
	AUTO_FREE char *file = copy_path(b, s);

	return saved_get(file, ret);
}

void base_keep(struct bases *b, const struct plan_step *s)
{
	AUTO_FREE char *dir = area_path(b->a, "base"), *file = copy_path(b, s), *text = NULL;
	size_t n = 0;

	if (s->old.type != LOOK_FILE || s->old.size > SAVED_MAX_BASE ||
		b->n_copied >= BASE_MAX_FILES || b->n_bytes + s->old.size > BASE_MAX_TOTAL)
		return;
	b->n_copied++;
	b->n_bytes += s->old.size;
	if (saved_has(file, s->old.sha))
		return;
	(void)mkdir(dir, 0700);
	/* Without the copy a later conflict may have no base. */
	if (area_load_host(b->a, s, &text, &n) == 0 &&
		saved_put(file, slice_of(text, n), s->old.mode, NULL) < 0)
		(void)unlink(file);
}

/* ---- all of them ---- */

/* The hash that the base must have; NULL: any. */
static const uint8_t *wanted_hash(const struct bases *b, const struct plan_step *s)
{
	const uint8_t *sha = known_find(&b->a->known, s->ws, s->path);

	return !sha || memcmp(sha, KNOWN_MIXED, SHA256_BYTES) == 0 ||
			       memcmp(sha, KNOWN_ABSENT, SHA256_BYTES) == 0
		       ? NULL
		       : sha;
}

bool base_find(struct bases *b, const struct plan_step *s, struct saved *ret)
{
	const uint8_t *want = wanted_hash(b, s);

	for (int i = 0; i < 3; i++) {
		bool found = i == 0   ? get_applied(b, s, ret)
			     : i == 1 ? get_copy(b, s, ret)
				      : get_blob(b, s, ret);

		if (found && (!want || memcmp(want, ret->sha, SHA256_BYTES) == 0))
			return true;
		saved_done(ret);
	}
	return false;
}

bool base_was_there(struct bases *b, const struct plan_step *s)
{
	const uint8_t *sha = known_find(&b->a->known, s->ws, s->path);
	AUTO_FREE char *file = copy_path(b, s);
	const struct clone_tree *t;

	if (sha)
		return memcmp(sha, KNOWN_ABSENT, SHA256_BYTES) != 0;
	if (access(file, F_OK) == 0)
		return true;
	t = tree_of(b, s->ws);
	return t && clone_tree_has(t, s->path);
}
