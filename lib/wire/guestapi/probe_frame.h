/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_frame - the frames between `sbx prove` and its driver in the guest.
 *
 * How      A request is u32 number, u32 seconds, u32 length and a script for sh. An answer is u32
 *          PROBE_FRAME_MARK, u32 number, u32 status, u32 length and what the script printed.
 *          Little-endian. One request is under way at a time. A request of 0 seconds without a
 *          script reports that the current one timed out: the host's clock decides, a guest's clock
 *          may be wrong.
 * Trust    Answers are untrusted bytes of the guest, in any pieces.
 * Owns     Nothing; a reader has room for one answer.
 * Limits   PROBE_FRAME_MAX_OUT bytes of output, PROBE_FRAME_MAX_SCRIPT bytes of script.
 * Never    Continues after an invalid frame: the stream is over then.
 * See      probe_frame_test.c, probe_frame_fuzz.c, src/guest/probe/host/drive.c,
 *          src/prove/prove_session.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/slice.h"

#define PROBE_FRAME_MARK 0x31584253u /* "SBX1" */
#define PROBE_FRAME_LATE 1000u	     /* the status of a script whose time was over */
#define PROBE_FRAME_HEAD 16
#define PROBE_FRAME_ASK 12
#define PROBE_FRAME_MAX_OUT 8192
#define PROBE_FRAME_MAX_SCRIPT 100000 /* one argument of a program is at most 131072 bytes */

struct probe_ask {
	uint32_t number, seconds, n_script;
};

struct probe_answer {
	uint32_t number, status;
	struct slice out; /* into the reader, until it is fed again */
};

struct probe_reader {
	uint8_t buf[PROBE_FRAME_HEAD + PROBE_FRAME_MAX_OUT];
	size_t n;
	bool full, bad;
};

/* -EMSGSIZE for too long a script. */
int probe_ask_put(uint8_t buf[PROBE_FRAME_ASK], const struct probe_ask *ask) MUST_CHECK;
int probe_ask_get(const uint8_t buf[PROBE_FRAME_ASK], struct probe_ask *ret) MUST_CHECK;
int probe_answer_put(
	uint8_t buf[PROBE_FRAME_HEAD], uint32_t number, uint32_t status, size_t n_out) MUST_CHECK;
/* Takes bytes from the front of *in: 1 and an answer, 0 when it needs more, -EBADMSG. */
int probe_reader_feed(
	struct probe_reader *r, struct slice *in, struct probe_answer *ret) MUST_CHECK;
