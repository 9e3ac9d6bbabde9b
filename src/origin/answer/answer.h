/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer - the response of the server on its way to sbx-edge.
 *
 * How      Every byte passes scrub.c, which removes the values that sweep.c lists, and then
 *          answer.c, which writes frames for sbx-edge. capture.c holds responses with fields that
 *          the service captures.
 * Trust    Bytes of a server, which may be hostile and may contain the value.
 * Owns     x->scrub, x->capture, x->pinned.
 * Limits   CAPTURE_MAX_ANSWER, CAPTURE_MAX_KEPT, SCRUB_MAX_VALUES.
 */
#pragma once

#include "src/origin/state/state.h"

/* answer.c: output to edge. -EBADMSG: it cannot be forwarded. */
int answer_put_head(struct exchange *x, struct http_resp *resp) MUST_CHECK;
int answer_put_data(struct exchange *x, struct slice data) MUST_CHECK;
int answer_put_end(struct exchange *x, struct http_headers *trailers) MUST_CHECK;

/* scrub.c: every byte of an answer is searched here before the answer_put_* functions, and may be
 * changed or delayed. -EBADMSG: it cannot be searched, the exchange fails. */
int answer_scrub_head(struct origin *o, struct exchange *x, struct http_resp *resp) MUST_CHECK;
int answer_scrub(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
int answer_scrub_end(
	struct origin *o, struct exchange *x, struct http_headers *trailers) MUST_CHECK;
/* Data of a websocket, which has no frames around it. */
int answer_scrub_raw(struct origin *o, struct exchange *x, struct slice data) MUST_CHECK;
/* Sends the data that was held back. */
int answer_scrub_raw_end(struct exchange *x) MUST_CHECK;
void answer_scrub_done(struct origin *o, struct exchange *x);
/* A decoder has more output than edge had room for: answer_scrub_more continues when there is room.
 * The answer's end may wait behind it. */
bool answer_has_more(const struct exchange *x);
int answer_scrub_more(struct origin *o, struct exchange *x) MUST_CHECK;
/* No data arrived for a moment. Returns true if it added data to to_edge. */
bool answer_on_idle(struct exchange *x) MUST_CHECK;
/* Searches a text of x's response that was held, in place; adds to *n_removed. */
int answer_scrub_kept(struct origin *o, struct exchange *x, uint8_t *text, size_t n,
	uint32_t *n_removed) MUST_CHECK;
/* Whether one more read of the server may be passed on. A head needs all of the room. */
bool answer_has_room(const struct exchange *x);
/* Why a response with captured fields cannot be passed on. */
const char *capture_why(const struct exchange *x, const char *otherwise);

/* sweep.c */
/* x is about to be sent with v: its response will be searched for it. -EBADMSG: impossible. */
int sweep_pin(struct origin *o, struct exchange *x, const struct value *v) MUST_CHECK;
/* A new value: responses are searched for it from here on. */
void sweep_change(struct origin *o);
/* v will be wiped: responses are searched for it until ORIGIN_MAX_RETIRED newer ones were
 * retired. */
void sweep_retire(struct origin *o, const struct value *v);
void sweep_done(struct origin *o);
