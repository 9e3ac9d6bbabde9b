/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clerk_chan - the messages between a keeper and one sbx-clerk-git or sbx-clerk, on its fd 3.
 *
 * How      SOCK_SEQPACKET, struct ipc_msg; clerk_chan is the table of proto/PROTOCOL.ipc. A process
 *          is for one request of edge: a push, the list of refs before one, or calls of GraphQL.
 *          WANT requests an exchange for `POST REPOSITORY/git-upload-pack`, LINE brings it.
 *          EFFECTS (of calls: clerk_call.h) as often as needed, JUDGED, then DECIDED, with a socket
 *          to sbx-origin if the request may be sent. The list of refs: DECIDED follows OPEN.
 * Trust    keeper: the clerk reads what the guest wrote and may be compromised by it: its effects
 *          are its word. The host, the repository and the service are not: the keeper has them.
 *          clerk: also checks the keeper.
 * Limits   CLERK_MAX_*, IPC_MAX_BODY. Any violation: the receiver drops the peer.
 * See      proto/PROTOCOL.ipc, clerk_chan_test.c, clerk_chan_fuzz.c
 */
#pragma once

#include "lib/base/hash/sha256.h"
#include "lib/os/ipc/edge_chan.h"

#define CLERK_MAX_REF 1024
#define CLERK_MAX_PATH 4096
#define CLERK_MAX_TEXT 384
#define CLERK_MAX_REPORT 2048
#define CLERK_MAX_PREVIEW 8192
#define CLERK_MAX_EFFECTS 10000
#define CLERK_MAX_WANTS 80 /* WANT messages of a push */

enum clerk_msg {
	CLERK_HELLO = CHAN_HELLO,
	CLERK_CONFIG,
	CLERK_OPEN,
	CLERK_WANT,
	CLERK_LINE,
	CLERK_EFFECTS,
	CLERK_JUDGED,
	CLERK_DECIDED,
	CLERK_DONE,
	CLERK_N_MSGS,
};

enum clerk_phase {
	CLERK_PHASE_START,
	CLERK_PHASE_CONFIG,
	CLERK_PHASE_OPEN,
	CLERK_PHASE_READ,
	CLERK_PHASE_JUDGED,
	CLERK_PHASE_SEND,
	CLERK_PHASE_END,
	CLERK_N_PHASES,
};

extern const struct chan clerk_chan;

struct clerk_open {
	bool is_advert; /* the list of refs; else a push */
	bool paths;	/* an effect for each changed file */
	bool files;	/* changed files in the preview, if they can be known */
	uint32_t max_bytes;
	char wants[EDGE_MAX_WANTS]; /* names of the headers that WANT reports */
};

struct clerk_line {
	bool given;		   /* then there is a socket */
	char text[CLERK_MAX_TEXT]; /* why not */
};

enum clerk_verb {
	CLERK_PUSH,
	CLERK_CREATE,
	CLERK_DELETE,
	CLERK_FORCE,
	CLERK_TAG,
	CLERK_N_VERBS,
};

struct clerk_effect {
	enum clerk_verb verb;
	bool no_path; /* no file is changed */
	struct slice ref, path;
};

struct clerk_judged {
	bool is_unknown;		     /* it cannot be sent; `text` says why */
	uint8_t commands[SHA256_BYTES];	     /* of the refs with their objects, or of the body */
	char text[CLERK_MAX_TEXT];	     /* of calls also why one is unknown */
	char preview[CLERK_MAX_PREVIEW + 1]; /* any bytes */
};

struct clerk_decided {
	bool allowed;		       /* then there is a socket */
	char why[CLERK_MAX_TEXT];      /* one line, for each ref */
	char report[CLERK_MAX_REPORT]; /* lines for the person */
};

/* "push", "create" ... as rules name them. */
const char *clerk_verb_name(enum clerk_verb verb);

/* clerk's side. HELLO: chan_send_hello. DONE: chan_send_plain. */
int clerk_send_want(int sock, const char *named) MUST_CHECK;
int clerk_send_effects(int sock, struct slice records) MUST_CHECK;
int clerk_send_judged(int sock, const struct clerk_judged *judged) MUST_CHECK;
/* Sets wr->bad if there is no room for all of it. */
void clerk_put_effect(struct wr *wr, const struct clerk_effect *e);

/* keeper's side; fds stay the caller's. CONFIG: plain. */
int clerk_ask_open(int sock, const struct clerk_open *open, int fd) MUST_CHECK;
int clerk_answer_want(int sock, const struct clerk_line *line, int fd) MUST_CHECK;
int clerk_answer_judged(int sock, const struct clerk_decided *decided, int fd) MUST_CHECK;

/* Decoders: 0, or -EBADMSG. They leave the fd in the message. */
int clerk_get_open(const struct ipc_msg *msg, struct clerk_open *ret) MUST_CHECK;
int clerk_get_line(const struct ipc_msg *msg, struct clerk_line *ret) MUST_CHECK;
int clerk_get_decided(const struct ipc_msg *msg, struct clerk_decided *ret) MUST_CHECK;
int clerk_get_want(const struct ipc_msg *msg, char named[EDGE_MAX_NAMED]) MUST_CHECK;
int clerk_get_judged(const struct ipc_msg *msg, struct clerk_judged *ret) MUST_CHECK;
/* The records of a message, for clerk_next_effect: each was checked. *ret_n: their number. */
int clerk_get_effects(const struct ipc_msg *msg, struct slice *ret, size_t *ret_n) MUST_CHECK;
/* 1 with a record, 0 at the end, -EBADMSG. It points into the bytes. */
int clerk_next_effect(struct slice *records, struct clerk_effect *ret) MUST_CHECK;
