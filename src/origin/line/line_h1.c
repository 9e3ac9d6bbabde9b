/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 on a line: one exchange at a time. The head, which contains the credential, is written
 * from separate memory that is locked and wiped. */
#include "protocol.h"

#include <errno.h>
#include "lib/base/mem.h"
#include "src/origin/answer/answer.h"

#define ROUNDS 16	/* then other events are handled */
#define SPARE 1024	/* of a head, in addition to the request */
#define HEAD_ROOM 16384 /* kept for the next head; a larger one is created again */

struct h1 {
	struct exchange *x;
	struct secret head;
	size_t head_at;
	struct out out; /* content, after the head */
	struct arena arena;
	struct http1 reader;
	uint64_t n_read;
	bool chunked;
	bool said_all;	  /* the request's end is in out */
	bool is_answered; /* the answer's end was read */
	bool keep;	  /* server and request permit reuse of the line */
	bool is_raw;
	bool is_deaf;
};

static uint8_t buf[LINE_READ];

static bool begin_h1(struct origin *o, struct line *l)
{
	struct h1 *h = l->proto = xcalloc(1, sizeof(*h));

	arena_init(&h->arena, HTTP_ARENA_SIZE);
	return true;
}

static void done_h1(struct origin *o, struct line *l)
{
	struct h1 *h = TAKE(l->proto);

	secret_done(&h->head);
	out_done(&h->out);
	arena_done(&h->arena);
	free(h);
}

static bool can_take(const struct line *l)
{
	return l->n_exchanges == 0;
}

/* An idle line: data is a violation, and end-of-file ends it. Returns false if it was dropped. */
static bool check_idle(struct origin *o, struct line *l)
{
	uint8_t one;

	if (line_recv(l, &one, 1) == -EAGAIN)
		return true;
	line_drop(o, l);
	return false;
}

/* ---- the request ---- */

/* Returns -EPIPE if the server reads no more. */
static int flush_h1(struct line *l, struct h1 *h)
{
	ssize_t n;

	while (h->head_at < h->head.n) {
		n = line_send(l, slice_of(h->head.p + h->head_at, h->head.n - h->head_at));
		if (n < 0)
			return (int)n;
		h->head_at += (size_t)n;
		if (h->head_at == h->head.n) {
			secret_cut(&h->head, 0);
			h->head_at = 0;
		}
	}
	while (out_len(&h->out)) {
		n = line_send(l, out_peek(&h->out));
		if (n < 0)
			return (int)n;
		out_consume(&h->out, (size_t)n);
	}
	return 0;
}

static void flush_request(struct origin *o, struct line *l, struct h1 *h)
{
	int r = h->is_deaf ? 0 : flush_h1(l, h);

	if (r == 0 || r == -EAGAIN)
		return;
	/* The server may have answered before it stopped reading. */
	h->is_deaf = true;
	secret_cut(&h->head, 0);
	h->head_at = 0;
	out_done(&h->out);
	h->x->talk->is_deaf = true; /* its answer may still arrive */
}

static size_t size_of(const struct http_req *req)
{
	size_t n = SPARE + req->method.n + req->host.n + req->path.n + req->query.n;

	for (size_t i = 0; i < req->headers.n; i++)
		n += req->headers.list[i].name.n + req->headers.list[i].value.n + 4;
	return n;
}

static int write_head(struct h1 *h, const struct http_req *req)
{
	size_t n = MAX(size_of(req), HEAD_ROOM);
	struct wr wr;
	int r;

	if (h->head.size < n) {
		secret_done(&h->head);
		r = secret_init(&h->head, n, NULL);
		if (r < 0)
			return r;
	}
	wr = wr_init(h->head.p, h->head.size);
	r = canon_write_req(&wr, req, CANON_TO_ORIGIN);
	h->head.n = wr.n;
	h->head_at = 0;
	if (r < 0)
		secret_cut(&h->head, 0);
	return r;
}

static int start_h1(struct origin *o, struct line *l, struct exchange *x)
{
	struct h1 *h = l->proto;
	const struct http_req *req = &x->talk->req;
	uint8_t one;
	int r;

	/* The server may have closed it while it was idle. */
	if (line_recv(l, &one, 1) != -EAGAIN) {
		l->is_closing = true;
		return -EPIPE;
	}
	r = write_head(h, req);
	if (r < 0)
		return r;
	arena_reset(&h->arena);
	http1_init_response(&h->reader, &h->arena, req);
	h->x = x;
	h->n_read = 0;
	h->chunked = req->body.kind == HTTP_BODY_CHUNKED;
	h->said_all = req->body.kind == HTTP_BODY_NONE && !req->websocket;
	h->is_answered = h->is_raw = h->is_deaf = false;
	h->keep = !canon_must_close(req);
	x->n_up += h->head.n;
	loop_timer_clear(&o->loop, &l->timer);
	flush_request(o, l, h);
	return 0;
}

static size_t room_h1(const struct line *l, const struct exchange *x)
{
	const struct h1 *h = l->proto;
	/* a chunk's line around each frame, and a last one with trailers */
	size_t spare = OUT_READ + CANON_MAX_END, n = out_room(&h->out);

	return n > spare ? n - spare : 0;
}

static int put_h1(struct exchange *x, struct h1 *h, struct slice bytes)
{
	x->n_up += bytes.n;
	return out_put(&h->out, bytes);
}

static int put_chunk(struct exchange *x, struct h1 *h, struct slice bytes)
{
	struct wr wr = out_wr(&h->out, bytes.n + 64);

	canon_write_chunk(&wr, bytes.n);
	wr_bytes(&wr, bytes);
	wr_bytes(&wr, slice_from_str("\r\n"));
	if (wr_finish(&wr) < 0)
		return -EMSGSIZE;
	x->n_up += wr.n;
	out_put_wr(&h->out, &wr);
	return 0;
}

static int body_h1(struct origin *o, struct exchange *x, struct slice bytes)
{
	struct h1 *h = x->line->proto;
	int r;

	h->out.is_secret = x->token != NULL;
	r = h->chunked && !h->is_raw ? put_chunk(x, h, bytes) : put_h1(x, h, bytes);

	if (r == 0)
		flush_request(o, x->line, h);
	return r;
}

/* Each direction of a websocket ends separately. */
static void say_end(struct line *l, const struct h1 *h)
{
	if (h->is_raw && h->said_all && out_len(&h->out) == 0 && !h->is_deaf &&
		!(SSL_get_shutdown(l->ssl) & SSL_SENT_SHUTDOWN))
		(void)SSL_shutdown(l->ssl);
}

static int end_h1(struct origin *o, struct exchange *x, const struct http_headers *trailers)
{
	struct h1 *h = x->line->proto;

	h->said_all = true;
	if (h->chunked && !h->is_raw) {
		struct wr wr = out_wr(&h->out, CANON_MAX_END + 64);

		if (canon_write_last_chunk(&wr, trailers) < 0)
			return -EMSGSIZE;
		x->n_up += wr.n;
		out_put_wr(&h->out, &wr);
	}
	flush_request(o, x->line, h);
	say_end(x->line, h);
	return 0;
}

/* The line can be reused if request and answer are both complete, and no data follows. */
static void leave_h1(struct origin *o, struct line *l, struct exchange *x)
{
	struct h1 *h = l->proto;
	bool is_clean = h->is_answered && h->keep && h->said_all && !h->is_deaf && !h->is_raw &&
			h->head.n == 0 && out_len(&h->out) == 0;
	bool is_unused = h->x == NULL && !l->is_closing;

	h->x = NULL;
	if (!is_clean && !is_unused) {
		line_drop(o, l);
		return;
	}
	l->n_served += is_clean;
}

/* ---- the answer ---- */

static bool on_answer(struct origin *o, struct h1 *h, struct http1_event *ev, struct slice rest)
{
	struct exchange *x = h->x;

	switch (ev->kind) {
	case HTTP1_EV_HEAD:
		h->keep = h->keep && ev->resp->keep_alive;
		h->is_raw = ev->resp->status == 101;
		return o->ops->on_head(o, x, ev->resp);
	case HTTP1_EV_DATA:
		return o->ops->on_data(o, x, ev->data);
	case HTTP1_EV_END:
		h->is_answered = true;
		h->keep = h->keep && rest.n == 0;
		return o->ops->on_end(o, x, ev->trailers);
	default:
		o->ops->on_fail(o, x, ORIGIN_BAD_ANSWER, false, ev->fault.why);
		return false;
	}
}

static bool on_end(struct origin *o, struct line *l, struct h1 *h, ssize_t r)
{
	bool untouched = h->n_read == 0 && l->n_served > 0;
	struct http1_event ev;

	/* The line takes no more exchanges, whatever the result of this one. */
	l->is_closing = true;
	h->keep = false;
	if (h->is_raw && r == 0)
		return o->ops->on_end(o, h->x, NULL);
	if (r == 0 && h->n_read && http1_eof(&h->reader, &ev))
		return on_answer(o, h, &ev, slice_of(NULL, 0));
	o->ops->on_fail(o, h->x, ORIGIN_BAD_ANSWER, untouched,
		h->n_read ? "connection lost" : "connection closed without a response");
	return false;
}

enum turn { TURN_WAITS, TURN_MOVED, TURN_OVER };

static enum turn take_answer(struct origin *o, struct h1 *h, struct slice in)
{
	struct http1_event ev;

	while (!h->is_raw && http1_read(&h->reader, &in, &ev)) {
		if (!on_answer(o, h, &ev, in))
			return TURN_OVER;
	}
	if (h->is_raw && in.n && !o->ops->on_data(o, h->x, in))
		return TURN_OVER;
	return o->ops->flush(o, h->x) ? TURN_MOVED : TURN_OVER;
}

static enum turn read_answer(struct origin *o, struct line *l, struct h1 *h)
{
	enum turn turn;
	ssize_t n;

	h->x->is_stopped = !answer_has_room(h->x);
	if (h->x->is_stopped)
		return TURN_WAITS;
	n = line_recv(l, buf, sizeof(buf));
	if (n == -EAGAIN)
		return TURN_WAITS;
	if (n <= 0)
		return on_end(o, l, h, n) ? TURN_MOVED : TURN_OVER;
	h->n_read += (uint64_t)n;
	h->x->n_down += (uint64_t)n;
	turn = take_answer(o, h, slice_of(buf, (size_t)n));
	explicit_bzero(buf, (size_t)n); /* an answer may contain the value */
	return turn;
}

/* The exchange has left; the line may still exist, and its end may be reported already. Data that
 * arrived after the answer is found by the next exchange at the latest: start_h1. */
static void after_h1(struct origin *o, struct line *l, uint32_t gen)
{
	if (l->gen == gen && l->state == LINE_READY && l->n_exchanges == 0 && line_may_have_more(l))
		(void)check_idle(o, l);
}

static void pump_h1(struct origin *o, struct line *l)
{
	struct h1 *h = l->proto;
	uint32_t gen = l->gen;

	if (!h->x) {
		(void)check_idle(o, l);
		return;
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct exchange *x = h->x;
		bool was_full = room_h1(l, x) < OUT_READ;

		flush_request(o, l, h);
		say_end(l, h);
		if (was_full && room_h1(l, x) >= OUT_READ) {
			o->ops->on_room(o, x);
			if (l->gen != gen || h->x != x) {
				after_h1(o, l, gen);
				return;
			}
		}
		switch (read_answer(o, l, h)) {
		case TURN_WAITS:
			return;
		case TURN_OVER:
			after_h1(o, l, gen);
			return;
		case TURN_MOVED:
			break;
		}
	}
	line_again(o, l);
}

static void resume_h1(struct origin *o, struct line *l, struct exchange *x)
{
	pump_h1(o, l);
}

const struct line_ops line_h1 = {
	.kind = LINE_H1,
	.alpn = "http/1.1",
	.begin = begin_h1,
	.done = done_h1,
	.can_take = can_take,
	.start = start_h1,
	.room = room_h1,
	.body = body_h1,
	.end = end_h1,
	.leave = leave_h1,
	.resume = resume_h1,
	.on_event = pump_h1,
};
