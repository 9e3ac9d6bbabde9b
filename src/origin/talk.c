/* SPDX-License-Identifier: Apache-2.0 */
/* Data of edge after its request, to the line; and the answer to edge. */
#include "origin.h"

#include <errno.h>
#include "lib/base/mem.h"

#define ROUNDS 16 /* then other events are handled */
#define REQ_ARENA 16384

static uint8_t buf[OUT_READ];

struct talk *talk_new(void)
{
	struct talk *t = xcalloc(1, sizeof(*t));

	arena_init(&t->req_arena, REQ_ARENA);
	canon_reader_init(&t->frames);
	return t;
}

void talk_free(struct talk *t)
{
	if (!t)
		return;
	free(t->head);
	arena_done(&t->req_arena);
	canon_reader_done(&t->frames);
	free(t);
}

/* State of the exchange after a step. */
enum step { STEP_WAITS, STEP_MOVED, STEP_OVER };

static int put_data(struct origin *o, struct exchange *x, struct slice data)
{
	struct talk *t = x->talk;

	if (canon_flow_data(&t->up, data.n) < 0)
		return -EBADMSG;
	if (sign_has_chunks(x))
		return sign_put_chunks(o, x, data);
	return t->is_deaf ? 0 : x->line->ops->body(o, x, data);
}

static int put_end(struct origin *o, struct exchange *x, struct slice payload)
{
	struct talk *t = x->talk;
	struct http_headers trailers = {0};

	/* A websocket's direction stays open for data after the 101. */
	if (t->up.may_switch && !t->is_said)
		return -EBADMSG;
	arena_reset(&o->arena);
	if (canon_get_end(payload, &o->arena, &trailers) < 0 ||
		canon_flow_end(&t->up, &trailers) < 0)
		return -EBADMSG;
	if (refuse_trailers(o, &trailers))
		return -EACCES;
	if (slot_judge_trailers(o, &trailers) != ORIGIN_DONE)
		return -EPERM;
	if (sign_has_chunks(x))
		return sign_end_chunks(x);
	return t->is_deaf ? 0 : x->line->ops->end(o, x, &trailers);
}

/* Returns 1 if edge cancels. */
static int on_frame(struct origin *o, struct exchange *x, const struct canon_frame *frame)
{
	if (frame->stream != OUT_STREAM)
		return -EBADMSG;
	switch (frame->kind) {
	case CANON_DATA:
		return put_data(o, x, frame->payload);
	case CANON_END:
		return put_end(o, x, frame->payload);
	case CANON_RESET:
		return 1;
	default:
		return -EBADMSG;
	}
}

static enum step on_edge_end(struct origin *o, struct exchange *x)
{
	if (x->state != EXCHANGE_RAW) { /* before the end of the request */
		exchange_finish(o, x);
		return STEP_OVER;
	}
	x->talk->up.phase = CANON_OVER;
	exchange_set_timer(o, x, ORIGIN_LINGER_MS);
	return x->line->ops->end(o, x, NULL) < 0 ? STEP_WAITS : STEP_MOVED;
}

/* Sends the content that sign.c kept. */
static enum step send_due(struct origin *o, struct exchange *x)
{
	const struct http_headers none = {0};
	struct slice piece = sign_due(x, sizeof(buf));
	int r = 0;

	if (!x->talk->is_deaf && x->line->ops->room(x->line, x) < sizeof(buf))
		return STEP_WAITS;
	if (piece.n && !x->talk->is_deaf)
		r = x->line->ops->body(o, x, piece);
	if (r == 0 && sign_due_sent(x, piece.n) && !x->talk->is_deaf)
		r = x->line->ops->end(o, x, &none);
	if (r < 0) {
		exchange_fail(o, x, ORIGIN_BAD_REQUEST, "the request is incomplete");
		return STEP_OVER;
	}
	return STEP_MOVED;
}

static void deny_trailer(struct origin *o, struct exchange *x, enum origin_outcome why)
{
	exchange_fail(o, x, why, "%s: %s: trailer", o->config.host, origin_outcome_text(why));
}

static enum step read_edge(struct origin *o, struct exchange *x)
{
	struct talk *t = x->talk;
	struct canon_frame frame;
	struct slice in;
	ssize_t n;
	int r = 0;

	if (x->line && !t->is_done && sign_has_due(x))
		return send_due(o, x);
	if (t->up.phase == CANON_OVER || t->is_done || !x->line ||
		(!t->is_deaf && x->line->ops->room(x->line, x) < sizeof(buf)))
		return STEP_WAITS;
	n = exchange_recv(x, buf, sizeof(buf));
	if (n < 0)
		return STEP_WAITS;
	if (n == 0)
		return on_edge_end(o, x);
	in = slice_of(buf, (size_t)n);
	if (x->state == EXCHANGE_RAW)
		r = t->is_deaf ? 0 : x->line->ops->body(o, x, in);
	else
		while ((r = canon_reader_feed(&t->frames, &in, &frame)) == 1) {
			r = on_frame(o, x, &frame);
			if (r != 0)
				break;
		}
	if (r > 0)
		exchange_finish(o, x);
	else if (r == -EPERM)
		deny_trailer(o, x, ORIGIN_DENIED_FOREIGN);
	else if (r == -EACCES)
		deny_trailer(o, x, ORIGIN_DENIED_REQUEST);
	else if (r == -EPROTO)
		exchange_fail(o, x, ORIGIN_CANNOT_SIGN, "%s: %s", o->config.host, sign_why(x));
	else if (r < 0)
		exchange_fail(o, x, ORIGIN_BAD_REQUEST, "the request is incomplete");
	return r == 0 ? STEP_MOVED : STEP_OVER;
}

bool talk_flush(struct origin *o, struct exchange *x)
{
	uint64_t n = 0;
	int r = exchange_flush(o, x, &n);

	for (unsigned i = 0; r == 0 && i < ROUNDS && answer_has_more(x); i++) {
		if (answer_scrub_more(o, x) < 0) {
			exchange_fail(o, x, ORIGIN_BAD_ANSWER,
				"%s: cannot decode the response body", o->config.host);
			return false;
		}
		r = exchange_flush(o, x, &n);
	}
	if (r < 0 && r != -EAGAIN) {
		exchange_finish(o, x);
		return false;
	}
	if (r == 0 && answer_has_more(x))
		exchange_again(o, x);
	if (x->talk->is_done && r == 0) {
		exchange_end(o, x);
		return false;
	}
	if (n && x->state == EXCHANGE_TALK)
		exchange_set_timer(o, x, ORIGIN_IDLE_MS);
	return true;
}

/* Data that the line did not read, or holds, because edge did not read. The line has noted it:
 * another flush may have made the room. */
static void resume_line(struct origin *o, struct exchange *x)
{
	struct line *l = x->line;

	if (!l || !x->is_stopped || !answer_has_room(x))
		return;
	x->is_stopped = false;
	l->ops->resume(o, l, x);
}

void talk_pump(struct origin *o, struct exchange *x)
{
	uint32_t gen = x->gen;

	if (x->token) { /* its request was read; only the output to edge is left */
		if (exchange_has_edge(x) && !talk_flush(o, x))
			return;
		token_push(o, x);
		return;
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		enum step step;

		if (!talk_flush(o, x))
			return;
		step = read_edge(o, x);
		if (step == STEP_OVER)
			return;
		if (step == STEP_MOVED && x->state == EXCHANGE_TALK)
			exchange_set_timer(o, x, ORIGIN_IDLE_MS);
		if (step == STEP_MOVED)
			continue;
		resume_line(o, x);
		return;
	}
	if (x->gen == gen && exchange_has_edge(x))
		exchange_again(o, x);
}

/* Returns 1 at its end. */
static int keep_frame(struct origin *o, struct exchange *x, const struct canon_frame *frame)
{
	struct talk *t = x->talk;
	struct http_headers trailers = {0};

	if (frame->stream != OUT_STREAM)
		return -EBADMSG;
	if (frame->kind == CANON_DATA) {
		if (canon_flow_data(&t->up, frame->payload.n) < 0)
			return -EBADMSG;
		return sign_keep(o, x, frame->payload) < 0 ? -EPROTO : 0;
	}
	arena_reset(&o->arena);
	/* Such a signature does not permit trailers. */
	if (frame->kind != CANON_END || canon_get_end(frame->payload, &o->arena, &trailers) < 0 ||
		canon_flow_end(&t->up, &trailers) < 0 || trailers.n > 0)
		return -EBADMSG;
	return 1;
}

static int keep_some(struct origin *o, struct exchange *x)
{
	struct canon_frame frame;
	ssize_t n = exchange_recv(x, buf, sizeof(buf));
	struct slice in = slice_of(buf, n > 0 ? (size_t)n : 0);
	int r;

	if (n <= 0)
		return n < 0 ? -EAGAIN : -EPIPE;
	while ((r = canon_reader_feed(&x->talk->frames, &in, &frame)) == 1) {
		if (frame.kind == CANON_RESET)
			return -EPIPE;
		r = keep_frame(o, x, &frame);
		if (r != 0)
			return r;
	}
	return r;
}

void talk_keep(struct origin *o, struct exchange *x)
{
	int r = 0;

	if (!talk_flush(o, x))
		return;
	for (unsigned i = 0; i < ROUNDS && r == 0; i++) {
		r = keep_some(o, x);
		if (r == 0)
			exchange_set_timer(o, x, ORIGIN_BODY_MS);
	}
	if (r == 0) /* more data: continue after other events */
		exchange_again(o, x);
	else if (r == 1)
		exchange_on_kept(o, x);
	else if (r == -EPIPE)
		exchange_finish(o, x);
	else if (r == -EPROTO)
		exchange_fail(o, x, ORIGIN_CANNOT_SIGN, "%s: %s", o->config.host, sign_why(x));
	else if (r != -EAGAIN)
		exchange_fail(o, x, ORIGIN_BAD_REQUEST, "the request is incomplete");
}
