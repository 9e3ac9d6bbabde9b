/* SPDX-License-Identifier: Apache-2.0 */
#include "share_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "ref_check.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/fs/walk.h"
#include "lib/vm/share/place.h"

/* One path, and the symlinks in it. */
struct way {
	const char *typed;
	char *link[WALK_MAX_LINKS];
	size_t n;
	char *at; /* its target */
	struct err *err;
};

static void way_done(struct way *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->link[i]);
	free(w->at);
	*w = (struct way){0};
}

static int on_part(
	void *arg, const struct walk *w, const char *next, const char *after, struct err *err)
{
	struct way *way = arg;
	struct stat st;

	if (lstat(next, &st) < 0 || !S_ISLNK(st.st_mode))
		return 0;
	if (way->n == WALK_MAX_LINKS)
		return err_errno(err, -ELOOP, "workspace '%s'", way->typed);
	way->link[way->n++] = xstrdup(next);
	return 1;
}

/* realpath only reports missing files; the result is where the walk arrived. */
static int walk_it(const struct spec_workspace *w, struct way *way, struct err *err)
{
	AUTO_FREE char *real = NULL;
	AUTO_WALK struct walk walk = {0};
	int r;

	way->typed = w->typed ? w->typed : w->host;
	if (way->typed[0] != '/')
		return err_set(err, -EINVAL, "workspace '%s' must be an absolute path", way->typed);
	r = place_resolve(way->typed, &real, err);
	if (r == 0)
		r = walk_path(way->typed, on_part, way, &walk, err);
	if (r < 0)
		return -EINVAL;
	way->at = xstrdup(walk.at[0] ? walk.at : "/");
	if (strcmp(way->at, real) != 0 || (w->typed && strcmp(way->at, w->host) != 0))
		return err_set(err, -EINVAL, "workspace '%s': the path resolves to %s, not to %s",
			way->typed, way->at, w->typed ? w->host : real);
	return 0;
}

/* The message has `whose`. */
static int compare_links(
	const struct way *way, const struct spec_workspace *w, const char *whose, struct err *err)
{
	for (size_t i = 0; !w->ro && i < way->n; i++)
		if (walk_is_in(way->link[i], w->host) && strcmp(way->link[i], w->host) != 0)
			return err_set(err, -ELOOP,
				"workspace '%s' is reached through the symbolic link %s to %s: the link is in a workspace of %s, whose guest may have created it",
				way->typed, way->link[i], way->at, whose);
	return 0;
}

static int on_row(void *arg, const struct store_row *row)
{
	const struct spec *spec = &row->spec;
	AUTO_FREE char *whose = xasprintf("sandbox '%s'", spec->name);
	struct way *way = arg;
	int r = 0;

	for (size_t i = 0; r == 0 && i < spec->n_workspaces; i++)
		r = compare_links(way, &spec->workspaces[i], whose, way->err);
	for (size_t i = 0; r == 0 && i < spec->n_mounts; i++)
		r = compare_links(way, &spec->mounts[i], whose, way->err);
	return r;
}

/* The guest may have chosen the name: a quote would end the word, a colon may be a suffix. */
static char *make_hint(const struct spec *spec, const struct spec_workspace *w, const char *at)
{
	for (const char *c = at; *c; c++)
		if (*c == '\'' || *c == ':' || (unsigned char)*c < 0x20 || *c == 0x7f)
			return NULL;
	return spec->n_only
		       ? NULL
		       : xasprintf("sbx create %s '%s%s'", spec->agent[0] ? spec->agent : "shell",
				 at, w->ro ? ":ro" : "");
}

static void set_host(struct spec_workspace *w, struct way *way)
{
	free(w->host);
	w->host = TAKE(way->at);
	free(w->typed);
	w->typed = NULL;
}

/* The other workspaces of the request have their final paths. */
static int check_own(const struct spec *spec, const struct way *ways, size_t i, struct err *err)
{
	int r = 0;

	for (size_t k = 0; r == 0 && k < spec->n_workspaces; k++)
		if (k != i)
			r = compare_links(&ways[i],
				&(struct spec_workspace){
					.host = ways[k].at, .ro = spec->workspaces[k].ro},
				"the same sandbox", err);
	return r;
}

static int check_all(
	struct sbxd *d, struct spec *spec, struct way *ways, char **ret_hint, struct err *err)
{
	size_t n = spec->n_workspaces;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = walk_it(&spec->workspaces[i], &ways[i], err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		ways[i].err = err;
		if (ways[i].n > 0)
			r = ref_each_row(d, on_row, &ways[i], err);
		if (r == 0)
			r = check_own(spec, ways, i, err);
		if (r == -ELOOP)
			*ret_hint = make_hint(spec, &spec->workspaces[i], ways[i].at);
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		set_host(&spec->workspaces[i], &ways[i]);
	return r;
}

int share_check(struct sbxd *d, struct spec *spec, char **ret_hint, struct err *err)
{
	struct way *ways = xcalloc(spec->n_workspaces + 1, sizeof(*ways));
	int r = check_all(d, spec, ways, ret_hint, err);

	for (size_t i = 0; i < spec->n_workspaces; i++)
		way_done(&ways[i]);
	free(ways);
	return r;
}
