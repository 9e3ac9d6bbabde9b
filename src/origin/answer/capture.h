/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture - responses with fields that the service captures.
 *
 * How      capture_begin holds the head, capture_keep the content; capture_open removes the fields
 *          when the content is complete. Errors are -EBADMSG, and capture_why gives the reason.
 * Trust    Reads the content of a server; holds new credentials.
 * Limits   CAPTURE_MAX_ANSWER, CAPTURE_MAX_KEPT.
 */
#pragma once

#include "answer.h"

#define CAPTURE_MAX_ANSWER (2U << 20) /* content of one response, decoded */
#define CAPTURE_MAX_KEPT (16U << 20)  /* of all held responses */
/* A final head of x's response: returns 1 if it and the content are held, 0 if it continues. */
int capture_begin(struct exchange *x, const struct http_resp *resp) MUST_CHECK;
int capture_keep(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
/* The content is complete: blanks the fields, and returns their number and the head. x owns its
 * text. */
int capture_open(
	struct origin *o, struct exchange *x, struct http_resp *ret_head, size_t *ret_n) MUST_CHECK;
bool capture_is_open(const struct exchange *x);
/* Clean content that was not sent yet; empty at its end. */
struct slice capture_next(const struct exchange *x, size_t max);
void capture_passed(struct exchange *x, size_t n);
void capture_free(struct origin *o, struct exchange *x);
