/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_play - for the model test and the fuzz target of src/origin: its exchanges and lines in
 * this process, with keeper, vault, edge and server played.
 *
 * How      Links all of sbx-origin except main.c, control.c and tls.c, which origin_play.c
 *          replaces. play_run takes a text of steps, one or more bytes each (enum play_step), and
 *          executes them in order: requests arrive, values are renewed, expire and arrive, the
 *          server responds, resets, is slow, cuts, over HTTP/1.1 and HTTP/2. The server repeats
 *          values, complete and in pieces. A turn (PLAY_TURN, and before some steps) lets origin
 *          handle the events of its sockets.
 * Trust    Test program.
 * Never    Returns if a value reached edge, if a request without a ticket was not refused, if edge
 *          got anything but one complete response, if content waits although edge has room for it,
 *          or if something is left: it prints the reason and aborts.
 * See      origin_model_test.c, line_h2_fuzz.c, sweep.c
 */
#pragma once

#include <stdint.h>
#include "lib/base/slice.h"

enum play_step {
	PLAY_TURN,
	PLAY_GET,    /* a request without content */
	PLAY_POST,   /* its content follows */
	PLAY_UPLOAD, /* + which: as much content as the socket accepts */
	PLAY_FINISH, /* + which: the request's end */
	PLAY_FORGE,  /* + how: another request than the ticket is for, or the same one twice */
	PLAY_CANCEL, /* + which: edge closes */
	PLAY_READ,   /* + which: edge reads or stops reading */
	PLAY_SOCKET, /* + how: connects the oldest WANT: HTTP/1.1 or HTTP/2, or fails it */
	PLAY_VALUE,  /* + how: answers the oldest NEED with a new value, the same again, or none */
	PLAY_RENEW,  /* the keeper announces a newer token */
	PLAY_EXPIRE, /* the value must be requested again */
	PLAY_HEAD,   /* + which, how: the server's head, with a value in it or a fault */
	/* + which, how: content with a value, possibly in two pieces; or PLAY_FLOOD */
	PLAY_DATA,
	PLAY_END,   /* + which, how: the end, with or without trailers */
	PLAY_RESET, /* + which, how: RST_STREAM, or the connection closes */
	PLAY_ROOM,  /* + which: the server reads, or stops reading */
	PLAY_FRAME, /* + which, how: SETTINGS, WINDOW_UPDATE, GOAWAY, PING, raw bytes */
	PLAY_TIMER, /* + which: timeout of an exchange, or of held data */
	PLAY_N_STEPS,
};

/* As the `how` of PLAY_DATA: 32 KiB of zeros, which may be the beginning of a value in UTF-32. */
#define PLAY_FLOOD 248
/* Origin gets the step together with the next one. */
#define PLAY_AND(step) ((step) + PLAY_N_STEPS * (192 / PLAY_N_STEPS + 1))

struct play_stats {
	uint64_t n_exchanges, n_forged, n_said_back, n_removed, n_ended;
	uint64_t n_full; /* turns after which content waited for edge */
};

/* Executes the steps, then ends every exchange and line. *stats accumulates. */
void play_run(struct slice steps, struct play_stats *stats);
/* The values too: the next run begins with none. */
void play_forget(void);
