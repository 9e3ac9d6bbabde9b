/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mux - many streams on one socket between sbx-edge and sbx-origin.
 *
 * How      Frames of a header like that of canon_frame.h: DATA, WINDOW, END, RESET. mux_feed reads
 *          the bytes of the socket, mux_out is what to send. A stream is like a stream socket:
 *          mux_send, mux_peek and mux_take, mux_shut, mux_close. Each direction of a stream has a
 *          window: the bytes that the reader has not taken. It begins with MUX_FIRST bytes, grows
 *          while the reader takes all that comes, and shrinks if it does not, so a stream that is
 *          not read holds little and does not stop the others. mux_next gives the streams on which
 *          something has happened. mux_sock.h moves the bytes.
 * Trust    The peer may be compromised: a frame that is not allowed ends all streams. A number that
 *          is not open here is refused with RESET.
 * Owns     The streams, their unread bytes, and the bytes to send.
 * Limits   MUX_MAX_WINDOW unread bytes of a stream, MUX_SHARED more than MUX_FIRST of all; about
 *          MUX_OUT bytes of DATA that wait for the socket.
 * Never    I/O.
 * See      proto/PROTOCOL.canon, mux_test.c, mux_model_test.c, mux_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/slice.h"

#define MUX_HEADER 8
#define MUX_DATA_MAX 16384   /* payload of a DATA frame */
#define MUX_FIRST 8192	     /* the window of a new stream */
#define MUX_MAX_WINDOW 65536 /* and of a stream whose reader keeps up */
#define MUX_SHARED (4 * 1024 * 1024)
#define MUX_GROWS 32 /* a window grows when its reader has taken this many of it */
#define MUX_OUT 65536
#define MUX_MAX_ID 0xffffff
#define MUX_BUCKETS 64

enum mux_kind { MUX_DATA = 1, MUX_WINDOW, MUX_END, MUX_RESET, MUX_N_KINDS };

/* What mux_next reports. */
enum mux_event {
	MUX_READABLE = 1, /* bytes, or the end */
	MUX_WRITABLE = 2, /* after mux_send took less than it got */
	MUX_GONE = 4,	  /* the peer has closed it in both directions; unread bytes stay */
};

struct mux;

struct mux_stream {
	struct mux *mux;
	uint32_t id;
	uint32_t idx, gen;	 /* the user's */
	struct mux_stream *next; /* in its bucket */
	struct mux_stream *next_noted;
	unsigned events;
	/* from the peer */
	uint8_t *in;
	size_t in_at, in_n, in_size;
	size_t window;	/* of this direction */
	size_t granted; /* that the peer may still send */
	size_t taken;	/* and not granted again */
	size_t kept_up; /* taken since the window changed */
	bool in_end, is_gone;
	/* to the peer */
	size_t credit;
	bool is_shut, wants_room;
};

struct mux {
	struct mux_stream *streams[MUX_BUCKETS];
	size_t n_streams, n_shared;
	struct mux_stream *first_noted, *last_noted;
	size_t n_noted;
	uint8_t *out;
	size_t out_at, out_n, out_size;
	bool is_full; /* a stream waits for room in out */
	/* the frame that is being read */
	uint8_t head[MUX_HEADER + 4];
	size_t n_head;
	struct mux_stream *to; /* of the DATA frame; NULL: dropped */
	size_t left;	       /* of its payload */
	bool is_asked;
	bool is_broken;
};

/* All zero is a valid struct mux. */
void mux_done(struct mux *m);
/* The socket is another one, or there is none: nothing waits to be sent, and the peer has closed
 * all streams. */
void mux_restart(struct mux *m);

/* Reads from the front of *in. 0 when it is used up, -EBADMSG on any violation and from then on
 * always. 1: the next frame has DATA or RESET of a stream that is not open. If the caller does not
 * open it (mux_unknown) before the next call, DATA is refused and RESET ignored. */
int mux_feed(struct mux *m, struct slice *in) MUST_CHECK;
uint32_t mux_unknown(const struct mux *m);
/* Whether more may be read: a peer that sends and does not read is not served. */
bool mux_may_feed(const struct mux *m);
/* What to send; then n bytes of it were sent. */
struct slice mux_out(const struct mux *m);
void mux_sent(struct mux *m, size_t n);

/* Both peers open a stream by its number. NULL: it is open, or not a number. */
struct mux_stream *mux_open(struct mux *m, uint32_t id);
struct mux_stream *mux_find(const struct mux *m, uint32_t id);
/* Closes both directions after what was sent; unread bytes are dropped. Frees the stream. */
void mux_close(struct mux_stream *s);
/* Takes as much of both texts as is allowed now; 0 also if the peer has closed. */
size_t mux_send(struct mux_stream *s, struct slice a, struct slice b);
/* Ends our direction. */
void mux_shut(struct mux_stream *s);
/* The caller has more to do: MUX_READABLE is reported again. */
void mux_again(struct mux_stream *s);
/* The unread bytes; then n of them are used. */
struct slice mux_peek(const struct mux_stream *s);
void mux_take(struct mux_stream *s, size_t n);
/* All bytes were taken, and no more come. */
static inline bool mux_is_at_end(const struct mux_stream *s)
{
	return !s->in_n && (s->in_end || s->is_gone);
}
/* The next stream with events, which are cleared; NULL: none. */
struct mux_stream *mux_next(struct mux *m, unsigned *ret_events);
