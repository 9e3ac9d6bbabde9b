/* SPDX-License-Identifier: Apache-2.0 */
#include "suspend_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

#define MAX_CA (EDGE_MAX_PEM + EDGE_MAX_SAVED + 16)
#define JSON_SPARE 128 /* bytes by which image.json may grow */

static const char *const disk_names[SUSPEND_N_DISKS] = {"root.qcow2", "docker.qcow2"};
static const char *const file_names[] = {
	"state", "memory", IMAGE_SUMS, "image.json", "ca", "by", "root.qcow2", "docker.qcow2"};

/* ---- directories ---- */

static void remove_folder(const char *dir, const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);

	for (size_t i = 0; i < ARRAY_LEN(file_names); i++) {
		AUTO_FREE char *file = xasprintf("%s/%s", path, file_names[i]);

		(void)unlink(file);
	}
	(void)rmdir(path);
}

static int sync_folder(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int rename_folder(const char *dir, const char *from, const char *to)
{
	AUTO_FREE char *a = xasprintf("%s/%s", dir, from);
	AUTO_FREE char *b = xasprintf("%s/%s", dir, to);

	remove_folder(dir, to);
	if (rename(a, b) < 0)
		return -errno;
	return sync_folder(dir);
}

bool suspend_file_is_there(const char *dir)
{
	AUTO_FREE char *path = xasprintf("%s/" SUSPEND_DIR "/image.json", dir);

	return access(path, F_OK) == 0;
}

int suspend_file_consume(const char *dir, struct err *err)
{
	int r = rename_folder(dir, SUSPEND_DIR, SUSPEND_USED);

	return r < 0 ? err_errno(err, r, "cannot remove the snapshot") : 0;
}

/* Not rename_folder: it would remove a directory that was never renamed. */
void suspend_file_put_back(const char *dir)
{
	AUTO_FREE char *used = xasprintf("%s/" SUSPEND_USED, dir);
	AUTO_FREE char *path = xasprintf("%s/" SUSPEND_DIR, dir);

	if (rename(used, path) == 0)
		(void)!sync_folder(dir);
}

void suspend_file_refuse(const char *dir)
{
	if (rename_folder(dir, SUSPEND_DIR, SUSPEND_BAD) < 0)
		remove_folder(dir, SUSPEND_DIR);
}

void suspend_file_tidy(const char *dir)
{
	remove_folder(dir, SUSPEND_NEW);
	remove_folder(dir, SUSPEND_USED);
}

void suspend_file_remove(const char *dir)
{
	remove_folder(dir, SUSPEND_DIR);
	remove_folder(dir, SUSPEND_BAD);
	suspend_file_tidy(dir);
}

int suspend_file_begin(const char *dir, char **ret_new, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/" SUSPEND_NEW, dir);

	remove_folder(dir, SUSPEND_NEW);
	if (mkdir(path, 0700) < 0)
		return err_errno(err, -errno, "cannot create %s", path);
	*ret_new = TAKE(path);
	return 0;
}

/* ---- image.json ---- */

static int stamp_of(const char *dir, const char *name, struct suspend_stamp *ret, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	struct stat st;

	if (stat(path, &st) < 0)
		return err_errno(err, -errno, "cannot read the attributes of %s", path);
	*ret = (struct suspend_stamp){.size = (uint64_t)st.st_size,
		.mtime_ns =
			(uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec};
	return 0;
}

int suspend_file_stamp(const char *dir, struct suspend_file *f, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < SUSPEND_N_DISKS; i++)
		r = stamp_of(dir, disk_names[i], &f->disks[i], err);
	return r;
}

static void hash_hex(struct slice s, char hex[IMAGE_HASH_HEX + 1])
{
	uint8_t sum[SHA256_DIGEST_LENGTH];

	(void)SHA256(s.p, s.n, sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

static json_t *file_to_json(const struct image_file *f)
{
	return json_pack("{s:I,s:s}", "size", (json_int_t)f->size, "blake2b", f->hash);
}

static char *to_text(const struct suspend_file *f)
{
	json_t *disks = json_array(), *o;
	char *text;

	for (size_t i = 0; i < SUSPEND_N_DISKS; i++)
		(void)json_array_append_new(
			disks, json_pack("{s:s,s:I,s:I}", "name", disk_names[i], "size",
				       (json_int_t)f->disks[i].size, "mtime_ns",
				       (json_int_t)f->disks[i].mtime_ns));
	o = json_pack("{s:i,s:s,s:I,s:o,s:o,s:o,s:s}", "version", IMAGE_FORMAT, "key", f->key,
		"at_ms", (json_int_t)f->at_ms, "state", file_to_json(&f->saved[IMAGE_STATE]),
		"memory", file_to_json(&f->saved[IMAGE_MEMORY]), "disks", disks, "ca", f->ca_hash);
	text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return text;
}

static int save_ca(
	const char *dir, const struct edge_ca *ca, char hash[IMAGE_HASH_HEX + 1], struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/ca", dir);
	uint8_t buf[MAX_CA];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r;

	wr_cstr(&wr, ca->pem);
	wr_str(&wr, slice_of(ca->saved, ca->n_saved));
	r = wr_finish(&wr);
	if (r == 0) {
		hash_hex(slice_of(buf, wr.n), hash);
		r = file_save(path, slice_of(buf, wr.n), err);
	}
	explicit_bzero(buf, sizeof(buf));
	return r;
}

int suspend_file_prepare(const char *dir, struct suspend_file *f, struct err *err)
{
	AUTO_FREE char *folder = xasprintf("%s/" SUSPEND_NEW, dir);
	AUTO_FREE char *path = xasprintf("%s/image.json", folder), *by = xasprintf("%s/by", folder);
	AUTO_FREE char *text = NULL, *padded = NULL;
	int r = 0;

	f->ca_hash[0] = '\0';
	if (f->by)
		r = file_save(by, slice_from_str(f->by), err);
	if (r == 0 && f->has_ca)
		r = save_ca(folder, &f->ca, f->ca_hash, err);
	if (r < 0)
		return r;
	text = to_text(f);
	if (!text)
		return err_set(err, -EINVAL, "cannot write image.json");
	padded = xasprintf("%s%*s", text, JSON_SPARE, "");
	return file_save(path, slice_from_str(padded), err);
}

/* Overwrites existing bytes: needs no disk space. */
static int write_over(const char *path, struct slice s, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : pwrite(fd, s.p, s.n, 0);

	if (n >= 0 && (size_t)n < s.n)
		return err_errno(err, -ENOSPC, "cannot write %s", path);
	if (n < 0 || ftruncate(fd, (off_t)s.n) < 0 || fsync(fd) < 0)
		return err_errno(err, -errno, "cannot write %s", path);
	return 0;
}

int suspend_file_publish(const char *dir, const struct suspend_file *f, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/" SUSPEND_NEW "/image.json", dir);
	AUTO_FREE char *text = to_text(f);
	int r;

	if (!text)
		return err_set(err, -EINVAL, "cannot write image.json");
	r = write_over(path, slice_from_str(text), err);
	if (r < 0)
		return r;
	r = rename_folder(dir, SUSPEND_NEW, SUSPEND_DIR);
	return r < 0 ? err_errno(err, r, "cannot store the snapshot") : 0;
}

int suspend_file_keep(const char *dir, uint64_t seq, struct err *err)
{
	AUTO_FREE char *name = xasprintf(SUSPEND_MEMORY "%llu", (unsigned long long)seq);
	AUTO_FREE char *path = xasprintf("%s/" SUSPEND_NEW, dir);
	int r = sync_folder(path);

	if (r == 0)
		r = rename_folder(dir, SUSPEND_NEW, name);
	return r < 0 ? err_errno(err, r, "cannot store the memory of the checkpoint") : 0;
}

static bool is_hash(const char *s)
{
	return strlen(s) == IMAGE_HASH_HEX && strspn(s, "0123456789abcdef") == IMAGE_HASH_HEX;
}

static int read_disks(json_t *disks, struct suspend_file *ret)
{
	if (json_array_size(disks) != SUSPEND_N_DISKS)
		return -EBADMSG;
	for (size_t i = 0; i < SUSPEND_N_DISKS; i++) {
		const char *name;
		json_int_t size, mtime;

		if (json_unpack(json_array_get(disks, i), "{s:s,s:I,s:I!}", "name", &name, "size",
			    &size, "mtime_ns", &mtime) < 0 ||
			strcmp(name, disk_names[i]) != 0)
			return -EBADMSG;
		ret->disks[i] = (struct suspend_stamp){(uint64_t)size, (uint64_t)mtime};
	}
	return 0;
}

static int read_file(json_t *o, struct image_file *ret)
{
	const char *hash;
	json_int_t size;

	if (json_unpack(o, "{s:I,s:s!}", "size", &size, "blake2b", &hash) < 0 || size <= 0 ||
		!is_hash(hash))
		return -EBADMSG;
	ret->size = (uint64_t)size;
	(void)!str_copy(ret->hash, sizeof(ret->hash), hash);
	return 0;
}

static int read_json(json_t *o, struct suspend_file *ret, char ca_hash[IMAGE_HASH_HEX + 1])
{
	json_t *disks, *state, *memory;
	const char *key, *ca;
	json_int_t at;
	int version;

	if (json_unpack(o, "{s:i,s:s,s:I,s:o,s:o,s:o,s:s!}", "version", &version, "key", &key,
		    "at_ms", &at, "state", &state, "memory", &memory, "disks", &disks, "ca",
		    &ca) < 0 ||
		(ca[0] && !is_hash(ca)) || read_file(state, &ret->saved[IMAGE_STATE]) < 0 ||
		read_file(memory, &ret->saved[IMAGE_MEMORY]) < 0)
		return -EBADMSG;
	ret->at_ms = (uint64_t)at;
	(void)!str_copy(ca_hash, IMAGE_HASH_HEX + 1, ca);
	if (str_copy(ret->key, sizeof(ret->key), key) < 0)
		return -EBADMSG;
	return read_disks(disks, ret);
}

/* If it is corrupt, edge creates another CA. */
static void load_ca(const char *dir, const char *hash, struct suspend_file *ret)
{
	AUTO_FREE char *path = xasprintf("%s/" SUSPEND_DIR "/ca", dir);
	char *text = NULL, got[IMAGE_HASH_HEX + 1];
	struct slice saved;
	struct rd rd;
	size_t n;

	if (!hash[0] || file_load(path, MAX_CA, &text, &n, NULL) < 0)
		return;
	hash_hex(slice_of(text, n), got);
	rd = rd_init(slice_of(text, n));
	rd_cstr(&rd, ret->ca.pem, sizeof(ret->ca.pem));
	saved = rd_str(&rd);
	if (strcmp(got, hash) == 0 && rd_finish(&rd) == 0 && saved.n <= sizeof(ret->ca.saved)) {
		memcpy(ret->ca.saved, saved.p, saved.n);
		ret->ca.n_saved = (uint16_t)saved.n;
		ret->has_ca = true;
	}
	explicit_bzero(text, n);
	free(text);
}

static int check_disks(const char *dir, const struct suspend_file *f, struct err *err)
{
	struct suspend_file now;
	int r = suspend_file_stamp(dir, &now, err);

	if (r == 0 && memcmp(now.disks, f->disks, sizeof(now.disks)) != 0)
		return err_set(
			err, -EUCLEAN, "the disks have changed since the sandbox was suspended");
	return r == -ENOENT ? -EUCLEAN : r;
}

int suspend_file_open(const char *dir, const char *key, struct suspend_file *ret, struct err *err)
{
	AUTO_FREE char *path = xasprintf("%s/" SUSPEND_DIR "/image.json", dir);
	AUTO_FREE char *text = NULL;
	char ca_hash[IMAGE_HASH_HEX + 1] = "";
	json_int_t format;
	json_t *o;
	size_t n;
	int r = file_load(path, SUSPEND_MAX_JSON, &text, &n, err);

	*ret = (struct suspend_file){0};
	if (r < 0 && r != -EFBIG && r != -EINVAL)
		return r;
	o = r < 0 ? NULL : json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	format = json_integer_value(json_object_get(o, "version"));
	if (format > 0 && format != IMAGE_FORMAT && format != IMAGE_FORMAT_OLD) {
		json_decref(o);
		return err_set(err, -EUCLEAN,
			"the snapshot has format %lld, and this version of sbx supports formats %d and %d",
			(long long)format, IMAGE_FORMAT_OLD, IMAGE_FORMAT);
	}
	r = o ? read_json(o, ret, ca_hash) : -EBADMSG;
	json_decref(o);
	if (r < 0)
		return err_set(err, -EUCLEAN, "the snapshot is corrupt (image.json)");
	ret->format = (int)format;
	if (strcmp(ret->key, key) != 0)
		return err_set(err, -EUCLEAN,
			"the snapshot is of another version of sbx or QEMU, or of another machine");
	r = check_disks(dir, ret, err);
	if (r == 0)
		load_ca(dir, ca_hash, ret);
	return r;
}

void suspend_file_wipe(struct suspend_file *f)
{
	explicit_bzero(&f->ca, sizeof(f->ca));
	f->has_ca = false;
}
