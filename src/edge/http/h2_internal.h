/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_internal - declarations shared by h2.c (HTTP/2 session) and h2_stream.c (streams).
 *
 * How      nghttp2 parses frames and header compression only. Its checks of HTTP messages are off:
 *          lib/wire/http/h2.h checks each request and gives the reason of a refusal. A stream is a
 *          struct conn of kind CONN_STREAM that the HTTP engine handles; its `in` and `out` are the
 *          bodies. No connection is closed inside a callback of nghttp2.
 * Trust    Parses untrusted input. Handles no secrets.
 * Owns     The session and a struct h2_stream for each stream.
 * Limits   H2_*. A guest that exceeds one gets GOAWAY, and its connection is closed.
 * See      h2_test.c, h2_fuzz.c
 */
#pragma once

#include <nghttp2/nghttp2.h>
#include "lib/base/bucket.h"
#include "lib/wire/http/h2.h"
#include "proxy_internal.h"

#define H2_CONN_WINDOW (H2_MAX_STREAMS * H2_WINDOW)
/* Size of one header block, decompressed: above HTTP_MAX_HEAD it is rejected, above this it is a
 * bomb. */
#define H2_MAX_BLOCK (4 * HTTP_MAX_HEAD)
/* Limits for frames without progress, and resets in either direction: a burst, and a rate per
 * second. */
#define H2_JUNK_BURST 1000
#define H2_JUNK_PER_S 500
/* Frames that wait to be sent because the guest does not read. */
#define H2_MAX_QUEUED 2000
#define H2_MAX_ACKS 200
#define H2_MAX_SETTINGS 32

/* What the timer of the connection is for. */
enum h2_wait { H2_WAIT_NOTHING, H2_WAIT_IDLE, H2_WAIT_BLOCK };

struct h2 {
	struct edge *e;
	struct conn *c; /* the connection */
	nghttp2_session *session;
	struct conn *streams; /* the first of the list */
	unsigned n_streams;
	/* The current header block, its stream (NULL: none) and its size. */
	struct h2_block block;
	struct conn *heading;
	size_t n_block;
	struct bucket junk;
	const uint8_t *out; /* output of nghttp2 that did not fit yet */
	size_t n_out;
	const char *why; /* not NULL: reason for the end of the connection */
	bool busy, again;
	/* A header block of a stream is incomplete: no other frame can precede its end. */
	bool in_block;
	enum h2_wait wait;
};

struct h2_stream {
	struct h2 *h2;
	struct conn *prev, *next;
	/* The request: the body announced by its head, and its end. */
	struct canon_flow flow;
	struct http_headers trailers;
	struct http_fault fault;
	/* The answer. */
	unsigned n_heads; /* passed to nghttp2 and not sent */
	size_t n_head_bytes;
	bool answered; /* its head is among them, or was */
	struct arena tail_arena;
	struct http_headers tail;
};

/* h2.c */
/* Schedules a send before the loop waits. */
void h2_touch(struct h2 *h);
/* A call of nghttp2 failed: closes only this connection. */
void h2_fail(struct h2 *h);
/* Sets the timer for the current activity. */
void h2_set_timer(struct h2 *h);

/* h2_stream.c: frames read by nghttp2. Returns NULL if there is no slot for another stream. */
struct conn *h2_stream_new(struct h2 *h, uint32_t id);
void h2_stream_on_head(struct h2 *h, struct conn *c, bool ended);
void h2_stream_on_trailers(struct h2 *h, struct conn *c, bool ended);
/* Returns -ENOBUFS if there is more than the window allows. */
int h2_stream_on_data(struct h2 *h, struct conn *c, struct slice bytes) MUST_CHECK;
void h2_stream_on_end(struct h2 *h, struct conn *c);
/* A frame of the stream was sent. */
void h2_stream_on_sent(struct h2 *h, struct conn *c, const nghttp2_frame *frame);
