/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf - reads files of lines: first a line with kind and version, last the line 'end'.
 *
 * How      conf_init checks the size. conf_next returns the lines between the first and the last
 *          one, without comments and empty lines. conf_word cuts a line into words. conf_fail adds
 *          the file and the line to an error. A file without its last line is refused: it may have
 *          been cut off.
 * Trust    Input: untrusted. Runs in: sbx, sbxd, keeper, sbx-origin. Handles no secrets.
 * Owns     Nothing: lines point into the caller's text.
 * Limits   conf_form.max_bytes, conf_form.max_line.
 * See      conf_test.c
 */
#pragma once

#include <stdbool.h>
#include "err.h"
#include "slice.h"

/* One kind of file. */
struct conf_form {
	const char *what;   /* "an agent" */
	const char *first;  /* "agent 1" */
	const char *second; /* another first line, of a later form; NULL: none */
	size_t max_bytes;
	size_t max_line;     /* with its newline */
	bool has_inner_hash; /* '#' begins a comment only at the start of a line */
};

struct conf {
	const struct conf_form *form;
	const char *name; /* of the file */
	struct slice rest;
	struct slice comment; /* of the newest line, without '#' and blanks; empty: none */
	bool is_second;	      /* the file begins with form->second */
	unsigned line;	      /* number of the newest line, from 1 */
	enum { CONF_BEFORE, CONF_INSIDE, CONF_BEHIND } where;
};

/* Returns 0, or -E2BIG if the text exceeds max_bytes. */
int conf_init(struct conf *c, const struct conf_form *form, struct slice text, const char *name,
	struct err *err) MUST_CHECK;
/* Returns 1 and a trimmed line, 0 at the end of the file, or a negative errno if the line is too
 * long, has a control character, or if the first or the last line is missing. */
int conf_next(struct conf *c, struct slice *ret, struct err *err) MUST_CHECK;
/* Adds "NAME: line N" to the error and returns r. */
int conf_fail(const struct conf *c, int r, struct err *err);

/* Cuts the first word off *s; empty if there is none. Both are trimmed. */
struct slice conf_word(struct slice *s);
