/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub - removes the values of credentials from what a server answers, before the guest sees it.
 *
 * How      Where a value begins is decided by its first bytes: a table of pairs of bytes passes
 *          over everything else, and what is left is compared with the value byte for byte, in each
 *          way that it may be written (scrub_match.c). A hit becomes as many '*', so lengths stay
 *          true. Bytes are kept back only as long as they agree with a value: what comes out does
 *          not depend on how the input was cut. Found are: the value as it is, its letters in any
 *          case; with any of its bytes as %41, \u0041, \x41, &#65; &#x41; &amp; or =41, or with a
 *          backslash before its punctuation, mixed too; its hex, also with " ", ",", ":", ";", "-"
 *          or 0x between bytes; its base64 (both alphabets) and base32 at each alignment (so inside
 *          of user:value too); these broken into lines and escaped as above; UTF-16 and UTF-32.
 * Trust    Parses untrusted input, holds secrets. Runs in sbx-origin only.
 * Owns     The set owns copies of the values (struct secret); a stream what it keeps back, wiped.
 * Limits   SCRUB_*. Values below SCRUB_MIN bytes are not looked for: too much would look like them.
 * Never    Finds a value that was cut, compressed, encrypted, hashed, reversed, rotated (rot13,
 *          xor), encoded twice, in base85, base32hex or octal, with characters between its own, or
 *          bytes above 127 as code points. Does no I/O.
 * See      unpack.h for compressed answers, scrub_test.c, scrub_oracle.h, scrub_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define SCRUB_MIN 8
#define SCRUB_MAX_VALUES 40
#define SCRUB_MAX_VALUE 8192
#define SCRUB_MAX_HOLD 65536		    /* bytes that are kept back */
#define SCRUB_MAX_HIT (SCRUB_MAX_HOLD - 64) /* raw bytes of one hit; what is longer is not found */
#define SCRUB_MAX_GAP 16  /* CR, LF and the white space after them, between two digits */
#define SCRUB_IDLE_SHOW 2 /* bytes or digits of a value that scrub_idle may give out */
#define SCRUB_IDLE_MS 50  /* how long a caller waits before it calls scrub_idle */

struct scrub_set;

/* A value of this length is looked for. */
static inline bool scrub_is_searched(struct slice value)
{
	return value.n >= SCRUB_MIN && value.n <= SCRUB_MAX_VALUE;
}

/* NULL with too many values, a value above SCRUB_MAX_VALUE, or without memory. Values that are too
 * short are skipped; an empty set finds nothing. */
struct scrub_set *scrub_set_new(const struct slice *values, size_t n_values, struct err *err);
/* The same, in less time when values are also in `like` (NULL: none): a new one takes
 * milliseconds. */
struct scrub_set *scrub_set_new_like(
	const struct slice *values, size_t n_values, const struct scrub_set *like, struct err *err);
void scrub_set_free(struct scrub_set *set);
/* The values that it looks for, in the set's memory; gives their number. */
size_t scrub_set_values(const struct scrub_set *set, struct slice ret[SCRUB_MAX_VALUES]);

/* One stream. The set must outlive it. */
struct scrub {
	const struct scrub_set *set;
	uint8_t *hold; /* bytes that are not decided yet */
	size_t n_hold;
	size_t n_shown;	 /* of them: given out by scrub_idle */
	size_t covered;	 /* how many bytes from here on are part of a hit */
	bool is_waiting; /* hold agrees with a value as far as it goes */
	uint64_t n_hits;
};

void scrub_init(struct scrub *s, const struct scrub_set *set);
/* From here on another set, which has all values of the first one. */
void scrub_change(struct scrub *s, const struct scrub_set *set);
void scrub_done(struct scrub *s);
/* Takes from the front of *in, puts up to `size` bytes and gives their number. What is left in *in
 * did not fit; with room for in->n + SCRUB_MAX_HOLD nothing is. */
size_t scrub_feed(struct scrub *s, struct slice *in, uint8_t *out, size_t size);
/* Nothing more will come: gives what was kept back; 0 when there is no more. */
size_t scrub_end(struct scrub *s, uint8_t *out, size_t size);
/* Nothing came for SCRUB_IDLE_MS: gives what was kept back if no more than SCRUB_IDLE_SHOW bytes or
 * digits of it agree with a value, so that a slow stream of single bytes is not delayed. A value
 * that comes as slowly may lose that many of its first bytes to the guest, never more. */
size_t scrub_idle(struct scrub *s, uint8_t *out, size_t size);
/* Searches one complete text in place: a header's value, a trailer. Returns the number of hits. */
uint64_t scrub_text(const struct scrub_set *set, uint8_t *text, size_t n);
