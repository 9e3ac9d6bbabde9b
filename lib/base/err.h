/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err - a message that describes a failure, in addition to a negative errno.
 *
 * How      Control-path functions return a negative errno and may fill the struct err that is their
 *          last argument: `return err_set(err, -ENOENT, "no sandbox named %s", name);`. Callers put
 *          context in front with err_wrap. NULL is a valid struct err.
 * Trust    Every program. Text of a peer is passed as %s, after its length was limited.
 * Owns     Nothing on the heap; over-long text is cut.
 * See      err_test.c
 */
#pragma once

#include "attr.h"

#define ERR_MAX_TEXT 512

struct err {
	char text[ERR_MAX_TEXT];
};

/* Sets the message and returns r, so that a caller can return it in one line. */
int err_set(struct err *err, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* As err_set, and adds ": " and the text of errno -r. */
int err_errno(struct err *err, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Puts "context: " in front of the message, or of the errno text if there is no message. */
int err_wrap(struct err *err, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The message, or the errno text if no message was set. */
const char *err_text(const struct err *err, int r);
