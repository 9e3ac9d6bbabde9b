/* SPDX-License-Identifier: Apache-2.0 */
#include "sigv4_chunks.h"

#include <errno.h>
#include <openssl/crypto.h>
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "sigv4_internal.h"

#define MAX_LINE 128 /* "100000;chunk-signature=" and 64 digits */

static const char EMPTY_HASH[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
static const char SIGNATURE[] = ";chunk-signature=";
static const char TRAILER_SIGNATURE[] = "x-amz-trailer-signature:";

void sigv4_chunks_init(
	struct sigv4_chunks *c, const struct sigv4_chain *chain, const struct sigv4 *s)
{
	*c = (struct sigv4_chunks){.chain = *chain, .has_trailer = s->has_trailer};
}

void sigv4_chunks_done(struct sigv4_chunks *c)
{
	free(c->buf);
	OPENSSL_cleanse(c, sizeof(*c));
	c->state = SIGV4_CHUNK_BAD;
}

static int refuse_chunks(struct sigv4_chunks *c, struct err *err, const char *why)
{
	c->state = SIGV4_CHUNK_BAD;
	return err_set(err, -EBADMSG, "%s", why);
}

static void make_room(struct sigv4_chunks *c, size_t size)
{
	if (size <= c->size)
		return;
	c->buf = xrealloc(c->buf, size);
	c->size = size;
}

/* Takes up to `max` bytes of what is left of `in`. */
static size_t take_chunks(struct sigv4_chunks *c, struct slice *in, size_t max)
{
	size_t n = MIN(max, in->n);

	if (n > 0)
		memcpy(c->buf + c->n, in->p, n);
	c->n += n;
	*in = canon_text_cut(*in, n, in->n);
	return n;
}

/* ---- signatures ---- */

/* The hash of what was signed with the chunk (nothing, ever) and of its bytes; a trailer has one
 * only. */
static int sign_next(struct sigv4_chunks *c, const char *what, struct slice first, struct slice hex)
{
	char text[64 + SIGV4_STAMP + sizeof(c->chain.scope) + 3 * SIGV4_HEX];
	struct wr wr = wr_init(text, sizeof(text));
	int r;

	wr_bytes(&wr, slice_from_str(what));
	wr_u8(&wr, '\n');
	wr_bytes(&wr, slice_of(c->chain.stamp, SIGV4_STAMP));
	wr_u8(&wr, '\n');
	wr_bytes(&wr, slice_of(c->chain.scope, c->chain.n_scope));
	wr_u8(&wr, '\n');
	wr_bytes(&wr, slice_of(c->chain.signature, SIGV4_HEX));
	wr_u8(&wr, '\n');
	wr_bytes(&wr, first);
	if (first.n > 0)
		wr_u8(&wr, '\n');
	wr_bytes(&wr, hex);
	r = wr_finish(&wr);
	return r < 0 ? r : sigv4_chain_next(&c->chain, slice_of(text, wr.n));
}

static int sign_chunk(struct sigv4_chunks *c)
{
	uint8_t hash[SIGV4_HASH];
	char hex[SIGV4_HEX];
	int r = sigv4_hash(slice_of(c->buf + c->data, c->n_data), hash);

	if (r < 0)
		return r;
	hex_encode(hash, SIGV4_HASH, hex);
	r = sign_next(c, "AWS4-HMAC-SHA256-PAYLOAD", slice_from_str(EMPTY_HASH),
		slice_of(hex, sizeof(hex)));
	if (r == 0)
		memcpy(c->buf + c->sign, c->chain.signature, SIGV4_HEX);
	return r;
}

/* ---- states; 1: a piece is complete, 0: continue, or an error ---- */

static int read_size(struct sigv4_chunks *c, struct slice line, struct err *err)
{
	size_t n = 0, size = 0;

	while (n < line.n && n < 8 && hex_digit(line.p[n]) >= 0)
		size = size << 4 | (size_t)hex_digit(line.p[n++]);
	if (n == 0 || line.n != n + sizeof(SIGNATURE) - 1 + SIGV4_HEX ||
		memcmp(line.p + n, SIGNATURE, sizeof(SIGNATURE) - 1) != 0 ||
		!sigv4_is_hex(canon_text_cut(line, n + sizeof(SIGNATURE) - 1, SIGV4_HEX)))
		return refuse_chunks(c, err, "a line of the signed chunks is invalid");
	if (size > SIGV4_MAX_CHUNK)
		return refuse_chunks(
			c, err, "a signed chunk is larger than 1 MiB and cannot be signed again");
	c->sign = c->line + n + sizeof(SIGNATURE) - 1;
	c->n_data = size;
	return 0;
}

/* Reads up to a line's end; 1 if it is complete, without its CR LF. */
static int read_line(
	struct sigv4_chunks *c, struct slice *in, size_t max, struct slice *ret, struct err *err)
{
	make_room(c, c->line + max);
	while (in->n > 0) {
		if (c->n - c->line == max)
			return refuse_chunks(c, err, "a line of the signed chunks is too long");
		(void)take_chunks(c, in, 1);
		if (c->buf[c->n - 1] != '\n')
			continue;
		if (c->n - c->line < 2 || c->buf[c->n - 2] != '\r')
			return refuse_chunks(c, err, "a line of the signed chunks is invalid");
		*ret = slice_of(c->buf + c->line, c->n - c->line - 2);
		return 1;
	}
	return 0;
}

static int on_line(struct sigv4_chunks *c, struct slice *in, struct err *err)
{
	struct slice line;
	int r = read_line(c, in, MAX_LINE, &line, err);

	if (r <= 0)
		return r;
	r = read_size(c, line, err);
	if (r < 0)
		return r;
	c->data = c->n;
	if (c->n_data == 0 && c->has_trailer) {
		c->line = c->n;
		c->state = SIGV4_CHUNK_TRAILER;
		return sign_chunk(c) == 0
			       ? 0
			       : refuse_chunks(c, err, "cannot sign a chunk of the body");
	}
	make_room(c, c->data + c->n_data + 2);
	c->state = c->n_data > 0 ? SIGV4_CHUNK_BYTES : SIGV4_CHUNK_END;
	return 0;
}

static int on_bytes(struct sigv4_chunks *c, struct slice *in)
{
	(void)take_chunks(c, in, c->data + c->n_data - c->n);
	if (c->n == c->data + c->n_data)
		c->state = SIGV4_CHUNK_END;
	return 0;
}

static int on_end(struct sigv4_chunks *c, struct slice *in, struct err *err)
{
	size_t end = c->data + c->n_data + 2;
	int r;

	(void)take_chunks(c, in, end - c->n);
	if (c->n < end)
		return 0;
	if (memcmp(c->buf + end - 2, "\r\n", 2) != 0)
		return refuse_chunks(c, err, "a signed chunk does not have its declared length");
	r = sign_chunk(c);
	if (r < 0)
		return refuse_chunks(c, err, "cannot sign a chunk of the body");
	c->state = c->n_data > 0 ? SIGV4_CHUNK_LINE : SIGV4_CHUNK_DONE;
	return 1;
}

/* "name:value\n" of each line in front of the signature's. */
static int sign_trailer(struct sigv4_chunks *c, size_t end)
{
	AUTO_SIGV4_SUM struct sigv4_sum sum;
	uint8_t hash[SIGV4_HASH];
	char hex[SIGV4_HEX];
	size_t from = c->data;
	int r;

	sigv4_sum_init(&sum);
	for (size_t i = c->data; i < end; i++) {
		if (c->buf[i] != '\r')
			continue;
		sigv4_sum_add(&sum, slice_of(c->buf + from, i - from));
		sigv4_sum_add_str(&sum, "\n");
		from = i + 2;
	}
	r = sigv4_sum_end(&sum, hash);
	if (r < 0)
		return r;
	hex_encode(hash, SIGV4_HASH, hex);
	return sign_next(
		c, "AWS4-HMAC-SHA256-TRAILER", slice_of(NULL, 0), slice_of(hex, sizeof(hex)));
}

static bool is_trailer_line(struct slice line)
{
	const uint8_t *colon = line.n ? memchr(line.p, ':', line.n) : NULL;

	return colon && canon_text_is_lower_token(slice_of(line.p, (size_t)(colon - line.p))) &&
	       canon_text_is_trimmed_value(
		       canon_text_cut(line, (size_t)(colon - line.p) + 1, line.n));
}

static int on_trailer_signature(struct sigv4_chunks *c, struct slice line, struct err *err)
{
	size_t n = sizeof(TRAILER_SIGNATURE) - 1;

	if (c->sign > 0 || !sigv4_is_hex(canon_text_cut(line, n, line.n)))
		return refuse_chunks(c, err, "the signature of the trailer is invalid");
	if (sign_trailer(c, c->line) < 0)
		return refuse_chunks(c, err, "cannot sign the trailer of the body");
	c->sign = c->line + n;
	memcpy(c->buf + c->sign, c->chain.signature, SIGV4_HEX);
	c->line = c->n;
	return 0;
}

static int on_trailer(struct sigv4_chunks *c, struct slice *in, struct err *err)
{
	struct slice line;
	size_t n = sizeof(TRAILER_SIGNATURE) - 1;
	int r;

	if (c->line == c->data)
		c->sign = 0; /* of the chunk; from now on the trailer's */
	r = read_line(c, in, c->data + SIGV4_MAX_TRAILER - c->line, &line, err);
	if (r <= 0)
		return r;
	if (line.n == 0 && c->sign == 0)
		return refuse_chunks(c, err, "the trailer of the body is not signed");
	if (line.n == 0) {
		c->state = SIGV4_CHUNK_DONE;
		return 1;
	}
	if (line.n > n && memcmp(line.p, TRAILER_SIGNATURE, n) == 0)
		return on_trailer_signature(c, line, err);
	if (c->sign > 0 || !is_trailer_line(line))
		return refuse_chunks(c, err, "a line of the trailer is invalid");
	c->line = c->n;
	return 0;
}

static int step_chunks(struct sigv4_chunks *c, struct slice *in, struct err *err)
{
	switch (c->state) {
	case SIGV4_CHUNK_LINE:
		return on_line(c, in, err);
	case SIGV4_CHUNK_BYTES:
		return on_bytes(c, in);
	case SIGV4_CHUNK_END:
		return on_end(c, in, err);
	case SIGV4_CHUNK_TRAILER:
		return on_trailer(c, in, err);
	case SIGV4_CHUNK_DONE:
		return refuse_chunks(c, err, "the body continues after its last signed chunk");
	case SIGV4_CHUNK_BAD:
		break;
	}
	return refuse_chunks(c, err, "the signed chunks of the body are invalid");
}

int sigv4_chunks_put(struct sigv4_chunks *c, struct slice in, size_t *ret_used,
	struct slice *ret_out, struct err *err)
{
	size_t all = in.n;
	int r = 0;

	if (c->was_given) {
		c->was_given = false;
		c->n = c->line = 0;
	}
	while (r == 0 && in.n > 0)
		r = step_chunks(c, &in, err);
	if (r < 0) {
		c->state = SIGV4_CHUNK_BAD;
		return r;
	}
	c->was_given = r == 1;
	*ret_used = all - in.n;
	*ret_out = slice_of(c->buf, r == 1 ? c->n : 0);
	return 0;
}
