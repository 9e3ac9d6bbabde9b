/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jtext - walks over a JSON text and returns where its parts are, without allocation.
 *
 * How      jtext_next returns the members of the outer object and of every object inside, in
 *          order, as slices of the text. jtext_end returns the end of one value. jtext_decode and
 *          jtext_ascii undo the escapes of a string; jtext_put_string writes one. Text that the
 *          caller does not replace stays as its author wrote it.
 * Trust    Input: untrusted. Accepts RFC 8259 only. May handle secrets: copies none.
 * Owns     Nothing: slices point into the text.
 * Limits   jtext_walk.max_depth levels, JTEXT_MAX_DEPTH at most.
 * Never    Recurses or allocates.
 * See      jtext_test.c, jtext_fuzz.c
 */
#pragma once

#include <sys/types.h>
#include "lib/base/slice.h"

#define JTEXT_MAX_DEPTH 64

enum jtext_kind { JTEXT_STRING, JTEXT_NUMBER, JTEXT_LITERAL, JTEXT_OBJECT, JTEXT_ARRAY };

struct jtext_member {
	struct slice key; /* between the quotes, as written */
	enum jtext_kind kind;
	struct slice value; /* a string with its quotes; empty for OBJECT and ARRAY */
	unsigned depth;	    /* 1: of the outer object */
};

struct jtext_walk {
	struct slice text;
	size_t at;
	unsigned depth, max_depth;
	uint64_t objects; /* one bit per level: 1 for an object, 0 for an array */
	bool takes_array; /* the outer value may be an array */
	bool is_part;	  /* more text may follow the outer value */
	enum {
		JTEXT_START,
		JTEXT_FIRST_KEY,
		JTEXT_KEY,
		JTEXT_FIRST_VALUE,
		JTEXT_VALUE,
		JTEXT_AFTER
	} state;
};

/* The text is one object. */
static inline struct jtext_walk jtext_begin(struct slice text, unsigned max_depth)
{
	return (struct jtext_walk){.text = text, .max_depth = max_depth};
}

/* Returns 1 and a member, 0 at the end of the text, or -EBADMSG. */
int jtext_next(struct jtext_walk *w, struct jtext_member *ret) MUST_CHECK;
/* The first byte from `at` on that is not white space. */
size_t jtext_skip(struct slice text, size_t at);
/* The end of the value that begins at `at`; 0 if there is none. */
size_t jtext_end(struct slice text, size_t at);

/* ---- strings: `raw` is between the quotes of a text that was walked over ---- */

/* Undoes escapes; buf may be raw itself. Returns the length, -EBADMSG for half a surrogate pair,
 * or -EMSGSIZE. */
ssize_t jtext_decode(struct slice raw, uint8_t *buf, size_t size) MUST_CHECK;
/* The same for text that should be ASCII: every other byte and escape becomes 0xff. Returns 0 or
 * -EMSGSIZE. */
int jtext_ascii(struct slice raw, uint8_t *buf, size_t size, struct slice *ret) MUST_CHECK;
/* True if raw is this word, in any case. */
bool jtext_is_word(struct slice raw, const char *word);
/* Writes a string of printable ASCII with its quotes. */
void jtext_put_string(struct wr *wr, struct slice text);
