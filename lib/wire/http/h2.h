/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2 - HTTP/2's fields and a canonical message, both ways; no frames, no compression.
 *
 * How      The caller gives each field of a header block, as it was decoded, to h2_add; h2_take_req
 *          converts it to a struct http_req as http1 would have read it, for canon_make_req.
 *          h2_take_trailers does the same for the block after a body. The other way h2_put_resp and
 *          h2_put_trailers list the fields of an answer. The first fault stays: a block is fed to
 *          its end and then rejected.
 * Trust    Parses untrusted fields: what HTTP/1.1 would read differently from HTTP/2 (a line end in
 *          a value, a colon in a name, a second length) is rejected here. Runs in edge. Holds no
 *          secret.
 * Owns     Nothing: text is copied into the caller's arena, of HTTP_ARENA_SIZE.
 * Limits   HTTP_MAX_* of canon.h, H2_MAX_FIELDS. Over a limit: 431.
 * Never    I/O. Gives a field of the connection or of framing on.
 * See      proto/PROTOCOL.canon, h2_test.c, h2_fuzz.c
 */
#pragma once

#include "lib/wire/http/canon/canon.h"

/* As sent: a cookie may come in many crumbs. After they are joined HTTP_MAX_HEADERS counts. */
#define H2_MAX_FIELDS 256
/* The size of a field in addition to its bytes, as in SETTINGS_MAX_HEADER_LIST_SIZE. */
#define H2_FIELD_COST 32

enum h2_pseudo { H2_METHOD, H2_SCHEME, H2_PATH, H2_AUTHORITY, H2_N_PSEUDO };

/* One header block under way. */
struct h2_block {
	struct arena *arena;
	struct slice pseudo[H2_N_PSEUDO];
	bool has[H2_N_PSEUDO];
	bool is_trailers;
	struct http_headers headers;
	size_t n_cost, n_crumbs, n_crumb_bytes;
	struct http_fault fault; /* status 0: none so far */
};

void h2_begin_req(struct h2_block *b, struct arena *arena);
void h2_begin_trailers(struct h2_block *b, struct arena *arena);
/* Copies what it keeps. After a fault it keeps nothing more. */
void h2_add(struct h2_block *b, struct slice name, struct slice value);
/* What the whole block costs so far, refused fields included. */
static inline size_t h2_cost(const struct h2_block *b)
{
	return b->n_cost;
}
/* The block is complete. `ended`: no body follows. -EBADMSG with the fault. */
int h2_take_req(
	struct h2_block *b, bool ended, struct http_req *ret, struct http_fault *fault) MUST_CHECK;
int h2_take_trailers(
	struct h2_block *b, struct http_headers *ret, struct http_fault *fault) MUST_CHECK;

/* Fields of a response, with the texts generated for it. */
struct h2_fields {
	struct http_header list[HTTP_MAX_HEADERS + HTTP_SPARE_HEADERS + 2];
	size_t n;
	char status[4], length[24];
};

/* -EINVAL when the answer is not canonical, or is one that HTTP/2 does not have (101). Text stays
 * where it is. */
int h2_put_resp(const struct http_resp *resp, struct h2_fields *ret) MUST_CHECK;
int h2_put_trailers(const struct http_headers *trailers, struct h2_fields *ret) MUST_CHECK;
/* A refusal of deny.h, as http1 has read it: not canonical: its Proxy-Status is for the peer. */
int h2_put_refusal(const struct http_resp *resp, struct h2_fields *ret) MUST_CHECK;
