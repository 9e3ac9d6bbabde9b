/* SPDX-License-Identifier: Apache-2.0 */
#include "relay.h"

#include <errno.h>
#include <sys/socket.h>
#include "lib/base/mem.h"

#define ROUNDS 16 /* then other events are handled */
/* One read of edge's frames as HTTP/1.1: a chunk line around each frame, a last one with
 * trailers. */
#define REQUEST_ROOM (2 * EGRESS_READ)

static uint8_t buf[EGRESS_READ];

/* State of the exchange after a step. */
enum step { STEP_WAITS, STEP_MOVED, STEP_OVER };

static enum step fail_upstream(struct egress *e, struct exchange *x, const char *why)
{
	e->ops->fail(
		e, x, EGRESS_UNREACHABLE, &x->addr, "%s, port %u: %s", x->host.name, x->port, why);
	return STEP_OVER;
}

/* ---- the request: edge to upstream ---- */

static int put_data(struct exchange *x, struct slice data)
{
	struct talk *t = x->talk;
	struct wr wr;

	if (canon_flow_data(&t->up, data.n) < 0)
		return -EBADMSG;
	if (t->is_deaf)
		return 0;
	wr = out_wr(&x->to_upstream, data.n + 64);
	if (t->up.kind == HTTP_BODY_CHUNKED)
		canon_write_chunk(&wr, data.n);
	wr_bytes(&wr, data);
	if (t->up.kind == HTTP_BODY_CHUNKED)
		wr_bytes(&wr, slice_from_str("\r\n"));
	if (wr_finish(&wr) < 0)
		return -EMSGSIZE;
	out_put_wr(&x->to_upstream, &wr);
	return 0;
}

static int put_end(struct egress *e, struct exchange *x, struct slice payload)
{
	struct talk *t = x->talk;
	struct http_headers trailers = {0};
	struct wr wr;

	/* A websocket's direction stays open for data after the 101. */
	if (t->up.may_switch && !t->is_said)
		return -EBADMSG;
	arena_reset(&e->arena);
	if (canon_get_end(payload, &e->arena, &trailers) < 0 ||
		canon_flow_end(&t->up, &trailers) < 0)
		return -EBADMSG;
	if (t->is_deaf || t->up.kind != HTTP_BODY_CHUNKED)
		return 0;
	wr = out_wr(&x->to_upstream, CANON_MAX_END + 64);
	if (canon_write_last_chunk(&wr, &trailers) < 0)
		return -EBADMSG;
	out_put_wr(&x->to_upstream, &wr);
	return 0;
}

/* Returns 1 if edge cancels. */
static int on_frame(struct egress *e, struct exchange *x, const struct canon_frame *frame)
{
	if (frame->stream != EGRESS_STREAM)
		return -EBADMSG;
	switch (frame->kind) {
	case CANON_DATA:
		return put_data(x, frame->payload);
	case CANON_END:
		return put_end(e, x, frame->payload);
	case CANON_RESET:
		return 1;
	default:
		return -EBADMSG;
	}
}

static enum step read_edge(struct egress *e, struct exchange *x)
{
	struct talk *t = x->talk;
	struct canon_frame frame;
	struct slice in;
	ssize_t n;
	int r;

	if (t->up.phase == CANON_OVER || out_room(&x->to_upstream) < REQUEST_ROOM + CANON_MAX_END)
		return STEP_WAITS;
	n = recv(x->edge_fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return STEP_WAITS;
	if (n <= 0) { /* closed before the end of the request */
		e->ops->finish(e, x);
		return STEP_OVER;
	}
	in = slice_of(buf, (size_t)n);
	while ((r = canon_reader_feed(&t->frames, &in, &frame)) == 1) {
		r = on_frame(e, x, &frame);
		if (r != 0)
			break;
	}
	if (r > 0)
		e->ops->finish(e, x);
	else if (r < 0)
		e->ops->fail(e, x, EGRESS_BAD_REQUEST, NULL, "the request is incomplete");
	return r == 0 ? STEP_MOVED : STEP_OVER;
}

/* ---- the answer: upstream to edge ---- */

static enum step put_head(
	struct egress *e, struct exchange *x, struct http_resp *resp, struct slice rest)
{
	struct talk *t = x->talk;
	struct http_fault fault = {0};
	struct wr wr;

	/* Of an HTTP proxy: only now it is known that it did not refuse the login. */
	if (x->is_proxied && !x->result_said && resp->status == 407) {
		proxy_refuse_login(e, x, resp->status);
		return STEP_OVER;
	}
	e->ops->tell(e, x, EGRESS_CONNECTED, &x->addr, egress_outcome_text(EGRESS_CONNECTED));
	if (canon_make_resp(resp, &fault) < 0)
		return fail_upstream(e, x, fault.why);
	out_drop_ours(&resp->headers);
	wr = out_wr(&x->to_edge, CANON_MAX_HEAD + CANON_FRAME_HEADER);
	if (canon_flow_resp(&t->down, resp) < 0 || canon_put_resp(&wr, EGRESS_STREAM, resp) < 0)
		return fail_upstream(e, x, "cannot forward the response");
	if (resp->status != 101) {
		out_put_wr(&x->to_edge, &wr);
		t->is_said = t->is_said || resp->status >= 200;
		return STEP_MOVED;
	}
	/* From here on data passes unmodified, both ways. */
	if (canon_flow_switch(&t->up) < 0 || t->frames.n_head > 0)
		return fail_upstream(e, x, "data was sent before the websocket response");
	out_put_wr(&x->to_edge, &wr);
	if (out_put(&x->to_edge, rest) < 0)
		return fail_upstream(e, x, "too much data after the websocket response");
	tunnel_run(e, x);
	return STEP_OVER;
}

static enum step put_answer_data(struct egress *e, struct exchange *x, struct slice data)
{
	struct wr wr = out_wr(&x->to_edge, data.n + CANON_FRAME_HEADER);

	if (canon_flow_data(&x->talk->down, data.n) < 0 ||
		canon_put_data_head(&wr, EGRESS_STREAM, data.n) < 0)
		return fail_upstream(e, x, "cannot forward the response");
	wr_bytes(&wr, data);
	if (wr_finish(&wr) < 0)
		return fail_upstream(e, x, "cannot forward the response");
	out_put_wr(&x->to_edge, &wr);
	return STEP_MOVED;
}

static enum step put_answer_end(struct egress *e, struct exchange *x, struct http_headers *trailers)
{
	struct wr wr = out_wr(&x->to_edge, CANON_MAX_END + CANON_FRAME_HEADER);

	out_drop_ours(trailers);
	if (canon_flow_end(&x->talk->down, trailers) < 0 ||
		canon_put_end(&wr, EGRESS_STREAM, trailers) < 0)
		return fail_upstream(e, x, "cannot forward the end of the response");
	out_put_wr(&x->to_edge, &wr);
	x->talk->is_done = true;
	return STEP_MOVED;
}

static enum step on_answer(
	struct egress *e, struct exchange *x, struct http1_event *ev, struct slice rest)
{
	switch (ev->kind) {
	case HTTP1_EV_HEAD:
		return put_head(e, x, ev->resp, rest);
	case HTTP1_EV_DATA:
		return put_answer_data(e, x, ev->data);
	case HTTP1_EV_END:
		return put_answer_end(e, x, ev->trailers);
	default:
		return fail_upstream(e, x, ev->fault.why);
	}
}

static enum step on_upstream_end(struct egress *e, struct exchange *x)
{
	struct http1_event ev;

	if (!http1_eof(&x->talk->reader, &ev))
		return fail_upstream(e, x, "connection closed without a response");
	return on_answer(e, x, &ev, slice_of(NULL, 0));
}

/* A head needs all of the room: it may be that large, and is written when it is complete. */
static bool has_room(const struct exchange *x)
{
	return x->talk->is_said ? out_room(&x->to_edge) >= 2 * EGRESS_READ + CANON_MAX_END
				: out_len(&x->to_edge) == 0;
}

static enum step read_upstream(struct egress *e, struct exchange *x)
{
	struct http1_event ev;
	enum step step = STEP_MOVED;
	struct slice in;
	ssize_t n;

	if (x->talk->is_done || !has_room(x))
		return STEP_WAITS;
	n = recv(x->upstream_fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return STEP_WAITS;
	if (n < 0)
		return fail_upstream(e, x, "connection lost");
	if (n == 0)
		return on_upstream_end(e, x);
	x->n_bytes[WAY_DOWN] += (uint64_t)n;
	in = slice_of(buf, (size_t)n);
	while (step == STEP_MOVED && !x->talk->is_done && http1_read(&x->talk->reader, &in, &ev))
		step = on_answer(e, x, &ev, in);
	return step;
}

/* Whether the exchange continues. */
static bool flush_upstream(struct egress *e, struct exchange *x)
{
	struct talk *t = x->talk;
	uint64_t n = 0;
	int r = out_flush(&x->to_upstream, x->upstream_fd, &x->n_bytes[WAY_UP]);

	/* The server may have answered before it stopped reading. */
	if (r < 0 && r != -EAGAIN) {
		t->is_deaf = true;
		out_done(&x->to_upstream);
	}
	r = out_flush(&x->to_edge, x->edge_fd, &n);
	if (r < 0 && r != -EAGAIN) {
		e->ops->finish(e, x);
		return false;
	}
	if (t->is_done && r == 0) {
		e->ops->end(e, x);
		return false;
	}
	return true;
}

void request_pump(struct egress *e, struct exchange *x)
{
	const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	enum step up = STEP_MOVED, down = STEP_MOVED;

	for (unsigned i = 0; i < ROUNDS; i++) {
		if (!flush_upstream(e, x))
			return;
		if (up == STEP_WAITS && down == STEP_WAITS)
			return;
		up = read_edge(e, x);
		if (up == STEP_OVER)
			return;
		down = read_upstream(e, x);
		if (down == STEP_OVER)
			return;
		if (up == STEP_MOVED || down == STEP_MOVED)
			exchange_set_timer(e, x, EGRESS_IDLE_MS);
	}
	/* Setting an edge-triggered event again reports it again. */
	(void)!loop_mod(&e->loop, x->edge_fd, events, exchange_key(e, x, EGRESS_EV_EDGE));
	(void)!loop_mod(&e->loop, x->upstream_fd, events, exchange_key(e, x, EGRESS_EV_UPSTREAM));
}

void request_begin(struct egress *e, struct exchange *x)
{
	struct talk *t = x->talk;
	struct wr wr = out_wr(&x->to_upstream, CANON_MAX_HEAD + 1024);
	bool is_absolute = x->is_proxied && e->config.proxy == EGRESS_PROXY_HTTP;

	if (canon_write_req(&wr, &t->req, is_absolute ? CANON_TO_PROXY : CANON_TO_ORIGIN) < 0) {
		(void)fail_upstream(e, x, "the request is too large");
		return;
	}
	out_put_wr(&x->to_upstream, &wr);
	http1_init_response(&t->reader, &t->resp_arena, &t->req);
	if (!is_absolute || !e->config.proxy_user[0])
		request_go_on(e, x);
	else if (!login_split(e, x))
		(void)fail_upstream(e, x, "the request is too large");
}

void request_go_on(struct egress *e, struct exchange *x)
{
	struct talk *t = x->talk;

	free(TAKE(t->head)); /* sent; only flags of req are used from here on */
	x->state = EXCHANGE_HTTP;
	exchange_set_timer(e, x, EGRESS_IDLE_MS);
	request_pump(e, x);
}
