/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_http - HTTP/1.1 of the local API, server side: bytes in, one request out.
 *
 * How      api_http_feed reads bytes until the request is complete (API_HTTP_READY) or rejected
 *          (API_HTTP_BAD, with a status and a message). It never reads a byte after the request.
 *          api_http_reset makes it ready for the next one. The api_http_put_* functions write heads
 *          of responses.
 * Trust    Peers are of the same user. Strict anyway: CRLF only, no folding, exact Content-Length,
 *          no chunked bodies, plain ASCII heads. Not the proxy's parser, which reads bytes of the
 *          guest (http1.h).
 * Owns     The bytes of one request; api_http_done frees them.
 * Limits   API_HTTP_MAX_*.
 * See      proto/PROTOCOL.api, api_http_test.c, src/sbxd/test/api_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/slice.h"

#define API_HTTP_MAX_HEAD 16384
#define API_HTTP_MAX_BODY (1 << 20)
#define API_HTTP_MAX_HEADERS 64
#define API_HTTP_MAX_PARTS 8 /* segments of the path, pairs of the query */

enum api_http_method {
	API_HTTP_GET,
	API_HTTP_POST,
	API_HTTP_PUT,
	API_HTTP_PATCH,
	API_HTTP_DELETE,
	API_HTTP_N_METHODS,
};

enum api_http_state { API_HTTP_IN_HEAD, API_HTTP_IN_BODY, API_HTTP_READY, API_HTTP_BAD };

struct api_http {
	enum api_http_state state;
	enum api_http_method method;
	char *part[API_HTTP_MAX_PARTS]; /* the path's segments, percent-decoded */
	size_t n_parts;
	struct {
		char *key, *value;
	} query[API_HTTP_MAX_PARTS];
	size_t n_query;
	bool keep;    /* the connection may be used again */
	bool upgrade; /* Connection: upgrade and Upgrade: sbx-stream */
	struct slice body;

	int status; /* of API_HTTP_BAD */
	const char *why;

	char *buf; /* head, then body; the pointers above point into it */
	size_t n, room, n_head, body_len;
	bool has_length, has_upgrade_token;
};

/* All zero is a valid start too. */
void api_http_reset(struct api_http *h);
void api_http_done(struct api_http *h);
/* Returns the number of bytes read; less than all only if the request is complete or rejected. */
size_t api_http_feed(struct api_http *h, struct slice in);
/* The value of a query key, or NULL. */
const char *api_http_query(const struct api_http *h, const char *key);
const char *api_http_method_name(enum api_http_method m);

/* Heads of responses into buf; gives the length. A buffer of API_HTTP_HEAD_ROOM is always enough.
 */
#define API_HTTP_HEAD_ROOM 256
/* `type` of a body; NULL: JSON. */
size_t api_http_put_head(char *buf, int status, const char *type, size_t body_len, bool keep);
size_t api_http_put_chunked_head(char *buf);
size_t api_http_put_upgrade(char *buf);
/* "1a\r\n" before a chunk of n bytes; "\r\n" comes after it. */
size_t api_http_put_chunk_size(char *buf, size_t n);
