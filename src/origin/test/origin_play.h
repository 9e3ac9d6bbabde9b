/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_play - for the model test and the fuzz target of src/origin: its exchanges and lines in
 * this process, with
 *               keeper, vault, edge and server played.
 *
 * How      All of sbx-origin but main.c, control.c and tls.c is linked; what these would do is in
 *          origin_play.c. play_run takes a text of steps, one or more bytes each (enum play_step),
 *          and does them in their order: requests come, values are renewed, expire and come, the
 *          server responds, resets, is slow, cuts, over HTTP/1.1 and HTTP/2. The server says values
 *          back, whole and in pieces. A turn (PLAY_TURN, and before some steps) lets origin do what
 *          its sockets would have told it.
 * Trust    Test program.
 * Never    Returns when a value reached edge, when edge got what is not one whole response, when
 *          content waits although edge has room for it, or when something is left behind: it says
 *          what and aborts.
 * See      origin_model_test.c, line_h2_fuzz.c, sweep.c
 */
#pragma once

#include <stdint.h>
#include "lib/base/slice.h"

enum play_step {
	PLAY_TURN,
	PLAY_GET,    /* a request without content */
	PLAY_POST,   /* one whose content is still to come */
	PLAY_UPLOAD, /* + which: as much content as the socket takes */
	PLAY_FINISH, /* + which: the request's end */
	PLAY_CANCEL, /* + which: edge closes */
	PLAY_READ,   /* + which: edge reads or stops reading */
	PLAY_SOCKET, /* + how: the oldest WANT has a connection: HTTP/1.1 or HTTP/2, or none */
	PLAY_VALUE,  /* + how: the oldest NEED has a new value, the same again, or none */
	PLAY_RENEW,  /* the keeper says that there is a newer token */
	PLAY_EXPIRE, /* the value is to be asked for again */
	PLAY_HEAD,   /* + which, how: the server's head, with a value in it or a fault */
	/* + which, how: content, with a value in it, perhaps in two pieces; or PLAY_FLOOD */
	PLAY_DATA,
	PLAY_END,   /* + which, how: the end, with trailers or without */
	PLAY_RESET, /* + which, how: RST_STREAM, or the connection ends */
	PLAY_ROOM,  /* + which: the server reads, or stops reading */
	PLAY_FRAME, /* + which, how: SETTINGS, WINDOW_UPDATE, GOAWAY, PING, raw bytes */
	PLAY_TIMER, /* + which: an exchange's time is over, or nothing came for a moment */
	PLAY_N_STEPS,
};

/* As the `how` of PLAY_DATA: 32 KiB of zeros, which may be the beginning of a value in UTF-32. */
#define PLAY_FLOOD 248
/* Origin hears of the step together with the next one. */
#define PLAY_AND(step) ((step) + PLAY_N_STEPS * (192 / PLAY_N_STEPS + 1))

struct play_stats {
	uint64_t n_exchanges, n_said_back, n_removed, n_ended;
	uint64_t n_full; /* turns after which content waited for edge */
};

/* All of the steps, then every exchange and line ends. *stats grows. */
void play_run(struct slice steps, struct play_stats *stats);
/* The values too: the next run begins with none. */
void play_forget(void);
