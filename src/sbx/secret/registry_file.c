/* SPDX-License-Identifier: Apache-2.0 */
#include "registry_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/secret/service/registry.h"
#include "lib/secret/service/services.h"

static char *path_of(const char *name)
{
	return paths_get(PATHS_CONFIG, "services/%s.conf", name);
}

static bool is_ours(const char *name)
{
	AUTO_FREE char *path = path_of(name), *text = NULL;
	size_t n;

	return file_load_no_link(path, SERVICE_MAX_BYTES, &text, &n, NULL) == 0 &&
	       str_starts(text, REGISTRY_MARK "\n");
}

int registry_file_check(const char *name, const char *text, struct problem *p)
{
	struct services *all = services_new();
	int r = services_load_installed(all, &p->err);

	if (r == 0 && !services_by_name(all, name))
		r = services_add(all, slice_from_str(text), name, &p->err);
	else if (r == 0 && !is_ours(name))
		r = err_set(&p->err, -EEXIST,
			"a service file for this registry already exists: use sbx secret set %s",
			name);
	services_free(all);
	return r < 0 ? problem_hint(p, r, "sbx secret services") : 0;
}

/* The file may meet another service only now, because it replaced an earlier one. */
static int check_saved(const char *name, const char *path, struct problem *p)
{
	struct services *all = services_new();
	int r = services_load_installed(all, &p->err);

	if (r == 0 && !services_by_name(all, name)) {
		size_t n = services_count_faults(all);

		(void)unlink(path);
		r = err_set(&p->err, -EEXIST, "%s", n ? services_fault(all, n - 1) : path);
	}
	services_free(all);
	return r;
}

int registry_file_save(const char *name, const char *text, struct problem *p)
{
	AUTO_FREE char *dir = paths_get(PATHS_CONFIG, "services"), *path = path_of(name);
	int r = paths_make(dir, &p->err);

	if (r == 0)
		r = file_save(path, slice_from_str(text), &p->err);
	return r < 0 ? r : check_saved(name, path, p);
}

void registry_file_remove(const char *name)
{
	AUTO_FREE char *path = path_of(name);

	if (is_ours(name))
		(void)unlink(path);
}
