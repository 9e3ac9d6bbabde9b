/* SPDX-License-Identifier: Apache-2.0 */
#include "unpack.h"

#include <brotli/decode.h>
#include <errno.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>
#include "lib/base/mem.h"

#define ZLIB_HEAD 2 /* bytes that tell deflate with a zlib head from one without */

struct unpack {
	enum unpack_coding coding;
	z_stream z;
	bool is_z_ready;
	uint8_t head[ZLIB_HEAD];
	size_t n_head, n_head_fed;
	BrotliDecoderState *br;
	ZSTD_DStream *zstd;
	uint64_t n_in, n_out;
	size_t n_memory;
	bool is_ended; /* at the end of a member, a frame, the stream */
	bool is_dead;
};

static const char *const names[UNPACK_N_CODINGS] = {
	[UNPACK_IDENTITY] = "identity",
	[UNPACK_GZIP] = "gzip",
	[UNPACK_DEFLATE] = "deflate",
	[UNPACK_BR] = "br",
	[UNPACK_ZSTD] = "zstd",
};

int unpack_parse(struct slice value, enum unpack_coding *ret, struct err *err)
{
	char text[UNPACK_MAX_HEADER];

	while (value.n > 0 && (value.p[0] == ' ' || value.p[0] == '\t'))
		value = slice_of(value.p + 1, value.n - 1);
	while (value.n > 0 && (value.p[value.n - 1] == ' ' || value.p[value.n - 1] == '\t'))
		value.n--;
	if (slice_to_cstr(value, text, sizeof(text)) < 0)
		return err_set(err, -ENOTSUP, "unsupported content coding");
	if (!text[0]) {
		*ret = UNPACK_IDENTITY;
		return 0;
	}
	if (strcasecmp(text, "x-gzip") == 0) {
		*ret = UNPACK_GZIP;
		return 0;
	}
	for (unsigned i = 0; i < UNPACK_N_CODINGS; i++) {
		if (strcasecmp(text, names[i]) != 0)
			continue;
		*ret = i;
		return 0;
	}
	return err_set(err, -ENOTSUP, "unsupported content coding");
}

/* ---- memory of the libraries, bounded ---- */

/* The size precedes each piece, padded for alignment. */
#define PIECE_HEAD 16

/* Of all decoders of this process. */
static size_t n_all;

/* libzstd allocates its own memory; its maximum is counted. */
#define ZSTD_MEMORY (UNPACK_MAX_WINDOW + (1U << 20))

static void *bounded_alloc(void *opaque, size_t n)
{
	struct unpack *u = opaque;

	if (n > UNPACK_MAX_MEMORY || u->n_memory + n > UNPACK_MAX_MEMORY ||
		n_all + n > UNPACK_MAX_ALL)
		return NULL;
	uint8_t *p = calloc(1, PIECE_HEAD + n);

	if (!p)
		return NULL;
	memcpy(p, &n, sizeof(n));
	u->n_memory += n;
	n_all += n;
	return p + PIECE_HEAD;
}

static void bounded_free(void *opaque, void *p)
{
	struct unpack *u = opaque;
	size_t n;

	if (!p)
		return;
	uint8_t *piece = (uint8_t *)p - PIECE_HEAD;

	memcpy(&n, piece, sizeof(n));
	u->n_memory -= n;
	n_all -= n;
	free(piece);
}

static voidpf z_alloc(voidpf opaque, uInt n, uInt size)
{
	return bounded_alloc(opaque, (size_t)n * size);
}

/* ---- */

static bool start_zlib(struct unpack *u, int bits)
{
	u->z.zalloc = z_alloc;
	u->z.zfree = bounded_free;
	u->z.opaque = u;
	u->is_z_ready = inflateInit2(&u->z, bits) == Z_OK;
	return u->is_z_ready;
}

static bool start_zstd(struct unpack *u)
{
	if (n_all + ZSTD_MEMORY > UNPACK_MAX_ALL)
		return false;
	u->zstd = ZSTD_createDStream();
	if (!u->zstd)
		return false;
	n_all += ZSTD_MEMORY;
	return !ZSTD_isError(
		ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, UNPACK_MAX_WINDOW_LOG));
}

static bool start_unpack(struct unpack *u)
{
	switch (u->coding) {
	case UNPACK_GZIP:
		return start_zlib(u, MAX_WBITS + 16);
	case UNPACK_BR:
		u->br = BrotliDecoderCreateInstance(bounded_alloc, bounded_free, u);
		return u->br != NULL;
	case UNPACK_ZSTD:
		return start_zstd(u);
	default:
		return true;
	}
}

struct unpack *unpack_new(enum unpack_coding coding)
{
	struct unpack *u = xcalloc(1, sizeof(*u));

	u->coding = coding;
	if (start_unpack(u))
		return u;
	unpack_free(u);
	return NULL;
}

void unpack_free(struct unpack *u)
{
	if (!u)
		return;
	if (u->is_z_ready)
		(void)inflateEnd(&u->z);
	if (u->br)
		BrotliDecoderDestroyInstance(u->br);
	n_all -= u->zstd ? ZSTD_MEMORY : 0;
	(void)ZSTD_freeDStream(u->zstd);
	free(u);
}

struct step {
	struct slice *in;
	uint8_t *out;
	size_t size, n;
};

static void advance_unpack(struct slice *in, size_t n)
{
	*in = slice_of(in->p + n, in->n - n);
}

static int pass_unpack(struct step *st)
{
	size_t n = MIN(st->in->n, st->size);

	if (n > 0)
		memcpy(st->out, st->in->p, n);
	advance_unpack(st->in, n);
	st->n = n;
	return 0;
}

static int inflate_some(struct unpack *u, struct slice *in, struct step *st)
{
	while (st->n < st->size && (in->n > 0 || !u->is_ended)) {
		size_t n_in = MIN(in->n, 1U << 30), room = MIN(st->size - st->n, 1U << 30);

		if (u->is_ended && (u->coding != UNPACK_GZIP || inflateReset(&u->z) != Z_OK))
			return -EBADMSG;
		u->is_ended = false;
		u->z.next_in = (Bytef *)in->p;
		u->z.avail_in = (uInt)n_in;
		u->z.next_out = st->out + st->n;
		u->z.avail_out = (uInt)room;
		int r = inflate(&u->z, Z_NO_FLUSH);

		advance_unpack(in, n_in - u->z.avail_in);
		st->n += room - u->z.avail_out;
		if (r == Z_STREAM_END)
			u->is_ended = true;
		else if (r == Z_BUF_ERROR) /* no progress without more bytes */
			return 0;
		else if (r != Z_OK)
			return r == Z_MEM_ERROR ? -E2BIG : -EBADMSG;
	}
	return 0;
}

/* A zlib head is 0x78 or alike and a multiple of 31; no deflate block of a sane stream begins
 * so. */
static int inflate_deflate(struct unpack *u, struct step *st)
{
	while (u->n_head < ZLIB_HEAD && st->in->n > 0) {
		u->head[u->n_head++] = st->in->p[0];
		advance_unpack(st->in, 1);
	}
	if (u->n_head < ZLIB_HEAD)
		return 0;
	bool is_zlib = (u->head[0] & 15) == Z_DEFLATED && (u->head[0] << 8 | u->head[1]) % 31 == 0;

	if (!u->is_z_ready && !start_zlib(u, is_zlib ? MAX_WBITS : -MAX_WBITS))
		return -E2BIG;
	struct slice head = slice_of(u->head + u->n_head_fed, u->n_head - u->n_head_fed);
	int r = head.n > 0 ? inflate_some(u, &head, st) : 0;

	u->n_head_fed = u->n_head - head.n;
	return r < 0 || head.n > 0 ? r : inflate_some(u, st->in, st);
}

static int unbrotli_unpack(struct unpack *u, struct step *st)
{
	size_t room = st->size;
	uint8_t *next = st->out;

	if (u->is_ended)
		return st->in->n > 0 ? -EBADMSG : 0;
	BrotliDecoderResult r =
		BrotliDecoderDecompressStream(u->br, &st->in->n, &st->in->p, &room, &next, NULL);

	st->n = st->size - room;
	u->is_ended = r == BROTLI_DECODER_RESULT_SUCCESS;
	if (r != BROTLI_DECODER_RESULT_ERROR)
		return u->is_ended && st->in->n > 0 ? -EBADMSG : 0;
	BrotliDecoderErrorCode why = BrotliDecoderGetErrorCode(u->br);

	return why <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
			       why >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES
		       ? -E2BIG
		       : -EBADMSG;
}

static int unzstd_unpack(struct unpack *u, struct step *st)
{
	while (st->n < st->size && (st->in->n > 0 || !u->is_ended)) {
		ZSTD_inBuffer in = {.src = st->in->p, .size = st->in->n};
		ZSTD_outBuffer out = {.dst = st->out, .size = st->size, .pos = st->n};
		size_t r = ZSTD_decompressStream(u->zstd, &out, &in);

		if (ZSTD_isError(r)) /* the message, because the codes are not in the stable API */
			return strstr(ZSTD_getErrorName(r), "too much memory") ? -E2BIG : -EBADMSG;
		bool has_moved = in.pos > 0 || out.pos > st->n;

		advance_unpack(st->in, in.pos);
		st->n = out.pos;
		u->is_ended = r == 0;
		if (!has_moved)
			return 0;
	}
	return 0;
}

static int undo_unpack(struct unpack *u, struct step *st)
{
	switch (u->coding) {
	case UNPACK_GZIP:
		return inflate_some(u, st->in, st);
	case UNPACK_DEFLATE:
		return inflate_deflate(u, st);
	case UNPACK_BR:
		return unbrotli_unpack(u, st);
	case UNPACK_ZSTD:
		return unzstd_unpack(u, st);
	default:
		return pass_unpack(st);
	}
}

int unpack_feed(struct unpack *u, struct slice *in, uint8_t *out, size_t size, size_t *ret_n,
	struct err *err)
{
	struct step st = {.in = in, .out = out, .size = size};
	size_t before = in->n;

	if (u->is_dead)
		return err_set(err, -EBADMSG, "invalid %s coding", names[u->coding]);
	/* Nothing came yet: a library would report the end as an error. */
	int r = u->n_in + before == 0 ? 0 : undo_unpack(u, &st);

	u->n_in += before - in->n;
	u->n_out += st.n;
	if (r == 0 && u->n_out > UNPACK_FREE && u->n_out / UNPACK_MAX_RATIO > u->n_in)
		r = -E2BIG;
	if (r < 0) {
		u->is_dead = true;
		return err_set(err, r,
			r == -E2BIG ? "the %s coding exceeds its memory limit"
				    : "invalid %s coding",
			names[u->coding]);
	}
	*ret_n = st.n;
	return 0;
}

int unpack_end(const struct unpack *u, struct err *err)
{
	if (u->is_dead || (!u->is_ended && u->coding != UNPACK_IDENTITY && u->n_in > 0))
		return err_set(err, -EBADMSG, "the %s coding is truncated", names[u->coding]);
	return 0;
}
