/* SPDX-License-Identifier: Apache-2.0 */
#include "gitpush_internal.h"

#include <errno.h>
#include "lib/base/mem.h"

#define MAX_HELD (64u << 20) /* bytes of trees that are open at the same time */
#define KIND_BITS 0170000

struct diff {
	struct gitpush *p;
	struct gitpush_ref *ref;
	size_t n_path, held, size;
	char path[GITPUSH_MAX_PATH];
};

/* A directory of one side. */
struct side {
	uint8_t *bytes;
	size_t n;
	struct gittree at;
	bool has; /* `at` is an entry */
};

static int walk_dir(struct diff *d, const struct git_oid *old, const struct git_oid *new,
	unsigned depth, struct err *err);

static int next_entry(struct diff *d, struct side *s, struct err *err)
{
	int r = gittree_next(&s->at);

	if (r < 0)
		return err_set(err, r, "a directory of the push is malformed");
	s->has = r == 1;
	if (s->at.mode == GITMODE_GROUP)
		s->at.mode = GITMODE_FILE;
	return gitpush_visit(d->p, err);
}

static int open_side(struct diff *d, const struct git_oid *oid, struct side *s, struct err *err)
{
	int r = 0;

	if (oid)
		r = gitpush_load(d->p, oid, GITOBJECT_TREE, &s->bytes, &s->n, err);
	if (r < 0)
		return r;
	d->held += s->n;
	if (d->held > MAX_HELD)
		return err_set(err, -E2BIG, "the directories of the push are too large");
	gittree_init(&s->at, slice_of(s->bytes, s->n));
	return next_entry(d, s, err);
}

static void close_side(struct diff *d, struct side *s)
{
	d->held -= MIN(s->n, d->held);
	free(s->bytes);
}

static int add_path(
	struct diff *d, const struct gittree *old, const struct gittree *new, struct err *err)
{
	struct gitpush_ref *ref = d->ref;
	struct gitpush_path *to;

	if (ref->n_paths == GITPUSH_MAX_PATHS)
		return err_set(
			err, -E2BIG, "the push changes more than %d files", GITPUSH_MAX_PATHS);
	if (ref->n_paths == d->size) {
		d->size = MAX(64u, 2 * d->size);
		ref->path = xrealloc(ref->path, d->size * sizeof(*ref->path));
	}
	to = &ref->path[ref->n_paths++];
	*to = (struct gitpush_path){.path = xstrndup(d->path, d->n_path)};
	if (old) {
		to->old_mode = old->mode;
		to->old = old->oid;
	}
	if (new) {
		to->new_mode = new->mode;
		to->new = new->oid;
	}
	to->status = !old ? 'A' : !new ? 'D' : 'M';
	if (old && new && (old->mode & KIND_BITS) != (new->mode &KIND_BITS))
		to->status = 'T';
	return 0;
}

/* Appends "/NAME". */
static int enter_name(struct diff *d, struct slice name, struct err *err)
{
	if (d->n_path + name.n + 1 >= sizeof(d->path))
		return err_set(err, -E2BIG, "a path of the push is too long");
	if (d->n_path > 0)
		d->path[d->n_path++] = '/';
	memcpy(d->path + d->n_path, name.p, name.n);
	d->n_path += name.n;
	return 0;
}

/* Either side may be NULL. Two sides are both directories or both are not. */
static int walk_entry(struct diff *d, const struct gittree *old, const struct gittree *new,
	unsigned depth, struct err *err)
{
	const struct gittree *one = old ? old : new;
	size_t n_before = d->n_path;
	int r;

	if (old && new && old->mode == new->mode && gitoid_eq(&old->oid, &new->oid))
		return 0;
	r = enter_name(d, one->name, err);
	if (r == 0 && one->mode == GITMODE_TREE)
		r = walk_dir(d, old ? &old->oid : NULL, new ? &new->oid : NULL, depth + 1, err);
	else if (r == 0)
		r = add_path(d, old, new, err);
	d->n_path = n_before;
	return r;
}

static int walk_sides(
	struct diff *d, struct side *old, struct side *new, unsigned depth, struct err *err)
{
	int r = 0;

	while (r == 0 && (old->has || new->has)) {
		int order = !old->has ? 1 : !new->has ? -1 : gittree_compare(&old->at, &new->at);

		r = walk_entry(
			d, order <= 0 ? &old->at : NULL, order >= 0 ? &new->at : NULL, depth, err);
		if (r == 0 && order <= 0)
			r = next_entry(d, old, err);
		if (r == 0 && order >= 0)
			r = next_entry(d, new, err);
	}
	return r;
}

static int walk_dir(struct diff *d, const struct git_oid *old, const struct git_oid *new,
	unsigned depth, struct err *err)
{
	struct side sides[2] = {0};
	int r;

	if (depth > GITPUSH_MAX_DEPTH)
		return err_set(err, -E2BIG, "the directories of the push are too deep");
	r = open_side(d, old, &sides[0], err);
	if (r == 0)
		r = open_side(d, new, &sides[1], err);
	if (r == 0)
		r = walk_sides(d, &sides[0], &sides[1], depth, err);
	close_side(d, &sides[0]);
	close_side(d, &sides[1]);
	return r;
}

int gitpush_diff(struct gitpush *p, const struct git_oid *old, const struct git_oid *new,
	struct gitpush_ref *ref, struct err *err)
{
	struct diff d = {.p = p, .ref = ref};

	if (old && gitoid_eq(old, new))
		return 0;
	return walk_dir(&d, old, new, 0, err);
}
