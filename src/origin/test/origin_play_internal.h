/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_play_internal - shared by origin_play.c and origin_play_server.c.
 *
 * How      origin_play.c has keeper, vault, edge and the turns; origin_play_server.c the server's
 *          output (play_server_step).
 * Trust    Test program.
 */
#pragma once

#include "src/origin/line/protocol.h"
#include "src/origin/origin.h"
#include "origin_play.h"

#define PLAY_EDGES 6
#define PLAY_VALUES 64

/* The server's end of a line. */
struct side {
	bool is_h2, is_cut;
	bool is_new; /* data, room or an end that was not reported to origin */
	uint8_t *in;
	size_t n_in, at, room;
};

extern struct origin play_origin;
extern struct mux play_mux;
extern char play_values[PLAY_VALUES][40];
extern unsigned play_n_values;
extern struct play_stats *play_stats;

/* Prints `what` and aborts unless ok. */
void play_check(bool ok, const char *what);
/* The next byte of the steps; 0 at the end. */
uint8_t play_next(void);
struct side *play_side(const struct line *l);
void play_turn(void);
/* The channel delivers what was sent on both ends. */
void play_carry(void);
void play_step(uint8_t c);
void play_server_step(enum play_step what);
/* SETTINGS, which an HTTP/2 server must send first. */
void play_server_hello(struct side *s);
