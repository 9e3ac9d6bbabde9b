/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session - one request of edge in an sbx-clerk: what all such programs do alike.
 *
 * How      session_main runs a program: the seal, messages of the keeper (session.c), the socket of
 *          edge (session_edge.c), one exchange with sbx-origin at a time (session_line.c). The
 *          program has a table of functions, struct session_program. They get the head and the body
 *          of the request, add records with session_add, and end with session_judge. The request is
 *          read to its end before it is judged. What is sent is the memory that was judged.
 * Trust    Bytes of the guest and of the server, both in canonical frames. Holds no secret.
 * Owns     The sockets; the process ends with the session.
 * Limits   struct clerk_open; SESSION_MAX_RECORDS.
 * Never    Sends a byte of the request before the keeper has decided.
 * See      clerk_chan.h, src/clerk/git/README
 */
#pragma once

#include "clerk_chan.h"
#include "lib/os/jail/jail.h"
#include "lib/os/worker/control.h"
#include "lib/wire/flow/out.h"
#include "lib/wire/http/canon/canon.h"

#define SESSION_MAX_RECORDS (8u << 20) /* bytes of effects; CLERK_MAX_EFFECTS of them */
#define SESSION_WANT_HEADERS 8
#define SESSION_WANT_PATH (HTTP_MAX_TARGET + 1)

struct session;

/* A request of the program's own: the bytes of req are in it, or in the request of edge. */
struct session_want {
	char path[SESSION_WANT_PATH];
	struct http_header list[SESSION_WANT_HEADERS];
	struct http_req req; /* its body is what session_want got */
};

/* An answer that does not pass unchanged. */
typedef void session_out(void *arg, struct slice bytes);
struct session_rewrite {
	bool (*head)(struct session *s, const struct http_resp *resp); /* false: it does pass */
	int (*data)(struct session *s, struct slice data, session_out *out, void *arg);
	int (*end)(struct session *s);
};

struct session_program {
	const char *name;     /* sbx-clerk-git */
	const char *too_much; /* why it is unknown: more effects than fit */
	enum jail_profile profile;
	int (*selftest)(void);
	/* The file of CONFIG, after OPEN. Negative: the keeper violated the protocol. */
	int (*open)(struct session *s, struct slice config);
	void (*close)(struct session *s);
	void (*head)(struct session *s);
	void (*body)(struct session *s, struct slice data);
	void (*end)(struct session *s); /* of the request */
	/* The parts of the body, when it is sent. */
	void (*get_body)(struct session *s, struct slice ret[2]);
	/* The answer of a refusal, by session_answer; its type, or NULL: 403 with the text. */
	const char *(*refuse)(struct session *s, const struct clerk_decided *why);
	int (*skip)(struct slice *records); /* 1: one record was taken off */
	/* After session_want; NULL: it is never called. -EINVAL: there is no such request. */
	int (*make_want)(struct session *s, struct session_want *ret);
	bool (*take_head)(struct session *s, const struct http_resp *resp); /* is it good? */
	void (*take_data)(struct session *s, struct slice data);
	void (*take_end)(struct session *s, bool complete);
};

/* Of a line: what the program needs, or the answer of the request. */
enum session_line { SESSION_LINE_NONE, SESSION_LINE_WANT, SESSION_LINE_RELAY };

struct session {
	const struct session_program *program;
	void *own; /* the program's */
	struct control control;
	struct loop loop;
	struct clerk_open open;
	char *config;
	size_t n_config;
	const struct session_rewrite *rewrite; /* NULL: the answer passes unchanged */
	/* session_edge.c */
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
	/* session_line.c */
	int line_fd, given_fd; /* given_fd: before the request has ended */
	bool is_line_watched;
	enum session_line use;
	struct canon_reader line_frames;
	struct canon_flow down;
	struct out to_line;
	struct slice due[2];	  /* the rest of the body */
	bool is_end_due, is_good; /* is_good: the answer so far */
	uint8_t *need;		  /* the body of a want */
	size_t n_need;

	/* what the request does */
	uint8_t *records;
	size_t n_records, n_effects, records_at;
	bool is_judged, is_report_due, is_want_due;
	char why_not[CLERK_MAX_TEXT]; /* why a want was not given */
	struct clerk_judged judged;
};

int session_main(int argc, char **argv, const struct session_program *program);

/* For the program. One record of an effect; what does not fit makes the request unknown. */
void session_add(struct session *s, struct slice record);
void session_fail(struct session *s, const char *why); /* it is unknown */
void session_judge(struct session *s);		       /* nothing is added any more */
/* An exchange with this body, which make_want describes. */
void session_want(struct session *s, struct slice body);
void session_answer(void *session, struct slice bytes);
