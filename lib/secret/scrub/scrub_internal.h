/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub_internal - what scrub.c and scrub_match.c share.
 */
#pragma once

#include <sys/types.h>
#include "lib/secret/secret/secret.h"
#include "scrub.h"

#define SCRUB_MAX_ESCAPE 16 /* raw bytes of one escaped byte */

/* How a value may be written. */
enum scrub_form {
	SCRUB_PLAIN,
	SCRUB_HEX,
	SCRUB_BASE64, /* and two more: the alignments 1 and 2 */
	SCRUB_UTF16LE = SCRUB_BASE64 + 3,
	SCRUB_UTF16BE,
	SCRUB_UTF32,  /* of both byte orders: from the first byte that is not 0 to the last one */
	SCRUB_BASE32, /* and four more: the alignments 1 to 4 */
	SCRUB_N_FORMS = SCRUB_BASE32 + 5,
};

#define SCRUB_N_TABLES 3

struct scrub_value {
	struct slice bytes;
	/* By first, second and third byte: one bit for each form that may begin so. */
	uint16_t forms[SCRUB_N_TABLES][256];
	uint8_t pairs[65536 / 8];
};

struct scrub_set {
	struct secret memory;
	struct scrub_value values[SCRUB_MAX_VALUES];
	size_t n_values;
	uint16_t forms[SCRUB_N_TABLES][256]; /* of all values together */
	uint8_t pairs[65536 / 8]; /* a bit for each two bytes that a hit may begin with */
};

/* The bytes from where a hit might begin, as far as they are known. */
struct scrub_look {
	const uint8_t *p;
	size_t n;
	bool last;    /* nothing follows */
	size_t depth; /* set with SCRUB_MORE: bytes or digits of the value that agree */
};

#define SCRUB_NO 0
#define SCRUB_MORE (-1) /* as far as it goes it agrees: more bytes decide */

/* The length of the hit that begins here, SCRUB_NO or SCRUB_MORE. */
ssize_t scrub_match_form(struct scrub_look *look, struct slice value, enum scrub_form form);
/* The longest hit of any value. */
ssize_t scrub_match(const struct scrub_set *set, struct scrub_look *look);
