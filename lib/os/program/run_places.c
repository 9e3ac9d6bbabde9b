/* SPDX-License-Identifier: Apache-2.0 */
#include "run_places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/fs/walk.h"

int run_places_prepare(struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "writable");

	return paths_make(dir, err);
}

/* Not synced: sbxd writes all of them again when it starts. */
static int save_places(const char *path, struct slice content, struct err *err)
{
	AUTO_FILE_NEW struct file_new f = {.fd = -1};
	int r = file_new_open(&f, path, err);

	if (r < 0)
		return r;
	r = fd_write_all(f.fd, content.p, content.n);
	if (r < 0)
		return err_errno(err, r, "cannot write %s", path);
	if (rename(f.temp, f.path) < 0)
		return err_errno(err, -errno, "cannot write %s", path);
	free(TAKE(f.temp));
	return 0;
}

/* Then nothing is written: sbxd saves all of them when it starts, also on a full disk. */
static bool is_saved(const char *path, struct slice content)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0;

	return file_load(path, RUN_PLACES_MAX_BYTES, &text, &n, NULL) == 0 && n == content.n &&
	       memcmp(text, content.p, n) == 0;
}

/* Each path ends with a zero byte. */
int run_places_save(const char *id, const char *const *dirs, size_t n, struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "writable/%s", id);
	AUTO_FREE char *text = NULL;
	size_t size = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		size += strlen(dirs[i]) + 1;
	if (size > RUN_PLACES_MAX_BYTES)
		return err_set(err, -E2BIG, "the paths of the workspaces are too long");
	text = xmalloc(size + 1);
	for (size_t i = 0; i < n; i++) {
		memcpy(text + at, dirs[i], strlen(dirs[i]) + 1);
		at += strlen(dirs[i]) + 1;
	}
	return is_saved(path, slice_of(text, size)) ? 0
						    : save_places(path, slice_of(text, size), err);
}

void run_places_remove(const char *id)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "writable/%s", id);

	(void)unlink(path);
}

void run_places_keep(bool (*is_known)(void *arg, const char *id), void *arg)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "writable");
	AUTO_DIR DIR *dir = opendir(path);
	struct dirent *e;

	while ((e = dir_next(dir)))
		if (e->d_name[0] != '.' && !is_known(arg, e->d_name))
			(void)unlinkat(dirfd(dir), e->d_name, 0);
}

static int check_dir(const struct run_ref_seen *seen, const char *dir, struct err *err)
{
	for (size_t i = 0; i < seen->n; i++)
		if (walk_is_in(seen->path[i], dir))
			return err_set(err, -EPERM,
				"%s is in the workspace %s of a sandbox, which could change it",
				seen->path[i], dir);
	return 0;
}

static int check_file(const struct run_ref_seen *seen, const char *name, struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "writable/%s", name);
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	int r = file_load(path, RUN_PLACES_MAX_BYTES, &text, &n, err);

	if (r == -ENOENT) /* its sandbox was removed this moment */
		return 0;
	if (r == 0 && n > 0 && text[n - 1] != '\0')
		return err_set(err, -EIO, "%s is corrupt", path);
	for (size_t at = 0; r == 0 && at < n; at += strlen(text + at) + 1)
		r = check_dir(seen, text + at, err);
	return r;
}

int run_places_check(const struct run_ref_seen *seen, struct err *err)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "writable");
	AUTO_DIR DIR *dir = opendir(path);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return err_errno(err, -errno, "cannot read %s", path);
	while (r == 0 && (e = dir_next(dir)))
		if (!strchr(e->d_name, '.')) /* the file is not complete yet */
			r = check_file(seen, e->d_name, err);
	if (r == 0 && errno)
		r = err_errno(err, -errno, "cannot read %s", path);
	return r;
}

int run_places_permit(const struct vault_ref *ref, struct err *err)
{
	AUTO_SEEN struct run_ref_seen seen = {0};
	int r = run_ref_check(ref, &seen, err);

	return r < 0 ? r : run_places_check(&seen, err);
}

int run_places_permit_program(const char *program, struct err *err)
{
	static struct vault_ref ref; /* large */

	ref = (struct vault_ref){.kind = VAULT_REF_WHOLE};
	if (snprintf(ref.program, sizeof(ref.program), "%s", program) >= (int)sizeof(ref.program))
		return err_set(err, -ENAMETOOLONG, "the path of %.80s is too long", program);
	return run_places_permit(&ref, err);
}
