/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_live - the inside of a session, shared by its files.
 *
 * How      session.c has the frames and the loop, session_in.c the keyboard input, session_again.c
 *          reattaches when a stream breaks.
 * Trust    See session_run.h.
 */
#pragma once

#include "lib/base/bufq.h"
#include "lib/wire/guestapi/screen.h"
#include "session_run.h"

#define PIECE 32768u

/* One open session: SPEC sent, STARTED awaited, data, EXIT; then the queues are drained. */
struct live {
	struct session *s;
	int conn, sigs;
	unsigned n_streams; /* number of reconnects: identifies the stream of `conn` */
	struct exec_reader reader;
	struct bufq to_guest, to_out, to_err;
	bool in_open, started, ended;
	bool drop; /* the output has no reader any more */
	int status;
	uint64_t until; /* 0: no deadline */
	uint64_t last;	/* of session.max_ms; 0: none */
	uint64_t n_shown;
	bool says_starting; /* the line is on the screen */
	unsigned n_interrupts;
	/* Input by its offset from the start: [in_taken, in_sent) is in transit, [in_sent, in_read)
	 * waits. */
	uint64_t in_taken, in_sent, in_read;
	uint8_t *in; /* SESSION_QUEUE bytes, as a ring */
	bool eof_read, eof_sent;
	size_t n_matched; /* matched detach keys */
	bool detaching;
	/* Output. */
	uint64_t out_at, out_acked, replay_left;
	struct screen screen; /* of a kept session, to reset the terminal */
	unsigned n_missing;   /* bytes of its last character */
	int n_held;	      /* requests for approval that the title names */
	uint64_t held_ms;     /* when their number is read again */
	bool suspended;	      /* reported by the guest */
	bool noticed;	      /* the user was notified of the break */
	uint64_t look_ms;     /* when a silent sandbox is checked */
	unsigned n_looks;     /* since its last frame */
	bool told_paused;
	uint64_t broke_ms; /* since when no stream works; 0: one works */
	uint8_t buf[PIECE];
};

static inline bool live_is_kept(const struct live *l)
{
	return l->s->spec.flags & EXEC_F_KEEP;
}

int live_end(struct live *l, int status);
int live_lost(struct problem *p, int r);

/* session_in.c */
bool live_wants_input(const struct live *l);
int live_read_input(struct live *l);
/* Puts waiting input into frames, as far as there is room. */
void live_send_input(struct live *l);
int live_on_taken(struct live *l, uint64_t at) MUST_CHECK;
/* Continues at an offset that the guest named. */
int live_rewind(struct live *l, uint64_t at, bool eof_taken) MUST_CHECK;
/* Typed bytes, without detach keys, wait to be sent. */
void live_type(struct live *l, struct slice typed);

/* session_held.c */
/* Output of a kept session. */
void live_track(struct live *l, struct slice out);
bool live_shows_held(const struct live *l);
/* Reads the number of requests that wait for approval, if it is time. */
void live_show_held(struct live *l);
void live_hide_held(const struct live *l);

/* session_again.c */
/* The first frame of a stream. */
int live_put_first(struct live *l, struct problem *p) MUST_CHECK;
/* The stream broke, or the sandbox is suspended: returns a new one, or an error. */
int live_again(struct live *l, struct problem *p) MUST_CHECK;
