/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json - walks over a JSON text and shows where its members stand, so that single values can be
 * replaced.
 *
 * How      json_next gives the members of the one outer object and of every object inside, in their
 *          order, as slices of the text; nothing is converted, so what is not replaced stays as it
 *          was, numbers to the last digit.
 * Trust    Eats hostile bytes: RFC 8259 and nothing beside it. Holds no memory.
 * Owns     Nothing; slices point into the text.
 * Limits   JSON_MAX_DEPTH.
 * Never    Recursion, allocation.
 * See      oauth.h, oauth_test.c, oauth_fuzz.c
 */
#pragma once

#include "lib/base/slice.h"

#define JSON_MAX_DEPTH 32

enum json_kind { JSON_STRING, JSON_NUMBER, JSON_LITERAL, JSON_OBJECT, JSON_ARRAY };

struct json_member {
	struct slice key; /* between the quotes, as written */
	enum json_kind kind;
	struct slice value; /* a string with its quotes; empty for OBJECT and ARRAY */
	unsigned depth;	    /* 1: of the outer object */
};

enum json_state { JSON_START, JSON_FIRST_KEY, JSON_KEY, JSON_FIRST_VALUE, JSON_VALUE, JSON_AFTER };

struct json_walk {
	struct slice text;
	size_t at;
	unsigned depth;
	uint64_t objects; /* a bit a depth: an object, not an array */
	bool takes_array; /* as the outer one */
	enum json_state state;
};

static inline struct json_walk json_begin(struct slice text)
{
	return (struct json_walk){.text = text};
}

/* The text may also be an array. */
static inline struct json_walk json_begin_any(struct slice text)
{
	return (struct json_walk){.text = text, .takes_array = true};
}

/* 1 with a member, 0 at the end of a whole text, -EBADMSG. */
int json_next(struct json_walk *w, struct json_member *ret) MUST_CHECK;
/* What stands between the quotes, escapes undone; what is not ASCII becomes 0xff a character.
 * -EMSGSIZE when it does not fit. The text must have been walked over. */
int json_unescape(struct slice raw, uint8_t *buf, size_t size, struct slice *ret) MUST_CHECK;
/* Whether it is this word, in either case: some readers take both. */
bool json_is_word(struct slice raw, const char *word);
/* A string of printable ASCII, with its quotes. */
void json_put_string(struct wr *wr, struct slice text);
