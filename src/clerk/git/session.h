/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session - one request of edge: its socket, the exchanges with sbx-origin, the keeper's channel.
 *
 * How      session.c handles messages of the keeper, edge.c the socket of edge, line.c one exchange
 *          with sbx-origin at a time: what the push needs of the repository, then the request
 *          itself. A push is read to its end before it is judged. It is sent from the memory in
 *          which it was judged.
 * Trust    Bytes of the guest and of the server, both in canonical frames. Holds no secret.
 * Owns     The sockets; the process ends with the session.
 * Limits   struct clerk_open; SESSION_MAX_RECORDS.
 * Never    Sends a byte of a push before the keeper has decided.
 */
#pragma once

#include "clerk.h"
#include "lib/os/worker/control.h"
#include "lib/wire/flow/out.h"
#include "lib/wire/git/gitadvert.h"
#include "lib/wire/http/canon/canon_named.h"

#define SESSION_MAX_RECORDS (8u << 20) /* bytes of effects; CLERK_MAX_EFFECTS of them */

enum session_ev { SESSION_EV_CONTROL, SESSION_EV_EDGE, SESSION_EV_LINE, SESSION_EV_AGAIN };

enum line_use {
	LINE_NONE,
	LINE_FETCH,  /* what the push needs */
	LINE_ADVERT, /* the list of refs, which is rewritten */
	LINE_RELAY,  /* an answer that passes unchanged: of a push, or another one */
};

struct session {
	struct control control;
	struct loop loop;
	struct clerk *clerk;
	struct clerk_open open;
	char *list; /* data/airlock/autorun.list */
	size_t n_list;

	/* edge.c */
	int edge_fd;
	struct canon_reader edge_frames;
	struct canon_flow up;
	uint8_t *head; /* the payload that req points into */
	struct arena arena;
	struct http_req req;
	bool has_req, is_ended; /* the head, and all of the request */
	struct out to_edge;
	uint8_t *answer; /* our own, and how much of it was queued */
	size_t n_answer, answer_at;
	bool is_answered; /* nothing follows what is queued */

	/* line.c */
	int line_fd, given_fd; /* given_fd: before the request has ended */
	bool is_line_watched;
	enum line_use use;
	struct canon_reader line_frames;
	struct canon_flow down;
	struct out to_line;
	struct slice due[2]; /* the rest of the body */
	bool is_end_due;
	struct gitadvert advert;
	bool is_good;  /* the answer so far */
	uint8_t *need; /* the body of the request to upload-pack */
	size_t n_need;

	/* what the push does */
	uint8_t *records;
	size_t n_records, n_effects, records_at;
	bool is_judged, is_report_due, is_want_due;
	char why_not[CLERK_MAX_TEXT]; /* why the repository could not be read */
	struct clerk_judged judged;
};

extern const struct control_ops session_control;

/* session.c */
void session_init(struct session *s);
void session_done(struct session *s);
/* The last message: the keeper ends this process. */
void session_end(struct session *s);
/* Sends WANT, or EFFECTS and JUDGED, as far as the keeper reads. */
void session_report(struct session *s);
/* The push is unknown. */
void session_fail(struct session *s, const char *why);

/* edge.c */
int edge_open(struct session *s, int fd) MUST_CHECK;
void edge_on_event(struct session *s, uint32_t events);
/* Sends what is queued; the session ends when all of the answer was sent. */
void edge_flush(struct session *s);
/* The push is refused. */
void edge_refuse(struct session *s, const struct clerk_decided *why);
/* The text of an error instead of an answer. */
void edge_fail(struct session *s, const char *why);

/* line.c */
/* The request to upload-pack for a need of the push; then session_report sends WANT. */
void line_need(struct session *s, struct slice body);
/* The headers of it that rules name: CANON_NAMED_MAX bytes and a NUL. -EINVAL. */
int line_get_named(struct session *s, char *named) MUST_CHECK;
void line_on_given(struct session *s, int fd);
void line_not_given(struct session *s);
/* Sends the request of edge. */
void line_send(struct session *s, int fd);
void line_on_event(struct session *s, uint32_t events);
/* Edge has taken bytes: there may be room for more of the answer. */
void line_resume(struct session *s);
void line_close(struct session *s);
