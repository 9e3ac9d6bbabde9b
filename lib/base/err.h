/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err - one sentence about what went wrong, beside a negative errno.
 *
 * How      Control-path functions return a negative errno and, when it helps a person, fill the
 *          struct err that the caller gave last: `return err_set(err, -ENOENT, "no sandbox named
 *          %s", name);`. Callers put context in front with err_wrap. NULL is a valid struct err.
 * Trust    Every program. Text from a peer goes in through %s only after it was bounded.
 * Owns     Nothing on the heap; over-long text is cut.
 * See      err_test.c
 */
#pragma once

#include "attr.h"

#define ERR_MAX_TEXT 512

struct err {
	char text[ERR_MAX_TEXT];
};

/* Writes the sentence and gives r back, so that it can be returned in one line. */
int err_set(struct err *err, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* As err_set, and adds ": " and the text of errno -r. */
int err_errno(struct err *err, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Puts "context: " in front of what is there, or of the errno text when nothing is. */
int err_wrap(struct err *err, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The sentence, or the errno text when nobody wrote one. */
const char *err_text(const struct err *err, int r);
