/* SPDX-License-Identifier: Apache-2.0 */
#include "template.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zstd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/text/text.h"
#include "template_internal.h"

#define MAX_FACT_DEPTH 4
#define MAX_FACT_TEXT 4096
#define FREE_EVERY 64 /* frames */
#define MAX_LOADED_DISK (64ull << 30)

/* One import under way. */
struct in {
	int fd;
	EVP_MD_CTX *sum;
	ZSTD_DCtx *zstd;
	uint8_t *raw, *packed;
	json_t *manifest;
	struct template_draft draft;
	uint64_t frames;
	struct template_meter meter;
	struct err *err;
};

/* The file that is being filled. */
struct part {
	const char *name;
	int fd;
	uint64_t size, next; /* no block below `next` may come any more */
	struct template_hash hash;
};

static void in_done(struct in *in)
{
	EVP_MD_CTX_free(in->sum);
	(void)ZSTD_freeDCtx(in->zstd);
	free(in->raw);
	free(in->packed);
	json_decref(in->manifest);
	template_draft_done(&in->draft);
}

static void part_done(struct part *p)
{
	fd_close(&p->fd);
	template_hash_done(&p->hash);
}

static int bad_import(struct in *in, const char *what)
{
	return err_set(in->err, -EBADMSG,
		"the file is corrupt or not an sbx template (%s): nothing was loaded. Create the file again with `sbx template save NAME -o FILE`",
		what);
}

static int get_import(struct in *in, void *p, size_t n)
{
	ssize_t got = fd_read_full(in->fd, p, n);

	if (got < 0)
		return err_errno(in->err, (int)got, "cannot read the file");
	if ((size_t)got != n)
		return bad_import(in, "the file is truncated");
	template_meter_add(&in->meter, n);
	return EVP_DigestUpdate(in->sum, p, n) == 1 ? 0 : -EIO;
}

static int get_u32(struct in *in, uint32_t *ret)
{
	uint8_t b[4];
	int r = get_import(in, b, sizeof(b));
	struct rd rd = rd_init(slice_of(b, sizeof(b)));

	if (r == 0)
		*ret = rd_u32(&rd);
	return r;
}

/* ---- the manifest ---- */

static bool is_plain_text(const char *s)
{
	return strlen(s) <= MAX_FACT_TEXT && text_is_all_plain(slice_from_str(s));
}

/* Facts are shown to people. The depth is bounded here, so recursion is too. */
static bool is_plain_fact(const json_t *j, unsigned depth)
{
	const char *key;
	json_t *v;
	size_t i;

	if (depth > MAX_FACT_DEPTH)
		return false;
	if (json_is_string(j))
		return is_plain_text(json_string_value(j));
	json_array_foreach ((json_t *)j, i, v)
		if (!is_plain_fact(v, depth + 1))
			return false;
	json_object_foreach ((json_t *)j, key, v)
		if (!is_plain_text(key) || !is_plain_fact(v, depth + 1))
			return false;
	return true;
}

/* A sandbox can fill all of the size that a base declares. */
static bool is_too_large(const json_t *files)
{
	const char *name;
	json_t *f;

	json_object_foreach ((json_t *)files, name, f)
		if (json_integer_value(json_object_get(f, "size")) > (json_int_t)MAX_LOADED_DISK)
			return true;
	return false;
}

static int check_manifest(struct in *in)
{
	const json_t *m = in->manifest, *files = json_object_get(m, "files");
	const char *id = json_string_value(json_object_get(m, "id"));
	char made[TEMPLATE_ID_LEN + 1];
	struct err why = {0};
	int r;

	if (json_integer_value(json_object_get(m, "format")) != TEMPLATE_FORMAT)
		return bad_import(in, "the manifest is from another version of sbx");
	if (!is_plain_fact(m, 0))
		return bad_import(in, "the manifest has control characters or too many fields");
	r = template_check_files(files, true, &why);
	if (r < 0)
		return bad_import(in, why.text);
	if (is_too_large(files))
		return bad_import(in, "a disk is larger than 64 GiB");
	r = template_make_id(files, made);
	if (r < 0 || !id || strcmp(id, made) != 0)
		return bad_import(in, "the id does not match the files");
	return 0;
}

static int get_head(struct in *in)
{
	char magic[TEMPLATE_MAGIC_LEN];
	AUTO_FREE char *text = NULL;
	uint32_t n = 0;
	int r = get_import(in, magic, sizeof(magic));

	if (r == 0 && memcmp(magic, TEMPLATE_MAGIC, sizeof(magic)) != 0)
		return bad_import(in, "the file has no template header");
	if (r == 0)
		r = get_u32(in, &n);
	if (r == 0 && (n == 0 || n > TEMPLATE_MAX_MANIFEST))
		return bad_import(in, "the manifest is too long");
	if (r < 0)
		return r;
	text = xmalloc(n);
	r = get_import(in, text, n);
	if (r < 0)
		return r;
	in->manifest = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	return json_is_object(in->manifest) ? check_manifest(in)
					    : bad_import(in, "the manifest is not a JSON object");
}

/* ---- files ---- */

/* Little becomes much: what a disk has no room for is refused before the disk is full. */
static int check_room(struct in *in)
{
	struct statvfs v;

	if (in->frames++ % FREE_EVERY != 0 || statvfs(in->draft.dir, &v) < 0)
		return 0;
	if ((uint64_t)v.f_bavail * v.f_frsize >= TEMPLATE_MIN_FREE)
		return 0;
	return err_set(in->err, -ENOSPC,
		"the template was not loaded: the disk of %s is almost full. `sbx template ls` shows the size of each template",
		in->draft.dir);
}

static int take_piece(struct in *in, struct part *p, struct rd *rd)
{
	uint64_t at = rd_u64(rd);
	struct slice block;

	if (rd->bad || at % TEMPLATE_BLOCK != 0 || at < p->next || at >= p->size)
		return bad_import(in, "a block is out of order");
	block = rd_bytes(rd, (size_t)MIN((uint64_t)TEMPLATE_BLOCK, p->size - at));
	if (rd->bad || template_is_zero(block))
		return bad_import(in, "a block is truncated or empty");
	if (pwrite(p->fd, block.p, block.n, (off_t)at) != (ssize_t)block.n)
		return err_errno(in->err, errno ? -errno : -EIO, "cannot write %s", p->name);
	template_hash_block(&p->hash, at, block);
	p->next = at + TEMPLATE_BLOCK;
	return 0;
}

/* 1: there may be more of this file. */
static int take_frame(struct in *in, struct part *p)
{
	uint32_t raw = 0, packed = 0;
	struct rd rd;
	size_t n;
	int r = get_u32(in, &raw);

	if (r < 0 || raw == 0)
		return r;
	r = get_u32(in, &packed);
	if (r == 0 && (raw > TEMPLATE_MAX_RAW || packed == 0 || packed > TEMPLATE_MAX_PACKED))
		return bad_import(in, "a frame is too long");
	if (r == 0)
		r = get_import(in, in->packed, packed);
	if (r == 0)
		r = check_room(in);
	if (r < 0)
		return r;
	n = ZSTD_decompressDCtx(in->zstd, in->raw, raw, in->packed, packed);
	if (ZSTD_isError(n) || n != raw)
		return bad_import(in, "a frame cannot be decompressed");
	rd = rd_init(slice_of(in->raw, n));
	while (r == 0 && rd.n > 0)
		r = take_piece(in, p, &rd);
	return r < 0 ? r : 1;
}

/* It has its hash now, which need not be made again. */
static int end_part(struct in *in, struct part *p, const json_t *file)
{
	const char *want = json_string_value(json_object_get(file, "hash"));
	char hash[TEMPLATE_HASH_HEX + 1];
	struct stat st;

	template_hash_end(&p->hash, hash);
	if (strcmp(hash, want) != 0)
		return bad_import(in, "the content of a file does not match its hash");
	if (fchmod(p->fd, template_file_mode(p->name)) < 0 || fstat(p->fd, &st) < 0)
		return err_errno(in->err, -errno, "cannot write %s", p->name);
	template_stamp_set(in->draft.known, p->name, &st, hash);
	return 0;
}

/* A layer is small, and its header has the size of the disk that a sandbox can fill. */
static int check_layer(struct in *in, const char *name, const char *path)
{
	struct template_name what;
	uint64_t size;
	int r;

	if (!template_file_name(name, &what) || what.part != TEMPLATE_PART_LAYER)
		return 0;
	r = template_qcow2_check(path, &size, in->err);
	if (r == 0 && size > MAX_LOADED_DISK)
		return bad_import(in, "a disk is larger than 64 GiB");
	return r;
}

static int take_file(struct in *in, const char *name)
{
	const json_t *file = json_object_get(json_object_get(in->manifest, "files"), name);
	AUTO_FREE char *path = xasprintf("%s/%s", in->draft.dir, name);
	CLEANUP(part_done) struct part p = {.name = name, .fd = -1};
	int r;

	p.size = (uint64_t)json_integer_value(json_object_get(file, "size"));
	p.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (p.fd < 0 || ftruncate(p.fd, (off_t)p.size) < 0)
		return err_errno(in->err, -errno, "cannot create %s", path);
	template_hash_begin(&p.hash, p.size);
	do
		r = take_frame(in, &p);
	while (r > 0);
	if (r == 0)
		r = end_part(in, &p, file);
	return r < 0 ? r : check_layer(in, name, path);
}

static int check_sum(struct in *in)
{
	uint8_t sum[TEMPLATE_HASH_LEN], said[TEMPLATE_HASH_LEN + 1];
	ssize_t n;

	if (EVP_DigestFinal_ex(in->sum, sum, NULL) != 1)
		return -EIO;
	n = fd_read_full(in->fd, said, sizeof(said));
	if (n < 0)
		return err_errno(in->err, (int)n, "cannot read the file");
	if (n != TEMPLATE_HASH_LEN || memcmp(sum, said, sizeof(sum)) != 0)
		return bad_import(in, "the checksum is wrong");
	return 0;
}

/* ---- all of it ---- */

static int take_all(struct in *in)
{
	const json_t *files = json_object_get(in->manifest, "files");
	const char *names[TEMPLATE_MAX_FILES];
	size_t n = template_sorted(files, names);
	struct template found = {0};
	int r = template_draft_begin(&in->draft, in->err);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = take_file(in, names[i]);
	if (r == 0)
		r = check_sum(in);
	if (r < 0)
		return r;
	template_fill(&found, in->draft.dir, files);
	memcpy(in->draft.disks, found.disks, sizeof(found.disks));
	memset(found.disks, 0, sizeof(found.disks));
	template_done(&found);
	return 0;
}

static int publish_import(struct in *in, const char *name, struct template *ret)
{
	static const char *const ours[] = {"format", "id", "created", "files", "name"};
	json_t *facts = json_deep_copy(in->manifest);
	int r;

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		(void)json_object_del(facts, ours[i]);
	(void)json_object_set_new(facts, "loaded", json_true());
	r = template_draft_publish(&in->draft, name, facts, NULL, NULL, ret, in->err);
	json_decref(facts);
	return r;
}

/* The name in the file is used only if the caller permits it. */
static int choose_name(struct in *in, struct template_naming *naming)
{
	const char *name = naming->name,
		   *id = json_string_value(json_object_get(in->manifest, "id"));
	bool theirs = !name;
	int r = 0;

	if (theirs)
		name = json_string_value(json_object_get(in->manifest, "name"));
	if (!name || !template_is_name(name) || (theirs && !naming->may_take))
		return err_set(in->err, -EINVAL,
			"the file has no valid template name: use `sbx template load FILE NAME`");
	if (theirs)
		r = naming->may_take(naming->arg, name, id, in->err);
	return r < 0 ? r : str_copy(naming->given, sizeof(naming->given), name);
}

int template_import(int fd, struct template_naming *naming, template_progress_fn *progress,
	void *arg, struct template *ret, struct err *err)
{
	CLEANUP(in_done)
	struct in in = {
		.fd = fd,
		.sum = EVP_MD_CTX_new(),
		.zstd = ZSTD_createDCtx(),
		.raw = xmalloc(TEMPLATE_MAX_RAW),
		.packed = xmalloc(TEMPLATE_MAX_PACKED),
		.meter = {.fn = progress, .arg = arg, .text = "loading the template"},
		.err = err,
	};
	struct stat st;
	int r;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		in.meter.total = (uint64_t)st.st_size;
	if (!in.sum || !in.zstd || EVP_DigestInit_ex(in.sum, EVP_sha256(), NULL) != 1)
		abort();
	r = get_head(&in);
	if (r == 0)
		r = choose_name(&in, naming);
	if (r == 0)
		r = take_all(&in);
	return r < 0 ? r : publish_import(&in, naming->given, ret);
}
