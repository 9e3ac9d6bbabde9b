/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <brotli/encode.h>
#include <errno.h>
#include <zlib.h>
#include <zstd.h>
#include "lib/base/mem.h"
#include "lib/secret/scrub/unpack.h"

#define MAX_PACKED (1U << 20)

struct packed {
	uint8_t p[MAX_PACKED];
	size_t n;
};

static void pack_zlib(struct packed *to, const uint8_t *p, size_t n, int bits)
{
	z_stream z = {0};

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)p;
	z.avail_in = (uInt)n;
	z.next_out = to->p + to->n;
	z.avail_out = (uInt)(sizeof(to->p) - to->n);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	to->n = sizeof(to->p) - z.avail_out;
	deflateEnd(&z);
}

static void pack_br(struct packed *to, const uint8_t *p, size_t n, int window)
{
	size_t n_out = sizeof(to->p) - to->n;

	assert_true(
		BrotliEncoderCompress(5, window, BROTLI_MODE_GENERIC, n, p, &n_out, to->p + to->n));
	to->n += n_out;
}

static void pack_zstd(struct packed *to, const uint8_t *p, size_t n, int window)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_inBuffer in = {.src = p, .size = n};
	ZSTD_outBuffer out = {.dst = to->p, .size = sizeof(to->p), .pos = to->n};

	ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window);
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
	/* In two steps: a frame of unknown size keeps its window. */
	ZSTD_compressStream2(c, &out, &in, ZSTD_e_continue);
	assert_int_equal(ZSTD_compressStream2(c, &out, &in, ZSTD_e_end), 0);
	to->n = out.pos;
	ZSTD_freeCCtx(c);
}

static void pack(struct packed *to, enum unpack_coding coding, const uint8_t *p, size_t n)
{
	switch (coding) {
	case UNPACK_GZIP:
		return pack_zlib(to, p, n, MAX_WBITS + 16);
	case UNPACK_DEFLATE:
		return pack_zlib(to, p, n, MAX_WBITS);
	case UNPACK_BR:
		return pack_br(to, p, n, 22);
	case UNPACK_ZSTD:
		return pack_zstd(to, p, n, 20);
	default:
		memcpy(to->p + to->n, p, n);
		to->n += n;
	}
}

/* Feeds in pieces and with little room; gives the first error, or that of the end. */
static int undo(enum unpack_coding coding, struct slice packed, size_t step, size_t room,
	uint8_t *out, size_t size, size_t *ret_n)
{
	struct unpack *u = unpack_new(coding);
	uint8_t buf[4096];
	size_t n_out = 0;
	int r = 0;

	assert_non_null(u);
	for (size_t at = 0; r == 0 && at < packed.n;) {
		struct slice piece = slice_of(packed.p + at, MIN(step, packed.n - at));
		size_t n = 1;

		at += piece.n;
		while (r == 0 && (piece.n > 0 || n > 0)) {
			n = 0;
			r = unpack_feed(u, &piece, buf, room, &n, NULL);
			assert_true(n_out + n <= size || !out);
			if (out && r == 0 && n > 0)
				memcpy(out + n_out, buf, n);
			n_out += r == 0 ? n : 0;
		}
	}
	if (r == 0)
		r = unpack_end(u, NULL);
	unpack_free(u);
	*ret_n = n_out;
	return r;
}

static void fill(uint8_t *p, size_t n)
{
	uint64_t seed = 42;

	for (size_t i = 0; i < n; i++) {
		seed = seed * 6364136223846793005U + 1442695040888963407U;
		p[i] = "sandbox keeps no key, "[seed >> 60 == 0 ? seed >> 59 : i % 22];
	}
}

static void test_every_coding_in_every_piece(void **state)
{
	enum { N = 30000 };
	AUTO_FREE uint8_t *text = xmalloc(N), *out = xmalloc(N);
	static const size_t steps[] = {1, 2, 3, 7, 1000, N * 2}, rooms[] = {1, 13, 4096};
	size_t n;

	fill(text, N);
	for (enum unpack_coding c = 0; c < UNPACK_N_CODINGS; c++) {
		AUTO_FREE struct packed *packed = xcalloc(1, sizeof(*packed));

		pack(packed, c, text, N);
		for (size_t i = 0; i < ARRAY_LEN(steps) * ARRAY_LEN(rooms); i++) {
			assert_int_equal(
				undo(c, slice_of(packed->p, packed->n), steps[i / ARRAY_LEN(rooms)],
					rooms[i % ARRAY_LEN(rooms)], out, N, &n),
				0);
			assert_int_equal(n, N);
			assert_memory_equal(out, text, N);
		}
	}
}

/* Every cut is an error, and so is every byte behind the end. */
static void test_cut_and_longer(void **state)
{
	uint8_t text[300], out[1024];
	size_t n;

	fill(text, sizeof(text));
	for (enum unpack_coding c = UNPACK_GZIP; c < UNPACK_N_CODINGS; c++) {
		AUTO_FREE struct packed *packed = xcalloc(1, sizeof(*packed));

		pack(packed, c, text, sizeof(text));
		assert_int_equal(undo(c, slice_of(packed->p, 0), 10, 64, out, sizeof(out), &n), 0);
		for (size_t cut = 1; cut < packed->n; cut++)
			assert_int_equal(
				undo(c, slice_of(packed->p, cut), 10, 64, out, sizeof(out), &n),
				-EBADMSG);
		packed->p[packed->n] = 'x';
		assert_int_equal(
			undo(c, slice_of(packed->p, packed->n + 1), 10, 64, out, sizeof(out), &n),
			-EBADMSG);
	}
}

static void test_changed_bytes(void **state)
{
	uint8_t text[300], out[4096];
	size_t n, n_same = 0;

	fill(text, sizeof(text));
	for (enum unpack_coding c = UNPACK_GZIP; c < UNPACK_N_CODINGS; c++) {
		AUTO_FREE struct packed *packed = xcalloc(1, sizeof(*packed));

		pack(packed, c, text, sizeof(text));
		for (size_t i = 0; i < packed->n; i++) {
			packed->p[i] ^= 0x15;
			int r = undo(c, slice_of(packed->p, packed->n), 50, 512, NULL, 0, &n);

			n_same += r == 0;
			assert_true(r == 0 || r == -EBADMSG || r == -E2BIG);
			packed->p[i] ^= 0x15;
		}
	}
	/* br has no checksum, and gzip's head has bytes that mean nothing. */
	assert_true(n_same < 120);
	(void)out;
}

static void test_members_and_frames(void **state)
{
	static const enum unpack_coding several[] = {UNPACK_GZIP, UNPACK_ZSTD};
	uint8_t out[4096];
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(several); i++) {
		AUTO_FREE struct packed *packed = xcalloc(1, sizeof(*packed));

		pack(packed, several[i], (const uint8_t *)"one, ", 5);
		pack(packed, several[i], (const uint8_t *)"", 0);
		pack(packed, several[i], (const uint8_t *)"two", 3);
		for (size_t step = 1; step <= packed->n; step++) {
			assert_int_equal(undo(several[i], slice_of(packed->p, packed->n), step, 2,
						 out, sizeof(out), &n),
				0);
			assert_int_equal(n, 8);
			assert_memory_equal(out, "one, two", 8);
		}
		assert_int_equal(undo(several[i], slice_of(packed->p, packed->n - 3), 99, 64, out,
					 sizeof(out), &n),
			-EBADMSG);
	}
}

static void test_deflate_without_its_head(void **state)
{
	AUTO_FREE struct packed *packed = xcalloc(1, sizeof(*packed));
	uint8_t text[3000], out[3000];
	size_t n;

	fill(text, sizeof(text));
	pack_zlib(packed, text, sizeof(text), -MAX_WBITS);
	for (size_t step = 1; step < 5; step++) {
		assert_int_equal(undo(UNPACK_DEFLATE, slice_of(packed->p, packed->n), step, step,
					 out, sizeof(out), &n),
			0);
		assert_int_equal(n, sizeof(text));
		assert_memory_equal(out, text, n);
	}
}

/* 64 MiB of zeros: gzip does not exceed the ratio and comes out whole; the others are stopped soon
 * after what is free. */
static void test_bombs(void **state)
{
	const size_t n_zeros = 64U << 20;
	AUTO_FREE uint8_t *zeros = xcalloc(1, n_zeros);
	size_t n;

	for (enum unpack_coding c = UNPACK_GZIP; c < UNPACK_N_CODINGS; c++) {
		AUTO_FREE struct packed *packed = xcalloc(1, sizeof(*packed));
		bool is_small = c == UNPACK_BR || c == UNPACK_ZSTD;

		pack(packed, c, zeros, n_zeros);
		int r = undo(c, slice_of(packed->p, packed->n), 4096, 4096, NULL, 0, &n);

		assert_int_equal(r, is_small ? -E2BIG : 0);
		if (is_small)
			assert_in_range(
				n, UNPACK_FREE - 4096, UNPACK_FREE + packed->n * UNPACK_MAX_RATIO);
		else
			assert_int_equal(n, n_zeros);
	}
}

/* A window above the limit is refused before memory for it is taken. */
static void test_windows(void **state)
{
	const size_t n_text = 1U << 16;
	AUTO_FREE uint8_t *text = xmalloc(n_text);
	AUTO_FREE struct packed *fits = xcalloc(1, sizeof(*fits)),
				*over = xcalloc(1, sizeof(*over));
	size_t n;

	fill(text, n_text);
	pack_zstd(fits, text, n_text, UNPACK_MAX_WINDOW_LOG);
	pack_zstd(over, text, n_text, UNPACK_MAX_WINDOW_LOG + 1);
	assert_int_equal(undo(UNPACK_ZSTD, slice_of(fits->p, fits->n), 999, 999, NULL, 0, &n), 0);
	assert_int_equal(
		undo(UNPACK_ZSTD, slice_of(over->p, over->n), 999, 999, NULL, 0, &n), -E2BIG);
	assert_int_equal(n, 0);
	fits->n = 0;
	pack_br(fits, text, n_text, BROTLI_MAX_WINDOW_BITS);
	assert_int_equal(undo(UNPACK_BR, slice_of(fits->p, fits->n), 999, 999, NULL, 0, &n), 0);
	assert_int_equal(n, n_text);
}

static void test_header(void **state)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = {{"", UNPACK_IDENTITY}, {"identity", UNPACK_IDENTITY}, {"gzip", UNPACK_GZIP},
		{" GZip\t", UNPACK_GZIP}, {"x-gzip", UNPACK_GZIP}, {"deflate", UNPACK_DEFLATE},
		{"br", UNPACK_BR}, {"zstd", UNPACK_ZSTD}, {"compress", -ENOTSUP},
		{"gzip, br", -ENOTSUP}, {"gzip,", -ENOTSUP}, {"dcb", -ENOTSUP}, {"dcz", -ENOTSUP},
		{"aes128gcm", -ENOTSUP}, {"gzip;q=1", -ENOTSUP},
		{"gzipgzipgzipgzipgzipgzipgzipgzipgzipgzipgzipgzipgzipgzipgzipgzipgzip", -ENOTSUP}};
	enum unpack_coding coding;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int r = unpack_parse(slice_from_str(rows[i].text), &coding, NULL);

		assert_int_equal(r < 0 ? r : (int)coding, rows[i].want);
	}
	assert_int_equal(unpack_parse(slice_of("gzip\0", 5), &coding, NULL), -ENOTSUP);
}

#define MANY 64

static bool holds_window(struct unpack *u, const struct packed *packed)
{
	static uint8_t out[1 << 16];
	struct slice in = slice_of(packed->p, packed->n);
	size_t n = 0, total = 0;
	int r = u ? 0 : -1;

	while (r == 0 && total < (1U << 20)) {
		r = unpack_feed(u, &in, out, sizeof(out), &n, NULL);
		total += n;
	}
	return r == 0;
}

/* A server that answers many requests at once with the largest windows: those that are too many
 * fail, and the process stays below its limit. */
static void test_all_decoders_have_a_limit(void **state)
{
	static const enum unpack_coding codings[] = {UNPACK_BR, UNPACK_ZSTD};
	AUTO_FREE uint8_t *zeros = xcalloc(1, 24U << 20);
	AUTO_FREE struct packed *packed = xcalloc(1, sizeof(*packed));

	for (size_t c = 0; c < ARRAY_LEN(codings); c++) {
		struct unpack *u[MANY];
		unsigned n_good = 0, n_after = 0;

		packed->n = 0;
		if (codings[c] == UNPACK_BR)
			pack_br(packed, zeros, 24U << 20, 24);
		else
			pack_zstd(packed, zeros, 24U << 20, UNPACK_MAX_WINDOW_LOG);
		for (size_t i = 0; i < MANY; i++) {
			u[i] = unpack_new(codings[c]);
			n_good += holds_window(u[i], packed);
		}
		assert_in_range(n_good, 8, UNPACK_MAX_ALL / UNPACK_MAX_WINDOW);
		for (size_t i = 0; i < MANY; i++)
			unpack_free(u[i]);
		for (size_t i = 0; i < 4; i++) {
			u[i] = unpack_new(codings[c]);
			n_after += holds_window(u[i], packed);
		}
		for (size_t i = 0; i < 4; i++)
			unpack_free(u[i]);
		assert_int_equal(n_after, 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_coding_in_every_piece),
		cmocka_unit_test(test_cut_and_longer),
		cmocka_unit_test(test_changed_bytes),
		cmocka_unit_test(test_members_and_frames),
		cmocka_unit_test(test_deflate_without_its_head),
		cmocka_unit_test(test_bombs),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_all_decoders_have_a_limit),
		cmocka_unit_test(test_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
