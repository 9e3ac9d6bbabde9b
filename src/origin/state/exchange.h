/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange - one request of sbx-edge and its answer.
 *
 * How      exchange.c opens and ends an exchange, talk.c moves its data. The parts below get it as
 *          an argument and report its outcome through struct exchange_ops (ops.h).
 * Trust    Internal. An exchange may hold a credential in `filled` and `token`.
 */
#pragma once

#include "lib/os/ipc/origin_chan.h"
#include "lib/os/loop/loop.h"
#include "lib/secret/secret/secret.h"
#include "lib/wire/flow/out.h"
#include "lib/wire/http/http1.h"
#include "lib/wire/http/ws.h"
#include "lib/wire/mux/mux.h"
#include "limits.h"

struct line;
struct origin;
struct service_slot;

enum exchange_state {
	EXCHANGE_FREE,
	EXCHANGE_HEAD,	 /* edge's request is awaited */
	EXCHANGE_BODY,	 /* keeping its content until it is complete, to sign it */
	EXCHANGE_TOKEN,	 /* a token endpoint: waiting for all of the content */
	EXCHANGE_FLIGHT, /* a refresh: waiting for that of another exchange */
	EXCHANGE_LINE,	 /* a line is awaited */
	EXCHANGE_VALUE,	 /* has a line; the value is awaited */
	EXCHANGE_TALK,	 /* request and answer under way */
	EXCHANGE_STORE,	 /* answered with tokens; the vault is awaited */
	EXCHANGE_RAW,	 /* a websocket: bytes both ways */
	EXCHANGE_ENDING, /* sending the last data to edge, then waiting for its close */
	EXCHANGE_OVER,	 /* everything is closed; the report to the keeper is due */
};

/* One request and its answer. */
struct talk {
	uint8_t *head; /* the payload that req points into; kept while a retry is possible */
	size_t n_head;
	struct arena req_arena;
	struct http_req req; /* checked: contains no placeholder */
	struct canon_reader frames;
	struct canon_flow up, down;
	struct ws ws;	   /* of EXCHANGE_RAW: the server's position in a frame */
	struct sign *sign; /* sign.c's; NULL when the service's requests are not signed */
	bool is_deaf;	   /* the server reads no more of the request */
	bool is_said;	   /* the answer's head was sent to edge */
	bool is_done;	   /* the answer's end was sent to edge */
};

/* The socket of a clerk, which has one exchange. */
struct clerk_end {
	int fd; /* -1: closed, or a stream's */
	uint8_t *early;
	size_t n_early; /* read, and not used */
	bool is_shut;	/* nothing more is sent */
	bool waits;	/* EPOLLOUT is registered */
};

struct exchange {
	enum exchange_state state;
	uint32_t id; /* keeper's */
	uint32_t gen;
	uint64_t order;		 /* of their coming */
	struct ticket ticket;	 /* for the one request of edge */
	struct mux_stream *edge; /* NULL: closed, or a clerk's */
	struct clerk_end clerk;
	struct canon_reader frames; /* until the request is complete */
	struct talk *talk;
	struct token *token; /* NULL: not for a token endpoint */
	struct line *line;
	void *stream;			 /* of the line's protocol */
	const struct service_slot *slot; /* NULL: this request gets no credential */
	enum origin_which which;
	struct secret filled; /* output of sign.c, until the head was sent */
	unsigned n_tries;
	unsigned n_lost; /* new lines closed before it was sent; limit ORIGIN_TRIES */
	struct out to_edge;
	struct scrub_state *scrub; /* scrub.c's; NULL without one */
	uint32_t captures;	   /* rules of the service for its response, a bit each */
	struct capture *capture;   /* capture.c's; NULL: the response is not held */
	struct sweep *pinned;	   /* has the values that were sent with it; NULL: none was */
	struct loop_timer scrub_timer;
	uint64_t n_up, n_down;
	struct loop_timer timer;
	struct origin_result result; /* accumulated; sent once */
	bool result_due, result_said, closed_due;
	bool wants_h1;	 /* the server requires HTTP/1.1 for it */
	bool is_stopped; /* its line has more of the answer, waiting for answer_has_room */
};

/* state.c */
struct loop_key exchange_key(const struct origin *o, const struct exchange *x, enum origin_ev kind);
void exchange_set_timer(struct origin *o, struct exchange *x, uint64_t ms);
/* edge.c: of the stream to edge, or of the socket to a clerk (fd, which it takes; else -1). */
static inline bool exchange_has_edge(const struct exchange *x)
{
	return x->edge || x->clerk.fd >= 0;
}
int exchange_open_edge(struct origin *o, struct exchange *x, int fd) MUST_CHECK;
/* The unread bytes: their number, 0 at the end, or -EAGAIN; then n of them are used. */
ssize_t exchange_peek(struct exchange *x, struct slice *ret) MUST_CHECK;
void exchange_take(struct exchange *x, size_t n);
/* Reads: the number of bytes, 0 at the end, or -EAGAIN. */
ssize_t exchange_recv(struct exchange *x, uint8_t *buf, size_t n) MUST_CHECK;
/* Sends to_edge. 0 if that is all, -EAGAIN, or -EPIPE; *n_sent grows. */
int exchange_flush(struct origin *o, struct exchange *x, uint64_t *n_sent) MUST_CHECK;
/* Another event follows, after those of others. */
void exchange_again(struct origin *o, struct exchange *x);
void exchange_ignore_room(struct origin *o, struct exchange *x);
/* Sends the rest of to_edge and ends our direction. 0 when all is over, -EAGAIN. */
int exchange_end_edge(struct origin *o, struct exchange *x) MUST_CHECK;
bool exchange_is_settled(const struct exchange *x);
/* Nothing more is sent to edge, and nothing read. */
void exchange_close_edge(struct origin *o, struct exchange *x);
/* Its request was checked and is complete: it waits for a line. */
void exchange_want_line(struct origin *o, struct exchange *x);
