/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_h2 - HTTP/2 on a line of sbx-origin: line_h2.c (the line, requests), line_h2_answer.c
 * (answers).
 *
 * How      One nghttp2 session per line, with many exchanges, each a struct h2_stream. Data of the
 *          server goes to the exchange immediately, or into the stream's `held` while edge does not
 *          read. The window limits `held` and opens again when edge has read the data. While
 *          nghttp2 reads (in_recv), exchanges may leave, but the line is kept (line_hold).
 *          Callbacks of nghttp2 only note the end of a stream; h2_settle handles it. No stream is
 *          freed while the list is walked (is_walking): settling one stream can send, and sending
 *          the reset of another makes nghttp2 close that one. h2_sweep frees them after the walk.
 * Trust    A verified server, which can still be hostile. The request's fields contain the
 *          credential: never indexed, and all memory of the session is wiped when it is freed.
 * Owns     The session and its streams.
 * Limits   H2_MAX_STREAMS exchanges, H2_MAX_WINDOW held for each of them and H2_SPARE_WINDOW for
 *          all beyond their first window, H2_NOISE frames without data, including unknown ones,
 *          H2_MAX_INTERIM, H2_MAX_BOMB.
 * See      origin.h, lib/wire/http/h2_resp.h, line_h2_test.c
 */
#pragma once

#include <nghttp2/nghttp2.h>
#include "lib/base/bufq.h"
#include "lib/wire/http/h2_resp.h"
#include "protocol.h"

#define H2_MAX_STREAMS 100
#define H2_WINDOW (128 * 1024)	      /* of a stream at its start */
#define H2_MAX_WINDOW (1024 * 1024)   /* of one whose reader is fast */
#define H2_SPARE_WINDOW (4096 * 1024) /* growth limit of all streams of a line */
#define H2_LINE_WINDOW (4096 * 1024)
#define H2_MAX_UP (4 * OUT_READ) /* waiting content of a request */
#define H2_MAX_INTERIM 32	 /* 1xx answers to one request */
#define H2_MAX_BOMB (4 * HTTP_MAX_HEAD)
/* Limit for such frames: a burst, then one per millisecond; a frame and H2_NOISE_BYTES of it count
 * as one each. */
#define H2_NOISE 4000
#define H2_NOISE_BYTES 16
#define H2_EXPECT_MS 1000 /* for a 100: some HTTP/2 servers never send it */
#define H2_SEND 16384
#define H2_SEND_ROOM (H2_SEND + 24576) /* plus one frame */

struct h2_stream {
	struct h2_line *h;
	struct exchange *x; /* NULL: it has left, and the stream is being reset */
	struct h2_stream *next, *prev;
	int32_t id; /* 0: closed */
	uint32_t close_code;
	/* the request */
	struct out up;
	uint64_t n_up; /* bytes of content that were accepted */
	struct arena up_arena;
	struct http_headers up_trailers;
	bool up_ended, up_said; /* edge has ended; that was sent */
	bool is_full;		/* edge is not read until there is room */
	bool is_unsent;		/* the head was never sent */
	uint64_t expect_until_ms;
	uint64_t n_read_before; /* of the line, at its start */
	/* the answer */
	bool was_head, said_final, has_end, is_due;
	enum http_body_kind kind;
	unsigned n_interim;
	struct bufq held;
	struct arena down_arena;
	struct http_headers down_trailers;
	size_t window, n_given;
};

struct h2_line {
	struct origin *o;
	struct line *l;
	nghttp2_session *session;
	struct h2_stream *first;
	unsigned n_streams;
	struct arena arena;	/* of the current header block, also between two reads */
	struct arena req_arena; /* of a request, while it is submitted */
	struct h2_resp resp;
	struct h2_block trailers;
	struct secret out; /* frames, which may hold the credential */
	size_t out_n, out_at;
	uint64_t n_read;
	size_t spare_window;
	int64_t noise;	    /* remaining budget */
	uint64_t n_carried; /* bytes of frames with payload, not read yet */
	uint64_t n_wasted;  /* of the others, not counted yet */
	uint64_t noise_ms;
	bool in_recv, is_deaf;
	bool is_walking; /* `first` is being walked: no stream is freed */
	bool is_due;	 /* h2_settle has work */
	const char *why; /* why it is broken; NULL: not broken */
};

/* line_h2_answer.c */
void h2_set_answer_callbacks(nghttp2_session_callbacks *callbacks);
/* Reports ends, timeouts and room to the exchanges. The line is held. */
void h2_settle(struct h2_line *h);
/* Forwards held data as far as edge has room. Returns false if the exchange has left. */
bool h2_give_held(struct h2_stream *s) MUST_CHECK;

/* line_h2.c */
void h2_free_stream(struct h2_stream *s);
/* Frees closed streams whose exchange has left. Not while the list is walked. */
void h2_sweep(struct h2_line *h);
size_t h2_room(const struct h2_stream *s);
/* The line is broken: ends everything on it with the reason. */
void h2_break(struct h2_line *h, const char *why);
