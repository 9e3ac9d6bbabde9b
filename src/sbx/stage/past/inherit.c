/* SPDX-License-Identifier: Apache-2.0 */
/* A fork has the staged changes of its source on its disk: what the host knows of them is copied.
 * What cannot be copied makes more changes of the fork conflicts, or conflicts without a merge. */
#include <errno.h>
#include <stdio.h>

#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/paths.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/sandbox.h"
#include "src/sbx/stage/area.h"
#include "src/sbx/stage/merge/saved.h"
#include "src/sbx/stage/stage.h"

int stage_begin_fork(const json_t *sandbox, int *ret_lock, struct problem *p)
{
	AUTO_AREA struct area a = {.lock = -1};
	int r;

	*ret_lock = -1;
	if (!json_is_true(json_object_get(sandbox, "staged")))
		return 0;
	r = area_open(&a, api_str(sandbox, "id"), p);
	if (r == 0)
		r = area_require_finished(&a, p);
	if (r == 0)
		*ret_lock = TAKE_FD(a.lock);
	return r;
}

static void copy_bases(const char *from, const char *to)
{
	AUTO_DIR DIR *d = opendir(from);
	struct dirent *e;

	while ((e = dir_next(d))) {
		AUTO_FREE char *file = xasprintf("%s/%s", from, e->d_name),
			       *copy = xasprintf("%s/%s", to, e->d_name);
		AUTO_SAVED struct saved s = {0};

		if (str_starts(e->d_name, SAVED_BASE) && saved_get(file, &s))
			(void)!saved_put(copy, slice_of(s.text, s.n), s.mode, NULL);
	}
}

/* In the order of their age: the last apply has put the newest version. */
static void copy_all_bases(const struct area *a, const char *to)
{
	AUTO_FREE char *base = area_path(a, "base");
	bool open;
	unsigned last = area_last_apply(a, &open);

	copy_bases(base, to);
	for (unsigned i = 1; i <= last; i++) {
		AUTO_FREE char *dir = xasprintf("%s/undo/%u", a->dir, i);

		copy_bases(dir, to);
	}
}

static int copy_known(const struct area *from, const char *dir, struct err *err)
{
	AUTO_FREE char *source = area_path(from, "known"), *copy = xasprintf("%s/known", dir);
	AUTO_KNOWN struct known known = {0};
	int r = known_load(&known, source, err);

	return r < 0 || known.n == 0 ? r : known_save(&known, copy, err);
}

void stage_fork(const json_t *sandbox, const json_t *fork)
{
	struct area from = {.lock = -1};
	AUTO_FREE char *dir = NULL, *base = NULL;
	struct err err = {0};
	int r;

	if (!json_is_true(json_object_get(sandbox, "staged")))
		return;
	from.dir = paths_get(PATHS_STATE, "sandboxes/%s/stage", api_str(sandbox, "id"));
	dir = paths_get(PATHS_STATE, "sandboxes/%s/stage", api_str(fork, "id"));
	base = xasprintf("%s/base", dir);
	r = paths_make(base, &err);
	if (r == 0)
		r = copy_known(&from, dir, &err);
	if (r == 0)
		copy_all_bases(&from, base);
	else
		ui_warning("sandbox '%s': files that sbx apply has written may be conflicts: %s",
			api_str(fork, "name"), err_text(&err, r));
	free(from.dir);
}
