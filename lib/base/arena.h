/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena - memory of one request: one block, a hard cap, everything freed together.
 *
 * How      arena_alloc takes pieces from one block, which is allocated on first use. A piece that
 *          does not fit gives NULL and marks the arena as full: one check of arena_is_full at the
 *          end of parsing is enough. arena_extend lets the newest piece grow in place, for bytes
 *          whose end is not known yet.
 * Trust    Contains data of peers. Every program that parses requests.
 * Owns     Its block. Single pieces are not freed: arena_reset frees all of them.
 * Limits   The size given at the start.
 * See      arena_test.c
 */
#pragma once

#include <stdbool.h>
#include "slice.h"

struct arena {
	uint8_t *block;
	size_t size;
	size_t n;    /* bytes given out */
	size_t last; /* where the newest piece begins */
	bool full;
};

void arena_init(struct arena *a, size_t size);
void arena_done(struct arena *a);
/* Drops everything and the stickiness; the block stays. */
void arena_reset(struct arena *a);

static inline bool arena_is_full(const struct arena *a)
{
	return a->full;
}

/* Aligned for any type, not cleared. NULL when it does not fit, and from then on always. */
void *arena_alloc(struct arena *a, size_t n);
/* As arena_alloc for n things of a size; the product is checked, the memory cleared. */
void *arena_calloc(struct arena *a, size_t n, size_t size);
/* Makes the newest piece n bytes long, in place. False (and full) when it does not fit; false
 * when p is not the newest piece. */
bool arena_extend(struct arena *a, const void *p, size_t n);
/* A copy of the bytes; an empty slice when it does not fit. */
struct slice arena_dup(struct arena *a, struct slice s);
