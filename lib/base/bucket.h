/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucket - a rate limit: a burst, and a number of operations a second.
 *
 * How      bucket_take removes one token. Tokens return with time, up to the size of the bucket.
 * Trust    Meters what peers do. Every program.
 * Owns     Nothing.
 * Limits   Those given by bucket_init. An interval of more than a minute is treated as one minute.
 * Never    Reads a clock: the caller passes the time of a monotonic clock.
 * See      bucket_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "attr.h"

#define BUCKET_MAX_MS 60000
#define BUCKET_STEP_MS 10 /* shorter times are added up */

struct bucket {
	uint32_t left, most, per_s;
	uint64_t at_ms; /* when tokens came back last */
};

static inline struct bucket bucket_init(uint32_t most, uint32_t per_s)
{
	return (struct bucket){.left = most, .most = most, .per_s = per_s};
}

/* False when there is no token left. */
static inline bool bucket_take(struct bucket *b, uint64_t now_ms)
{
	uint64_t passed = now_ms > b->at_ms ? now_ms - b->at_ms : 0;

	if (passed >= BUCKET_STEP_MS) {
		uint64_t more = MIN(passed, (uint64_t)BUCKET_MAX_MS) * b->per_s / 1000;

		b->left = (uint32_t)MIN(b->left + more, (uint64_t)b->most);
		b->at_ms = now_ms;
	}
	if (b->left == 0)
		return false;
	b->left--;
	return true;
}
