/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_frame - the frames of an exec stream, bytes in, frames out, both directions.
 *
 * How      A struct exec_reader reads bytes as they come and returns complete frames; it has a
 *          direction and rejects a type of the other direction, a wrong length for a type and a
 *          wrong order (SPEC or ATTACH first; STARTED, ATTACHED or ERROR first, nothing after EXIT,
 *          ERROR or DETACHED). Writers append whole frames to a struct bufq or not at all.
 * Trust    Input: untrusted bytes. Runs in sbx (reads bytes of the guest) and in sbx-guest.
 * Owns     A reader owns its collecting buffer (made on first need); exec_reader_done frees it.
 *          A decoded struct exec_spec owns its strings; exec_spec_done frees them.
 * Limits   EXEC_MAX_PAYLOAD bytes a frame, EXEC_MAX_STRINGS strings in argv and in env,
 *          EXEC_MAX_SESSION bytes a session's name.
 * Never    I/O. A reader that has failed stays failed: the stream is over.
 * See      proto/PROTOCOL.exec, exec_frame_test.c, exec_frame_fuzz.c
 */
#pragma once

#include "lib/base/bufq.h"
#include "lib/base/slice.h"

#define EXEC_HEADER 4
#define EXEC_MAX_PAYLOAD 65536
#define EXEC_MAX_STRINGS 16384
#define EXEC_TOKEN 16
#define EXEC_MAX_SESSION 32
#define EXEC_NO_SESSION 1 /* the status of ERROR when ATTACH finds nothing */

enum exec_type {
	EXEC_SPEC = 1,
	EXEC_STDIN = 2,
	EXEC_STDIN_EOF = 3,
	EXEC_RESIZE = 4,
	EXEC_SIGNAL = 5,
	EXEC_ATTACH = 6,
	EXEC_ACK = 7,
	EXEC_DETACH = 8,
	EXEC_STARTED = 16,
	EXEC_STDOUT = 17,
	EXEC_STDERR = 18,
	EXEC_EXIT = 19,
	EXEC_ERROR = 20,
	EXEC_ATTACHED = 21,
	EXEC_TAKEN = 22,
	EXEC_DETACHED = 23,
	EXEC_REPLAY = 24,
	EXEC_N_TYPES,
};

/* Whose frames a reader listens to. */
enum exec_side { EXEC_FROM_HOST, EXEC_FROM_GUEST };

struct exec_frame {
	enum exec_type type;
	struct slice payload; /* valid until the reader is fed again */
};

struct exec_reader {
	enum exec_side side;
	bool begun, ended, bad;
	uint8_t head[EXEC_HEADER];
	size_t n_head;
	uint8_t *buf;
	size_t n_buf, want; /* collected and expected payload bytes once n_head is EXEC_HEADER */
};

enum exec_flag {
	EXEC_F_TTY = 1,
	EXEC_F_DETACHED = 2,
	EXEC_F_STDIN = 4,
	EXEC_F_BUILTIN = 8,
	EXEC_F_RESUME = 16, /* has a token: the client acknowledges and may attach again */
	EXEC_F_KEEP = 32,   /* named: keeps running without a client; needs TTY, STDIN, RESUME */
	EXEC_F_ATTACH = 64, /* with KEEP: when a session of that name runs, attaches to it */
	EXEC_F_ALL = 127,
};

struct exec_spec {
	uint8_t flags; /* enum exec_flag */
	uint16_t rows, cols;
	char *user;		   /* "" is the agent; name or number, ":group" allowed */
	char *cwd;		   /* "" is the first workspace or the user's home */
	char **argv;		   /* NULL-terminated, at least one, argv[0] not empty */
	char **env;		   /* NULL-terminated "NAME=value"; may be NULL when encoding */
	uint8_t token[EXEC_TOKEN]; /* random, with EXEC_F_RESUME */
	char session[EXEC_MAX_SESSION + 1]; /* with EXEC_F_KEEP */
};

/* Takes over a program that runs: by its session's name, or, with "", by its token. */
struct exec_attach {
	bool resume;		   /* the output continues at out_at; else the screen is replayed */
	bool look;		   /* instead of both: what is kept from out_at on, and no more */
	uint8_t token[EXEC_TOKEN]; /* with a name: what the session is known by from now on */
	uint16_t rows, cols;
	uint64_t out_at;
	char session[EXEC_MAX_SESSION + 1];
};

enum exec_attached_flag {
	EXEC_AF_TTY = 1,
	EXEC_AF_EOF = 2,    /* STDIN_EOF was taken */
	EXEC_AF_REPLAY = 4, /* the screen is replayed: the client's output is discarded */
	EXEC_AF_ENDED = 8,  /* the program of a kept session has ended */
	EXEC_AF_ALL = 15,
};

struct exec_attached {
	uint32_t pid;
	uint8_t flags;	   /* enum exec_attached_flag */
	uint64_t in_taken; /* input continues here */
	uint64_t out_at;   /* output continues here */
	uint64_t replay;   /* bytes of REPLAY that come first */
	uint64_t dropped;  /* output bytes that were not kept, of all there was */
};

/* Why a stream ends while the program keeps running. */
enum exec_reason {
	EXEC_ASKED = 1, /* DETACH */
	EXEC_TAKEN_OVER,
	EXEC_SUSPENDED,
	EXEC_N_REASONS,
};

/* [a-z0-9-], 1 to EXEC_MAX_SESSION bytes. */
bool exec_session_is_valid(const char *name);

void exec_reader_init(struct exec_reader *rd, enum exec_side side);
void exec_reader_done(struct exec_reader *rd);
/* Reads from the front of *in. 1 with a frame (call again with what is left of *in), 0 when *in is
 * used up, -EBADMSG on any violation, and from then on always. */
int exec_reader_feed(struct exec_reader *rd, struct slice *in, struct exec_frame *ret) MUST_CHECK;

/* Writes the 4 header bytes. */
void exec_head(uint8_t head[EXEC_HEADER], enum exec_type type, size_t n_payload);
/* Appends a whole frame; -ENOBUFS (nothing written) when it does not fit, -EMSGSIZE above
 * EXEC_MAX_PAYLOAD. */
int exec_put_frame(struct bufq *q, enum exec_type type, struct slice payload) MUST_CHECK;
/* Appends one STDIN, STDOUT or STDERR frame with as much of the data as fits; gives the count of
 * data bytes taken, 0 when there is no room for any. */
size_t exec_put_data(struct bufq *q, enum exec_type type, struct slice data);

int exec_put_resize(struct bufq *q, uint16_t rows, uint16_t cols) MUST_CHECK;
int exec_put_signal(struct bufq *q, uint8_t signo) MUST_CHECK;
int exec_put_started(struct bufq *q, uint32_t pid) MUST_CHECK;
int exec_put_exit(struct bufq *q, bool signalled, uint8_t value) MUST_CHECK;
/* Over-long text is cut. */
int exec_put_error(struct bufq *q, uint8_t status, const char *text) MUST_CHECK;
int exec_put_attach(struct bufq *q, const struct exec_attach *attach) MUST_CHECK;
int exec_put_attached(struct bufq *q, const struct exec_attached *attached) MUST_CHECK;
/* ACK or TAKEN: how many bytes the sender has of the other's. */
int exec_put_offset(struct bufq *q, enum exec_type type, uint64_t at) MUST_CHECK;
int exec_put_detached(struct bufq *q, enum exec_reason reason) MUST_CHECK;

/* Payload decoders; the reader has checked the lengths. -EBADMSG when a field is out of range. */
int exec_get_resize(struct slice payload, uint16_t *ret_rows, uint16_t *ret_cols) MUST_CHECK;
int exec_get_signal(struct slice payload, uint8_t *ret_signo) MUST_CHECK;
int exec_get_exit(struct slice payload, bool *ret_signalled, uint8_t *ret_value) MUST_CHECK;
int exec_get_attach(struct slice payload, struct exec_attach *ret) MUST_CHECK;
int exec_get_attached(struct slice payload, struct exec_attached *ret) MUST_CHECK;
int exec_get_offset(struct slice payload, uint64_t *ret_at) MUST_CHECK;
int exec_get_detached(struct slice payload, enum exec_reason *ret) MUST_CHECK;
/* The text is the guest's: replace control characters before a terminal sees it. */
int exec_get_error(struct slice payload, uint8_t *ret_status, struct slice *ret_text) MUST_CHECK;

/* Encodes a whole SPEC frame into the queue. */
int exec_put_spec(struct bufq *q, const struct exec_spec *spec) MUST_CHECK;
/* Fills ret with heap copies; -EBADMSG on any violation, and ret is then empty. */
int exec_spec_decode(struct slice payload, struct exec_spec *ret) MUST_CHECK;
/* Frees what exec_spec_decode made. */
void exec_spec_done(struct exec_spec *spec);
