/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits - times, sizes and event numbers of sbx-origin.
 *
 * How      Constants only.
 * Trust    Internal.
 */
#pragma once

#include "lib/os/ipc/origin_chan.h"
#include "lib/os/worker/control.h"
#include "lib/wire/flow/out.h"

#define ORIGIN_SLOTS (ORIGIN_MAX_OPEN + 1) /* the last one only reports BUSY */
#define ORIGIN_HEAD_MS 10000		   /* for edge's request */
#define ORIGIN_BODY_MS 60000		   /* for more of kept content */
#define ORIGIN_LINE_MS 60000		   /* for a connection, including waits for others */
#define ORIGIN_HANDSHAKE_MS 10000
#define ORIGIN_VALUE_MS 60000 /* for the vault, which may have to prompt */
#define ORIGIN_READ_VALUE_MS 10000
#define ORIGIN_IDLE_MS 900000	  /* of an exchange: models think for minutes */
#define ORIGIN_KEEP_MS 55000	  /* an idle line; servers often close after 60 s */
#define ORIGIN_TOKEN_MS 60000	  /* for a token endpoint's answer */
#define ORIGIN_FLIGHT_MS 90000	  /* for the answer to another user's refresh */
#define ORIGIN_STORE_MS 20000	  /* for the vault to store the tokens */
#define ORIGIN_REFRESHED_MS 60000 /* a refresh this soon after the last one gets its answer */
#define ORIGIN_MAX_TOKENS 16	  /* exchanges with a token endpoint under way; more are busy */
#define ORIGIN_LINGER_MS 2000	  /* for edge to read the end */
#define ORIGIN_ROOTS_BYTES (4 * 1024 * 1024)
#define ORIGIN_MAX_RETIRED 4  /* earlier values that responses are still searched for */
#define ORIGIN_MAX_CAPTURED 4 /* the same for captured ones */
#define ORIGIN_MAX_WHERE 288  /* text of a place in a request */
#define LINE_MAX_IDLE 8	      /* idle lines kept */
#define LINE_READ OUT_READ
/* A request is sent once. Only one without content and with a safe method may be sent again, on a
 * new line: if a line that had served before was closed before one byte of an answer. That is how
 * servers close idle connections. */
#define ORIGIN_TRIES 2

enum origin_ev {
	ORIGIN_EV_CONTROL,
	ORIGIN_EV_CHANNEL,
	ORIGIN_EV_CHANNEL_TURN,
	ORIGIN_EV_CLERK, /* a clerk's socket */
	ORIGIN_EV_TIMER, /* of an exchange */
	ORIGIN_EV_SCRUB, /* timeout of held data */
	ORIGIN_EV_LINE,
	ORIGIN_EV_LINE_TIMER,
	ORIGIN_EV_VALUE,
	ORIGIN_EV_VALUE_TIMER,
	ORIGIN_EV_AGAIN,
};
