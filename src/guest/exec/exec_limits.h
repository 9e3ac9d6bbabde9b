/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_limits - numbers, sizes and times of execs.
 *
 * How      Constants only.
 * Trust    Internal.
 */
#pragma once

#include "lib/wire/guestapi/exec_frame.h"
#include "lib/wire/wire/wire.h"

#define EXEC_MAX 512
#define EXEC_MAX_CONNS WIRE_MAX_STREAMS
#define EXEC_MAX_KEPT 32
#define EXEC_MAX_DEAD 16
/* Unacknowledged output: more than is in transit on a fast wire. */
#define EXEC_PLAIN_RING (1024 * 1024)
#define EXEC_KEPT_RING (256 * 1024)
#define EXEC_OUT_QUEUE (128 * 1024)
/* Two frames, so that one can be filled while the other is written. */
#define EXEC_IN_QUEUE (2 * EXEC_MAX_PAYLOAD)
/* Room in the output queue that data never uses: every other frame always fits. */
#define EXEC_RESERVE 2048
/* Interval of reports to the client about accepted input. */
#define EXEC_TAKEN_STEP (32 * 1024)
#define EXEC_KILL_MS 2000
/* The program's own output is in the pipe when it exits and is always delivered, however slow the
 * client. A grandchild may hold the pipe forever (ssh then hangs) or print a little late (`> >(tee
 * log)`; an immediate close would lose that). So output continues until the end of the pipe, or the
 * first, or the second of these timeouts; then EXIT is sent and the pipe closed. */
#define EXEC_SILENCE_MS 500
#define EXEC_DRAIN_MS 2000
/* How long a program waits for its client after a resume. */
#define EXEC_CLAIM_MS 30000
/* How long a program sees a terminal that is one row smaller, to make it redraw. */
#define EXEC_NUDGE_MS 100
