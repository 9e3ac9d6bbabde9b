/* SPDX-License-Identifier: Apache-2.0 */
#include "template_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/hex.h"
#include "lib/base/mem.h"

/* Read at once: 16 blocks. */
#define READ_BYTES (16 * TEMPLATE_BLOCK)

static void add_hash(struct template_hash *h, const void *p, size_t n)
{
	if (EVP_DigestUpdate(h->ctx, p, n) != 1)
		abort();
}

static void add_u64(struct template_hash *h, uint64_t v)
{
	uint8_t b[8];
	struct wr wr = wr_init(b, sizeof(b));

	wr_u64(&wr, v);
	add_hash(h, b, sizeof(b));
}

void template_hash_begin(struct template_hash *h, uint64_t size)
{
	h->ctx = EVP_MD_CTX_new();
	/* A save is as fast as this: SHA-256 takes three times as long where the processor has
	 * no instructions for it. */
	if (!h->ctx || EVP_DigestInit_ex(h->ctx, EVP_blake2b512(), NULL) != 1)
		abort();
	add_u64(h, size);
}

void template_hash_block(struct template_hash *h, uint64_t offset, struct slice block)
{
	add_u64(h, offset);
	add_hash(h, block.p, block.n);
}

void template_hash_end(struct template_hash *h, char ret_hex[TEMPLATE_HASH_HEX + 1])
{
	uint8_t md[EVP_MAX_MD_SIZE];

	if (EVP_DigestFinal_ex(h->ctx, md, NULL) != 1)
		abort();
	hex_print(md, TEMPLATE_HASH_LEN, ret_hex);
	template_hash_done(h);
}

void template_hash_done(struct template_hash *h)
{
	EVP_MD_CTX_free(h->ctx);
	h->ctx = NULL;
}

bool template_is_zero(struct slice s)
{
	return s.n == 0 || (s.p[0] == 0 && memcmp(s.p, s.p + 1, s.n - 1) == 0);
}

void template_meter_add(struct template_meter *m, uint64_t n)
{
	unsigned percent;

	if (!m || !m->fn)
		return;
	m->done += n;
	percent = m->total ? (unsigned)(MIN(m->done, m->total) * 100 / m->total) : 0;
	if (percent == m->shown && m->done != n)
		return;
	m->shown = percent;
	m->fn(m->arg, percent, m->text);
}

/* The next place with data at or after `at`, in whole blocks; size when there is none. A file
 * system without holes reports that all of it is data. */
static uint64_t next_data(int fd, uint64_t at, uint64_t size)
{
	off_t d = lseek(fd, (off_t)at, SEEK_DATA);

	if (d < 0)
		return errno == ENXIO ? size : at;
	return MIN(size, MAX(at, (uint64_t)d / TEMPLATE_BLOCK * TEMPLATE_BLOCK));
}

static int give_blocks(uint64_t at, struct slice s, template_block_fn *fn, void *arg)
{
	for (size_t i = 0; i < s.n; i += TEMPLATE_BLOCK) {
		struct slice block = slice_of(s.p + i, MIN(s.n - i, (size_t)TEMPLATE_BLOCK));
		int r = template_is_zero(block) ? 0 : fn(arg, at + i, block);

		if (r < 0)
			return r;
	}
	return 0;
}

int template_each_block(int fd, uint64_t size, template_block_fn *fn, void *arg, struct err *err)
{
	AUTO_FREE uint8_t *buf = xmalloc(READ_BYTES);
	uint64_t at = 0;

	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	while ((at = next_data(fd, at, size)) < size) {
		size_t want = (size_t)MIN(size - at, (uint64_t)READ_BYTES);
		ssize_t n;
		int r;

		if (lseek(fd, (off_t)at, SEEK_SET) < 0)
			return err_errno(err, -errno, "cannot read the file");
		n = fd_read_full(fd, buf, want);
		if (n < 0)
			return err_errno(err, (int)n, "cannot read the file");
		if ((size_t)n != want)
			return err_set(err, -EUCLEAN, "the file was truncated while it was read");
		r = give_blocks(at, slice_of(buf, want), fn, arg);
		if (r < 0)
			return r;
		at += want;
	}
	return 0;
}

struct hashing {
	struct template_hash hash;
	struct template_meter *meter;
};

static int hash_block(void *arg, uint64_t offset, struct slice block)
{
	struct hashing *h = arg;

	template_hash_block(&h->hash, offset, block);
	template_meter_add(h->meter, block.n);
	return 0;
}

int template_hash_file(const char *path, uint64_t size, struct template_meter *m,
	char ret_hex[TEMPLATE_HASH_HEX + 1], struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct hashing h = {.meter = m};
	int r;

	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	template_hash_begin(&h.hash, size);
	r = template_each_block(fd, size, hash_block, &h, err);
	if (r < 0) {
		template_hash_done(&h.hash);
		return err_wrap(err, r, "cannot hash %s", path);
	}
	template_hash_end(&h.hash, ret_hex);
	return 0;
}
