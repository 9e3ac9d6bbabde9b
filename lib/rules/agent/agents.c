/* SPDX-License-Identifier: Apache-2.0 */
#include "agents.h"

#include <dirent.h>
#include <errno.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

static void free_agent(struct agent *a)
{
	agent_done(a);
	free(a);
}

/* Where it is or would be. */
static size_t place_of(const struct agents *set, const char *name, bool *ret_there)
{
	size_t i = 0;

	while (i < set->n && strcmp(set->v[i]->name, name) < 0)
		i++;
	*ret_there = i < set->n && strcmp(set->v[i]->name, name) == 0;
	return i;
}

const struct agent *agents_find(const struct agents *set, const char *name)
{
	bool there;
	size_t i = place_of(set, name, &there);

	return there ? set->v[i] : NULL;
}

const char *agents_unavailable(const struct agents *set, const char *name)
{
	for (size_t i = 0; i < set->n_gone; i++)
		if (strcmp(set->gone[i]->name, name) == 0)
			return set->gone[i]->unavailable;
	return NULL;
}

static void take_out_gone(struct agents *set, const char *name)
{
	for (size_t i = 0; i < set->n_gone; i++) {
		if (strcmp(set->gone[i]->name, name) != 0)
			continue;
		free_agent(set->gone[i]);
		set->gone[i] = set->gone[--set->n_gone];
	}
}

static void take_out(struct agents *set, const char *name)
{
	bool there;
	size_t i = place_of(set, name, &there);

	take_out_gone(set, name);
	if (!there)
		return;
	free_agent(set->v[i]);
	set->n--;
	for (; i < set->n; i++) {
		set->v[i] = set->v[i + 1];
		set->own[i] = set->own[i + 1];
	}
}

static int put_in(struct agents *set, struct agent *a, bool own, struct err *err)
{
	bool there;
	size_t i;

	if (set->n == AGENTS_MAX || set->n_gone == AGENTS_MAX)
		return err_set(err, -E2BIG, "more than %d agents", AGENTS_MAX);
	if (a->unavailable) {
		set->gone[set->n_gone] = xmalloc(sizeof(*a));
		*set->gone[set->n_gone++] = *a;
		*a = (struct agent){0};
		return 0;
	}
	i = place_of(set, a->name, &there);
	for (size_t k = set->n; k > i; k--) {
		set->v[k] = set->v[k - 1];
		set->own[k] = set->own[k - 1];
	}
	set->v[i] = xmalloc(sizeof(*a));
	*set->v[i] = *a;
	*a = (struct agent){0};
	set->own[i] = own;
	set->n++;
	return 0;
}

/* file is NAME.conf */
static int load_one(
	struct agents *set, const char *folder, const char *file, bool own, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", folder, file), *text = NULL,
		       *name = xstrndup(file, strlen(file) - 5);
	AUTO_AGENT struct agent a = {0};
	size_t n = 0;
	int r = file_load(path, AGENT_MAX_BYTES, &text, &n, err);

	take_out(set, name);
	if (r < 0)
		return r == -ENOENT ? err_errno(err, r, "cannot read %s", path) : r;
	r = agent_parse(slice_of(text, n), path, &a, err);
	if (r == 0 && strcmp(a.name, name) != 0)
		r = err_set(err, -EINVAL, "%s: the agent name '%s' does not match the file name",
			path, a.name);
	return r < 0 ? r : put_in(set, &a, own, err);
}

static int is_conf(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 5 && e->d_name[0] != '.' && strcmp(e->d_name + n - 5, ".conf") == 0;
}

int agents_load(struct agents *set, const char *folder, bool own, struct err *err)
{
	struct dirent **found = NULL;
	int n = scandir(folder, &found, is_conf, alphasort);

	if (n < 0)
		return errno == ENOENT ? 0 : err_errno(err, -errno, "cannot read %s", folder);
	for (int i = 0; i < n; i++) {
		struct err fault = {0};

		if (load_one(set, folder, found[i]->d_name, own, &fault) < 0 &&
			set->n_faults < AGENTS_MAX_FAULTS)
			set->fault[set->n_faults++] = xstrdup(fault.text);
		free(found[i]);
	}
	free(found);
	return 0;
}

int agents_load_installed(struct agents *set, struct err *err)
{
	AUTO_FREE char *shipped = paths_get(PATHS_SHARE, "agents"),
		       *own = paths_get(PATHS_CONFIG, "agents");
	int r = agents_load(set, shipped, false, err);

	return r < 0 ? r : agents_load(set, own, true, err);
}
