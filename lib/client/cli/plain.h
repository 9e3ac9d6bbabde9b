/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain - the output of a terminal program as lines of text.
 *
 * How      Bytes come in pieces. Escape sequences are removed, a carriage return ends a line as a
 *          newline does, and each line goes through ui_clean to stdout.
 * Trust    Any bytes, from a guest. Nothing that a terminal would obey is printed.
 * Limits   A line of PLAIN_MAX_LINE bytes is printed in parts.
 * See      plain_test.c
 */
#pragma once

#include <stdio.h>
#include "lib/base/slice.h"

#define PLAIN_MAX_LINE 4096

enum plain_state {
	PLAIN_TEXT,
	PLAIN_ESCAPE,	  /* behind ESC */
	PLAIN_SEQUENCE,	  /* behind ESC [ */
	PLAIN_STRING,	  /* behind ESC ], ESC P and others, until BEL or ESC \ */
	PLAIN_STRING_END, /* behind an ESC in there */
	PLAIN_CHARSET,	  /* behind ESC ( and others: one byte more */
};

struct plain {
	enum plain_state state;
	bool returned; /* a carriage return was the last thing */
	size_t n;
	char line[PLAIN_MAX_LINE + 1];
};

void plain_feed(struct plain *p, struct slice bytes, FILE *out);
/* What is left without a newline. */
void plain_flush(struct plain *p, FILE *out);
