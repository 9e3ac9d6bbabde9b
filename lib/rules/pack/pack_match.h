/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_match - the effects of one request according to a pack.
 *
 * How      pack_match finds the most precise row. A condition that cannot be decided, a path that
 *          servers read in different ways (canon_normal_path), another case of a fixed segment, or
 *          no row at all makes the effect unknown, with a reason.
 * Trust    Requests are untrusted. No I/O, no heap.
 * Owns     Nothing: the effect has its own texts, and a pointer to its row.
 * Limits   PACK_MAX_OBJECT, PACK_MAX_SAY: a longer object makes the effect unknown; a longer
 *          sentence is cut and ends with "...".
 * Never    Returns a row for a request of which it did not understand each part that a row names.
 * See      pack_match_test.c, pack_oracle_test.c, pack_fuzz.c
 */
#pragma once

#include "lib/wire/http/canon/canon.h"
#include "pack.h"

#define PACK_MAX_OBJECT 512
#define PACK_MAX_SAY 512
#define PACK_MAX_VALUE 256 /* bytes of a value in a sentence or a condition */

struct pack_request {
	struct slice method;
	struct slice path; /* from canon_normal_path */
	unsigned int odd;
	struct slice query;
	const struct http_headers *headers; /* NULL: none */
	struct slice body;
	bool has_body; /* the whole body is there */
	bool no_body;  /* the request has none; if neither is set, the body is not known */
};

struct pack_effect {
	const struct pack_row *row; /* NULL: unknown */
	const char *why;	    /* the reason if it is unknown */
	char object[PACK_MAX_OBJECT + 1];
	char say[PACK_MAX_SAY + 1]; /* for a person; a value that is not known is '?' */
};

void pack_match(const struct pack *p, const struct pack_request *req, struct pack_effect *ret);
