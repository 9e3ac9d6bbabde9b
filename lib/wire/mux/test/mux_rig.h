/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mux_rig - for tests that play sbx-edge or sbx-origin: a socket for each stream of a channel.
 *
 * How      mux_rig_start forks a process that has the test's end of the channel. mux_rig_add gives
 *          it one end of a socket pair, which is the stream from then on: what the test writes and
 *          reads on the other end, its shutdown and its close are those of the stream. The process
 *          exits when the test closes the struct or exits.
 * Trust    Test program.
 * Limits   MUX_RIG_STREAMS at the same time.
 */
#pragma once

#include "lib/wire/mux/mux_sock.h"

#define MUX_RIG_STREAMS 700

struct mux_rig {
	int sock; /* to the process; -1: none */
};

/* Takes the channel. An origin sends nothing on a stream before it has received something. */
void mux_rig_start(struct mux_rig *r, int channel, bool plays_origin);
void mux_rig_stop(struct mux_rig *r);
/* Returns the test's end, blocking. */
int mux_rig_add(struct mux_rig *r, uint32_t id);

/* The same without a process, for one channel, as an origin: mux_rig_turn moves what can
 * be moved, false if nothing. Takes the descriptors. */
void mux_rig_begin(int channel);
void mux_rig_add_here(uint32_t id, int fd);
bool mux_rig_turn(void);
void mux_rig_end(void);
