/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token - requests to a token endpoint and their answers.
 *
 * How      token.c reads a complete request, token_answer.c its answer. One refresh at a time; the
 *          others wait for its answer.
 * Trust    The request of the guest, the answer of a server. Holds tokens.
 * Limits   ORIGIN_MAX_TOKENS, OAUTH_MAX_REQUEST, OAUTH_MAX_ANSWER.
 */
#pragma once

#include "src/origin/state/state.h"

/* token.c */
/* Whether the path is one; -EPERM: it is not, but some server may treat it as one. */
int token_is_for(const struct origin *o, const struct exchange *x, bool *ret) MUST_CHECK;
/* The head was checked: creates x->token and waits for the content. */
void token_begin(struct origin *o, struct exchange *x);
void token_read(struct origin *o, struct exchange *x);
bool token_needs_value(const struct exchange *x);
/* Sets the request's framing, and for a refresh its content with the value. -EINVAL: not valid
 * there. */
int token_fill(struct exchange *x, const struct value *v) MUST_CHECK;
/* Sends as much content as the line accepts. */
void token_push(struct origin *o, struct exchange *x);
/* Edge has closed: a sent request continues without it, since the server may issue a token only
 * once. Returns false if there is nothing to continue. */
bool token_orphan(struct origin *o, struct exchange *x) MUST_CHECK;
/* Its refresh has ended: waiting exchanges continue. */
void token_land(struct origin *o, struct exchange *x);
void token_drop(struct origin *o, struct exchange *x);

/* token_answer.c */
bool token_on_head(struct origin *o, struct exchange *x, struct http_resp *resp);
bool token_on_data(struct origin *o, struct exchange *x, struct slice data);
void token_on_end(struct origin *o, struct exchange *x);
/* STORED. */
int token_on_stored(struct origin *o, struct ipc_msg *msg) MUST_CHECK;
/* Sends TOKENS that the keeper did not read before. */
void token_flush_due(struct origin *o);
/* Whether the last refresh is recent enough; then x has its answer. */
bool token_remembers(struct origin *o, struct exchange *x);
/* The flight's answer, for an exchange that waited for it. */
void token_share(struct origin *o, struct exchange *x, const struct token *t);
void token_store_drop(struct token *t);
