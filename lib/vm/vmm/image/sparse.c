/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse - the guest's memory on its way between two files; pages of zeros stay holes.
 *
 * Runs in the child of image_child.c. Sees the guest's memory as bytes only. Touches two files.
 *
 * How      SEEK_DATA finds what the guest has used: reading a hole of shared memory allocates it.
 *          The hash of a piece is of the number and the bytes of each of its pages that is not
 *          zero, so it does not depend on where a file system ends its extents. A piece without
 *          such a page has zeros in the place of a hash.
 */
#include "image_internal.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/mem.h"

#define PAGE 4096u
#define CHUNK (1u << 20)

struct copy {
	int from, to;
	struct image_sum sum;
	uint8_t *buf;
};

static bool is_zero(const uint8_t *page)
{
	return page[0] == 0 && memcmp(page, page + 1, PAGE - 1) == 0;
}

static int write_at(int fd, const uint8_t *p, size_t n, uint64_t at)
{
	while (n) {
		ssize_t k = pwrite(fd, p, n, (off_t)at);

		if (k < 0 && errno != EINTR)
			return -errno;
		if (k > 0) {
			p += k;
			n -= (size_t)k;
			at += (uint64_t)k;
		}
	}
	return 0;
}

/* Exactly n bytes into buf: a shorter file is -EUCLEAN. */
static int read_at(const struct copy *c, size_t n, uint64_t at)
{
	size_t have = 0;

	while (have < n) {
		ssize_t k = pread(c->from, c->buf + have, n - have, (off_t)(at + have));

		if (k == 0)
			return -EUCLEAN;
		if (k < 0 && errno != EINTR)
			return -errno;
		have += k > 0 ? (size_t)k : 0;
	}
	return 0;
}

static int hash_page(struct copy *c, uint64_t at, const uint8_t *page)
{
	uint64_t number = htole64(at / PAGE);
	int r = image_sum_add(&c->sum, &number, sizeof(number));

	return r < 0 ? r : image_sum_add(&c->sum, page, PAGE);
}

/* The pages of buf that are not zero, those side by side in one write. */
static int take_pages(struct copy *c, size_t n, uint64_t at)
{
	size_t begin = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i <= n; i += PAGE) {
		bool used = i < n && !is_zero(c->buf + i);

		if (used)
			r = hash_page(c, at + i, c->buf + i);
		else if (i > begin && c->to >= 0)
			r = write_at(c->to, c->buf + begin, i - begin, at + begin);
		if (!used)
			begin = i + PAGE;
	}
	return r;
}

static int take_extent(struct copy *c, uint64_t at, uint64_t end)
{
	int r = 0;

	while (r == 0 && at < end) {
		size_t n = MIN(CHUNK, end - at);

		r = read_at(c, n, at);
		if (r == 0)
			r = take_pages(c, n, at);
		at += n;
	}
	return r;
}

/* 1 with the next extent, in whole pages; 0 when nothing follows. */
static int next_extent(int fd, uint64_t size, uint64_t *at, uint64_t *ret_end)
{
	off_t data = lseek(fd, (off_t)*at, SEEK_DATA), hole;

	if (data < 0)
		return errno == ENXIO ? 0 : -errno;
	hole = lseek(fd, data, SEEK_HOLE);
	if (hole < 0)
		return -errno;
	*at = MAX(*at, (uint64_t)data & ~(uint64_t)(PAGE - 1));
	*ret_end = MIN(size, ((uint64_t)hole + PAGE - 1) & ~(uint64_t)(PAGE - 1));
	return *at < *ret_end;
}

static int take_range(struct copy *c, uint64_t at, uint64_t end)
{
	uint64_t stop = 0;
	int r = 0;

	while (r == 0 && (r = next_extent(c->from, end, &at, &stop)) > 0) {
		r = take_extent(c, at, stop);
		at = stop;
	}
	return r;
}

int image_copy_memory(int from, int to, uint64_t size, struct image_file *ret)
{
	struct copy c = {.from = from, .to = to, .buf = xmalloc(CHUNK)};
	uint64_t total = htole64(size);
	int r = size % PAGE ? -EINVAL : image_sum_begin(&c.sum);

	if (r == 0) {
		r = image_sum_add(&c.sum, &total, sizeof(total));
		if (r == 0)
			r = take_range(&c, 0, size);
		if (image_sum_end(&c.sum, r == 0 ? ret : NULL) < 0 && r == 0)
			r = -EIO;
		ret->size = size;
	}
	free(c.buf);
	return r;
}

static int take_piece(struct copy *c, uint64_t at, uint64_t end, uint8_t hash[IMAGE_HASH_BYTES])
{
	int r = image_sum_begin(&c->sum);

	if (r < 0)
		return r;
	r = take_range(c, at, end);
	memset(hash, 0, IMAGE_HASH_BYTES);
	if (r == 0 && c->sum.size)
		return image_sum_end_bytes(&c->sum, hash);
	(void)image_sum_end(&c->sum, NULL);
	return r;
}

int image_copy_pieces(int from, int to, uint64_t size, uint8_t *table, bool is_known, int *ret_bad)
{
	struct copy c = {.from = from, .to = to, .buf = xmalloc(CHUNK)};
	uint8_t hash[IMAGE_HASH_BYTES];
	int r = size % PAGE ? -EINVAL : 0;

	for (uint64_t at = 0; r == 0 && at < size; at += IMAGE_PIECE) {
		uint8_t *row = table + at / IMAGE_PIECE * IMAGE_HASH_BYTES;

		r = take_piece(&c, at, MIN(at + IMAGE_PIECE, size), hash);
		if (r == 0 && is_known && memcmp(row, hash, sizeof(hash)) != 0)
			r = -EUCLEAN;
		if (r == -EUCLEAN)
			*ret_bad = (int)(at / IMAGE_PIECE);
		memcpy(row, hash, sizeof(hash));
	}
	free(c.buf);
	return r;
}
