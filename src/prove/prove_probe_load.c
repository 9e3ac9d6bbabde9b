/* SPDX-License-Identifier: Apache-2.0 */
/* The probes of a directory; prove_probe.c parses one file. */
#include "prove_probe.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static bool is_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n > 0 && n <= PROBE_MAX_NAME && s[n] == '\0' && s[0] != '-';
}

const struct probe *prove_probes_find(const struct probes *set, const char *id)
{
	for (size_t i = 0; i < set->n; i++)
		if (strcmp(set->v[i]->id, id) == 0)
			return set->v[i];
	return NULL;
}

static int add_probe(struct probes *set, struct probe *p, struct err *err)
{
	if (set->n == PROBE_MAX)
		return err_set(err, -E2BIG, "%s: more than %d probes", p->path, PROBE_MAX);
	if (prove_probes_find(set, p->id))
		return err_set(err, -EEXIST, "%s: a built-in probe %s exists: use another name",
			p->path, p->id);
	set->v[set->n++] = p;
	return 0;
}

static int load_file(struct probes *set, const char *path, const char *group, const char *name,
	bool own, struct err *err)
{
	AUTO_FREE char *text = NULL;
	struct probe *p;
	size_t n;
	int r;

	if (!is_name(name))
		return err_set(err, -EINVAL,
			"%s: invalid probe name: use a-z, 0-9 and '-', at most %d", path,
			PROBE_MAX_NAME);
	r = file_load(path, PROBE_MAX_FILE, &text, &n, err);
	if (r < 0)
		return err_set(err, r, "cannot read %s: %s", path, strerror(-r));
	p = xcalloc(1, sizeof(*p));
	r = probe_parse(slice_of(text, n), group, name, path, p, err);
	p->own = own;
	if (r == 0)
		r = add_probe(set, p, err);
	if (r < 0) {
		probe_done(p);
		free(p);
	}
	return r;
}

/* Neither hidden files nor those of editors. */
static int is_seen(const struct dirent *d)
{
	return d->d_name[0] != '.' && !str_ends(d->d_name, "~");
}

static int load_group(
	struct probes *set, const char *folder, const char *group, bool own, struct err *err)
{
	AUTO_FREE char *dir = xasprintf("%s/%s", folder, group);
	struct dirent **list = NULL;
	int n = scandir(dir, &list, is_seen, alphasort), r = 0;

	if (n < 0)
		return errno == ENOENT ? 0 : err_errno(err, -errno, "cannot read %s", dir);
	for (int i = 0; i < n; i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", dir, list[i]->d_name);

		if (r == 0)
			r = load_file(set, path, group, list[i]->d_name, own, err);
		free(list[i]);
	}
	free(list);
	return r;
}

/* A user's directory that is not a group would never be used. */
static int check_folders(const char *folder, struct err *err)
{
	struct dirent **list = NULL;
	int n = scandir(folder, &list, is_seen, alphasort), r = 0;

	for (int i = 0; i < n; i++) {
		if (r == 0 && list[i]->d_type == DT_DIR && probe_group_find(list[i]->d_name) < 0)
			r = err_set(err, -EINVAL,
				"%s/%s: unknown group: expected files, airlock, kernel, network, "
				"credentials, authority, docker, host or recovery",
				folder, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return r;
}

int prove_probes_load(struct probes *set, const char *folder, bool own, struct err *err)
{
	int r = own ? check_folders(folder, err) : 0;

	for (size_t g = 0; probe_groups[g] && r == 0; g++)
		r = load_group(set, folder, probe_groups[g], own, err);
	return r;
}

int prove_probes_check(const struct probes *set, struct err *err)
{
	for (size_t i = 0; i < set->n; i++)
		for (size_t k = 0; k < set->v[i]->n_again; k++) {
			const struct probe *p = prove_probes_find(set, set->v[i]->again[k]);

			if (!p || probe_is_recovery(p))
				return err_set(err, -EINVAL, "%s: again: probe %s %s",
					set->v[i]->path, set->v[i]->again[k],
					p ? "cannot be run again" : "not found");
		}
	return 0;
}

static int by_group(const void *a, const void *b)
{
	const struct probe *p = *(struct probe *const *)a, *q = *(struct probe *const *)b;

	return p->group != q->group ? (p->group > q->group) - (p->group < q->group)
				    : strcmp(p->id, q->id);
}

int prove_probes_load_installed(struct probes *set, struct err *err)
{
	AUTO_FREE char *shipped = paths_get(PATHS_SHARE, "probes");
	AUTO_FREE char *own = paths_get(PATHS_CONFIG, "probes");
	int r = prove_probes_load(set, shipped, false, err);

	if (r == 0 && set->n == 0)
		return err_set(err, -ENOENT, "no probes in %s", shipped);
	if (r == 0)
		r = prove_probes_load(set, own, true, err);
	if (r == 0)
		r = prove_probes_check(set, err);
	qsort(set->v, set->n, sizeof(set->v[0]), by_group); /* NOLINT: of pointers */
	return r;
}

void prove_probes_done(struct probes *set)
{
	for (size_t i = 0; i < set->n; i++) {
		probe_done(set->v[i]);
		free(set->v[i]);
	}
	set->n = 0;
}
