/* SPDX-License-Identifier: Apache-2.0 */
#include "template.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "lib/base/fs/dir.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "template_internal.h"

#define DRAFT_PREFIX ".new."
#define DRAFT_TRIES 1000

/* ---- begin ---- */

static bool is_left_over(const char *name)
{
	char pid[16];
	uint64_t n;

	if (!str_starts(name, DRAFT_PREFIX))
		return false;
	name += strlen(DRAFT_PREFIX);
	(void)snprintf(pid, sizeof(pid), "%.*s", (int)strcspn(name, "."), name);
	return str_to_u64(pid, 1, INT32_MAX, &n) == 0 && kill((pid_t)n, 0) < 0 && errno == ESRCH;
}

/* Of a process that has exited. */
static void remove_left_overs(void)
{
	AUTO_FREE char *store = template_store(NULL);
	AUTO_DIR DIR *d = opendir(store);
	struct dirent *e;

	while ((e = dir_next(d))) {
		AUTO_FREE char *path = NULL;

		if (!is_left_over(e->d_name))
			continue;
		path = template_store(e->d_name);
		(void)!template_remove(path, NULL);
	}
}

int template_draft_begin(struct template_draft *ret, struct err *err)
{
	int r = template_make_store(err);

	if (r < 0)
		return r;
	remove_left_overs();
	for (unsigned i = 0; i < DRAFT_TRIES; i++) {
		AUTO_FREE char *name = xasprintf(DRAFT_PREFIX "%d.%u", (int)getpid(), i);
		AUTO_FREE char *path = template_store(name);

		if (mkdir(path, 0700) == 0) {
			*ret = (struct template_draft){.dir = TAKE(path), .known = json_object()};
			return 0;
		}
		if (errno != EEXIST)
			return err_errno(err, -errno, "cannot create %s", path);
	}
	return err_set(err, -EBUSY, "too many unfinished templates");
}

void template_draft_done(struct template_draft *d)
{
	if (d->dir)
		(void)!template_remove(d->dir, NULL);
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++)
		template_chain_done(&d->disks[i]);
	free(d->dir);
	json_decref(d->known);
	*d = (struct template_draft){0};
}

/* ---- filling ---- */

/* Its hash need not be made again as long as the file looks the same. */
static void remember_draft(struct template_draft *d, const char *name, const json_t *files)
{
	AUTO_FREE char *path = xasprintf("%s/%s", d->dir, name);
	const char *hash = json_string_value(json_object_get(json_object_get(files, name), "hash"));
	struct stat st;

	if (hash && lstat(path, &st) == 0)
		template_stamp_set(d->known, name, &st, hash);
}

static int add_file(struct template_draft *d, const char *from, const char *name, struct err *err)
{
	AUTO_FREE char *to = xasprintf("%s/%s", d->dir, name);

	return template_link(from, to, err);
}

/* The next place of the chain of a disk. */
static int note_layer(struct template_draft *d, enum template_disk disk, struct err *err)
{
	struct template_chain *c = &d->disks[disk];
	const char *stem = template_disk_name(disk);

	if (c->n == TEMPLATE_MAX_LAYERS)
		return err_set(err, -EMLINK,
			"disk %s already has the maximum of %d layers: merge them with `sbx template save --flat`",
			stem, TEMPLATE_MAX_LAYERS);
	c->files[c->n] = c->n == 0 ? xasprintf("%s/%s.img", d->dir, stem)
				   : xasprintf("%s/%s.%zu.qcow2", d->dir, stem, c->n);
	c->n++;
	return 0;
}

int template_draft_add_template(
	struct template_draft *d, const struct template *from, struct err *err)
{
	const json_t *files = json_object_get(from->manifest, "files");
	const char *name;
	json_t *file;
	int r = 0;

	json_object_foreach ((json_t *)files, name, file) {
		AUTO_FREE char *path = xasprintf("%s/%s", from->dir, name);

		r = add_file(d, path, name, err);
		if (r < 0)
			return r;
		remember_draft(d, name, files);
	}
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++)
		for (size_t k = 0; r == 0 && k < from->disks[i].n; k++)
			r = note_layer(d, (enum template_disk)i, err);
	return r;
}

/* Files of templates are read-only, which qemu cannot make them: fchmod is not in its list of
 * calls. */
static bool is_published(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && (st.st_mode & 0222) == 0;
}

int template_draft_add_layer(struct template_draft *d, enum template_disk disk, const char *path,
	bool live, struct err *err)
{
	const struct template_chain *c = &d->disks[disk];
	bool copied = live && !is_published(path);
	int r;

	if (c->n == 0)
		return err_set(err, -EINVAL, "a layer requires a base disk");
	r = note_layer(d, disk, err);
	if (r < 0)
		return r;
	r = (copied ? template_copy : template_link)(path, c->files[c->n - 1], err);
	return r < 0 ? r : template_qcow2_strip(c->files[c->n - 1], err);
}

void template_share_layer(
	const struct template *t, enum template_disk disk, size_t layer, const char *path)
{
	AUTO_FREE char *temp = xasprintf("%s.shared", path);

	if (layer >= t->disks[disk].n)
		return;
	(void)unlink(temp);
	if (link(t->disks[disk].files[layer], temp) == 0)
		(void)!rename(temp, path);
	(void)unlink(temp); /* rename leaves it when both names are one file already */
}

int template_draft_take(
	struct template_draft *d, const char *name, const char *path, struct err *err)
{
	AUTO_FREE char *to = xasprintf("%s/%s", d->dir, name);
	struct template_name what;

	if (!template_file_name(name, &what) || what.part == TEMPLATE_PART_LAYER)
		return err_set(err, -EINVAL, "%s is not a base disk, kernel or modules file", name);
	if (strcmp(to, path) != 0 && rename(path, to) < 0)
		return err_errno(err, -errno, "cannot move %s", path);
	if (what.part == TEMPLATE_PART_SMALL)
		return 0;
	/* A new base has nothing to do with the layers of the old one. */
	for (size_t i = 1; i < d->disks[what.disk].n; i++)
		(void)unlink(d->disks[what.disk].files[i]);
	template_chain_done(&d->disks[what.disk]);
	return note_layer(d, what.disk, err);
}

/* ---- publishing ---- */

struct publishing {
	struct template_draft *draft;
	json_t *files, *stamps;
	struct template_meter meter;
};

/* Read-only, and on the disk: a template that exists is complete, after a power failure too. */
static int settle_draft(const char *path, struct stat *ret, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	mode_t mode = template_file_mode(strrchr(path, '/') + 1);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s is not a regular file", path);
	if ((st.st_mode & 0777) != mode && st.st_uid == geteuid() && fchmod(fd, mode) < 0)
		return err_errno(err, -errno, "cannot change %s", path);
	if (fsync(fd) < 0 || fstat(fd, ret) < 0)
		return err_errno(err, -errno, "cannot sync %s", path);
	return 0;
}

static int publish_file(struct publishing *p, const char *path, struct err *err)
{
	const char *name = strrchr(path, '/') + 1, *known;
	char hash[TEMPLATE_HASH_HEX + 1];
	struct template_name what;
	struct stat st;
	int r = settle_draft(path, &st, err);

	if (r == 0 && template_file_name(name, &what) && what.part == TEMPLATE_PART_LAYER)
		r = template_qcow2_check(path, NULL, err);
	if (r < 0)
		return r;
	known = template_stamp_get(p->draft->known, name, &st);
	if (known)
		(void)snprintf(hash, sizeof(hash), "%s", known);
	else
		r = template_hash_file(path, (uint64_t)st.st_size, &p->meter, hash, err);
	if (r < 0)
		return r;
	template_stamp_set(p->stamps, name, &st, hash);
	return json_object_set_new(p->files, name,
		       json_pack("{s:s,s:I,s:I}", "hash", hash, "size", (json_int_t)st.st_size,
			       "disk", (json_int_t)st.st_blocks * 512)) == 0
		       ? 0
		       : -ENOMEM;
}

/* Calls fn with every file that a draft has: chains, kernel, modules. */
static int each_file(const struct template_draft *d, void *arg,
	int (*fn)(void *arg, const char *path, struct err *err), struct err *err)
{
	AUTO_FREE char *kernel = xasprintf("%s/vmlinuz", d->dir),
		       *modules = xasprintf("%s/modules.cpio", d->dir);
	int r = fn(arg, kernel, err);

	if (r == 0)
		r = fn(arg, modules, err);
	for (size_t i = 0; i < TEMPLATE_N_DISKS; i++)
		for (size_t k = 0; r == 0 && k < d->disks[i].n; k++)
			r = fn(arg, d->disks[i].files[k], err);
	return r;
}

static int count_bytes(void *arg, const char *path, struct err *err)
{
	struct publishing *p = arg;
	const char *name = strrchr(path, '/') + 1;
	struct stat st;

	if (lstat(path, &st) < 0)
		return err_errno(err, -errno, "cannot access %s", path);
	if (!template_stamp_get(p->draft->known, name, &st))
		p->meter.total += (uint64_t)st.st_blocks * 512;
	return 0;
}

static int publish_one(void *arg, const char *path, struct err *err)
{
	return publish_file(arg, path, err);
}

static char *now_text(void)
{
	char buf[32];
	time_t now = time(NULL);
	struct tm tm;

	(void)strftime(buf, sizeof(buf), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	return xstrdup(buf);
}

static json_t *make_manifest(const char *id, const char *name, const json_t *facts, json_t *files)
{
	json_t *m = facts ? json_deep_copy(facts) : json_object();
	AUTO_FREE char *now = now_text();

	(void)json_object_set_new(m, "format", json_integer(TEMPLATE_FORMAT));
	(void)json_object_set_new(m, "id", json_string(id));
	(void)json_object_set_new(m, "created", json_string(now));
	if (name)
		(void)json_object_set_new(m, "name", json_string(name));
	(void)json_object_set(m, "files", files);
	return m;
}

static int write_manifest(const char *dir, const json_t *m, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/manifest.json", dir),
		       *text = json_dumps(m, JSON_INDENT(2) | JSON_SORT_KEYS);

	if (!text || strlen(text) > TEMPLATE_MAX_MANIFEST)
		return err_set(
			err, -E2BIG, "the manifest is larger than %d bytes", TEMPLATE_MAX_MANIFEST);
	return file_save(path, slice_from_str(text), err);
}

/* Is the same content in the store already? 1: yes. */
static int is_there(const char *id, const json_t *files, struct err *err)
{
	AUTO_FREE char *place = template_store(id);
	AUTO_TEMPLATE struct template old = {0};
	int r;

	if (access(place, F_OK) < 0)
		return 0;
	r = template_open(id, &old, err);
	if (r == -EUCLEAN || r == -ENOENT)
		return 0; /* rubbish, to be replaced */
	if (r < 0)
		return r;
	/* An id is 64 bits of a hash: two templates can be crafted to have the same id. */
	if (!template_same_files(json_object_get(old.manifest, "files"), files))
		return err_set(err, -EEXIST, "another template has the same id %s", id);
	return 1;
}

/* The existing entry is incomplete, or a dangling link. Open files stay valid. */
static int put_in_place(struct template_draft *d, const char *id, struct err *err)
{
	AUTO_FREE char *place = template_store(id), *store = template_store(NULL);
	int r = template_remove(place, err);

	if (r < 0)
		return r;
	if (rename(d->dir, place) < 0)
		return err_errno(err, -errno, "cannot move the template to %s", place);
	free(TAKE(d->dir));
	return template_sync_dir(store, err);
}

static int give_name(const char *name, const char *id, struct err *err)
{
	AUTO_FREE char *path = template_top(name), *top = template_top(NULL),
		       *target = xasprintf(".store/%s", id);
	int r = template_move_aside(name, err);

	if (r == 0)
		r = template_point(path, target, err);
	return r < 0 ? r : template_sync_dir(top, err);
}

static int publish_as(struct publishing *p, const char *name, const json_t *facts,
	char id[TEMPLATE_ID_LEN + 1], struct err *err)
{
	AUTO_CLOSE int lock = -1;
	json_t *m;
	int r = template_make_id(p->files, id);

	if (r == 0)
		r = template_lock(&lock, err);
	if (r == 0)
		r = is_there(id, p->files, err);
	if (r < 0)
		return r;
	if (r == 0) {
		m = make_manifest(id, name, facts, p->files);
		r = write_manifest(p->draft->dir, m, err);
		json_decref(m);
		template_stamps_write(p->draft->dir, p->stamps);
		if (r == 0)
			r = template_sync_dir(p->draft->dir, err);
		if (r == 0)
			r = put_in_place(p->draft, id, err);
	}
	return r >= 0 && name ? give_name(name, id, err) : MIN(r, 0);
}

int template_draft_publish(struct template_draft *d, const char *name, const json_t *facts,
	template_progress_fn *progress, void *arg, struct template *ret, struct err *err)
{
	struct publishing p = {.draft = d,
		.files = json_object(),
		.stamps = json_object(),
		.meter = {.fn = progress, .arg = arg, .text = "hashing the template"}};
	char id[TEMPLATE_ID_LEN + 1];
	int r = 0;

	if (name && !template_is_name(name))
		r = err_set(err, -EINVAL,
			"invalid template name '%.80s': use letters, digits, '.' and '-', at most %d, not 16 hex digits",
			name, TEMPLATE_MAX_NAME);
	if (r == 0)
		r = each_file(d, &p, count_bytes, err);
	if (r == 0)
		r = each_file(d, &p, publish_one, err);
	if (r == 0)
		r = template_check_files(p.files, true, err);
	if (r == 0)
		r = publish_as(&p, name, facts, id, err);
	json_decref(p.files);
	json_decref(p.stamps);
	return r < 0 ? r : template_open(id, ret, err);
}
