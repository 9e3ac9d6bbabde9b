/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_resp - the client's half of h2: a canonical request as HTTP/2's fields, and fields as an
 * answer.
 *
 * How      h2_resp_put_req lists what goes to a server. The other way the caller gives each field
 *          of a header block to h2_resp_add; h2_resp_take converts it to a struct http_resp as
 *          http1 would have read it, for canon_make_resp. Trailers of an answer are read with
 *          h2_begin_trailers of h2.h.
 * Trust    Parses untrusted fields of a server. Runs in origin. Fields of a request may hold a
 *          credential: they are not copied.
 * Owns     Nothing: text is copied into the caller's arena, of HTTP_ARENA_SIZE.
 * Limits   HTTP_MAX_* of canon.h, H2_MAX_FIELDS of h2.h.
 * Never    I/O. Takes 101, a field of the connection, or a second :status.
 * See      h2.h, proto/PROTOCOL.canon, h2_resp_test.c, h2_resp_fuzz.c
 */
#pragma once

#include "h2.h"

struct h2_resp {
	struct h2_block block;
	uint16_t status; /* 0: not received yet */
};

void h2_resp_begin(struct h2_resp *r, struct arena *arena);
void h2_resp_add(struct h2_resp *r, struct slice name, struct slice value);
/* The block is complete; `was_head`: it answers HEAD; `ended`: no body follows. -EBADMSG with
 * the fault. */
int h2_resp_take(struct h2_resp *r, bool was_head, bool ended, struct http_resp *ret,
	struct http_fault *fault) MUST_CHECK;

/* Fields of a request, with the texts generated for it. */
struct h2_req_fields {
	struct http_header list[HTTP_MAX_HEADERS + HTTP_SPARE_HEADERS + 8];
	size_t n;
	char length[24];
};

/* Text of :path and :authority is in the arena. -EINVAL when the request is not canonical, or one
 * that HTTP/2 does not have (CONNECT, a websocket); -ENOBUFS. */
int h2_resp_put_req(
	const struct http_req *req, struct arena *arena, struct h2_req_fields *ret) MUST_CHECK;
