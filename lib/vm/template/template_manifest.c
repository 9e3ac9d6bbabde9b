/* SPDX-License-Identifier: Apache-2.0 */
#include "template_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/fs/file.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static const char *const disk_names[] = {
	[TEMPLATE_ROOT] = "root",
	[TEMPLATE_DOCKER] = "docker",
};

_Static_assert(ARRAY_LEN(disk_names) == TEMPLATE_N_DISKS, "one name per disk");

const char *template_disk_name(enum template_disk disk)
{
	return disk_names[disk];
}

/* What follows "root." or "docker.": img, or a number without leading zeros and .qcow2. */
static bool parse_part(const char *s, struct template_name *ret)
{
	size_t n = strcspn(s, ".");
	char digits[4];
	uint64_t layer;

	if (strcmp(s, "img") == 0) {
		ret->part = TEMPLATE_PART_BASE;
		return true;
	}
	if (strcmp(s + n, ".qcow2") != 0 || n >= sizeof(digits) || s[0] == '0')
		return false;
	memcpy(digits, s, n);
	digits[n] = '\0';
	if (str_to_u64(digits, 1, TEMPLATE_MAX_LAYERS - 1, &layer) < 0)
		return false;
	ret->part = TEMPLATE_PART_LAYER;
	ret->layer = (unsigned)layer;
	return true;
}

bool template_file_name(const char *s, struct template_name *ret)
{
	*ret = (struct template_name){.part = TEMPLATE_PART_SMALL};
	if (strcmp(s, "vmlinuz") == 0 || strcmp(s, "modules.cpio") == 0)
		return true;
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++) {
		size_t n = strlen(disk_names[i]);

		if (strncmp(s, disk_names[i], n) != 0 || s[n] != '.')
			continue;
		ret->disk = (enum template_disk)i;
		return parse_part(s + n + 1, ret);
	}
	return false;
}

mode_t template_file_mode(const char *name)
{
	struct template_name what;

	return template_file_name(name, &what) && what.part == TEMPLATE_PART_LAYER ? 0400 : 0444;
}

static bool is_hash(const json_t *j)
{
	const char *s = json_string_value(j);

	return s && hex_is(s, TEMPLATE_HASH_HEX);
}

static int check_file(const char *name, const json_t *file, bool need_hash, struct err *err)
{
	const json_t *size = json_object_get(file, "size"), *hash = json_object_get(file, "hash");
	struct template_name what;
	json_int_t n;

	if (!template_file_name(name, &what))
		return err_set(err, -EUCLEAN, "invalid name '%.40s' of a template file", name);
	n = json_integer_value(size);
	if (!json_is_integer(size) || n <= 0 ||
		(uint64_t)n >
			(what.part == TEMPLATE_PART_SMALL ? TEMPLATE_MAX_SMALL : TEMPLATE_MAX_DISK))
		return err_set(err, -EUCLEAN, "the size of %s is missing or out of range", name);
	if (hash ? !is_hash(hash) : need_hash)
		return err_set(err, -EUCLEAN, "the hash of %s is missing or malformed", name);
	return 0;
}

/* A base and layers without a gap. Few names, so looking for each is enough. */
static int check_chain(const json_t *files, enum template_disk disk, struct err *err)
{
	size_t found = 0, below = 0;
	bool base = false;
	const char *name;
	json_t *file;
	struct template_name what;

	json_object_foreach ((json_t *)files, name, file) {
		if (!template_file_name(name, &what) || what.part == TEMPLATE_PART_SMALL ||
			what.disk != disk)
			continue;
		base = base || what.part == TEMPLATE_PART_BASE;
		found += what.part == TEMPLATE_PART_LAYER;
		below = MAX(below, what.layer);
	}
	if (!base || found != below)
		return err_set(
			err, -EUCLEAN, "a layer of disk %s is missing", template_disk_name(disk));
	return 0;
}

int template_check_files(const json_t *files, bool need_hashes, struct err *err)
{
	const char *name;
	json_t *file;
	int r = 0;

	if (!json_is_object(files) || json_object_size(files) > TEMPLATE_MAX_FILES)
		return err_set(err, -EUCLEAN, "the list of files is missing or too long");
	json_object_foreach ((json_t *)files, name, file) {
		r = check_file(name, file, need_hashes, err);
		if (r < 0)
			return r;
	}
	if (!json_object_get(files, "vmlinuz") || !json_object_get(files, "modules.cpio"))
		return err_set(err, -EUCLEAN, "the kernel or its modules are missing");
	for (size_t i = 0; r == 0 && i < TEMPLATE_N_DISKS; i++)
		r = check_chain(files, (enum template_disk)i, err);
	return r;
}

/* One of template-build has none. */
static int check_format(const json_t *m, struct err *err)
{
	const json_t *format = json_object_get(m, "format");

	if (!format || json_integer_value(format) == TEMPLATE_FORMAT)
		return 0;
	return err_set(err, -EUCLEAN,
		"the template was created by another version of sbx: remove it and build or save it again");
}

int template_manifest_read(const char *dir, json_t **ret, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/manifest.json", dir), *text = NULL;
	size_t n = 0;
	json_t *m;
	int r = file_load(path, TEMPLATE_MAX_MANIFEST, &text, &n, err);

	if (r < 0)
		return r;
	m = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	r = json_is_object(m) ? check_format(m, err)
			      : err_set(err, -EUCLEAN, "the manifest is not a JSON object");
	if (r == 0)
		r = template_check_files(json_object_get(m, "files"), false, err);
	if (r < 0) {
		json_decref(m);
		return err_wrap(err, r, "cannot read %s", path);
	}
	*ret = m;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t template_sorted(const json_t *files, const char *ret[TEMPLATE_MAX_FILES])
{
	const char *name;
	json_t *file;
	size_t n = 0;

	json_object_foreach ((json_t *)files, name, file)
		if (n < TEMPLATE_MAX_FILES)
			ret[n++] = name;
	qsort(ret, n, sizeof(ret[0]), by_name);
	return n;
}

int template_make_id(const json_t *files, char ret[TEMPLATE_ID_LEN + 1])
{
	const char *names[TEMPLATE_MAX_FILES];
	char hex[TEMPLATE_HASH_HEX + 1];
	struct template_hash h;
	size_t n = template_sorted(files, names);

	for (size_t i = 0; i < n; i++)
		if (!json_object_get(json_object_get(files, names[i]), "hash"))
			return -ENODATA;
	template_hash_begin(&h, n);
	for (size_t i = 0; i < n; i++) {
		const json_t *f = json_object_get(files, names[i]);
		AUTO_FREE char *line = xasprintf("%s %lld %s\n", names[i],
			(long long)json_integer_value(json_object_get(f, "size")),
			json_string_value(json_object_get(f, "hash")));

		template_hash_block(&h, i, slice_from_str(line));
	}
	template_hash_end(&h, hex);
	memcpy(ret, hex, TEMPLATE_ID_LEN);
	ret[TEMPLATE_ID_LEN] = '\0';
	return 0;
}

bool template_same_files(const json_t *a, const json_t *b)
{
	const char *name;
	json_t *file;

	if (json_object_size(a) != json_object_size(b))
		return false;
	json_object_foreach ((json_t *)a, name, file) {
		const json_t *other = json_object_get(b, name);

		if (!json_equal(json_object_get(file, "hash"), json_object_get(other, "hash")) ||
			!json_equal(json_object_get(file, "size"), json_object_get(other, "size")))
			return false;
	}
	return true;
}

void template_chain_done(struct template_chain *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->files[i]);
	*c = (struct template_chain){0};
}

static void fill_chain(
	struct template_chain *c, const char *dir, enum template_disk disk, const json_t *files)
{
	const char *stem = template_disk_name(disk);

	c->files[c->n++] = xasprintf("%s/%s.img", dir, stem);
	while (c->n < TEMPLATE_MAX_LAYERS) {
		AUTO_FREE char *name = xasprintf("%s.%zu.qcow2", stem, c->n);

		if (!json_object_get(files, name))
			return;
		c->files[c->n] = xasprintf("%s/%s", dir, name);
		c->n++;
	}
}

void template_fill(struct template *t, const char *dir, const json_t *files)
{
	t->dir = xstrdup(dir);
	t->kernel = xasprintf("%s/vmlinuz", dir);
	t->modules = xasprintf("%s/modules.cpio", dir);
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++)
		fill_chain(&t->disks[i], dir, (enum template_disk)i, files);
}

void template_done(struct template *t)
{
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++)
		template_chain_done(&t->disks[i]);
	free(t->dir);
	free(t->kernel);
	free(t->modules);
	json_decref(t->manifest);
	*t = (struct template){0};
}
