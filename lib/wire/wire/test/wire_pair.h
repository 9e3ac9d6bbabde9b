/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_pair - for the tests of wire: a client and a server wired back to back through memory.
 *
 * How      pair_new makes both, pump carries bytes in pieces of `chunk` until both rest. Every
 *          event is written into `log`, so that a test compares one string. Consumes what comes
 *          unless `stall`.
 * Trust    Test program.
 */
#pragma once

#include "lib/wire/wire/wire.h"

#define MAX_SLOTS 300

struct end {
	struct wire *w;
	char tag; /* 'C' or 'S' */
	struct pair *pair;
	uint32_t ids[MAX_SLOTS];
	unsigned n_slots;
	bool ready, stall; /* stall: takes bytes and never says so */
	bool refuse;	   /* on_open says no */
	uint64_t got[MAX_SLOTS], pulled[MAX_SLOTS];
	char text[MAX_SLOTS][64]; /* to send */
	uint64_t bulk[MAX_SLOTS]; /* or so many bytes */
	bool ended[MAX_SLOTS], failing[MAX_SLOTS];
	uint64_t pong;
	unsigned n_closed;
};

struct pair {
	struct end c, s;
	size_t chunk; /* bytes handed over at a time; 0: all */
	char log[4096];
	size_t n_log;
	char last_data; /* tag of the end whose data row is open, so that chunks join */
};

struct pair *pair_new(size_t chunk);
void pair_free(struct pair *p);
/* One buffer from one end to the other; whether anything moved. */
bool pair_carry(struct pair *p, struct end *from, struct end *to);
/* Carries until nothing moves any more. */
void pair_pump(struct pair *p);
