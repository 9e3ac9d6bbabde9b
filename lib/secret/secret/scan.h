/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan - looks for every value of a book in bytes that go by: plain, base64, hex, percent. Says
 * whose.
 *
 * How      scan_new writes down how each value would look: as it is, in hex and percent of both
 *          cases, in base64 and base64url at each of the three alignments. Four bytes of each are
 *          hashed into a table, so that one look at each position is enough. Found means its first
 *          SCAN_MAX_LOOK bytes in that form; shorter forms than SCAN_MIN_LOOK are not looked for.
 *          The names are copied: the book may change meanwhile. A control is a text that is no
 *          secret, looked for as it is.
 * Trust    The bytes may hold anything, secrets too: they are read into scan.window, which is one.
 * Owns     Its patterns and window, both struct secret.
 * Limits   Memory is looked through as it lies there: a value on two pages of a guest that are not
 *          neighbours is not seen.
 * See      scan_test.c
 */
#pragma once

#include "book.h"
#include "lib/os/ipc/vault_scanned.h"

#define SCAN_MIN_LOOK 8
#define SCAN_MAX_LOOK 48
#define SCAN_WINDOW (256U << 10)
#define SCAN_HASH 65536

#define SCAN_CONTROL BOOK_MAX /* the owner that it is */

/* Whose value it is. */
struct scan_owner {
	char name[VAULT_MAX_NAME];
	char scope[VAULT_MAX_SCOPE];
	bool is_looked; /* its value is there, and long enough */
	uint64_t times;
};

struct scan {
	struct secret patterns;
	struct secret window; /* SCAN_MAX_LOOK bytes of before, then what is read */
	size_t carry;	      /* of them at the front of the window */
	size_t n_patterns;
	uint16_t first[SCAN_HASH]; /* number of a pattern + 1 */
	bool skips_zeros;	   /* nothing that is looked for has four of them */
	struct scan_owner owners[BOOK_MAX + 1];
	size_t n_owners; /* of the book */
	uint64_t n_bytes;
};

/* control: "" for none. NULL without memory. */
struct scan *scan_new(const struct book *b, const char *control, struct err *err);
void scan_free(struct scan *s);
/* Where the next bytes go, and how many fit. */
uint8_t *scan_room(struct scan *s, size_t *ret_n);
/* n bytes were put there. */
void scan_feed(struct scan *s, size_t n);
/* What comes next does not stand behind what came. */
void scan_skip(struct scan *s);
