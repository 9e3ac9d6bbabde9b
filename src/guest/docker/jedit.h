/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jedit - finds positions in a JSON text, so that text can be inserted without changing the rest.
 *
 * How      jedit_check parses the complete text strictly; after that the other functions skip
 *          values by their first character. A value is its start and end position. The text is not
 *          rewritten: numbers, order and blanks stay.
 * Trust    Files that Docker creates from user input: untrusted until jedit_check succeeds.
 * Owns     Nothing.
 * Limits   JTEXT_MAX_DEPTH levels.
 * Never    Without jedit_check first.
 * See      jedit_test.c, jedit_fuzz.c, lib/base/json/jtext.h
 */
#pragma once

#include <stdio.h>
#include "lib/base/slice.h"

/* text[at..end): one value. */
struct jedit {
	size_t at, end;
};

/* -EBADMSG unless the text is one object and blanks. */
int jedit_check(struct slice text, struct jedit *ret) MUST_CHECK;
bool jedit_is(struct slice text, struct jedit v, char first);
/* Finds the member of an object, the last one if there are several; false if there is none or v is
 * not an object. Names with escapes are not found. */
bool jedit_member(struct slice text, struct jedit v, const char *name, struct jedit *ret);
/* Iterates over an array: begin with *item = {0}. False after the last, or if v is not an array. */
bool jedit_next(struct slice text, struct jedit v, struct jedit *item);
/* Returns the string's content; -EINVAL for another type, a NUL or half a surrogate pair,
 * -ENAMETOOLONG. */
int jedit_string(struct slice text, struct jedit v, char *buf, size_t size) MUST_CHECK;
/* Writes a string with its quotes. */
void jedit_quote(FILE *out, const char *s);
