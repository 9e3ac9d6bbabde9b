/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effect_terms - what a rule about requests says of an effect, other than its host.
 *
 * How      A rule has a pattern (of a path, a repository or a service) and terms, the options of
 *          its line: `method`, `query`, `header`; `do`, `ref`, `path`; `do`, `on`, `risk`. A list
 *          in a term is an or, the terms are an and. Each term is kept as its canonical text.
 *          effect_terms_pack writes them as bytes, and effect_terms_match compares these bytes with
 *          an effect: no heap, no pointers, so that a compiled table can have them.
 * Trust    Text of the same user, or of a file that the user imports; effects of untrusted
 *          requests; packed terms of a process that may be compromised.
 * Owns     The texts, freed by effect_terms_done.
 * Limits   EFFECT_MAX_TERMS, EFFECT_MAX_PATTERN, EFFECT_MAX_PACKED, EFFECT_MAX_STARS.
 * Never    Accepts a pattern that cannot match, or that reads like something else: no escapes, no
 *          sets, no `?`.
 * See      proto/PROTOCOL.policy, effect_terms_test.c
 */
#pragma once

#include "effect.h"

#define EFFECT_MAX_TERMS 64    /* words and pairs of one rule */
#define EFFECT_MAX_PATTERN 512 /* bytes of a pattern, a word or a value */
#define EFFECT_MAX_PACKED 8192 /* bytes of all terms of a rule */
#define EFFECT_MAX_STARS 8     /* of a pattern */
#define EFFECT_MAX_WORD 64     /* bytes of a method or a verb */
#define EFFECT_MAX_NAME 64     /* bytes of the name of a header or a field of the query */

/* In the order of the canonical text. */
enum effect_term_kind {
	EFFECT_TERM_DO,	    /* of http: `method` */
	EFFECT_TERM_REF,    /* git */
	EFFECT_TERM_PATH,   /* git */
	EFFECT_TERM_ON,	    /* api */
	EFFECT_TERM_RISK,   /* api */
	EFFECT_TERM_QUERY,  /* http */
	EFFECT_TERM_HEADER, /* http */
	EFFECT_N_TERMS,
};

struct effect_term {
	enum effect_term_kind kind;
	char *name;  /* query, header; else NULL */
	char *value; /* one word or pattern */
};

struct effect_terms {
	struct effect_term *term; /* sorted by kind, otherwise as written */
	size_t n;
};

enum effect_match { EFFECT_DIFFERS, EFFECT_MAY_MATCH /* a fact is not known */, EFFECT_MATCHES };

/* Whether the word is an option of this kind of rule, and which. An option of a later version is
 * -ENOTSUP with a message, another word -ENOENT without one. */
int effect_terms_find(enum effect_kind kind, struct slice word, enum effect_term_kind *ret,
	struct err *err) MUST_CHECK;
/* Adds the value of an option: a list with commas, or NAME=GLOB. */
int effect_terms_add(struct effect_terms *terms, enum effect_kind kind, enum effect_term_kind which,
	struct slice value, struct err *err) MUST_CHECK;
/* After the last option of a rule; `must_do`: a rule of git or an API that permits something. */
int effect_terms_finish(const struct effect_terms *terms, enum effect_kind kind, bool must_do,
	struct err *err) MUST_CHECK;
void effect_terms_done(struct effect_terms *terms);
/* " method GET,HEAD query a=1", on the heap; empty: no terms. */
char *effect_terms_print(const struct effect_terms *terms, enum effect_kind kind);

/* -EINVAL unless it is a pattern: of a path of a URL (from its slash on), of a repository (without
 * slashes at its ends), or the name of a service or `**`. */
int effect_pattern_check(enum effect_kind kind, struct slice pattern, struct err *err) MUST_CHECK;
/* `*` matches bytes of one segment; a segment `**` any number of segments, at least one at the
 * end. `fold`: upper and lower case are the same. */
bool effect_pattern_match(struct slice pattern, struct slice text, bool fold);
/* The bytes of a pattern before its first segment that has a star, with their last slash. */
size_t effect_pattern_literal(struct slice pattern);

/* buf has EFFECT_MAX_PACKED bytes; returns the length. */
size_t effect_terms_pack(const struct effect_terms *terms, uint8_t *buf);
/* Whether packed terms have one of this kind. */
bool effect_terms_have(struct slice packed, enum effect_term_kind kind);
/* Compares all but the host: the pattern and the packed terms. Sets *ret_bad if the bytes are not
 * packed terms. */
enum effect_match effect_terms_match(
	const struct effect *e, struct slice pattern, struct slice packed, bool *ret_bad);
