/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_ring - the output of a program as complete STDOUT and STDERR frames, by offset.
 *
 * How      Every byte of a program's frames has a fixed offset from the start of the output; the
 *          ring holds [base, end). A client reports how far it has read, always between two frames,
 *          and can get everything after that again. Frames are removed at the front: acknowledged
 *          ones or, for a detached session, the oldest, which the session's screen then follows.
 * Trust    Output of programs in the guest; offsets come from the host and are checked by the
 *          caller.
 * Owns     Its memory, allocated on demand, freed when it is empty.
 * Limits   The size given at the start; EXEC_RING_FRAME bytes of data per frame.
 * See      exec_ring_test.c, proto/PROTOCOL.exec
 */
#pragma once

#include "lib/wire/guestapi/exec_frame.h"
#include "lib/wire/guestapi/screen.h"

#define EXEC_RING_FRAME (32 * 1024)

struct exec_ring {
	uint8_t *buf;
	size_t size;
	uint64_t base, end;
};

void exec_ring_init(struct exec_ring *r, size_t size);
void exec_ring_done(struct exec_ring *r);
static inline size_t exec_ring_len(const struct exec_ring *r)
{
	return (size_t)(r->end - r->base);
}
/* Maximum data of the next frame, if frames before `keep` may be dropped. */
size_t exec_ring_room(const struct exec_ring *r, uint64_t keep);
/* Appends a frame, moving frames before `keep` as needed into the screen (NULL: discarded). The
 * data must fit exec_ring_room. */
void exec_ring_put(struct exec_ring *r, enum exec_type type, struct slice data, uint64_t keep,
	struct screen *screen);
/* Drops the frames before `at`; frees the memory if nothing is left. */
void exec_ring_drop(struct exec_ring *r, uint64_t at);
/* Copies complete frames from `at` on to the queue, as many as fit into `most` bytes; returns the
 * end. */
uint64_t exec_ring_copy(const struct exec_ring *r, uint64_t at, struct bufq *q, size_t most);
/* The raw data of the frames that begin at `at` or later. */
void exec_ring_data(const struct exec_ring *r, uint64_t at, struct bufq *q);
/* All data to the queue, filtered by screen_replay; `screen` has the state at base. */
void exec_ring_replay(const struct exec_ring *r, struct screen *screen, struct bufq *q);
