/* SPDX-License-Identifier: Apache-2.0 */
#include "memories.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kept.h"
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define PREFIX "memory."
#define MAX_JSON 8192

static const char *const linked[] = {"state", "memory", "memory.sums", "ca"};

static char *name_of(uint64_t seq)
{
	return xasprintf(PREFIX "%llu", (unsigned long long)seq);
}

/* No symbolic link is followed: neither here nor by the callers. */
static int open_memory(const char *id, uint64_t seq)
{
	AUTO_FREE char *name = name_of(seq),
		       *path = paths_get(PATHS_STATE, "sandboxes/%s/%s", id, name);

	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool has_file(int dir, const char *name, struct stat *st)
{
	return dir >= 0 && fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st->st_mode);
}

bool memories_has(const char *id, uint64_t seq)
{
	AUTO_CLOSE int dir = open_memory(id, seq);
	struct stat st;

	return seq && has_file(dir, "image.json", &st);
}

uint64_t memories_bytes(const char *id, uint64_t seq)
{
	AUTO_CLOSE int dir = open_memory(id, seq);
	struct stat st;

	return has_file(dir, "memory", &st) ? (uint64_t)st.st_blocks * 512 : 0;
}

/* ---- a rewind ---- */

static int load_part(
	int dir, const char *name, size_t max, char **ret, size_t *ret_n, struct err *err)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s", name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s is not a file", name);
	return file_read(fd, name, max, ret, ret_n, err);
}

/* The guest writes to the copy. Adds its size and time to the list of image.json. */
static int copy_top(
	const char *id, int from, enum template_disk disk, json_t *disks, struct err *err)
{
	AUTO_FREE char *name = xasprintf("%s.qcow2", template_disk_name(disk)),
		       *to = paths_get(PATHS_STATE, "sandboxes/%s/%s", id, name), *text = NULL;
	struct stat st;
	size_t n = 0;
	int r = load_part(from, name, MEMORIES_MAX_TOP, &text, &n, err);

	if (r == 0)
		r = file_save(to, slice_of(text, n), err);
	if (r == 0 && stat(to, &st) < 0)
		r = err_errno(err, -errno, "cannot read the attributes of %s", to);
	if (r < 0)
		return r;
	(void)json_array_append_new(disks,
		json_pack("{s:s,s:I,s:I}", "name", name, "size", (json_int_t)st.st_size, "mtime_ns",
			(json_int_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec));
	return 0;
}

static int write_json(const char *id, int from, const char *dir, struct err *err)
{
	AUTO_FREE char *to = xasprintf("%s/image.json", dir), *text = NULL, *out = NULL;
	json_auto_t *o = NULL;
	json_t *disks = json_array();
	size_t n = 0;
	int r = load_part(from, "image.json", MAX_JSON, &text, &n, err);

	for (enum template_disk i = 0; r == 0 && i < TEMPLATE_N_DISKS; i++)
		r = copy_top(id, from, i, disks, err);
	o = r < 0 ? NULL : json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	if (r == 0 && !json_is_object(o))
		r = err_set(err, -EBADMSG, "image.json is damaged");
	json_object_set(o, "disks", disks);
	json_decref(disks);
	out = r < 0 ? NULL : json_dumps(o, JSON_COMPACT);
	return out ? file_save(to, slice_from_str(out), err) : r;
}

static int link_files(int from, const char *dir, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(linked); i++) {
		AUTO_FREE char *to = xasprintf("%s/%s", dir, linked[i]);

		/* A sandbox without a CA has no file of it. */
		if (linkat(from, linked[i], AT_FDCWD, to, 0) < 0 &&
			(errno != ENOENT || strcmp(linked[i], "ca") != 0))
			return err_errno(err, -errno, "cannot link %s", linked[i]);
	}
	return 0;
}

static int sync_dir(const char *path, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? err_errno(err, -errno, "cannot sync %s", path) : 0;
}

int memories_place(const char *id, uint64_t seq, struct err *err)
{
	AUTO_FREE char *parent = paths_get(PATHS_STATE, "sandboxes/%s", id),
		       *new = xasprintf("%s/suspend.new", parent),
		       *to = xasprintf("%s/suspend", parent);
	AUTO_CLOSE int from = open_memory(id, seq);
	int r;

	kept_remove(id);
	if (from < 0)
		return err_errno(
			err, -errno, "cannot open " PREFIX "%llu", (unsigned long long)seq);
	if (mkdir(new, 0700) < 0)
		return err_errno(err, -errno, "cannot create %s", new);
	r = link_files(from, new, err);
	if (r == 0)
		r = write_json(id, from, new, err);
	if (r == 0)
		r = sync_dir(new, err);
	if (r == 0 && rename(new, to) < 0)
		r = err_errno(err, -errno, "cannot create %s", to);
	if (r < 0)
		kept_remove(id);
	return r < 0 ? r : sync_dir(parent, err);
}

/* ---- unused ones ---- */

static bool is_needed(const struct checkpoints *l, uint64_t seq)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].seq == seq)
			return true;
	for (size_t i = 0; i < l->n_aside; i++)
		if (l->aside[i].seq == seq)
			return true;
	return false;
}

void memories_sweep(const char *id, const struct checkpoints *l)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "sandboxes/%s", id);
	AUTO_DIR DIR *d = opendir(path);
	struct dirent *e;

	while ((e = dir_next(d))) {
		uint64_t seq;

		if (str_starts(e->d_name, PREFIX) &&
			str_to_u64(e->d_name + strlen(PREFIX), 1, INT64_MAX, &seq) == 0 &&
			!is_needed(l, seq))
			kept_remove_folder(id, e->d_name);
	}
}
