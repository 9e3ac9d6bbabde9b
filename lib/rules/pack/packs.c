/* SPDX-License-Identifier: Apache-2.0 */
#include "packs.h"

#include <dirent.h>
#include <errno.h>
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

void packs_done(struct packs *set)
{
	for (size_t i = 0; i < set->n; i++)
		pack_done(&set->v[i]);
	for (size_t i = 0; i < set->n_faults; i++)
		free(set->fault[i]);
	*set = (struct packs){0};
}

const struct pack *packs_find(const struct packs *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++)
		if (strcmp(set->v[i].name, name) == 0)
			return &set->v[i];
	return NULL;
}

const struct pack *packs_of_host(const struct packs *set, struct slice host, uint16_t port)
{
	for (size_t i = 0; i < set->n; i++)
		if (pack_has_host(&set->v[i], host, port))
			return &set->v[i];
	return NULL;
}

int packs_check_new(const struct packs *set, const struct pack *p, struct err *err)
{
	if (packs_find(set, p->name))
		return err_set(err, -EEXIST, "service '%s' already has a pack", p->name);
	for (size_t i = 0; i < set->n; i++) {
		struct slice host;

		if (pack_shares_host(p, &set->v[i], &host))
			return err_set(err, -EEXIST, "host %.*s is already in the pack '%s'",
				(int)host.n, host.p, set->v[i].name);
	}
	return 0;
}

/* file is NAME.api */
static int load_pack(
	struct packs *set, const char *folder, const char *file, bool own, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", folder, file), *text = NULL;
	AUTO_PACK struct pack p = {0};
	size_t n = 0;
	int r = file_load(path, PACK_MAX_BYTES, &text, &n, err);

	if (r < 0)
		return r == -ENOENT ? err_errno(err, r, "cannot read %s", path) : r;
	r = pack_parse(slice_of(text, n), path, &p, err);
	if (r < 0)
		return r;
	if (strncmp(p.name, file, strlen(file) - 4) != 0 || strlen(p.name) != strlen(file) - 4)
		return err_set(err, -EINVAL,
			"%s: the service name '%s' does not match the file name", path, p.name);
	r = packs_check_new(set, &p, err);
	if (r < 0)
		return err_wrap(err, r, "%s", path);
	if (set->n == PACKS_MAX)
		return err_set(err, -E2BIG, "%s: more than %d packs", path, PACKS_MAX);
	set->own[set->n] = own;
	set->v[set->n++] = p;
	p = (struct pack){0};
	return 0;
}

static int is_api(const struct dirent *e)
{
	return e->d_name[0] != '.' && strlen(e->d_name) > 4 && str_ends(e->d_name, ".api");
}

static int load_packs(struct packs *set, const char *folder, bool own, struct err *err)
{
	struct dirent **found = NULL;
	int n = scandir(folder, &found, is_api, alphasort);

	if (n < 0)
		return errno == ENOENT ? 0 : err_errno(err, -errno, "cannot read %s", folder);
	for (int i = 0; i < n; i++) {
		struct err fault = {0};

		if (load_pack(set, folder, found[i]->d_name, own, &fault) < 0 &&
			set->n_faults < PACKS_MAX_FAULTS)
			set->fault[set->n_faults++] = xstrdup(fault.text);
		free(found[i]);
	}
	free(found);
	return 0;
}

int packs_load_installed(struct packs *set, struct err *err)
{
	AUTO_FREE char *shipped = paths_get(PATHS_SHARE, "apis"),
		       *own = paths_get(PATHS_CONFIG, "apis");
	int r = load_packs(set, shipped, false, err);

	return r < 0 ? r : load_packs(set, own, true, err);
}
