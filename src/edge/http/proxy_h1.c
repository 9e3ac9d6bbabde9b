/* SPDX-License-Identifier: Apache-2.0 */
/* The guest uses HTTP/1.1: the events of a body, and answers as text in c->out. */
#include "proxy_internal.h"

#include <errno.h>

static uint8_t text[2 * HTTP_MAX_HEAD]; /* one head, or the last chunk with its trailers */

static void eat_h1(struct edge *e, struct conn *c, size_t n)
{
	if (n > 0)
		conn_eat(e, c, n);
}

/* Returns the next event of c->in, or of its end. */
static bool next_event(struct edge *e, struct conn *c, struct http1_event *ret)
{
	struct http1 *h = &c->proxy->h;
	size_t used;

	do {
		struct slice run = canon_text_cut(bufq_peek(&c->in), 0, CANON_MAX_DATA), in = run;

		if (http1_read(h, &in, ret)) {
			used = run.n - in.n;
			eat_h1(e, c, used - (ret->kind == HTTP1_EV_DATA ? ret->data.n : 0));
			return true;
		}
		used = run.n - in.n;
		eat_h1(e, c, used);
	} while (used > 0 && bufq_len(&c->in) > 0);
	return c->in_end && bufq_len(&c->in) == 0 && http1_eof(h, ret);
}

void proxy_say(struct edge *e, struct conn *c, struct slice bytes)
{
	struct proxy *p = c->proxy;
	size_t n = p->to_guest.n ? 0 : MIN(bytes.n, conn_room(c));

	if (n > 0)
		conn_say(e, c, canon_text_cut(bytes, 0, n));
	proxy_rest_add(&p->to_guest, canon_text_cut(bytes, n, bytes.n));
}

bool proxy_flush_guest(struct edge *e, struct conn *c)
{
	struct proxy *p = c->proxy;
	size_t n = MIN(p->to_guest.n, conn_room(c));

	if (n > 0) {
		conn_say(e, c, canon_text_cut(proxy_rest_slice(&p->to_guest), 0, n));
		proxy_rest_eat(&p->to_guest, n);
	}
	return p->to_guest.n == 0;
}

/* Writes the head, in a framing that this guest understands. Bodies that end with the server's
 * connection become chunks, so that a cut is visible and the guest's connection persists. */
static int say_answer(struct edge *e, struct conn *c, struct http_resp *resp)
{
	struct proxy_exchange *x = &c->proxy->x;
	struct wr wr = wr_init(text, sizeof(text));

	if (x->http10)
		canon_fit_http10(resp);
	else if (resp->body.kind == HTTP_BODY_CLOSE)
		resp->body.kind = HTTP_BODY_CHUNKED;
	/* An early answer: the start of the next request is unknown, so the connection ends. */
	x->close = !x->keep_alive || !x->req_done;
	if (canon_write_resp(&wr, resp, x->close) < 0)
		return -EBADMSG;
	proxy_say(e, c, slice_of(text, wr.n));
	x->out_kind = resp->body.absent ? HTTP_BODY_NONE : resp->body.kind;
	return 0;
}

static int say_head(struct edge *e, struct conn *c, struct http_resp *resp)
{
	struct wr wr = wr_init(text, sizeof(text));

	if (resp->status >= 200 || resp->status == 101)
		return say_answer(e, c, resp);
	if (canon_write_resp(&wr, resp, false) < 0)
		return -EBADMSG;
	if (!c->proxy->x.http10)
		proxy_say(e, c, slice_of(text, wr.n));
	return 0;
}

static int say_end(struct edge *e, struct conn *c, const struct http_headers *trailers)
{
	struct wr wr = wr_init(text, sizeof(text));

	if (c->proxy->x.out_kind != HTTP_BODY_CHUNKED)
		return 0;
	if (canon_write_last_chunk(&wr, trailers) < 0)
		return -EBADMSG;
	proxy_say(e, c, slice_of(text, wr.n));
	return 0;
}

static int say_refusal(struct edge *e, struct conn *c, struct slice refusal)
{
	conn_say(e, c, refusal);
	return 0;
}

const struct proxy_tongue proxy_h1 = {
	.next_event = next_event,
	.say_head = say_head,
	.say_end = say_end,
	.say_refusal = say_refusal,
	.flush = proxy_flush_guest,
};
