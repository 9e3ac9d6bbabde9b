/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1 - HTTP/1.1 requests and responses, bytes in, events out.
 *
 * How      http1_read reads bytes and yields events: HEAD, DATA slices, END with trailers, or
 *          ERROR. Every byte is read twice: our own scanner decides where lines, chunks and the
 *          message end, llhttp (strict, no lenient flag) reads the same bytes, and when the two do
 *          not find the same method, target, headers, framing and data, the message is refused. One
 *          message at a time: bytes after it stay unread until http1_next.
 * Trust    Parses untrusted input. Runs in edge (guest side) and egress (origin side). Holds no
 *          secret.
 * Owns     Nothing on the heap; what it yields points into the caller's arena, DATA into the input.
 * Limits   HTTP_MAX_* of canon.h, HTTP1_MAX_*. Over a limit: ERROR, and the reader is dead.
 * Never    Forwards a raw head. Callers use canon_make_req and canon_make_resp.
 * See      http1_test.c, http1_fuzz.c, tests/proxy/smuggling.wire
 */
#pragma once

#include "lib/wire/http/canon/canon.h"

#define HTTP1_MAX_CHUNK_LINE 256  /* size and extensions of one chunk */
#define HTTP1_MAX_EXTENSIONS 4096 /* bytes of chunk extensions in one message */
#define HTTP1_MAX_CHUNK_DIGITS 15
#define HTTP1_MAX_INFORMATIONAL 16 /* 1xx heads before the answer */

enum http1_side { HTTP1_REQUESTS, HTTP1_RESPONSES };

enum http1_state {
	HTTP1_IN_HEAD,	     /* also between messages: see http1_is_idle */
	HTTP1_IN_LENGTH,     /* `left` bytes of data follow */
	HTTP1_IN_CHUNK_LINE, /* size, extensions, CRLF */
	HTTP1_IN_CHUNK,	     /* `left` bytes of data follow */
	HTTP1_IN_CHUNK_END,  /* CRLF after the data */
	HTTP1_IN_TRAILERS,
	HTTP1_IN_CLOSE,	 /* data until http1_eof */
	HTTP1_IN_TUNNEL, /* anything until http1_eof */
	HTTP1_END_DUE,	 /* everything was read, END is to be yielded */
	HTTP1_DONE,	 /* waits for http1_next */
	HTTP1_FAILED,
	HTTP1_N_STATES,
};

enum http1_event_kind { HTTP1_EV_HEAD, HTTP1_EV_DATA, HTTP1_EV_END, HTTP1_EV_ERROR };

struct http1_event {
	enum http1_event_kind kind;
	struct http_req *req;	       /* HEAD of a request */
	struct http_resp *resp;	       /* HEAD of a response; 1xx ones come before the answer */
	struct slice data;	       /* DATA */
	struct http_headers *trailers; /* END, perhaps with none */
	struct http_fault fault;       /* ERROR */
};

struct http1 {
	enum http1_side side;
	enum http1_state state;
	struct arena *arena;
	struct http1_twin *twin; /* llhttp and its results, in the arena */
	struct http_fault fault;

	uint8_t *lines; /* head or trailers so far */
	size_t n_lines, n_line, n_start;
	bool after_cr, has_start;

	uint64_t left, n_data;
	size_t n_digits, n_extensions;
	bool in_extension;
	unsigned int n_informational;

	struct http_req req;
	struct http_resp resp;
	struct http_headers trailers;
	/* Responses: what the request was. */
	bool was_head, was_connect, was_websocket;
};

/* Reads requests, the first one into the arena. */
void http1_init_requests(struct http1 *h, struct arena *arena);
/* Reads the response to one request (only its method and websocket count). */
void http1_init_response(struct http1 *h, struct arena *arena, const struct http_req *req);
/* Requests, after END: makes ready for the next one; the arena must be empty. */
void http1_next(struct http1 *h, struct arena *arena);
/* Reads from the front of *in. True with an event (call again), false when it needs more bytes or
 * waits for http1_next. After ERROR always ERROR. */
bool http1_read(struct http1 *h, struct slice *in, struct http1_event *ret);
/* The peer has ended its side. True with END or ERROR when a message was under way. */
bool http1_eof(struct http1 *h, struct http1_event *ret);
/* Between messages, not one byte of the next read: the connection may close here. */
bool http1_is_idle(const struct http1 *h);
