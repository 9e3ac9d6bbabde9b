/* SPDX-License-Identifier: Apache-2.0 */
/*
 * textdiff - a unified diff of two texts for the eyes of a person.
 *
 * How      textdiff_write compares lines by the algorithm of Myers and passes the diff on line by
 *          line: `--- OLD`, `+++ NEW`, hunks with three lines of context. Beyond
 *          TEXTDIFF_MAX_EDITS changed lines, one hunk replaces all lines between the common
 *          beginning and the common end: still correct, not the shortest.
 * Trust    Input: hostile bytes, names too. A control character, a character that is invisible or
 *          changes the direction of text, and a byte that is not UTF-8 is printed as <1B> or
 *          <U+202E>. Tabs and plain characters pass. Texts of such characters only give a diff
 *          that patch can apply.
 * Owns     Nothing after the call.
 * Limits   TEXTDIFF_MAX_BYTES and TEXTDIFF_MAX_LINES a text; above: TEXTDIFF_TOO_LARGE.
 * See      textdiff_test.c, textdiff_fuzz.c, lib/base/text/text.h
 */
#pragma once

#include "lib/base/slice.h"

#define TEXTDIFF_MAX_BYTES (4 * 1024 * 1024)
#define TEXTDIFF_MAX_LINES 100000
#define TEXTDIFF_MAX_EDITS 1024

enum textdiff_result {
	TEXTDIFF_SAME,	    /* nothing was written */
	TEXTDIFF_WRITTEN,   /* a diff */
	TEXTDIFF_BINARY,    /* one line: `binary files OLD and NEW differ` */
	TEXTDIFF_TOO_LARGE, /* one line: `files OLD and NEW differ: too large for a diff` */
};

struct textdiff_side {
	const char *name; /* "a/Makefile"; "/dev/null" for a file that does not exist */
	struct slice text;
};

/* A piece of the output; a line may come in several pieces. */
typedef void textdiff_put(void *arg, const char *text, size_t n);

enum textdiff_result textdiff_write(const struct textdiff_side *old,
	const struct textdiff_side *new, textdiff_put *put, void *arg);
