/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effect_internal - the words of texts, for the files of this directory.
 */
#pragma once

#include "effect.h"

#define EFFECT_CUT_VERB 64
#define EFFECT_CUT_TARGET 200 /* bytes of the words of a text that is cut */
#define EFFECT_CUT_OBJECT 140

/* The part of the text before the first colon: the kind's name, or `unknown`. */
#define EFFECT_WORD_UNKNOWN "unknown"
#define EFFECT_WORD_ANY "any"
#define EFFECT_TERM_HEAD 4 /* bytes in front of the name of a packed term */
#define EFFECT_HEADER "header."
#define EFFECT_HTTPS_PORT 443 /* not written */

/* The front of *rest up to the sign, which is removed; all of it if there is none. *rest then has
 * no bytes and a NULL pointer. */
static inline struct slice effect_cut_until(struct slice *rest, uint8_t sign)
{
	const uint8_t *end = rest->n ? memchr(rest->p, sign, rest->n) : NULL;
	size_t n = end ? (size_t)(end - rest->p) : rest->n;
	struct slice word = slice_of(rest->p, n);

	*rest = end ? slice_of(end + 1, rest->n - n - 1) : slice_of(NULL, 0);
	return word;
}
