/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigv4_chunks - the body of an upload in signed chunks, signed again on its way.
 *
 * How      STREAMING-AWS4-HMAC-SHA256-PAYLOAD and its form with a trailer: "SIZE;chunk-signature=64
 *          hex" CR LF, the bytes, CR LF, and each signature covers the one before. A signature
 *          precedes the bytes it covers, so one chunk at a time is kept. Our signature has the
 *          length of the guest's and replaces it, so the length of the body stays.
 * Trust    Parses an untrusted body. Has a key derived from the real one until sigv4_chunks_done.
 * Owns     One chunk, on the heap, as long as the chunk.
 * Limits   SIGV4_MAX_CHUNK a chunk, SIGV4_MAX_TRAILER the trailer.
 * Never    Returns a byte of a chunk before the chunk is complete and has our signature.
 * See      sigv4.h, sigv4_chunks_test.c
 */
#pragma once

#include "sigv4.h"

#define SIGV4_MAX_CHUNK (1U << 20)
#define SIGV4_MAX_TRAILER 8192

enum sigv4_chunks_state {
	SIGV4_CHUNK_LINE,
	SIGV4_CHUNK_BYTES,
	SIGV4_CHUNK_END, /* the CR LF behind bytes */
	SIGV4_CHUNK_TRAILER,
	SIGV4_CHUNK_DONE,
	SIGV4_CHUNK_BAD,
};

struct sigv4_chunks {
	enum sigv4_chunks_state state;
	struct sigv4_chain chain;
	bool has_trailer, was_given;
	uint8_t *buf;
	size_t size, n;
	size_t line;   /* where the present line begins */
	size_t sign;   /* where the signature of the chunk stands */
	size_t data;   /* where its bytes begin */
	size_t n_data; /* and how many it has */
};

/* Takes a copy of the chain. */
void sigv4_chunks_init(
	struct sigv4_chunks *c, const struct sigv4_chain *chain, const struct sigv4 *s);
void sigv4_chunks_done(struct sigv4_chunks *c);
/*
 * Reads some of `in` and returns how much. *ret_out is what to send now: empty, or a complete
 * signed piece, valid until the next call. Call it again until `in` is empty. -EBADMSG with a
 * message: the body must not continue.
 */
int sigv4_chunks_put(struct sigv4_chunks *c, struct slice in, size_t *ret_used,
	struct slice *ret_out, struct err *err) MUST_CHECK;
/* Whether the body may end here. */
static inline bool sigv4_chunks_is_whole(const struct sigv4_chunks *c)
{
	return c->state == SIGV4_CHUNK_DONE;
}
