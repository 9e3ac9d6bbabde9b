/* SPDX-License-Identifier: Apache-2.0 */
#include "http1_internal.h"

#include <assert.h>
#include <errno.h>

/* What a state function found. */
enum step { STEP_MORE, STEP_AGAIN, STEP_EVENT };

int http1_fail(struct http1 *h, uint16_t status, const char *why)
{
	h->state = HTTP1_FAILED;
	return canon_refuse(&h->fault, h->side == HTTP1_RESPONSES ? 502 : status, why);
}

struct slice http1_take(struct slice *in, uint64_t n)
{
	struct rd rd = rd_init(*in);
	struct slice s = rd_bytes(&rd, n < in->n ? (size_t)n : in->n);

	*in = slice_of(rd.p, rd.n);
	return s;
}

static void begin_message(struct http1 *h)
{
	h->state = HTTP1_IN_HEAD;
	h->twin = NULL;
	h->lines = NULL;
	h->n_lines = h->n_line = h->n_start = 0;
	h->after_cr = h->has_start = h->in_extension = false;
	h->left = h->n_data = 0;
	h->n_digits = h->n_extensions = 0;
	h->req = (struct http_req){0};
	h->resp = (struct http_resp){0};
	h->trailers = (struct http_headers){0};
}

void http1_init_requests(struct http1 *h, struct arena *arena)
{
	*h = (struct http1){.side = HTTP1_REQUESTS, .arena = arena};
	begin_message(h);
}

void http1_init_response(struct http1 *h, struct arena *arena, const struct http_req *req)
{
	*h = (struct http1){.side = HTTP1_RESPONSES, .arena = arena};
	h->was_head = slice_eq_str(req->method, "HEAD");
	h->was_connect = slice_eq_str(req->method, "CONNECT");
	h->was_websocket = req->websocket;
	begin_message(h);
}

void http1_next(struct http1 *h, struct arena *arena)
{
	if (h->state != HTTP1_DONE || h->side != HTTP1_REQUESTS) {
		(void)http1_fail(h, 400, "a new request before the end of the current one");
		return;
	}
	h->arena = arena;
	begin_message(h);
}

bool http1_is_idle(const struct http1 *h)
{
	return h->state == HTTP1_DONE || (h->state == HTTP1_IN_HEAD && h->n_lines == 0);
}

/* What follows a head, from the framing that was found. */
static enum http1_state state_after_head(const struct http1 *h)
{
	const struct http_body *body = h->side == HTTP1_REQUESTS ? &h->req.body : &h->resp.body;

	if (body->absent)
		return HTTP1_END_DUE;
	switch (body->kind) {
	case HTTP_BODY_LENGTH:
		return body->length ? HTTP1_IN_LENGTH : HTTP1_END_DUE;
	case HTTP_BODY_CHUNKED:
		return HTTP1_IN_CHUNK_LINE;
	case HTTP_BODY_CLOSE:
		return HTTP1_IN_CLOSE;
	case HTTP_BODY_TUNNEL:
		return h->side == HTTP1_REQUESTS ? HTTP1_END_DUE : HTTP1_IN_TUNNEL;
	case HTTP_BODY_NONE:
		break;
	}
	return HTTP1_END_DUE;
}

/* A 1xx head is followed by another head; everything but the count starts again. The arena is kept
 * until the response is complete, so that yielded slices stay valid. */
static void begin_after_informational(struct http1 *h)
{
	struct http_resp yielded = h->resp;

	begin_message(h);
	h->resp = yielded;
}

static enum step read_head(struct http1 *h, struct slice *in, struct http1_event *ret)
{
	int r = http1_collect(h, in, HTTP_MAX_HEAD);

	if (r == 0)
		return STEP_MORE;
	if (r < 0 || http1_parse_head(h) < 0 || http1_twin_head(h) < 0)
		return STEP_AGAIN;
	*ret = (struct http1_event){.kind = HTTP1_EV_HEAD};
	if (h->side == HTTP1_REQUESTS) {
		ret->req = &h->req;
		h->left = h->req.body.length;
		h->state = state_after_head(h);
		return STEP_EVENT;
	}
	ret->resp = &h->resp;
	h->left = h->resp.body.length;
	if (h->resp.status >= 200 || h->resp.status == 101)
		h->state = state_after_head(h);
	else if (++h->n_informational > HTTP1_MAX_INFORMATIONAL)
		(void)http1_fail(h, 502, "too many informational responses");
	else
		begin_after_informational(h);
	return h->state == HTTP1_FAILED ? STEP_AGAIN : STEP_EVENT;
}

/* Data of a body with a known rest. */
static enum step read_counted(struct http1 *h, struct slice *in, struct http1_event *ret)
{
	struct slice data = http1_take(in, h->left);

	if (data.n == 0)
		return STEP_MORE;
	if (http1_twin_data(h, data) < 0)
		return STEP_AGAIN;
	h->left -= data.n;
	if (h->left == 0)
		h->state = h->state == HTTP1_IN_LENGTH ? HTTP1_END_DUE : HTTP1_IN_CHUNK_END;
	*ret = (struct http1_event){.kind = HTTP1_EV_DATA, .data = data};
	return STEP_EVENT;
}

static enum step read_rest(struct http1 *h, struct slice *in, struct http1_event *ret)
{
	struct slice data = http1_take(in, in->n);

	if (data.n == 0)
		return STEP_MORE;
	if (h->state == HTTP1_IN_CLOSE && http1_twin_data(h, data) < 0)
		return STEP_AGAIN;
	*ret = (struct http1_event){.kind = HTTP1_EV_DATA, .data = data};
	return STEP_EVENT;
}

static enum step read_chunk_line(struct http1 *h, struct slice *in, struct http1_event *ret)
{
	return http1_chunk_line(h, in) == 0 ? STEP_MORE : STEP_AGAIN;
}

static enum step read_chunk_end(struct http1 *h, struct slice *in, struct http1_event *ret)
{
	return http1_chunk_end(h, in) == 0 ? STEP_MORE : STEP_AGAIN;
}

static enum step read_trailers(struct http1 *h, struct slice *in, struct http1_event *ret)
{
	int r = http1_collect(h, in, HTTP_MAX_TRAILER_BYTES);

	if (r == 0)
		return STEP_MORE;
	if (r < 0 || http1_parse_trailers(h) < 0 || http1_twin_trailers(h) < 0)
		return STEP_AGAIN;
	h->state = HTTP1_END_DUE;
	return STEP_AGAIN;
}

static enum step say_end(struct http1 *h, struct slice *in, struct http1_event *ret)
{
	if (http1_twin_end(h, false) < 0)
		return STEP_AGAIN;
	h->state = HTTP1_DONE;
	*ret = (struct http1_event){.kind = HTTP1_EV_END, .trailers = &h->trailers};
	return STEP_EVENT;
}

static enum step wait_for_next(struct http1 *h, struct slice *in, struct http1_event *ret)
{
	return STEP_MORE;
}

static enum step say_fault(struct http1 *h, struct slice *in, struct http1_event *ret)
{
	*ret = (struct http1_event){.kind = HTTP1_EV_ERROR, .fault = h->fault};
	return STEP_EVENT;
}

static enum step (*const states[])(struct http1 *, struct slice *, struct http1_event *) = {
	[HTTP1_IN_HEAD] = read_head,
	[HTTP1_IN_LENGTH] = read_counted,
	[HTTP1_IN_CHUNK_LINE] = read_chunk_line,
	[HTTP1_IN_CHUNK] = read_counted,
	[HTTP1_IN_CHUNK_END] = read_chunk_end,
	[HTTP1_IN_TRAILERS] = read_trailers,
	[HTTP1_IN_CLOSE] = read_rest,
	[HTTP1_IN_TUNNEL] = read_rest,
	[HTTP1_END_DUE] = say_end,
	[HTTP1_DONE] = wait_for_next,
	[HTTP1_FAILED] = say_fault,
};
static_assert(ARRAY_LEN(states) == HTTP1_N_STATES, "one function per state");

/* Every step that returns STEP_AGAIN has read bytes or left the state, so this ends. */
bool http1_read(struct http1 *h, struct slice *in, struct http1_event *ret)
{
	enum step step;

	do {
		step = states[h->state](h, in, ret);
	} while (step == STEP_AGAIN);
	return step == STEP_EVENT;
}

bool http1_eof(struct http1 *h, struct http1_event *ret)
{
	struct slice none = {0};

	if (h->state == HTTP1_END_DUE || h->state == HTTP1_FAILED)
		return http1_read(h, &none, ret);
	if (h->state == HTTP1_DONE || (http1_is_idle(h) && h->side == HTTP1_REQUESTS))
		return false;
	if (h->state != HTTP1_IN_CLOSE && h->state != HTTP1_IN_TUNNEL)
		(void)http1_fail(h, 400, "the connection was closed inside a message");
	else if (h->state == HTTP1_IN_TUNNEL || http1_twin_end(h, true) == 0)
		h->state = HTTP1_DONE;
	if (h->state == HTTP1_FAILED)
		return http1_read(h, &none, ret);
	*ret = (struct http1_event){.kind = HTTP1_EV_END, .trailers = &h->trailers};
	return true;
}
