/* SPDX-License-Identifier: Apache-2.0 */
/* One stream of HTTP/2: a connection of the table whose data is inside another connection. */
#include "h2_internal.h"

#include <assert.h>
#include <errno.h>
#include "lib/base/mem.h"

static const struct proxy_tongue stream_tongue;

/* ---- from the session ---- */

struct conn *h2_stream_new(struct h2 *h, uint32_t id)
{
	struct conn *c;

	if (h->e->net->n_conns == NET_MAX_CONNS)
		return NULL;
	if (budget_is_over(h->e)) {
		budget_report(h->e, h->c, "refused an HTTP/2 stream");
		return NULL;
	}
	c = conn_new(h->e, CONN_STREAM, id);
	c->via = h->c->via;
	c->proto = EDGE_PROTO_HTTP;
	c->target = h->c->target;
	c->sni = h->c->sni;
	c->wants = h->c->wants;
	c->wants_id = h->c->wants_id;
	c->stream = xcalloc(1, sizeof(*c->stream));
	*c->stream = (struct h2_stream){.h2 = h, .next = h->streams};
	arena_init(&c->stream->tail_arena, H2_TAIL_SIZE);
	if (h->streams)
		h->streams->stream->prev = c;
	h->streams = c;
	h->n_streams++;
	(void)nghttp2_session_set_stream_user_data(h->session, (int32_t)id, c);
	(void)proxy_new(c, &stream_tongue);
	return c;
}

void h2_stream_on_head(struct h2 *h, struct conn *c, bool ended)
{
	static const struct http_fault large = {431, "the request head is too large"};
	struct proxy *p = c->proxy;
	struct http_req *req = arena_calloc(&p->arena, 1, sizeof(*req));
	struct http_fault fault = large;
	enum proxy_step step;

	c->in_end = ended;
	p->x.is_head = slice_eq_str(h->block.pseudo[H2_METHOD], "HEAD");
	if (!req || h2_take_req(&h->block, ended, req, &fault) < 0 ||
		canon_flow_req(&c->stream->flow, req) < 0)
		step = proxy_refuse(h->e, c, &fault);
	else
		step = proxy_on_head(h->e, c, req);
	if (step == PROXY_AGAIN)
		proxy_pump(h->e, c);
}

void h2_stream_on_trailers(struct h2 *h, struct conn *c, bool ended)
{
	struct h2_stream *s = c->stream;

	if (!ended)
		s->fault = (struct http_fault){400, "duplicate HEADERS frame"};
	else
		(void)!h2_take_trailers(&h->block, &s->trailers, &s->fault);
	h2_stream_on_end(h, c);
}

int h2_stream_on_data(struct h2 *h, struct conn *c, struct slice bytes)
{
	if (c->state == CONN_ENDING || c->in_end) {
		h2_stream_consumed(h->e, c, bytes.n);
		return 0;
	}
	/* nghttp2 notices too, but passes the excess frame on first. */
	if (bufq_put(&c->in, bytes) != bytes.n)
		return -ENOBUFS;
	proxy_on_bytes(h->e, c);
	return 0;
}

void h2_stream_on_end(struct h2 *h, struct conn *c)
{
	c->in_end = true;
	if (c->state == CONN_HTTP)
		proxy_on_bytes(h->e, c);
}

void h2_stream_on_sent(struct h2 *h, struct conn *c, const nghttp2_frame *frame)
{
	struct h2_stream *s = c->stream;

	if (frame->hd.type == NGHTTP2_HEADERS && s->n_heads > 0) {
		s->n_heads--;
		s->n_head_bytes = s->n_heads ? s->n_head_bytes : 0;
		conn_note_room(h->e, c);
	}
	/* The answer is complete and the request is not: the rest is not needed. */
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM && !c->in_end)
		(void)nghttp2_submit_rst_stream(
			h->session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
}

/* ---- from conn.c ---- */

void h2_stream_consumed(struct edge *e, struct conn *c, size_t n)
{
	struct h2 *h = c->stream->h2;

	/* For a stream that nghttp2 has closed, the connection's window is still returned. */
	if (n > 0 && nghttp2_session_consume(h->session, (int32_t)c->sid, n) != 0)
		h2_fail(h);
	h2_touch(h);
}

void h2_stream_resume(struct edge *e, struct conn *c)
{
	if (!c->stream)
		return;
	/* Fails harmlessly if the stream does not wait or has ended. */
	(void)nghttp2_session_resume_data(c->stream->h2->session, (int32_t)c->sid);
	h2_touch(c->stream->h2);
}

void h2_stream_reset(struct edge *e, struct conn *c)
{
	struct h2 *h = c->stream->h2;

	if (nghttp2_submit_rst_stream(
		    h->session, NGHTTP2_FLAG_NONE, (int32_t)c->sid, NGHTTP2_INTERNAL_ERROR) != 0)
		h2_fail(h);
	h2_touch(h);
}

void h2_stream_over(struct edge *e, struct conn *c)
{
	struct h2_stream *s = c->stream;
	struct h2 *h = s->h2;

	h2_stream_consumed(e, c, bufq_len(&c->in));
	(void)nghttp2_session_set_stream_user_data(h->session, (int32_t)c->sid, NULL);
	if (h->heading == c) {
		h->heading = NULL;
		h->in_block = false; /* nghttp2 does not report the end of it */
	}
	*(s->prev ? &s->prev->stream->next : &h->streams) = s->next;
	if (s->next)
		s->next->stream->prev = s->prev;
	h->n_streams--;
	h2_set_timer(h);
	arena_done(&s->tail_arena);
	free(TAKE(c->stream));
}

/* ---- protocol of the guest's side ---- */

static bool give_fault(struct http1_event *ret, uint16_t status, const char *why)
{
	*ret = (struct http1_event){.kind = HTTP1_EV_ERROR, .fault = {status, why}};
	return true;
}

static bool next_event(struct edge *e, struct conn *c, struct http1_event *ret)
{
	struct h2_stream *s = c->stream;
	struct slice run = canon_text_cut(bufq_peek(&c->in), 0, CANON_MAX_DATA);

	if (run.n > 0) {
		if (canon_flow_data(&s->flow, run.n) < 0)
			return give_fault(ret, 400, "the body is longer than Content-Length");
		*ret = (struct http1_event){.kind = HTTP1_EV_DATA, .data = run};
		return true;
	}
	if (!c->in_end)
		return false;
	if (s->fault.status)
		return give_fault(ret, s->fault.status, s->fault.why);
	if (canon_flow_end(&s->flow, &s->trailers) < 0)
		return give_fault(ret, 400,
			s->flow.left ? "the body is shorter than Content-Length"
				     : "trailers after a body with Content-Length");
	*ret = (struct http1_event){.kind = HTTP1_EV_END, .trailers = &s->trailers};
	return true;
}

static size_t make_nva(const struct h2_fields *f, nghttp2_nv *nva)
{
	for (size_t i = 0; i < f->n; i++)
		nva[i] = (nghttp2_nv){.name = (uint8_t *)f->list[i].name.p,
			.namelen = f->list[i].name.n,
			.value = (uint8_t *)f->list[i].value.p,
			.valuelen = f->list[i].value.n};
	return f->n;
}

/* The trailers follow the last data and end the stream. */
static int submit_tail(struct h2 *h, struct conn *c, uint32_t *flags)
{
	static struct h2_fields fields;
	static nghttp2_nv nva[ARRAY_LEN(fields.list)];

	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (c->stream->tail.n == 0)
		return 0;
	*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	if (h2_put_trailers(&c->stream->tail, &fields) < 0 ||
		nghttp2_submit_trailer(h->session, (int32_t)c->sid, nva, make_nva(&fields, nva)) !=
			0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the stream is reset */
	return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t n,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct h2 *h = user;
	struct conn *c = nghttp2_session_get_stream_user_data(session, id);
	int r = 0;

	if (!c)
		return NGHTTP2_ERR_DEFERRED; /* its reset waits */
	n = bufq_take(&c->out, buf, n);
	c->n_pulled += n;
	if (n > 0)
		conn_note_room(h->e, c);
	if (bufq_len(&c->out) > 0)
		return (ssize_t)n;
	bufq_trim(&c->out);
	if (c->out_end)
		r = submit_tail(h, c, flags);
	else if (n == 0)
		r = NGHTTP2_ERR_DEFERRED;
	return r < 0 ? r : (ssize_t)n;
}

static bool has_content(const struct http_resp *resp)
{
	const struct http_body *body = &resp->body;

	if (body->absent || body->kind == HTTP_BODY_NONE)
		return false;
	return body->kind != HTTP_BODY_LENGTH || body->length > 0;
}

/* An answer without content ends with its head, as gRPC clients expect. */
static int submit_head(struct conn *c, const struct http_resp *resp, const struct h2_fields *fields)
{
	static nghttp2_nv nva[ARRAY_LEN(fields->list)];
	const nghttp2_data_provider body = {.read_callback = read_body};
	struct h2_stream *s = c->stream;
	struct h2 *h = s->h2;
	int r;

	if (resp->status < 200)
		r = nghttp2_submit_headers(h->session, NGHTTP2_FLAG_NONE, (int32_t)c->sid, NULL,
			nva, make_nva(fields, nva), NULL);
	else
		r = nghttp2_submit_response(h->session, (int32_t)c->sid, nva, make_nva(fields, nva),
			has_content(resp) ? &body : NULL);
	if (r != 0)
		return -EBADMSG;
	s->n_heads++;
	for (size_t i = 0; i < fields->n; i++)
		s->n_head_bytes += fields->list[i].name.n + fields->list[i].value.n;
	s->answered = s->answered || resp->status >= 200;
	h2_touch(h);
	return 0;
}

/* Only the end of the stream ends such a body, so a cut is shown by a reset: as for a body that
 * ends with its connection. */
static int say_head(struct edge *e, struct conn *c, struct http_resp *resp)
{
	static struct h2_fields fields;
	struct proxy_exchange *x = &c->proxy->x;

	if (h2_put_resp(resp, &fields) < 0)
		return -EBADMSG;
	if (resp->status >= 200) {
		x->close = true;
		x->out_kind = has_content(resp) ? HTTP_BODY_CLOSE : HTTP_BODY_NONE;
	}
	return submit_head(c, resp, &fields);
}

static int say_end(struct edge *e, struct conn *c, const struct http_headers *trailers)
{
	struct h2_stream *s = c->stream;

	canon_headers_init(&s->tail, &s->tail_arena, trailers->n);
	for (size_t i = 0; i < trailers->n && !arena_is_full(&s->tail_arena); i++)
		s->tail.list[s->tail.n++] = (struct http_header){
			.name = arena_dup(&s->tail_arena, trailers->list[i].name),
			.value = arena_dup(&s->tail_arena, trailers->list[i].value)};
	return arena_is_full(&s->tail_arena) ? -EBADMSG : 0;
}

/* The same text as in HTTP/1.1, converted to fields and data. */
static int say_refusal(struct edge *e, struct conn *c, struct slice text)
{
	const struct http_req any = {
		.method = slice_from_str(c->proxy->x.is_head ? "HEAD" : "GET")};
	static struct h2_fields fields;
	struct http1_event ev;
	struct arena arena;
	struct http1 h;
	int r = -EBADMSG;

	arena_init(&arena, 4 * DENY_ROOM);
	http1_init_response(&h, &arena, &any);
	if (http1_read(&h, &text, &ev) && ev.kind == HTTP1_EV_HEAD &&
		h2_put_refusal(ev.resp, &fields) == 0)
		r = submit_head(c, ev.resp, &fields);
	if (r == 0 && text.n > 0)
		conn_say(e, c, text);
	arena_done(&arena);
	return r;
}

static void go_away(struct edge *e, struct conn *c)
{
	nghttp2_session *session = c->stream->h2->session;

	(void)nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
		nghttp2_session_get_last_proc_stream_id(session), NGHTTP2_NO_ERROR, NULL, 0);
}

static bool flush_stream(struct edge *e, struct conn *c)
{
	return proxy_flush_guest(e, c) && c->stream->n_heads == 0;
}

static const struct proxy_tongue stream_tongue = {
	.next_event = next_event,
	.say_head = say_head,
	.say_end = say_end,
	.say_refusal = say_refusal,
	.flush = flush_stream,
	.go_away = go_away,
};
