/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 answers of the server; see line_h2.h. */
#include "line_h2.h"

#include <errno.h>
#include "lib/base/clock.h"
#include "src/origin/answer/answer.h"

static struct h2_stream *of_answer(nghttp2_session *session, int32_t id)
{
	struct h2_stream *s = id ? nghttp2_session_get_stream_user_data(session, id) : NULL;

	return s && s->x ? s : NULL;
}

/* The exchange leaves, which resets the stream. */
static void fail_stream(struct h2_stream *s, const char *why)
{
	s->h->o->ops->on_fail(s->h->o, s->x, ORIGIN_BAD_ANSWER, false, why);
}

/* ---- content ---- */

/* A fast reader gets a larger window, while the budget allows it. */
static void widen_answer(struct h2_stream *s, size_t n)
{
	struct h2_line *h = s->h;

	s->n_given += n;
	if (s->id == 0 || s->n_given < 2 * s->window || s->window >= H2_MAX_WINDOW ||
		h->spare_window < s->window)
		return;
	h->spare_window -= s->window;
	s->window *= 2;
	s->n_given = 0;
	(void)nghttp2_session_set_local_window_size(
		h->session, NGHTTP2_FLAG_NONE, s->id, (int32_t)s->window);
}

/* Returns false if the exchange has left; the stream must not be used then. */
static bool give_answer(struct h2_stream *s, struct slice data)
{
	struct h2_line *h = s->h;

	s->x->n_down += data.n;
	s->is_due = h->is_due = true;
	if (!h->o->ops->on_data(h->o, s->x, data))
		return false;
	if (s->id > 0)
		(void)nghttp2_session_consume_stream(h->session, s->id, data.n);
	return true;
}

static bool give_end(struct h2_stream *s)
{
	return s->h->o->ops->on_end(s->h->o, s->x, s->down_trailers.n ? &s->down_trailers : NULL);
}

bool h2_give_held(struct h2_stream *s)
{
	struct h2_line *h = s->h;

	while (bufq_len(&s->held) && answer_has_room(s->x)) {
		struct slice piece = bufq_peek(&s->held);

		piece.n = MIN(piece.n, LINE_READ);
		if (!give_answer(s, piece))
			return false;
		bufq_consume(&s->held, piece.n);
		if (!h->o->ops->flush(h->o, s->x))
			return false;
	}
	s->x->is_stopped = bufq_len(&s->held) > 0;
	if (s->x->is_stopped)
		return true;
	bufq_trim(&s->held);
	return s->has_end ? give_end(s) : true;
}

static int on_data(
	nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *user)
{
	struct h2_line *h = user;
	struct h2_stream *s = of_answer(session, id);
	struct slice data = slice_of(p, n);

	/* The line's window is shared; each stream's own window limits what it holds. */
	(void)nghttp2_session_consume_connection(session, n);
	if (!s) {
		(void)nghttp2_session_consume_stream(session, id, n);
		return 0;
	}
	if (bufq_len(&s->held) == 0 && answer_has_room(s->x)) {
		if (give_answer(s, data))
			widen_answer(s, n);
		return 0;
	}
	s->x->is_stopped = true;
	if (bufq_put(&s->held, data) == n)
		return 0;
	h2_break(h, "HTTP/2 flow control violated");
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void on_end(struct h2_stream *s)
{
	s->has_end = true;
	if (bufq_len(&s->held) == 0)
		(void)!give_end(s);
}

/* ---- heads ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_line *h = user;
	struct h2_stream *s = of_answer(session, frame->hd.stream_id);

	arena_reset(&h->arena);
	if (s && s->said_final)
		h2_begin_trailers(&h->trailers, &h->arena);
	else
		h2_resp_begin(&h->resp, &h->arena);
	return 0;
}

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
	nghttp2_rcbuf *value, uint8_t flags, void *user)
{
	struct h2_line *h = user;
	struct h2_stream *s = of_answer(session, frame->hd.stream_id);
	nghttp2_vec n = nghttp2_rcbuf_get_buf(name), v = nghttp2_rcbuf_get_buf(value);
	struct h2_block *block = s && s->said_final ? &h->trailers : &h->resp.block;

	if (block == &h->trailers)
		h2_add(block, slice_of(n.base, n.len), slice_of(v.base, v.len));
	else
		h2_resp_add(&h->resp, slice_of(n.base, n.len), slice_of(v.base, v.len));
	if (h2_cost(block) <= H2_MAX_BOMB)
		return 0;
	h2_break(h, "the header fields are too large");
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_bad_field(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
	nghttp2_rcbuf *value, uint8_t flags, void *user)
{
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* and not: leave it out */
}

static void on_interim(struct h2_stream *s, struct http_resp *resp)
{
	struct h2_line *h = s->h;

	if (++s->n_interim > H2_MAX_INTERIM) {
		fail_stream(s, "too many interim responses");
		return;
	}
	s->expect_until_ms = 0;
	/* At most one waits for edge: a final head must always find room. */
	if (out_len(&s->x->to_edge) > 0)
		return;
	s->is_due = h->is_due = true;
	(void)!h->o->ops->on_head(h->o, s->x, resp);
}

static void on_head(struct h2_stream *s, bool ended)
{
	struct h2_line *h = s->h;
	struct http_fault fault = {0};
	struct http_resp resp;

	s->x->n_down += h2_cost(&h->resp.block);
	if (h2_resp_take(&h->resp, s->was_head, ended, &resp, &fault) < 0) {
		fail_stream(s, fault.why);
		return;
	}
	if (resp.status < 200) {
		on_interim(s, &resp);
		return;
	}
	s->said_final = true;
	s->expect_until_ms = 0;
	s->kind = resp.body.absent ? HTTP_BODY_NONE : resp.body.kind;
	s->is_due = h->is_due = true;
	if (h->o->ops->on_head(h->o, s->x, &resp) && ended)
		on_end(s);
}

static void on_trailers(struct h2_stream *s)
{
	struct h2_line *h = s->h;
	struct http_fault fault = {0};
	struct http_headers list = {0}, *keep = &s->down_trailers;

	s->x->n_down += h2_cost(&h->trailers);
	if (h2_take_trailers(&h->trailers, &list, &fault) < 0) {
		fail_stream(s, fault.why);
		return;
	}
	/* The canonical form has trailers only after content without a length; so they are
	 * dropped. */
	if (s->kind != HTTP_BODY_CHUNKED)
		list.n = 0;
	if (list.n > 0) {
		arena_init(&s->down_arena, 2 * HTTP_MAX_TRAILER_BYTES + HTTP_MAX_TRAILERS * 64);
		canon_headers_init(keep, &s->down_arena, list.n);
	}
	for (size_t i = 0; i < list.n && keep->max; i++)
		keep->list[keep->n++] =
			(struct http_header){.name = arena_dup(&s->down_arena, list.list[i].name),
				.value = arena_dup(&s->down_arena, list.list[i].value)};
	if (arena_is_full(&s->down_arena))
		fail_stream(s, "the trailers are too large");
	else
		on_end(s);
}

/* ---- frames ---- */

/* Empty frames cost the server little and origin much. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user)
{
	struct h2_line *h = user;
	bool carries = hd->type == NGHTTP2_HEADERS ||
		       (hd->type == NGHTTP2_DATA &&
			       (hd->length > 0 || hd->flags & NGHTTP2_FLAG_END_STREAM));

	if (hd->type ==
		NGHTTP2_PUSH_PROMISE) { /* nghttp2 rejects it only after our settings' ACK */
		h2_break(h, "unexpected HTTP/2 push");
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (carries)
		h->n_carried += hd->length + 9;
	if (carries || --h->noise >= 0)
		return 0;
	h2_break(h, "too many HTTP/2 frames without data");
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_line *h = user;
	struct h2_stream *s = of_answer(session, frame->hd.stream_id);
	bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (frame->hd.type == NGHTTP2_GOAWAY)
		h->l->is_closing = true;
	if (!s)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && s->said_final)
		on_trailers(s);
	else if (frame->hd.type == NGHTTP2_HEADERS)
		on_head(s, ended);
	else if (frame->hd.type == NGHTTP2_DATA && ended)
		on_end(s);
	return 0;
}

/* Reported in h2_settle: this is also called while sending. */
static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct h2_line *h = user;
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);

	if (!s)
		return 0;
	s->id = 0;
	s->close_code = code;
	if (s->x)
		s->is_due = h->is_due = true;
	else if (!h->is_walking)
		h2_free_stream(s);
	return 0;
}

void h2_set_answer_callbacks(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_field);
	nghttp2_session_callbacks_set_on_invalid_header_callback2(callbacks, on_bad_field);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
}

/* ---- ends of streams ---- */

static void on_closed_early(struct h2_stream *s)
{
	struct h2_line *h = s->h;
	struct exchange *x = s->x;

	x->wants_h1 = s->close_code == NGHTTP2_HTTP_1_1_REQUIRED;
	if ((s->close_code == NGHTTP2_REFUSED_STREAM || x->wants_h1) && s->n_up == 0 &&
		s->up_trailers.n == 0)
		h->o->ops->on_refused(h->o, x,
			x->wants_h1 ? "HTTP/1.1 required" : "the server refused the request");
	else if (s->is_unsent)
		h->o->ops->on_fail(h->o, x, ORIGIN_BAD_ANSWER, false, "cannot send the request");
	else
		h->o->ops->on_fail(h->o, x, ORIGIN_BAD_ANSWER, false,
			s->close_code == NGHTTP2_NO_ERROR ? "stream closed without a response"
							  : "stream reset by the server");
}

static void settle_stream(struct h2_stream *s, uint64_t now)
{
	struct h2_line *h = s->h;
	struct http_resp go_on = {.status = 100};

	if (s->expect_until_ms && now >= s->expect_until_ms) {
		s->expect_until_ms = 0;
		s->is_due = true;
		if (out_len(&s->x->to_edge) == 0 && !h->o->ops->on_head(h->o, s->x, &go_on))
			return;
	}
	if (s->is_full && h2_room(s) >= OUT_READ) {
		struct exchange *x = s->x;

		s->is_full = false;
		h->o->ops->on_room(h->o, x);
		if (x->stream != s)
			return;
	}
	if (!s->is_due)
		return;
	s->is_due = false;
	if (!h->o->ops->flush(h->o, s->x) || !h2_give_held(s))
		return;
	if (s->id == 0 && !s->has_end)
		on_closed_early(s);
}

void h2_settle(struct h2_line *h)
{
	uint64_t now = clock_mono_ms();

	h->is_due = false;
	h->is_walking = true;
	for (struct h2_stream *s = h->first; s; s = s->next) {
		if (s->x && s->expect_until_ms > now)
			line_wake(h->o, h->l, s->expect_until_ms - now);
		if (s->x)
			settle_stream(s, now);
	}
	h->is_walking = false;
	h2_sweep(h);
}
