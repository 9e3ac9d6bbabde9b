/* SPDX-License-Identifier: Apache-2.0 */
#include "cp_dest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/fs/walk.h"
#include "lib/vm/share/place.h"

struct places {
	const char *const *roots;
	size_t n_roots;
	bool source; /* of what is read, not the destination of a copy */
};

/* The outermost workspace that `path` is in. */
static const char *root_of(const struct places *p, const char *path)
{
	const char *found = NULL;

	for (size_t i = 0; i < p->n_roots; i++)
		if (place_is_in(path, p->roots[i]) &&
			(!found || strlen(p->roots[i]) < strlen(found)))
			found = p->roots[i];
	return found;
}

/* The last component, a link: a link in /proc points to an open file, which may have no name. */
static bool is_last_followed(const struct places *p, const struct walk *w, const char *next)
{
	struct stat st;

	if (stat(next, &st) < 0)
		return false;
	return S_ISDIR(st.st_mode) ||
	       (p->source && S_ISREG(st.st_mode) && !walk_is_in(w->at, "/proc"));
}

/* Whether `next` is a link to follow. */
static int is_followed(
	void *arg, const struct walk *w, const char *next, const char *after, struct err *err)
{
	struct stat st;

	if (root_of(arg, w->at) || lstat(next, &st) < 0 || !S_ISLNK(st.st_mode))
		return 0;
	return after[0] || is_last_followed(arg, w, next);
}

/* A slash or "/." at the end means that a directory is expected: it stays. */
static const char *end_of(const char *typed)
{
	return str_ends(typed, "/.") ? "/." : str_ends(typed, "/") ? "/" : "";
}

/* A workspace of one file: the directory that it is in is not the guest's. */
static bool is_file(const char *root)
{
	struct stat st;

	return lstat(root, &st) == 0 && S_ISREG(st.st_mode);
}

static void give_dest(
	const struct places *p, const char *at, const char *typed, struct cp_dest *ret)
{
	const char *root = root_of(p, at);
	const char *path = at;

	if (!root || is_file(root)) {
		*ret = (struct cp_dest){.path = xasprintf("%s%s", path, end_of(typed))};
		if (!ret->path[0]) {
			free(ret->path);
			ret->path = xstrdup("/");
		}
		return;
	}
	path += strcmp(root, "/") != 0 ? strlen(root) : 0;
	path += path[0] == '/';
	*ret = (struct cp_dest){.root = xstrdup(root),
		.path = path[0] ? xasprintf("%s%s", path, end_of(typed)) : xstrdup(".")};
}

static int find_dest(
	const struct places *p, const char *typed, struct cp_dest *ret, struct err *err)
{
	struct places places = *p;
	AUTO_WALK struct walk w = {0};
	int r = walk_path(typed, is_followed, &places, &w, err);

	if (r == 0)
		give_dest(p, w.at, typed, ret);
	return r;
}

int cp_dest_find(const char *typed, const char *const *roots, size_t n_roots, struct cp_dest *ret,
	struct err *err)
{
	return find_dest(&(struct places){.roots = roots, .n_roots = n_roots}, typed, ret, err);
}

int cp_dest_find_source(const char *typed, const char *const *roots, size_t n_roots,
	struct cp_dest *ret, struct err *err)
{
	return find_dest(&(struct places){.roots = roots, .n_roots = n_roots, .source = true},
		typed, ret, err);
}

void cp_dest_done(struct cp_dest *d)
{
	free(d->root);
	free(d->path);
	*d = (struct cp_dest){0};
}
