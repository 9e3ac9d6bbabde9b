/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth_internal - the table of synth.c, which tests also free and count.
 */
#pragma once

#include <assert.h>
#include "synth.h"

#define SYNTH_N_BUCKETS 65536

/* Number i of the address is slot i. */
struct slot {
	uint8_t *name; /* live */
	uint32_t hash;
	uint32_t chain; /* live: the next slot of the bucket */
	uint32_t prev, next;
	union {
		uint32_t holds;	   /* live */
		uint32_t rested_s; /* resting: when it may be given again */
	};
	uint8_t n; /* length of the name, 0 when not live */
};
static_assert(sizeof(struct slot) == 32, "a table of all addresses is 4 MiB");

/* Doubly linked through the slots, the oldest first. */
struct list {
	uint32_t first, last;
};

struct synth {
	uint8_t seed[SYNTH_SEED];
	struct slot *slots;
	uint32_t *buckets;
	struct list recent;  /* live and not held */
	struct list resting; /* in the order in which they fell idle */
	uint32_t n_names, n_fresh, start;
	size_t n_bytes;
};
