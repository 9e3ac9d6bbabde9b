/*
 * scan - looks for every value of a book in bytes that go by: plain, base64, hex, percent.
 *
 * How      scan_new writes down how each value would look: as it is, in hex and percent of both cases,
 *          in base64 and base64url at each of the three alignments. Four bytes of each are hashed into
 *          a table, so that one look at each position is enough. Found means its first SCAN_MAX_LOOK
 *          bytes in that form; shorter forms than SCAN_MIN_LOOK are not looked for.
 * Trust    The bytes may hold anything, secrets too: they are read into scan.window, which is one.
 * Owns     Its patterns and window, both struct secret.
 * See      scan_test.c
 */
#pragma once

#include "book.h"

#define SCAN_MIN_LOOK 8
#define SCAN_MAX_LOOK 48
#define SCAN_WINDOW (256U << 10)
#define SCAN_HASH 65536

struct scan {
	struct secret patterns;
	struct secret window; /* SCAN_MAX_LOOK bytes of before, then what is read */
	size_t carry;	      /* of them at the front of the window */
	size_t n_patterns;
	uint16_t first[SCAN_HASH]; /* number of a pattern + 1 */
	uint64_t n_found;
};

/* NULL without memory. */
struct scan *scan_new(const struct book *b, struct err *err);
void scan_free(struct scan *s);
/* Where the next bytes go, and how many fit. */
uint8_t *scan_room(struct scan *s, size_t *ret_n);
/* n bytes were put there. */
void scan_feed(struct scan *s, size_t n);
