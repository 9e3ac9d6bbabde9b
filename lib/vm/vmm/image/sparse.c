/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse - the guest's memory on its way between two files; pages of zeros stay holes.
 *
 * Runs in the child of image_child.c. Sees the guest's memory as bytes only. Touches two files.
 *
 * How      SEEK_DATA finds what the guest has used: reading a hole of shared memory allocates it.
 *          The hash of a piece is of the number and the bytes of each of its pages that is not
 *          zero, so it does not depend on where a file system ends its extents. A piece without
 *          such a page has zeros in the place of a hash. Up to MAX_WORKERS processes do the pieces.
 */
#include "image_internal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/base/mem.h"
#include "lib/vm/vmm/helper.h"

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

/* ---- several processes ---- */

#define MAX_WORKERS 4

/* In memory that the workers share: each takes the next piece until there is none. */
struct work {
	_Atomic uint64_t next; /* where it begins */
	_Atomic int error, bad;
	uint8_t table[];
};

struct job {
	int from, to;
	uint64_t size;
	bool is_known;
	struct work *work;
};

static int do_piece(struct copy *c, const struct job *j, uint64_t at)
{
	uint8_t *row = j->work->table + at / IMAGE_PIECE * IMAGE_HASH_BYTES;
	uint64_t end = MIN(at + IMAGE_PIECE, j->size);
	uint8_t hash[IMAGE_HASH_BYTES];
	int r = take_piece(c, at, end, hash);

	if (r == 0 && j->is_known && memcmp(row, hash, sizeof(hash)) != 0)
		r = -EUCLEAN;
	memcpy(row, hash, sizeof(hash));
	/* What is kept goes to the disk meanwhile: the fsync that follows has less to wait for. */
	if (!j->is_known)
		(void)sync_file_range(j->to < 0 ? j->from : j->to, (off_t)at, (off_t)(end - at),
			SYNC_FILE_RANGE_WRITE);
	return r;
}

static void do_pieces(const struct job *j)
{
	struct copy c = {.from = j->from, .to = j->to, .buf = xmalloc(CHUNK)};
	struct work *w = j->work;
	uint64_t at;
	int r = 0;

	while (r == 0 && !w->error && (at = atomic_fetch_add(&w->next, IMAGE_PIECE)) < j->size) {
		r = do_piece(&c, j, at);
		if (r == -EUCLEAN)
			w->bad = (int)(at / IMAGE_PIECE);
		if (r < 0)
			w->error = r;
	}
	free(c.buf);
}

static size_t count_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : (size_t)CPU_COUNT(&set);
}

/* This process is one of the workers, and the only one if no other can be started. */
static int share_out(const struct job *j)
{
	size_t n = MIN(count_processors(), (size_t)MAX_WORKERS) - 1, n_begun = 0;
	pid_t pids[MAX_WORKERS];
	int pidfds[MAX_WORKERS];

	for (int r; n_begun < n; n_begun++) {
		r = helper_begin(&pids[n_begun], &pidfds[n_begun], NULL);
		if (r < 0)
			break;
		if (r == 0) {
			do_pieces(j);
			_exit(0);
		}
	}
	do_pieces(j);
	for (size_t i = 0; i < n_begun; i++)
		if (helper_end(pids[i], &pidfds[i]) != 0)
			j->work->error = -EIO;
	return j->work->error;
}

int image_copy_pieces(int from, int to, uint64_t size, uint8_t *table, bool is_known, int *ret_bad)
{
	size_t n_table = image_table_size(size), n = sizeof(struct work) + n_table;
	struct work *w;
	int r;

	if (size % PAGE)
		return -EINVAL;
	w = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return -errno;
	memcpy(w->table, table, n_table);
	r = share_out(&(struct job){from, to, size, is_known, w});
	if (r == -EUCLEAN)
		*ret_bad = w->bad;
	memcpy(table, w->table, n_table);
	(void)munmap(w, n);
	return r;
}
