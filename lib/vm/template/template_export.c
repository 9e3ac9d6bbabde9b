/* SPDX-License-Identifier: Apache-2.0 */
#include "template.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "template_internal.h"

/* One export under way. */
struct out {
	int fd;
	EVP_MD_CTX *sum;
	ZSTD_CCtx *zstd;
	uint8_t *raw, *packed;
	size_t n_raw;
	struct template_meter meter;
	struct err *err;
};

static void out_done(struct out *o)
{
	EVP_MD_CTX_free(o->sum);
	(void)ZSTD_freeCCtx(o->zstd);
	free(o->raw);
	free(o->packed);
}

static int put_export(struct out *o, const void *p, size_t n)
{
	int r = fd_write_all(o->fd, p, n);

	if (r < 0)
		return err_errno(o->err, r, "cannot write the file");
	return EVP_DigestUpdate(o->sum, p, n) == 1 ? 0 : -EIO;
}

static int put_u32(struct out *o, uint32_t v)
{
	uint8_t b[4];
	struct wr wr = wr_init(b, sizeof(b));

	wr_u32(&wr, v);
	return put_export(o, b, sizeof(b));
}

static int flush_export(struct out *o)
{
	size_t n;
	int r;

	if (o->n_raw == 0)
		return 0;
	n = ZSTD_compressCCtx(
		o->zstd, o->packed, TEMPLATE_MAX_PACKED, o->raw, o->n_raw, TEMPLATE_ZSTD_LEVEL);
	if (ZSTD_isError(n))
		return err_set(o->err, -EIO, "compressing: %s", ZSTD_getErrorName(n));
	r = put_u32(o, (uint32_t)o->n_raw);
	if (r == 0)
		r = put_u32(o, (uint32_t)n);
	o->n_raw = 0;
	return r < 0 ? r : put_export(o, o->packed, n);
}

static int put_block(void *arg, uint64_t offset, struct slice block)
{
	struct out *o = arg;
	struct wr wr = wr_init(o->raw + o->n_raw, TEMPLATE_MAX_RAW - o->n_raw);

	wr_u64(&wr, offset);
	wr_bytes(&wr, block);
	if (wr_finish(&wr) < 0)
		abort();
	o->n_raw += wr.n;
	template_meter_add(&o->meter, block.n);
	return o->n_raw + TEMPLATE_PIECE > TEMPLATE_MAX_RAW ? flush_export(o) : 0;
}

static int put_file(struct out *o, const char *dir, const char *name, const json_t *file)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t size = (uint64_t)json_integer_value(json_object_get(file, "size"));
	int r;

	if (fd < 0)
		return err_errno(o->err, -errno, "cannot open %s", path);
	r = template_each_block(fd, size, put_block, o, o->err);
	if (r == 0)
		r = flush_export(o);
	return r < 0 ? r : put_u32(o, 0);
}

/* Without what is of this machine only. */
static char *plain_manifest(const struct template *t)
{
	json_t *m = json_deep_copy(t->manifest), *file;
	const char *name;
	char *text;

	(void)json_object_del(m, "created");
	(void)json_object_del(m, "loaded"); /* true of this store, not of the template */
	json_object_foreach (json_object_get(m, "files"), name, file) {
		(void)json_object_del(file, "disk");
	}
	text = json_dumps(m, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(m);
	if (!text)
		abort();
	return text;
}

static int put_head(struct out *o, const struct template *t)
{
	AUTO_FREE char *text = plain_manifest(t);
	int r = put_export(o, TEMPLATE_MAGIC, TEMPLATE_MAGIC_LEN);

	if (r == 0)
		r = put_u32(o, (uint32_t)strlen(text));
	return r < 0 ? r : put_export(o, text, strlen(text));
}

static int put_sum(struct out *o)
{
	uint8_t sum[TEMPLATE_HASH_LEN];

	if (EVP_DigestFinal_ex(o->sum, sum, NULL) != 1)
		return -EIO;
	return fd_write_all(o->fd, sum, sizeof(sum));
}

int template_export(const struct template *t, int fd, template_progress_fn *progress, void *arg,
	struct err *err)
{
	const json_t *files = json_object_get(t->manifest, "files");
	const char *names[TEMPLATE_MAX_FILES];
	size_t n = template_sorted(files, names);
	CLEANUP(out_done)
	struct out o = {
		.fd = fd,
		.sum = EVP_MD_CTX_new(),
		.zstd = ZSTD_createCCtx(),
		.raw = xmalloc(TEMPLATE_MAX_RAW),
		.packed = xmalloc(TEMPLATE_MAX_PACKED),
		.meter = {.fn = progress,
			.arg = arg,
			.text = "writing the template",
			.total = template_bytes_of(t->dir, files)},
		.err = err,
	};
	int r;

	if (!o.sum || !o.zstd || EVP_DigestInit_ex(o.sum, EVP_sha256(), NULL) != 1)
		abort();
	r = put_head(&o, t);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = put_file(&o, t->dir, names[i], json_object_get(files, names[i]));
	if (r == 0)
		r = put_sum(&o);
	return r;
}
