/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan - searches a stream for every value of a book: plain, base64, hex, percent. Names the
 * credential.
 *
 * How      scan_new prepares the forms of each value: as it is, in hex and percent of both cases,
 *          in base64 and base64url at each of the three alignments. Four bytes of each are hashed
 *          into a table, so that one lookup at each position is enough. A match is the first
 *          SCAN_MAX_LOOK bytes of a form; forms shorter than SCAN_MIN_LOOK are not searched for.
 *          The names are copied: the book may change meanwhile. A control is a text that is not a
 *          secret, searched for as it is.
 * Trust    The bytes may contain secrets: they are read into scan.window, a struct secret.
 * Owns     Its patterns and window, both struct secret.
 * Limits   Memory is searched in its physical order: a value across two guest pages that are not
 *          adjacent is not found.
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
	bool is_looked; /* its value exists, and is long enough */
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
/* The next bytes do not follow the previous ones. */
void scan_skip(struct scan *s);
