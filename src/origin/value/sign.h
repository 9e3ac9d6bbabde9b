/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sign - requests that are signed again (AWS).
 *
 * How      sign_read reads what the guest signed; slot_sign signs when the value is here. Content
 *          that must be hashed or signed in chunks waits in `due`.
 * Trust    The request of the guest.
 * Limits   SIGN_MAX_KEPT.
 */
#pragma once

#include "src/origin/state/state.h"

#define SIGN_MAX_KEPT (32U << 20) /* content of all exchanges that waits to be signed or sent */
/* Before slot_judge takes the placeholders out: what the guest signed. */
void sign_read(struct origin *o, struct exchange *x);
/* After it: NULL, or why it cannot be signed again. A request without signature loses its slot. */
const char *sign_refusal(struct exchange *x);
/* Whether all content must be there before the request is sent: sign_keep each part, then
 * sign_keep_end. */
bool sign_keeps_body(const struct exchange *x);
int sign_keep(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
void sign_keep_end(struct exchange *x);
/* Content in signed chunks. -EPROTO: sign_why says why. */
bool sign_has_chunks(const struct exchange *x);
int sign_put_chunks(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
int sign_end_chunks(struct exchange *x) MUST_CHECK;
const char *sign_why(const struct exchange *x);
/* What goes to the line before more of edge is read. sign_due_sent says whether it was the end. */
bool sign_has_due(const struct exchange *x);
struct slice sign_due(const struct exchange *x, size_t max);
bool sign_due_sent(struct exchange *x, size_t n) MUST_CHECK;
/* Signs the request. Negative: it cannot be, *ret_why says why. */
int slot_sign(struct origin *o, struct exchange *x, const struct value *v,
	const char **ret_why) MUST_CHECK;
/* The head was sent: the request is as it was before. */
void sign_wipe(struct exchange *x);
/* Whether content that no line took can be sent again. */
bool sign_can_repeat(const struct exchange *x);
void sign_free(struct origin *o, struct talk *t);
