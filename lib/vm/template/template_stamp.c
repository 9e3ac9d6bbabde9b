/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_stamp - which files were hashed, and how they looked then.
 *
 * How      stamps.json in the template's directory (in .store/.stamps where that cannot be written)
 *          has inode, size, times and link count of each file, and its hash. A file that looks the
 *          same is taken to be the same: opening a template reads no disk. A new or lost hard link
 *          changes ctime: when the count of links differs too, and nothing else does, that is what
 *          happened.
 * Trust    The user's own. Who can write it can write the manifest.
 * Never    Part of the id or of an exported file.
 */
#include "template_internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

/* For a directory that sbx cannot write; NULL if it cannot be read. */
static char *path_beside(const char *dir)
{
	AUTO_FREE char *name = NULL;
	struct stat st;

	if (stat(dir, &st) < 0)
		return NULL;
	name = xasprintf(".stamps/%llx-%llx.json", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	return template_store(name);
}

static json_t *read_one(const char *path)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	json_t *j = NULL;

	if (path && file_load(path, TEMPLATE_MAX_MANIFEST, &text, &n, NULL) == 0)
		j = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(j)) {
		json_decref(j);
		j = NULL;
	}
	return j;
}

/* The separate file exists only if the directory could not be written, so it is newer. */
json_t *template_stamps_read(const char *dir)
{
	AUTO_FREE char *own = xasprintf("%s/stamps.json", dir), *beside = path_beside(dir);
	json_t *j = read_one(beside);

	if (!j)
		j = read_one(own);
	return j ? j : json_object();
}

/* What cannot be remembered is hashed again the next time. */
void template_stamps_write(const char *dir, const json_t *stamps)
{
	AUTO_FREE char *own = xasprintf("%s/stamps.json", dir), *beside = path_beside(dir),
		       *folder = template_store(".stamps");
	AUTO_FREE char *text = json_dumps(stamps, JSON_COMPACT | JSON_SORT_KEYS);

	if (!text || file_save(own, slice_from_str(text), NULL) == 0 || !beside)
		return;
	if (paths_make(folder, NULL) == 0)
		(void)!file_save(beside, slice_from_str(text), NULL);
}

static json_int_t ns_stamp(struct timespec t)
{
	return (json_int_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void template_stamp_set(json_t *stamps, const char *name, const struct stat *st, const char *hash)
{
	(void)json_object_set_new(stamps, name,
		json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:s}", "dev", (json_int_t)st->st_dev, "ino",
			(json_int_t)st->st_ino, "size", (json_int_t)st->st_size, "mtime",
			ns_stamp(st->st_mtim), "ctime", ns_stamp(st->st_ctim), "links",
			(json_int_t)st->st_nlink, "sum", hash));
}

static bool same_stamp(const json_t *stamp, const char *field, json_int_t is)
{
	const json_t *v = json_object_get(stamp, field);

	return json_is_integer(v) && json_integer_value(v) == is;
}

const char *template_stamp_sum(const json_t *stamps, const char *name)
{
	return json_string_value(json_object_get(json_object_get(stamps, name), "sum"));
}

/* A sandbox made it, so its links say nothing. A base is large and got its links from us. */
static bool is_layer(const char *name)
{
	struct template_name what;

	return template_file_name(name, &what) && what.part == TEMPLATE_PART_LAYER;
}

const char *template_stamp_get(const json_t *stamps, const char *name, const struct stat *st)
{
	const json_t *s = json_object_get(stamps, name);

	if (!same_stamp(s, "dev", (json_int_t)st->st_dev) ||
		!same_stamp(s, "ino", (json_int_t)st->st_ino) ||
		!same_stamp(s, "size", st->st_size) ||
		!same_stamp(s, "mtime", ns_stamp(st->st_mtim)))
		return NULL;
	if (!same_stamp(s, "ctime", ns_stamp(st->st_ctim)) &&
		(is_layer(name) || same_stamp(s, "links", (json_int_t)st->st_nlink)))
		return NULL;
	return template_stamp_sum(stamps, name);
}
