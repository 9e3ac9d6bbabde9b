/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "lib/rules/settings/settings.h"
#include "lib/vm/vmm/image/image.h"

/* ---- the memory of a sandbox ---- */

void check_memory(struct check *c)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, NULL);
	AUTO_SETTINGS struct settings s = {0};
	struct err err = {0};
	uint64_t bytes = 0;
	char size[32];

	(void)!settings_load(&s, NULL); /* a broken file: the default, as in the keeper */
	if (strcmp(settings_get(&s, SETTINGS_VM_MEMORY_BACKING), "file") != 0) {
		check_set(c, CHECK_PASS, "in memory of the host (vm.memory-backing is memfd)");
		check_detail(c, "the host writes guest memory to a disk only if it has swap");
		return;
	}
	if (check_free_bytes(dir, &bytes) < 0 || vmm_memory_check(dir, &err) < 0) {
		check_set(
			c, CHECK_WARN, "in memory of the host: the state directory cannot hold it");
		check_detail(c, "%s", err.text);
		check_hint(c, "sbx settings set vm.memory-backing memfd");
		return;
	}
	str_from_size(bytes, size, sizeof(size));
	check_set(c, CHECK_PASS,
		"in files that the host writes to the disk (vm.memory-backing is file)");
	check_detail(c,
		"%s: %s free; a sandbox with more memory than that starts with memory of the host",
		dir, size);
}

/* ---- formats of snapshots ---- */

enum kind { TEMPLATE, SUSPENDED, CHECKPOINT, N_KINDS };

struct formats {
	size_t n;	 /* all */
	size_t n_lost;	 /* of another format, and not created again automatically */
	char list[400];	 /* what has another format */
	char resume[64]; /* a suspended sandbox that this version can resume */
	json_t *sandboxes;
};

static const char *name_of(const struct formats *f, const char *id)
{
	json_t *row;
	size_t i;

	json_array_foreach (f->sandboxes, i, row)
		if (strcmp(api_str(row, "id"), id) == 0)
			return api_str(row, "name");
	return id;
}

static void add_snapshot(struct formats *f, enum kind kind, const char *dir, const char *id)
{
	static const char *const what[N_KINDS] = {
		"snapshot of a template", "suspended sandbox", "checkpoint of sandbox"};
	AUTO_FREE char *path = xasprintf("%s/image.json", dir);
	AUTO_FREE char *text = NULL;
	AUTO_JSON json_t *o = NULL;
	json_int_t format;
	size_t n, at = strlen(f->list);

	if (file_load(path, IMAGE_MAX_JSON, &text, &n, NULL) < 0)
		return;
	o = json_loadb(text, n, 0, NULL);
	format = json_integer_value(json_object_get(o, "version"));
	f->n++;
	if (format == IMAGE_FORMAT)
		return;
	f->n_lost += kind != TEMPLATE;
	(void)snprintf(f->list + at, sizeof(f->list) - at, "%s%s %s: format %lld%s", at ? "; " : "",
		what[kind], name_of(f, id), (long long)format,
		kind == TEMPLATE	     ? ", will be created again"
		: format == IMAGE_FORMAT_OLD ? ""
					     : ", cannot be resumed");
	if (kind == SUSPENDED && format == IMAGE_FORMAT_OLD && !f->resume[0])
		(void)!str_copy(f->resume, sizeof(f->resume), name_of(f, id));
}

static void add_sandbox(struct formats *f, const char *id)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "sandboxes/%s", id);
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = dir_next(d))) {
		AUTO_FREE char *path = xasprintf("%s/%s", dir, e->d_name);

		if (strcmp(e->d_name, "suspend") == 0)
			add_snapshot(f, SUSPENDED, path, id);
		else if (strncmp(e->d_name, "memory.", 7) == 0)
			add_snapshot(f, CHECKPOINT, path, id);
	}
}

static void find_snapshots(struct formats *f)
{
	AUTO_FREE char *warm = paths_get(PATHS_STATE, "warm"),
		       *all = paths_get(PATHS_STATE, "sandboxes");
	AUTO_DIR DIR *w = opendir(warm), *d = opendir(all);
	struct dirent *e;

	while ((e = dir_next(d)))
		add_sandbox(f, e->d_name);
	while ((e = dir_next(w))) {
		AUTO_FREE char *path = xasprintf("%s/%s", warm, e->d_name);

		add_snapshot(f, TEMPLATE, path, e->d_name);
	}
}

/* A snapshot of a template is created again. Programs of a suspended sandbox would be lost. */
void check_snapshots(struct check *c)
{
	AUTO_JSON json_t *answer = NULL;
	struct problem p = {0};
	struct formats f = {0};

	if (api_peek("GET", "/v1/sandboxes", CHECK_WAIT_MS, &answer, &p) == 0)
		f.sandboxes = json_object_get(answer, "sandboxes");
	find_snapshots(&f);
	if (!f.n) {
		check_set(c, CHECK_SKIP, "none");
		return;
	}
	check_detail(c, "%s", f.list);
	if (!f.n_lost) {
		check_set(c, CHECK_PASS, "%zu, no programs in an older format", f.n);
		return;
	}
	check_set(c, CHECK_WARN, "%zu of %zu have another format than %d", f.n_lost, f.n,
		IMAGE_FORMAT);
	if (f.resume[0])
		check_hint(c, "sbx start %s", f.resume);
	else
		check_hint(c, "sbx ls");
}
