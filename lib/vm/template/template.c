/* SPDX-License-Identifier: Apache-2.0 */
#include "template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "template_internal.h"

/* The directory of a name or an id. */
static int find_dir(const char *ref, char **ret, struct err *err)
{
	AUTO_FREE char *path = NULL, *dir = NULL;

	if (template_is_id(ref))
		path = template_store(ref);
	else if (template_is_name(ref))
		path = template_top(ref);
	else
		return err_set(err, -EINVAL, "invalid template name '%.80s'", ref);
	dir = realpath(path, NULL);
	if (!dir)
		return err_set(err, -ENOENT, "template '%s' not found", ref);
	*ret = TAKE(dir);
	return 0;
}

static int not_whole(const char *ref, const char *name, const char *what, struct err *err)
{
	return err_set(err, -EUCLEAN,
		"%s of template '%s' %s: the template cannot be used. Remove it with `sbx template rm %s`, then run `sbx template build` or `sbx template load FILE`",
		name, ref, what, ref);
}

/* What checking one template needs. */
struct checking {
	const char *ref, *dir;
	json_t *files;	/* of the manifest; hashes that were missing are put in */
	json_t *stamps; /* replaced where they were old */
	bool all;	/* hash, whatever the stamps say */
	bool changed;	/* stamps are to be written */
	struct template_meter meter;
};

/* The hash it has to have: the manifest's. A recipe of old wrote none, then the one that was seen
 * first. */
static const char *wanted_hash(const struct checking *c, const char *name)
{
	const char *h = json_string_value(json_object_get(json_object_get(c->files, name), "hash"));

	return h ? h : template_stamp_sum(c->stamps, name);
}

static int check_content(
	struct checking *c, const char *name, const char *path, struct stat *st, struct err *err)
{
	const char *want = wanted_hash(c, name), *seen = template_stamp_get(c->stamps, name, st);
	char hash[TEMPLATE_HASH_HEX + 1];
	int r;

	if (!c->all && seen && want && strcmp(seen, want) == 0)
		return 0;
	r = template_hash_file(path, (uint64_t)st->st_size, &c->meter, hash, err);
	if (r < 0)
		return r;
	if (want && strcmp(hash, want) != 0)
		return not_whole(c->ref, name, "was changed after it was created", err);
	template_stamp_set(c->stamps, name, st, hash);
	c->changed = true;
	return 0;
}

static int check_file(struct checking *c, const char *name, json_t *file, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", c->dir, name);
	struct template_name what;
	struct stat st;
	int r;

	if (lstat(path, &st) < 0)
		return not_whole(c->ref, name, "is missing", err);
	if (!S_ISREG(st.st_mode))
		return not_whole(c->ref, name, "is not a regular file", err);
	if (st.st_size != json_integer_value(json_object_get(file, "size")))
		return not_whole(c->ref, name, "does not have its original size", err);
	r = check_content(c, name, path, &st, err);
	if (r == 0 && template_file_name(name, &what) && what.part == TEMPLATE_PART_LAYER)
		r = template_qcow2_check(path, NULL, err);
	if (r == 0 && !json_object_get(file, "hash"))
		(void)json_object_set_new(
			file, "hash", json_string(template_stamp_get(c->stamps, name, &st)));
	return r;
}

uint64_t template_bytes_of(const char *dir, const json_t *files)
{
	const char *name;
	uint64_t sum = 0;
	json_t *file;

	json_object_foreach ((json_t *)files, name, file) {
		AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
		struct stat st;

		if (stat(path, &st) == 0)
			sum += (uint64_t)st.st_blocks * 512;
	}
	return sum;
}

static int check_all(struct checking *c, struct err *err)
{
	const char *name;
	json_t *file;
	int r = 0;

	c->stamps = template_stamps_read(c->dir);
	c->meter.total = template_bytes_of(c->dir, c->files);
	json_object_foreach (c->files, name, file) {
		r = check_file(c, name, file, err);
		if (r < 0)
			break;
	}
	if (c->changed)
		template_stamps_write(c->dir, c->stamps);
	json_decref(c->stamps);
	return r;
}

static int check_id(
	const char *ref, json_t *manifest, char id[TEMPLATE_ID_LEN + 1], struct err *err)
{
	const char *said = json_string_value(json_object_get(manifest, "id"));
	int r = template_make_id(json_object_get(manifest, "files"), id);

	if (r < 0)
		return err_errno(err, r, "cannot compute the id of template '%s'", ref);
	if ((said && strcmp(said, id) != 0) || (template_is_id(ref) && strcmp(ref, id) != 0))
		return not_whole(
			ref, "manifest.json", "does not match the id of the template", err);
	(void)json_object_set_new(manifest, "id", json_string(id));
	return 0;
}

/* A directory elsewhere is found by its id too, even if the name was removed. */
static void remember_place(const struct template *t)
{
	AUTO_FREE char *path = template_store(t->id);

	if (access(path, F_OK) == 0 || template_make_store(NULL) < 0)
		return;
	(void)!template_point(path, t->dir, NULL);
}

static int open_checked(const char *ref, bool all, template_progress_fn *progress, void *arg,
	struct template *ret, struct err *err)
{
	AUTO_FREE char *dir = NULL;
	AUTO_TEMPLATE struct template t = {0};
	struct checking c = {.ref = ref, .all = all};
	int r = find_dir(ref, &dir, err);

	if (r < 0)
		return r;
	r = template_manifest_read(dir, &t.manifest, err);
	if (r == -ENOENT)
		return err_set(err, -ENOENT, "template '%s' not found", ref);
	if (r < 0)
		return r;
	c.dir = dir;
	c.files = json_object_get(t.manifest, "files");
	c.meter = (struct template_meter){
		.fn = progress, .arg = arg, .text = "checking the template"};
	r = check_all(&c, err);
	if (r == 0)
		r = check_id(ref, t.manifest, t.id, err);
	if (r < 0)
		return r;
	template_fill(&t, dir, c.files);
	remember_place(&t);
	*ret = t;
	t = (struct template){0};
	return 0;
}

int template_open(const char *ref, struct template *ret, struct err *err)
{
	return open_checked(ref, false, NULL, NULL, ret, err);
}

int template_open_shown(const char *ref, template_progress_fn *progress, void *arg,
	struct template *ret, struct err *err)
{
	return open_checked(ref, false, progress, arg, ret, err);
}

int template_verify(const char *ref, template_progress_fn *progress, void *arg, struct err *err)
{
	AUTO_TEMPLATE struct template t = {0};

	return open_checked(ref, true, progress, arg, &t, err);
}

/* ---- the names ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_entry(const struct dirent *e)
{
	return template_is_name(e->d_name);
}

/* What the files take on the disk, and how much of it other templates and sandboxes have too. */
static void add_sizes(json_t *m, const char *dir)
{
	json_int_t size = 0, shared = 0;
	const char *name;
	json_t *file;

	json_object_foreach (json_object_get(m, "files"), name, file) {
		AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
		struct stat st;

		if (lstat(path, &st) < 0)
			continue;
		size += (json_int_t)st.st_blocks * 512;
		shared += st.st_nlink > 1 ? (json_int_t)st.st_blocks * 512 : 0;
	}
	(void)json_object_set_new(m, "size", json_integer(size));
	(void)json_object_set_new(m, "shared", json_integer(shared));
}

/* A directory of an older recipe has its hashes in the stamps, once it was opened. */
static void add_id(json_t *m, const char *dir)
{
	json_t *stamps, *file, *files = json_object_get(m, "files");
	char id[TEMPLATE_ID_LEN + 1];
	const char *name;

	if (json_object_get(m, "id"))
		return;
	stamps = template_stamps_read(dir);
	json_object_foreach (files, name, file) {
		const char *hash = template_stamp_sum(stamps, name);

		if (hash && !json_object_get(file, "hash"))
			(void)json_object_set_new(file, "hash", json_string(hash));
	}
	json_decref(stamps);
	if (template_make_id(files, id) == 0)
		(void)json_object_set_new(m, "id", json_string(id));
}

int template_resolve(const char *ref, char ret_id[TEMPLATE_ID_LEN + 1], struct err *err)
{
	AUTO_FREE char *dir = NULL;
	json_t *m = NULL;
	int r = find_dir(ref, &dir, err);

	if (r == 0)
		r = template_manifest_read(dir, &m, err);
	if (r == -ENOENT)
		return err_set(err, r, "template '%s' not found", ref);
	if (r < 0)
		return r;
	add_id(m, dir);
	r = template_make_id(json_object_get(m, "files"), ret_id);
	json_decref(m);
	return r < 0 ? err_set(err, r,
			       "template '%s' has no hashes yet: run `sbx template verify %s`", ref,
			       ref)
		     : 0;
}

bool template_exists(const char *id)
{
	AUTO_FREE char *dir = NULL;
	json_t *m = NULL;
	bool exists = find_dir(id, &dir, NULL) == 0 && template_manifest_read(dir, &m, NULL) == 0;

	json_decref(m);
	return exists;
}

static json_t *describe_template(const char *name)
{
	AUTO_FREE char *path = template_top(name), *dir = realpath(path, NULL);
	struct err err = {0};
	json_t *m = NULL;
	int r;

	if (!dir)
		return json_pack("{s:s,s:s}", "name", name, "broken",
			"the directory of the template is missing");
	r = template_manifest_read(dir, &m, &err);
	if (r == -ENOENT)
		return NULL;
	if (r < 0)
		return json_pack("{s:s,s:s}", "name", name, "broken", err_text(&err, r));
	(void)json_object_set_new(m, "name", json_string(name));
	(void)json_object_set_new(m, "dir", json_string(dir));
	add_sizes(m, dir);
	add_id(m, dir);
	return m;
}

json_t *template_list(void)
{
	AUTO_FREE char *top = template_top(NULL);
	struct dirent **found = NULL;
	json_t *list = json_array();
	int n = scandir(top, &found, is_entry, by_name);

	for (int i = 0; i < n; i++) {
		json_t *one = describe_template(found[i]->d_name);

		if (one)
			(void)json_array_append_new(list, one);
		free(found[i]);
	}
	free(found);
	return list;
}

/* A directory of the user in place of a link, from a version without the store. It is moved into
 * the store, where the sandboxes that are based on it find it. */
int template_move_aside(const char *name, struct err *err)
{
	AUTO_FREE char *path = template_top(name), *place = NULL;
	AUTO_TEMPLATE struct template t = {0};
	int r;

	if (!template_is_real_dir(path))
		return 0;
	r = template_open(name, &t, err);
	if (r == -EUCLEAN)
		return template_remove(path, err);
	if (r < 0)
		return r;
	place = template_store(t.id);
	if (!template_is_real_dir(place))
		(void)unlink(place);
	if (rename(path, place) == 0)
		return 0;
	if (errno == EEXIST || errno == ENOTEMPTY)
		return template_remove(path, err);
	return err_errno(err, -errno, "cannot move %s to the store", path);
}

int template_untag(const char *name, struct err *err)
{
	AUTO_FREE char *path = NULL, *top = template_top(NULL);
	AUTO_CLOSE int lock = -1;
	struct stat st;
	int r;

	if (!template_is_name(name))
		return err_set(err, -EINVAL, "invalid template name '%.80s'", name);
	path = template_top(name);
	if (lstat(path, &st) < 0)
		return err_set(err, -ENOENT, "template '%s' not found", name);
	r = template_lock(&lock, err);
	if (r == 0 && S_ISDIR(st.st_mode))
		return template_move_aside(name, err);
	if (r == 0 && unlink(path) < 0)
		r = err_errno(err, -errno, "cannot remove %s", path);
	return r < 0 ? r : template_sync_dir(top, err);
}

/* ---- unused templates ---- */

static bool is_kept(const char *id, const char *const *keep, size_t n, const json_t *named)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(keep[i], id) == 0)
			return true;
	return json_object_get(named, id) != NULL;
}

/* {id: true} of every name that points into the store. */
static json_t *named_ids(void)
{
	json_t *list = template_list(), *ids = json_object(), *one;
	size_t i;

	json_array_foreach (list, i, one) {
		const char *name = json_string_value(json_object_get(one, "name"));
		AUTO_FREE char *path = template_top(name), *dir = realpath(path, NULL);
		const char *id = json_string_value(json_object_get(one, "id")),
			   *last = dir ? strrchr(dir, '/') : NULL;

		/* A name keeps its target even if the manifest cannot be read. */
		if (last && template_is_id(last + 1))
			(void)json_object_set_new(ids, last + 1, json_true());
		if (id)
			(void)json_object_set_new(ids, id, json_true());
	}
	json_decref(list);
	return ids;
}

int template_collect(const char *const *keep, size_t n, struct err *err)
{
	AUTO_FREE char *store = template_store(NULL);
	AUTO_CLOSE int lock = -1;
	json_t *named;
	struct dirent *e;
	int r, first = 0;
	AUTO_DIR DIR *d = NULL;

	if (access(store, F_OK) < 0)
		return 0;
	r = template_lock(&lock, err);
	if (r < 0)
		return r;
	d = opendir(store);
	if (!d)
		return err_errno(err, -errno, "cannot open %s", store);
	named = named_ids();
	while ((e = dir_next(d))) {
		AUTO_FREE char *path = NULL;

		if (!template_is_id(e->d_name) || is_kept(e->d_name, keep, n, named))
			continue;
		path = template_store(e->d_name);
		r = template_remove(path, first == 0 ? err : NULL);
		first = first == 0 ? r : first;
	}
	json_decref(named);
	return first;
}
