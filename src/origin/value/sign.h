/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sign - requests that are signed again (AWS).
 *
 * How      sign_read parses the guest's signature; slot_sign signs when the value is available.
 *          Content that must be hashed or signed in chunks waits in `due`.
 * Trust    The request of the guest.
 * Limits   SIGN_MAX_KEPT.
 */
#pragma once

#include "src/origin/state/state.h"

#define SIGN_MAX_KEPT (32U << 20) /* content of all exchanges that waits to be signed or sent */
/* Before slot_judge removes the placeholders: parses the guest's signature. */
void sign_read(struct origin *o, struct exchange *x);
/* After it: NULL, or why it cannot be signed again. A request without signature loses its slot. */
const char *sign_refusal(struct exchange *x);
/* Whether all content must be available before the request is sent: sign_keep each part, then
 * sign_keep_end. */
bool sign_keeps_body(const struct exchange *x);
int sign_keep(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
void sign_keep_end(struct exchange *x);
/* Content in signed chunks. -EPROTO: sign_why has the reason. */
bool sign_has_chunks(const struct exchange *x);
int sign_put_chunks(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
int sign_end_chunks(struct exchange *x) MUST_CHECK;
const char *sign_why(const struct exchange *x);
/* Data for the line, before more of edge is read. sign_due_sent returns true at its end. */
bool sign_has_due(const struct exchange *x);
struct slice sign_due(const struct exchange *x, size_t max);
bool sign_due_sent(struct exchange *x, size_t n) MUST_CHECK;
/* Signs the request. Negative: impossible, *ret_why has the reason. */
int slot_sign(struct origin *o, struct exchange *x, const struct value *v,
	const char **ret_why) MUST_CHECK;
/* The head was sent: restores the request. */
void sign_wipe(struct exchange *x);
/* Whether content that was not sent on a line can be sent again. */
bool sign_can_repeat(const struct exchange *x);
void sign_free(struct origin *o, struct talk *t);
