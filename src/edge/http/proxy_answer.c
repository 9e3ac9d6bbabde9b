/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy_internal.h"

#include <errno.h>

/* Lists of one head; its text is in the frame. */
#define LISTS_SIZE 8192

/* Egress closed, or sent an invalid frame. A truncated length or chunk shows that to the guest;
 * without either only a reset does. */
static enum proxy_step broken_answer(struct edge *e, struct conn *c, const char *why)
{
	const struct proxy_exchange *x = &c->proxy->x;

	if (!x->answered)
		return proxy_fail(e, c, 502, slice_from_str(why));
	if (x->out_kind == HTTP_BODY_CLOSE || x->out_kind == HTTP_BODY_TUNNEL)
		return proxy_hang_up(e, c);
	c->out_cut = true;
	return proxy_finish(e, c);
}

static enum proxy_step violated_answer(struct edge *e, struct conn *c)
{
	return broken_answer(e, c, "invalid response from sbx-egress");
}

enum proxy_step proxy_on_fd_end(struct edge *e, struct conn *c, ssize_t r)
{
	/* A websocket ends by closing. */
	if (c->proxy->state == PROXY_RAW && r == 0)
		return proxy_finish(e, c);
	return broken_answer(e, c, "connection closed without a response");
}

/* Whether the guest and edge agree on the length of the answer. Egress is not trusted about it. */
static bool fits_request(const struct proxy_exchange *x, const struct http_resp *resp)
{
	const struct http_body *body = &resp->body;

	if (body->kind == HTTP_BODY_TUNNEL)
		return false;
	if (resp->status < 200 || resp->status == 204)
		return true; /* canon_check_resp ensures that there is no body */
	if (x->is_head || resp->status == 304)
		return body->absent;
	return !body->absent && body->kind != HTTP_BODY_NONE;
}

static enum proxy_step say_head(struct edge *e, struct conn *c, struct http_resp *resp)
{
	struct proxy *p = c->proxy;

	if (p->tongue->say_head(e, c, resp) < 0)
		return violated_answer(e, c);
	p->x.answered = true;
	return PROXY_AGAIN;
}

/* Only if requested, and after our own head is sent: raw data must not overtake it. */
static enum proxy_step switch_to_raw(struct edge *e, struct conn *c, struct http_resp *resp)
{
	struct proxy *p = c->proxy;

	if (!p->x.websocket || p->to_fd.n > 0)
		return violated_answer(e, c);
	if (say_head(e, c, resp) == PROXY_GONE)
		return PROXY_GONE;
	p->state = PROXY_RAW;
	return PROXY_AGAIN;
}

static enum proxy_step say_informational(struct edge *e, struct conn *c, struct http_resp *resp)
{
	struct proxy *p = c->proxy;

	if (++p->x.n_informational > HTTP1_MAX_INFORMATIONAL || p->tongue->say_head(e, c, resp) < 0)
		return violated_answer(e, c);
	return PROXY_AGAIN;
}

/* Egress's own answer: origins cannot have a header of this name. */
static enum proxy_step on_reason(
	struct edge *e, struct conn *c, const struct http_resp *resp, struct slice reason)
{
	if (resp->status != 403 && resp->status != 502 && resp->status != 504)
		return violated_answer(e, c);
	return proxy_fail(e, c, resp->status, reason);
}

static enum proxy_step on_resp(struct edge *e, struct conn *c, struct http_resp *resp)
{
	struct proxy_exchange *x = &c->proxy->x;
	size_t at;

	if (canon_flow_resp(&x->flow, resp) < 0)
		return violated_answer(e, c);
	if (canon_find_header(&resp->headers, "sbx-reason", &at) == 0)
		return on_reason(e, c, resp, resp->headers.list[at].value);
	if (resp->status == 101)
		return switch_to_raw(e, c, resp);
	if (!fits_request(x, resp))
		return violated_answer(e, c);
	if (resp->status < 200)
		return say_informational(e, c, resp);
	return say_head(e, c, resp);
}

static enum proxy_step on_head(struct edge *e, struct conn *c, struct slice payload)
{
	struct http_resp resp;
	struct arena lists;
	enum proxy_step step;

	arena_init(&lists, LISTS_SIZE);
	if (canon_get_resp(payload, &lists, &resp) < 0)
		step = violated_answer(e, c);
	else
		step = on_resp(e, c, &resp);
	arena_done(&lists);
	return step;
}

/* A stream may be silent for hours after its head: the buffer of the head is freed now. */
static enum proxy_step on_head_frame(struct edge *e, struct conn *c, struct slice payload)
{
	enum proxy_step step = on_head(e, c, payload);

	if (step == PROXY_AGAIN) {
		canon_reader_done(&c->proxy->reader);
		canon_reader_init(&c->proxy->reader);
	}
	return step;
}

/* Begins a frame of n bytes. It becomes one chunk for the guest, so that its data can be forwarded
 * immediately. */
static int begin_data(struct edge *e, struct conn *c, size_t n)
{
	struct proxy_exchange *x = &c->proxy->x;
	uint8_t line[PROXY_CHUNK_ROOM];
	struct wr wr = wr_init(line, sizeof(line));

	if (canon_flow_data(&x->flow, n) < 0)
		return -EBADMSG;
	x->in_frame = true;
	if (x->out_kind != HTTP_BODY_CHUNKED)
		return 0;
	canon_write_chunk(&wr, n);
	proxy_say(e, c, slice_of(line, wr.n));
	return 0;
}

static void end_data(struct edge *e, struct conn *c)
{
	struct proxy_exchange *x = &c->proxy->x;

	x->in_frame = false;
	if (x->out_kind == HTTP_BODY_CHUNKED)
		proxy_say(e, c, slice_from_str("\r\n"));
}

static enum proxy_step on_data(struct edge *e, struct conn *c, struct slice payload)
{
	struct proxy *p = c->proxy;
	size_t left = canon_reader_data_left(&p->reader);

	if (!p->x.in_frame && begin_data(e, c, payload.n + left) < 0)
		return violated_answer(e, c);
	proxy_say(e, c, payload);
	if (left == 0)
		end_data(e, c);
	return PROXY_AGAIN;
}

static enum proxy_step on_end(struct edge *e, struct conn *c, struct slice payload)
{
	struct proxy_exchange *x = &c->proxy->x;
	struct http_headers trailers;
	struct arena lists;
	int r;

	arena_init(&lists, LISTS_SIZE);
	r = canon_get_end(payload, &lists, &trailers);
	if (r == 0)
		r = canon_flow_end(&x->flow, &trailers);
	if (r == 0)
		r = c->proxy->tongue->say_end(e, c, &trailers);
	arena_done(&lists);
	if (r < 0)
		return violated_answer(e, c);
	x->over = true;
	return PROXY_AGAIN;
}

static enum proxy_step on_frame(struct edge *e, struct conn *c, const struct canon_frame *frame)
{
	if (frame->stream != 1)
		return violated_answer(e, c);
	switch (frame->kind) {
	case CANON_HEAD:
		return on_head_frame(e, c, frame->payload);
	case CANON_DATA:
		return on_data(e, c, frame->payload);
	case CANON_END:
		return on_end(e, c, frame->payload);
	case CANON_RESET:
		return broken_answer(e, c, "connection lost before the response");
	case CANON_N_KINDS:
		break;
	}
	return violated_answer(e, c);
}

/* Handles frames until one ends the exchange or makes it raw; PROXY_AGAIN until then. */
static enum proxy_step on_bytes(struct edge *e, struct conn *c, struct slice in)
{
	struct proxy *p = c->proxy;
	struct canon_frame frame;
	enum proxy_step step;
	size_t left;
	int r;

	while (p->state == PROXY_EXCHANGE && !p->x.over) {
		r = canon_reader_feed(&p->reader, &in, &frame);
		if (r < 0)
			return violated_answer(e, c);
		if (r == 0)
			break;
		step = on_frame(e, c, &frame);
		if (step == PROXY_GONE || c->proxy->state == PROXY_HEAD)
			return step;
	}
	left = canon_reader_data_left(&p->reader);
	if (p->state == PROXY_RAW)
		proxy_say(e, c, in);
	else if (left > 0 && !p->x.in_frame && begin_data(e, c, left) < 0)
		return violated_answer(e, c);
	return PROXY_AGAIN;
}

/* Reads from the socket directly into the output for the guest. */
static ssize_t fill_data(struct edge *e, struct conn *c)
{
	struct proxy *p = c->proxy;
	size_t left = canon_reader_data_left(&p->reader);
	ssize_t r = conn_recv_out(c, MIN(left, conn_room(c) - PROXY_CHUNK_ROOM));

	if (r <= 0)
		return r;
	conn_say(e, c, (struct slice){0});
	canon_reader_pass_data(&p->reader, (size_t)r);
	if ((size_t)r == left)
		end_data(e, c);
	return r;
}

/* One read. A short one at the start of frames, so that little of a body is copied twice. */
static enum proxy_step read_some(struct edge *e, struct conn *c)
{
	struct proxy_exchange *x = &c->proxy->x;
	bool in_frame = x->in_frame;
	UNINITIALIZED uint8_t buf[PROXY_READ];
	ssize_t r = in_frame ? fill_data(e, c) : conn_recv(c, buf, sizeof(buf));

	if (r == -EAGAIN) {
		x->readable = false;
		return PROXY_WAIT;
	}
	if (r <= 0)
		return proxy_on_fd_end(e, c, r);
	return in_frame ? PROXY_AGAIN : on_bytes(e, c, slice_of(buf, (size_t)r));
}

static enum proxy_step end_exchange(struct edge *e, struct conn *c)
{
	/* Without a Connection: close, the request was read completely. */
	if (c->proxy->x.close)
		return proxy_finish(e, c);
	conn_drop_fd(e, c);
	return proxy_next(e, c);
}

/* Forwards the available answer as far as the guest has room. */
enum proxy_step proxy_read_answer(struct edge *e, struct conn *c)
{
	struct proxy *p = c->proxy;
	enum proxy_step step = PROXY_AGAIN;

	while (step == PROXY_AGAIN && p->state == PROXY_EXCHANGE) {
		if (!p->tongue->flush(e, c))
			return PROXY_WAIT;
		if (p->x.over)
			return end_exchange(e, c);
		if (!p->x.readable || conn_room(c) < PROXY_MIN_ROOM)
			return PROXY_WAIT;
		step = read_some(e, c);
	}
	return step;
}
