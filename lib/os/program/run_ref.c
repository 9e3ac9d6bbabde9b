/* SPDX-License-Identifier: Apache-2.0 */
#include "run_ref.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/base/fs/walk.h"

#define MAGIC 0x46525053u /* "SPRF" */
#define MAX_FILE (sizeof(struct vault_ref) + 128)

static char *path_of(uint64_t serial)
{
	return paths_get(PATHS_STATE, "programs/%llu", (unsigned long long)serial);
}

int run_ref_save(uint64_t serial, const struct vault_ref *ref, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "programs");
	AUTO_FREE char *path = path_of(serial);
	static uint8_t buf[MAX_FILE];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r = paths_make(dir, err);

	if (r < 0)
		return r;
	wr_u32(&wr, MAGIC);
	wr_u64(&wr, serial);
	vault_put_ref(&wr, ref);
	r = wr_finish(&wr);
	return r < 0 ? err_errno(err, r, "cannot write %s", path)
		     : file_save(path, slice_of(buf, wr.n), err);
}

int run_ref_load(uint64_t serial, struct vault_ref *ret, struct err *err)
{
	AUTO_FREE char *path = path_of(serial);
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	struct rd rd;
	int r = file_load(path, MAX_FILE, &text, &n, err);

	if (r < 0)
		return r;
	rd = rd_init(slice_of(text, n));
	if (rd_u32(&rd) != MAGIC || rd_u64(&rd) != serial)
		return err_set(err, -ENOENT, "%s belongs to another credential", path);
	vault_read_ref(&rd, ret);
	if (rd_finish(&rd) < 0 || ret->kind == VAULT_REF_NONE)
		return err_set(err, -ENOENT, "%s is corrupt", path);
	return 0;
}

static bool is_kept(const char *name, const uint64_t *serials, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char text[24];

		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)serials[i]);
		if (strcmp(name, text) == 0)
			return true;
	}
	return false;
}

void run_ref_keep(const uint64_t *serials, size_t n)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "programs");
	AUTO_DIR DIR *dir = opendir(path);
	struct dirent *e;

	while ((e = dir_next(dir)))
		if (e->d_name[0] != '.' && !is_kept(e->d_name, serials, n))
			(void)unlinkat(dirfd(dir), e->d_name, 0);
	(void)rmdir(path); /* fails while a file is in it */
}

static bool is_ours(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & S_IWOTH) &&
	       (!(st->st_mode & S_IWGRP) || st->st_gid == 0 || st->st_gid == getegid());
}

void run_ref_seen_done(struct run_ref_seen *seen)
{
	for (size_t i = 0; i < seen->n; i++)
		free(seen->path[i]);
	seen->n = 0;
}

/* A user who can write to a directory of the path, or owns an entry of a directory like /tmp, can
 * replace the program. The mode of a link has no meaning, and a sticky directory protects our
 * entries. */
static bool is_safe(const struct stat *st)
{
	bool is_sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);

	if (S_ISLNK(st->st_mode) || is_sticky)
		return st->st_uid == 0 || st->st_uid == geteuid();
	return is_ours(st);
}

static const char *what_others_can(mode_t mode)
{
	return S_ISDIR(mode) ? "replace files in" : S_ISLNK(mode) ? "replace the link" : "change";
}

static int visit_ref(
	void *arg, const struct walk *w, const char *next, const char *after, struct err *err)
{
	struct run_ref_seen *seen = arg;
	struct stat st;

	if (lstat(next, &st) < 0)
		return err_errno(err, -errno, "cannot check %s", next);
	if (seen->n == RUN_REF_MAX_SEEN)
		return err_set(err, -ELOOP, "the path has too many components");
	seen->path[seen->n++] = xstrdup(next);
	if (!is_safe(&st))
		return err_set(
			err, -EPERM, "another user can %s %s", what_others_can(st.st_mode), next);
	return S_ISLNK(st.st_mode);
}

/* The root directory has no name that walk_path could visit. */
static int check_root(struct err *err)
{
	struct stat st;

	return stat("/", &st) == 0 && is_safe(&st)
		       ? 0
		       : err_set(err, -EPERM, "another user can replace files in /");
}

/* ---- arguments ---- */

static int see_ref(
	void *arg, const struct walk *w, const char *next, const char *after, struct err *err)
{
	struct run_ref_seen *seen = arg;
	struct stat st;

	if (lstat(next, &st) < 0)
		return -ENOENT; /* no path, or one that has not been created */
	if (seen->n == RUN_REF_MAX_SEEN)
		return err_set(err, -ELOOP, "the arguments have too many paths");
	seen->path[seen->n++] = xstrdup(next);
	return S_ISLNK(st.st_mode);
}

/* `text` as a path of the program, which runs in the root directory. */
static int see_path(const char *text, struct run_ref_seen *seen, struct err *err)
{
	AUTO_FREE char *path = xasprintf("/%s", text);
	AUTO_WALK struct walk w = {0};
	int r = text[0] ? walk_path(path, see_ref, seen, &w, err) : 0;

	return r == -ENOENT || r == -ENAMETOOLONG ? 0 : r;
}

/* Also after each '=': --file=/PATH, --set=file=/PATH. */
static int see_arguments(const struct vault_ref *ref, struct run_ref_seen *seen, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && ref->kind != VAULT_REF_DOCKER && i < ref->n_args; i++) {
		r = see_path(ref->args[i], seen, err);
		for (const char *eq = ref->args[i]; r == 0 && (eq = strchr(eq, '=')) != NULL;)
			r = see_path(++eq, seen, err);
	}
	return r;
}

int run_ref_check(const struct vault_ref *ref, struct run_ref_seen *ret, struct err *err)
{
	const char *name = strrchr(ref->program, '/');
	AUTO_WALK struct walk w = {0};
	struct stat st;
	int r = check_root(err);

	if (ref->kind == VAULT_REF_DOCKER && (!name || !str_starts(name, "/docker-credential-")))
		return err_set(err, -EINVAL, "%s is not a docker-credential program", ref->program);
	if (r == 0)
		r = walk_path(ref->program, visit_ref, ret, &w, err);
	if (r < 0)
		return r;
	if (ref->program[0] != '/' || stat(w.at, &st) < 0 || !S_ISREG(st.st_mode) ||
		access(ref->program, X_OK) < 0)
		return err_set(err, -EINVAL, "%s is not a program", ref->program);
	return see_arguments(ref, ret, err);
}
