/* SPDX-License-Identifier: Apache-2.0 */
#include "ref_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api.h"
#include "lib/base/mem.h"
#include "lib/base/fs/walk.h"
#include "lib/os/program/run_places.h"

#define BATCH 64

/* All rows, a batch at a time. */
struct search {
	store_row_fn *fn;
	void *arg;
	char last[SPEC_MAX_NAME + 1];
	unsigned n;
};

static int on_row(void *arg, const struct store_row *row)
{
	struct search *s = arg;

	(void)snprintf(s->last, sizeof(s->last), "%s", row->spec.name);
	s->n++;
	return s->fn(s->arg, row);
}

int ref_each_row(struct sbxd *d, store_row_fn *fn, void *arg, struct err *err)
{
	struct search s = {.fn = fn, .arg = arg};
	int r;

	do {
		char after[SPEC_MAX_NAME + 1];

		memcpy(after, s.last, sizeof(after));
		s.n = 0;
		r = store_list(d->store, after, BATCH, on_row, &s, err);
	} while (r >= 0 && s.n == BATCH);
	return r < 0 ? r : 0;
}

struct look {
	struct run_ref_seen seen;
	struct err *err;
};

static int compare_workspace(
	struct look *l, const struct spec *spec, const struct spec_workspace *w)
{
	for (size_t i = 0; !w->ro && i < l->seen.n; i++)
		if (walk_is_in(l->seen.path[i], w->host))
			return err_set(l->err, -EPERM,
				"%s is in a workspace of the sandbox '%s', which could change it",
				l->seen.path[i], spec->name);
	return 0;
}

static int compare_row(void *arg, const struct store_row *row)
{
	const struct spec *spec = &row->spec;
	int r = 0;

	for (size_t i = 0; r == 0 && i < spec->n_workspaces; i++)
		r = compare_workspace(arg, spec, &spec->workspaces[i]);
	for (size_t i = 0; r == 0 && i < spec->n_mounts; i++)
		r = compare_workspace(arg, spec, &spec->mounts[i]);
	return r;
}

int ref_check(struct sbxd *d, const struct vault_ref *ref, struct err *err)
{
	static struct look l;
	int r;

	l = (struct look){.err = err};
	r = run_ref_check(ref, &l.seen, err);
	if (r == 0)
		r = ref_each_row(d, compare_row, &l, err);
	run_ref_seen_done(&l.seen);
	return r;
}

int ref_places_save(const struct spec *spec, struct err *err)
{
	AUTO_FREE const char **dirs =
		xcalloc(spec->n_workspaces + spec->n_mounts + 1, sizeof(*dirs));
	size_t n = 0;

	for (size_t i = 0; i < spec->n_workspaces; i++)
		if (!spec->workspaces[i].ro)
			dirs[n++] = spec->workspaces[i].host;
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (!spec->mounts[i].ro)
			dirs[n++] = spec->mounts[i].host;
	return run_places_save(spec->id, dirs, n, err);
}

static int save_row(void *arg, const struct store_row *row)
{
	return ref_places_save(&row->spec, arg);
}

static bool is_known(void *arg, const char *id)
{
	struct sbxd *d = arg;
	AUTO_ROW struct store_row row = {0};

	return store_get(d->store, id, &row, NULL) == 0;
}

int ref_places_open(struct sbxd *d, struct err *err)
{
	int r = run_places_prepare(err);

	if (r == 0)
		r = ref_each_row(d, save_row, err, err);
	if (r == 0)
		run_places_keep(is_known, d);
	return r;
}
