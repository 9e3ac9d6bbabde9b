/* SPDX-License-Identifier: Apache-2.0 */
#include "image_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/hex.h"
#include "lib/vm/vmm/args.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

#define COPY_BUF (1 << 18)
#define MAX_CPUINFO 65536
#define JSON_NAME "image.json"
#define DRAFT ".new"

static const char *const part_names[] = {[IMAGE_STATE] = "state",
	[IMAGE_MEMORY] = "memory",
	[IMAGE_ROOT] = "root.qcow2",
	[IMAGE_DOCKER] = "docker.qcow2"};

static char *store_path(const char *name)
{
	return paths_get(PATHS_STATE, "warm/%s", name);
}

static bool is_key(const char *s)
{
	return hex_is(s, IMAGE_KEY_LEN);
}

/* ---- the key ---- */

static int add_text(struct image_sum *sum, const char *s)
{
	/* With its end, so that two texts are never one. */
	return image_sum_add(sum, s, strlen(s) + 1);
}

/* Which file it is, without reading it. */
static int add_file(struct image_sum *sum, const char *path, struct err *err)
{
	char text[160];
	struct stat st;

	if (stat(path, &st) < 0)
		return err_errno(err, -errno, "cannot access %s", path);
	(void)snprintf(text, sizeof(text), "%lld %lld.%09ld", (long long)st.st_size,
		(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	return add_text(sum, text);
}

/* Its bytes: equal files are the same file at any path. */
static int add_content(struct image_sum *sum, const char *path, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	AUTO_FREE char *buf = xmalloc(COPY_BUF);
	ssize_t n = fd < 0 ? -errno : 1;
	int r = 0;

	while (n > 0 && r == 0) {
		n = fd_read_full(fd, buf, COPY_BUF);
		r = n > 0 ? image_sum_add(sum, buf, (size_t)n) : 0;
	}
	return n < 0 ? err_errno(err, (int)n, "cannot read %s", path) : r;
}

/* The first processor's model and abilities: under KVM the guest sees them. */
static int add_host(struct image_sum *sum)
{
	AUTO_CLOSE int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	AUTO_FREE char *text = xmalloc(MAX_CPUINFO);
	ssize_t n = fd < 0 ? 0 : fd_read_full(fd, text, MAX_CPUINFO - 1);
	char *save = NULL, *end;
	struct utsname u;
	int r = 0;

	text[n > 0 ? n : 0] = '\0';
	end = strstr(text, "\n\n");
	if (end)
		*end = '\0';
	for (char *line = strtok_r(text, "\n", &save); line && r == 0;
		line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, "model name", 10) == 0 || strncmp(line, "flags", 5) == 0 ||
			strncmp(line, "stepping", 8) == 0)
			r = add_text(sum, line);
	if (r == 0 && uname(&u) == 0)
		r = add_text(sum, u.release);
	return r;
}

/* As every machine of the class is started, whatever its descriptors and shares are. */
static int add_machine(struct image_sum *sum, const struct vmm_config *config, struct err *err)
{
	struct vmm_config c = *config;
	struct args a;
	int r;

	c.ctl_listen_fd = c.net_listen_fd = 0;
	c.share_fd = -1;
	c.incoming = true;
	/* The state of a device does not depend on the number of layers, which a merge changes. */
	for (enum vmm_disk_id i = 0; i < VMM_N_DISKS; i++) {
		c.disks[i].n = MIN(c.disks[i].n, 2);
	}
	r = args_build(&a, &c, 0, err);
	for (size_t i = 0; r == 0 && i < a.n; i++)
		r = add_text(sum, a.argv[i]);
	args_done(&a);
	return r;
}

int image_key(const struct vmm_config *config, const struct image_class *class,
	char key[IMAGE_KEY_LEN + 1], struct err *err)
{
	struct image_file file;
	struct image_sum sum;
	int r = image_sum_begin(&sum);

	if (r < 0)
		return err_errno(err, r, "cannot compute the snapshot key");
	r = add_machine(&sum, config, err);
	if (r == 0)
		r = add_text(&sum, class->template_id);
	if (r == 0 && class->disk)
		r = image_sum_add(&sum, &class->disk, sizeof(class->disk));
	if (r == 0)
		r = image_sum_add(&sum, &(uint32_t){IMAGE_FORMAT_STATE}, sizeof(uint32_t));
	if (r == 0)
		r = add_content(&sum, class->initrd, err);
	if (r == 0)
		r = add_file(&sum, ARGS_QEMU, err);
	if (r == 0)
		r = add_host(&sum);
	if (image_sum_end(&sum, &file) < 0 && r == 0)
		r = err_errno(err, -EIO, "cannot compute the snapshot key");
	if (r < 0)
		return r;
	memcpy(key, file.hash, IMAGE_KEY_LEN);
	key[IMAGE_KEY_LEN] = '\0';
	return 0;
}

/* ---- image.json ---- */

static int no_good(struct err *err, const char *what)
{
	return err_set(err, -EUCLEAN, "the snapshot is corrupt: %s", what);
}

static int read_file_entry(const json_t *j, struct image_file *ret)
{
	const json_t *size = json_object_get(j, "size"), *hash = json_object_get(j, "blake2b");
	const char *text = json_string_value(hash);

	if (!json_is_integer(size) || json_integer_value(size) <= 0 || !text ||
		!hex_is(text, IMAGE_HASH_HEX))
		return -EUCLEAN;
	ret->size = (uint64_t)json_integer_value(size);
	memcpy(ret->hash, text, sizeof(ret->hash));
	return 0;
}

static int read_entries(const json_t *j, const char *key, struct image *ret, struct err *err)
{
	const json_t *files = json_object_get(j, "files"), *version = json_object_get(j, "version");
	const char *said = json_string_value(json_object_get(j, "key"));
	const char *id = json_string_value(json_object_get(j, "template"));

	if (!json_is_integer(version) || json_integer_value(version) != IMAGE_FORMAT)
		return no_good(err, JSON_NAME " has another format");
	if (!said || strcmp(said, key) != 0)
		return no_good(err, JSON_NAME " does not match this VM");
	if (!id || strlen(id) > IMAGE_MAX_ID)
		return no_good(err, JSON_NAME " has no template");
	memcpy(ret->template_id, id, strlen(id) + 1);
	for (size_t i = 0; i < IMAGE_N_PARTS; i++)
		if (read_file_entry(json_object_get(files, part_names[i]), &ret->files[i]) < 0)
			return no_good(err, JSON_NAME " does not describe all files");
	return 0;
}

static int read_json(const char *dir, json_t **ret, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/" JSON_NAME, dir), *text = NULL;
	size_t n;
	int r = file_load(path, IMAGE_MAX_JSON, &text, &n, err);

	if (r == -EFBIG)
		return no_good(err, JSON_NAME " is too large");
	if (r < 0)
		return r;
	*ret = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(*ret))
		return 0;
	json_decref(TAKE(*ret));
	return no_good(err, JSON_NAME " cannot be read");
}

static int check_size(const struct image *image, const char *name, uint64_t size, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", image->dir, name);
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, -EUCLEAN, "the snapshot has no file %s", name);
	if ((uint64_t)st.st_size != size)
		return err_set(
			err, -EUCLEAN, "%s of the snapshot does not have its original size", name);
	return 0;
}

static int check_sizes(const struct image *image, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < IMAGE_N_PARTS; i++)
		r = check_size(image, part_names[i], image->files[i].size, err);
	return r < 0 ? r
		     : check_size(image, IMAGE_SUMS,
			       image_table_size(image->files[IMAGE_MEMORY].size), err);
}

void image_done(struct image *image)
{
	free(TAKE(image->dir));
}

int image_open(const char *key, struct image *ret, struct err *err)
{
	AUTO_IMAGE struct image image = {.dir = store_path(key)};
	json_t *j = NULL;
	int r;

	if (access(image.dir, F_OK) < 0)
		return -ENOENT;
	r = read_json(image.dir, &j, err);
	if (r == -ENOENT)
		return no_good(err, JSON_NAME " is missing");
	if (r < 0)
		return r;
	r = read_entries(j, key, &image, err);
	json_decref(j);
	if (r == 0)
		r = check_sizes(&image, err);
	if (r < 0)
		return r;
	*ret = image;
	image.dir = NULL;
	return 0;
}

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void remove_tree(const char *dir)
{
	(void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Renamed first: no process opens a partial snapshot. */
void image_remove(const char *key)
{
	AUTO_FREE char *dir = store_path(key), *gone = NULL;
	static unsigned n;

	if (!is_key(key))
		return;
	gone = paths_get(PATHS_STATE, "warm/.gone.%d.%u", (int)getpid(), n++);
	if (rename(dir, gone) == 0)
		remove_tree(gone);
}

/* Both the copy's bytes and their hash come from one reading. */
static int copy_bytes(int from, int to, struct image_file *ret)
{
	uint8_t *buf = xmalloc(COPY_BUF);
	struct image_sum sum;
	int r = image_sum_begin(&sum);
	ssize_t n = 0;

	while (r == 0 && sum.size <= IMAGE_MAX_OVERLAY && (n = read(from, buf, COPY_BUF)) > 0) {
		r = image_sum_add(&sum, buf, (size_t)n);
		if (r == 0 && to >= 0)
			r = fd_write_all(to, buf, (size_t)n);
	}
	free(buf);
	if (n < 0 && r == 0)
		r = -errno;
	if (r < 0) {
		(void)image_sum_end(&sum, NULL);
		return r;
	}
	return image_sum_end(&sum, ret);
}

int image_copy_disk(
	const struct image *image, enum image_part part, const char *to, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", image->dir, part_names[part]);
	AUTO_CLOSE int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	AUTO_CLOSE int out = -1;
	struct image_file is;
	int r;

	if (from < 0)
		return err_set(err, -EUCLEAN, "the snapshot has no file %s", part_names[part]);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return err_errno(err, -errno, "cannot create %s", to);
	r = copy_bytes(from, out, &is);
	if (r < 0)
		r = err_errno(err, r, "cannot copy %s", path);
	else if (!image_file_equal(&is, &image->files[part]))
		r = err_set(err, -EUCLEAN, "%s of the snapshot was changed after it was created",
			part_names[part]);
	if (r < 0)
		(void)unlink(to);
	return r;
}

/* ---- drafts ---- */

static int lock_store(struct err *err)
{
	AUTO_FREE char *dir = store_path(""), *path = store_path(".lock");
	int r;

	dir[strlen(dir) - 1] = '\0'; /* the slash */
	r = paths_make(dir, err);
	if (r == 0)
		r = file_lock(path, 0, err);
	return r == -EBUSY ? err_set(err, r, "another snapshot is being created") : r;
}

/* What a crash has left; the lock is ours. */
static void remove_leftovers(void)
{
	AUTO_FREE char *dir = store_path(".");
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = dir_next(d))) {
		AUTO_FREE char *path = store_path(e->d_name);

		if (strncmp(e->d_name, DRAFT, strlen(DRAFT)) == 0 ||
			strncmp(e->d_name, ".gone.", 6) == 0)
			remove_tree(path);
	}
}

int image_draft_begin(const char *key, struct image_draft *ret, struct err *err)
{
	int r;

	*ret = (struct image_draft)IMAGE_DRAFT_EMPTY;
	if (!is_key(key))
		return err_set(err, -EINVAL, "invalid snapshot key '%s'", key);
	memcpy(ret->key, key, sizeof(ret->key));
	r = lock_store(err);
	if (r < 0)
		return r;
	ret->lock_fd = r;
	remove_leftovers();
	ret->dir = store_path(DRAFT);
	return paths_make(ret->dir, err);
}

void image_draft_done(struct image_draft *d)
{
	if (d->dir)
		remove_tree(d->dir);
	free(TAKE(d->dir));
	fd_close(&d->lock_fd);
}

static int hash_disk(const char *path, struct image_file *ret, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int r = fd < 0 ? -errno : copy_bytes(fd, -1, ret);

	if (r == 0 && ret->size > IMAGE_MAX_OVERLAY)
		r = -EFBIG;
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r < 0 ? err_errno(err, r, "cannot hash %s", path) : 0;
}

static json_t *describe_image(const struct image_draft *d, const struct image_class *class,
	const struct image_file *files)
{
	json_t *list = json_object();

	for (size_t i = 0; i < IMAGE_N_PARTS; i++)
		(void)json_object_set_new(list, part_names[i],
			json_pack("{s:I,s:s}", "size", (json_int_t)files[i].size, "blake2b",
				files[i].hash));
	return json_pack("{s:i,s:s,s:s,s:o}", "version", IMAGE_FORMAT, "key", d->key, "template",
		class->template_id, "files", list);
}

/* Only what belongs into an image is left in the directory. */
static void remove_strangers(const char *dir)
{
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = dir_next(d))) {
		bool known =
			strcmp(e->d_name, JSON_NAME) == 0 || strcmp(e->d_name, IMAGE_SUMS) == 0;

		for (size_t i = 0; i < IMAGE_N_PARTS; i++)
			known = known || strcmp(e->d_name, part_names[i]) == 0;
		if (!known && e->d_type != DT_DIR)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	}
}

int image_finish(struct image_draft *d, const struct image_class *class,
	const struct image_file saved[IMAGE_N_SAVED], struct err *err)
{
	AUTO_FREE char *json = xasprintf("%s/" JSON_NAME, d->dir), *text = NULL;
	struct image_file files[IMAGE_N_PARTS] = {saved[IMAGE_STATE], saved[IMAGE_MEMORY]};
	int r = 0;

	for (enum image_part i = IMAGE_ROOT; r == 0 && i < IMAGE_N_PARTS; i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", d->dir, part_names[i]);

		r = hash_disk(path, &files[i], err);
	}
	if (r < 0)
		return r;
	remove_strangers(d->dir);
	{
		json_t *j = describe_image(d, class, files);

		text = json_dumps(j, JSON_INDENT(2) | JSON_SORT_KEYS);
		json_decref(j);
	}
	return file_save(json, slice_from_str(text), err);
}

int image_publish(struct image_draft *d, struct err *err)
{
	AUTO_FREE char *to = store_path(d->key);

	if (!d->dir)
		return err_set(err, -EALREADY, "the snapshot was already published");
	image_remove(d->key);
	if (rename(d->dir, to) < 0)
		return err_errno(err, -errno, "cannot rename %s", d->dir);
	free(TAKE(d->dir));
	return 0;
}

/* ---- unused snapshots ---- */

static bool is_needed(
	const char *key, bool (*is_there)(void *arg, const char *template_id), void *arg)
{
	AUTO_FREE char *dir = store_path(key);
	json_t *j = NULL;
	const char *id;
	bool needed;

	if (read_json(dir, &j, NULL) < 0)
		return false;
	id = json_string_value(json_object_get(j, "template"));
	needed = id && json_integer_value(json_object_get(j, "version")) == IMAGE_FORMAT &&
		 is_there(arg, id);
	json_decref(j);
	return needed;
}

void image_collect(bool (*is_there)(void *arg, const char *template_id), void *arg)
{
	AUTO_FREE char *dir = store_path(".");
	AUTO_DIR DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = dir_next(d)))
		if (is_key(e->d_name) && !is_needed(e->d_name, is_there, arg))
			image_remove(e->d_name);
}
