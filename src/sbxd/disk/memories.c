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

static char *path_of(const char *id, uint64_t seq, const char *name)
{
	return paths_get(PATHS_STATE, "sandboxes/%s/" PREFIX "%llu%s%s", id,
		(unsigned long long)seq, name[0] ? "/" : "", name);
}

bool memories_has(const char *id, uint64_t seq)
{
	AUTO_FREE char *path = path_of(id, seq, "image.json");

	return seq && access(path, F_OK) == 0;
}

uint64_t memories_bytes(const char *id, uint64_t seq)
{
	AUTO_FREE char *path = path_of(id, seq, "memory");
	struct stat st;

	return lstat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

/* ---- a rewind ---- */

/* The guest writes to the copy. Adds its size and time to the list of image.json. */
static int copy_top(
	const char *id, uint64_t seq, enum template_disk disk, json_t *disks, struct err *err)
{
	AUTO_FREE char *name = xasprintf("%s.qcow2", template_disk_name(disk)),
		       *from = path_of(id, seq, name),
		       *to = paths_get(PATHS_STATE, "sandboxes/%s/%s", id, name), *text = NULL;
	struct stat st;
	size_t n = 0;
	int r = file_load_no_link(from, MEMORIES_MAX_TOP, &text, &n, err);

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

static int write_json(const char *id, uint64_t seq, const char *dir, struct err *err)
{
	AUTO_FREE char *from = path_of(id, seq, "image.json"),
		       *to = xasprintf("%s/image.json", dir), *text = NULL, *out = NULL;
	json_auto_t *o = NULL;
	json_t *disks = json_array();
	size_t n = 0;
	int r = file_load_no_link(from, MAX_JSON, &text, &n, err);

	for (enum template_disk i = 0; r == 0 && i < TEMPLATE_N_DISKS; i++)
		r = copy_top(id, seq, i, disks, err);
	o = r < 0 ? NULL : json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	if (r == 0 && !json_is_object(o))
		r = err_set(err, -EBADMSG, "%s is damaged", from);
	json_object_set(o, "disks", disks);
	json_decref(disks);
	out = r < 0 ? NULL : json_dumps(o, JSON_COMPACT);
	return out ? file_save(to, slice_from_str(out), err) : r;
}

static int link_files(const char *id, uint64_t seq, const char *dir, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(linked); i++) {
		AUTO_FREE char *from = path_of(id, seq, linked[i]),
			       *to = xasprintf("%s/%s", dir, linked[i]);

		/* A sandbox without a CA has no file of it. */
		if (linkat(AT_FDCWD, from, AT_FDCWD, to, 0) < 0 &&
			(errno != ENOENT || strcmp(linked[i], "ca") != 0))
			return err_errno(err, -errno, "cannot link %s", from);
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
	int r;

	kept_remove(id);
	if (mkdir(new, 0700) < 0)
		return err_errno(err, -errno, "cannot create %s", new);
	r = link_files(id, seq, new, err);
	if (r == 0)
		r = write_json(id, seq, new, err);
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

static void remove_one(const char *id, uint64_t seq)
{
	static const char *const names[] = {
		"image.json", "state", "memory", "memory.sums", "ca", "root.qcow2", "docker.qcow2"};
	AUTO_FREE char *dir = path_of(id, seq, "");

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = path_of(id, seq, names[i]);

		(void)unlink(path);
	}
	if (rmdir(dir) < 0)
		log_warn("cannot remove %s: %s", dir, strerror(errno));
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
			remove_one(id, seq);
	}
}
