/* SPDX-License-Identifier: Apache-2.0 */
/* The line and its requests; see line_h2.h. */
#include "line_h2.h"

#include <errno.h>
#include <malloc.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "src/origin/value/value.h"

#define ROUNDS 16 /* then other events are handled */

static uint8_t buf[LINE_READ];

/* ---- memory of the session: wiped when freed ---- */

static void *get_h2(size_t n, void *user)
{
	return malloc(n);
}

static void *get_zero(size_t n, size_t size, void *user)
{
	return calloc(n, size);
}

static void give_back(void *p, void *user)
{
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

static void *get_more(void *p, size_t n, void *user)
{
	size_t had = p ? malloc_usable_size(p) : 0;
	void *q;

	if (p && n <= had)
		return p;
	q = malloc(n);
	if (q && p)
		memcpy(q, p, had);
	if (q)
		give_back(p, user);
	return q;
}

/* ---- streams ---- */

static struct h2_stream *find_stream(struct h2_line *h, int32_t id)
{
	struct h2_stream *s = h->first;

	while (s && s->id != id)
		s = s->next;
	return s;
}

static struct h2_stream *new_stream(struct h2_line *h, struct exchange *x)
{
	struct h2_stream *s = xcalloc(1, sizeof(*s));

	*s = (struct h2_stream){.h = h, .x = x, .next = h->first, .window = H2_WINDOW};
	bufq_init(&s->held, H2_MAX_WINDOW);
	if (h->first)
		h->first->prev = s;
	h->first = s;
	h->n_streams++;
	return s;
}

void h2_free_stream(struct h2_stream *s)
{
	struct h2_line *h = s->h;

	*(s->prev ? &s->prev->next : &h->first) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	h->n_streams--;
	h->spare_window += s->window - H2_WINDOW;
	if (s->id > 0)
		(void)nghttp2_session_set_stream_user_data(h->session, s->id, NULL);
	out_done(&s->up);
	arena_done(&s->up_arena);
	bufq_done(&s->held);
	arena_done(&s->down_arena);
	free(s);
}

void h2_sweep(struct h2_line *h)
{
	struct h2_stream *next;

	for (struct h2_stream *s = h->first; s; s = next) {
		next = s->next;
		if (!s->x && s->id == 0)
			h2_free_stream(s);
	}
}

void h2_break(struct h2_line *h, const char *why)
{
	if (!h->why)
		h->why = why;
	h->l->is_closing = true;
	h->is_due = true;
}

/* ---- bytes out ---- */

/* Joins frames, so that a small one is not a separate write. */
static int fill_h2(struct h2_line *h)
{
	while (h->out_n < H2_SEND) {
		const uint8_t *p;
		ssize_t n = nghttp2_session_mem_send(h->session, &p);

		if (n == 0)
			return 0;
		if (n < 0 || (size_t)n > H2_SEND_ROOM - h->out_n)
			return -EPIPE;
		memcpy(h->out.p + h->out_n, p, (size_t)n);
		h->out_n += (size_t)n;
	}
	return 0;
}

static void flush_h2(struct h2_line *h)
{
	while (!h->is_deaf && !h->why) {
		ssize_t n;

		if (fill_h2(h) < 0) {
			h2_break(h, "HTTP/2 failed");
			return;
		}
		if (h->out_n == 0)
			return;
		n = line_send(h->l, slice_of(h->out.p + h->out_at, h->out_n - h->out_at));
		if (n == -EAGAIN)
			return;
		if (n < 0) { /* it may have answered before; reading detects the end */
			h->is_deaf = true;
			h->l->is_closing = true;
			return;
		}
		h->out_at += (size_t)n;
		if (h->out_at == h->out_n) {
			explicit_bzero(h->out.p, h->out_n); /* it may contain the credential */
			h->out_at = h->out_n = 0;
		}
	}
}

/* For places where exchanges must not end: the line's next turn handles it. */
static void flush_later(struct h2_line *h)
{
	flush_h2(h);
	if (h->is_due && h->l->n_exchanges)
		line_again(h->o, h->l);
}

/* ---- requests ---- */

/* A credential, or other private data, is not put into the header tables of either side. */
static bool is_secret(const struct exchange *x, struct slice name)
{
	static const char *const names[] = {"authorization", "cookie", "x-amz-security-token"};

	if (x->slot && x->slot->header && canon_text_eq_fold(name, x->slot->header))
		return true;
	if (x->slot && x->slot->how == SERVICE_SIGV4 && slice_eq_str(name, ":path"))
		return true; /* a presigned URL */
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (slice_eq_str(name, names[i]))
			return true;
	return false;
}

static size_t make_nva(
	struct exchange *x, const struct http_header *list, size_t n, nghttp2_nv *ret)
{
	for (size_t i = 0; i < n; i++) {
		ret[i] = (nghttp2_nv){.name = (uint8_t *)list[i].name.p,
			.namelen = list[i].name.n,
			.value = (uint8_t *)list[i].value.p,
			.valuelen = list[i].value.n,
			.flags = is_secret(x, list[i].name) ? NGHTTP2_NV_FLAG_NO_INDEX
							    : NGHTTP2_NV_FLAG_NONE};
		x->n_up += list[i].name.n + list[i].value.n;
	}
	return n;
}

static int say_trailers(struct h2_stream *s)
{
	nghttp2_nv nva[HTTP_MAX_TRAILERS];
	size_t n = make_nva(s->x, s->up_trailers.list, s->up_trailers.n, nva);

	return nghttp2_submit_trailer(s->h->session, s->id, nva, n);
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *to, size_t max,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct h2_line *h = user;
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
	size_t n;

	if (!s || !s->x)
		return NGHTTP2_ERR_DEFERRED;
	n = MIN(out_len(&s->up), max);
	if (n == 0 && !s->up_ended)
		return NGHTTP2_ERR_DEFERRED;
	if (n > 0) {
		memcpy(to, out_peek(&s->up).p, n);
		out_consume(&s->up, n);
	}
	h->noise = MIN(h->noise + (int64_t)(n / 512), H2_NOISE); /* a window opens for it */
	if (s->is_full && h2_room(s) >= OUT_READ)
		h->is_due = true;
	if (out_len(&s->up) > 0 || !s->up_ended)
		return (ssize_t)n;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (s->up_trailers.n > 0) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (say_trailers(s) < 0)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return (ssize_t)n;
}

static bool is_whole(const struct exchange *x)
{
	const struct http_body *body = &x->talk->req.body;

	return body->kind == HTTP_BODY_NONE ||
	       (body->kind == HTTP_BODY_LENGTH && body->length == 0) ||
	       (x->talk->up.phase == CANON_OVER && !x->token && !sign_has_due(x));
}

static int start_h2(struct origin *o, struct line *l, struct exchange *x)
{
	static struct h2_req_fields fields;
	static nghttp2_nv nva[ARRAY_LEN(fields.list)];
	const nghttp2_data_provider provider = {.read_callback = on_read};
	struct h2_line *h = l->proto;
	const struct http_req *req = &x->talk->req;
	struct h2_stream *s;
	int r;

	if (h->why || h->is_deaf || l->is_closing)
		return -EPIPE;
	arena_reset(&h->req_arena);
	r = h2_resp_put_req(req, &h->req_arena, &fields);
	if (r < 0) {
		explicit_bzero(h->req_arena.block, h->req_arena.n);
		return r;
	}
	s = x->stream = new_stream(h, x);
	s->was_head = slice_eq_str(req->method, "HEAD");
	s->up_ended = is_whole(x);
	s->n_read_before = h->n_read;
	s->id = nghttp2_submit_request(h->session, NULL, nva,
		make_nva(x, fields.list, fields.n, nva), s->up_ended ? NULL : &provider, s);
	explicit_bzero(h->req_arena.block, h->req_arena.n); /* of a presigned URL */
	if (s->id < 0) {
		s->id = 0;
		l->is_closing = true; /* stream ids are used up */
		h2_free_stream(s);
		x->stream = NULL;
		return -EPIPE;
	}
	if (l->n_exchanges == 1) /* with others it is the timer of the line's turn */
		loop_timer_clear(&o->loop, &l->timer);
	if (req->expect_continue) {
		s->expect_until_ms = clock_mono_ms() + H2_EXPECT_MS;
		line_wake(o, l, H2_EXPECT_MS);
	}
	flush_later(h);
	return 0;
}

size_t h2_room(const struct h2_stream *s)
{
	size_t n = out_len(&s->up);

	return n < H2_MAX_UP ? H2_MAX_UP - n : 0;
}

static size_t room_h2(const struct line *l, const struct exchange *x)
{
	return x->stream ? h2_room(x->stream) : 0;
}

static int body_h2(struct origin *o, struct exchange *x, struct slice bytes)
{
	struct h2_stream *s = x->stream;
	int r;

	s->up.is_secret = x->token != NULL;
	r = out_put(&s->up, bytes);

	if (r < 0)
		return r;
	x->n_up += bytes.n;
	s->n_up += bytes.n;
	(void)nghttp2_session_resume_data(s->h->session, s->id);
	flush_later(s->h);
	s->is_full = h2_room(s) < OUT_READ;
	return 0;
}

static int keep_trailers(
	struct arena *arena, const struct http_headers *from, struct http_headers *ret)
{
	if (!from || from->n == 0)
		return 0;
	arena_init(arena, 2 * HTTP_MAX_TRAILER_BYTES + HTTP_MAX_TRAILERS * 64);
	canon_headers_init(ret, arena, from->n);
	for (size_t i = 0; i < from->n && ret->max; i++)
		ret->list[ret->n++] =
			(struct http_header){.name = arena_dup(arena, from->list[i].name),
				.value = arena_dup(arena, from->list[i].value)};
	return arena_is_full(arena) ? -EMSGSIZE : 0;
}

static int end_h2(struct origin *o, struct exchange *x, const struct http_headers *trailers)
{
	struct h2_stream *s = x->stream;
	int r = keep_trailers(&s->up_arena, trailers, &s->up_trailers);

	if (r < 0 || s->up_ended)
		return r;
	s->up_ended = true;
	(void)nghttp2_session_resume_data(s->h->session, s->id);
	flush_later(s->h);
	return 0;
}

/* ---- other send callbacks of nghttp2 ---- */

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_stream *s = frame->hd.stream_id ? find_stream(user, frame->hd.stream_id) : NULL;
	bool is_end = (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
		      frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (s && is_end)
		s->up_said = true;
	return 0;
}

static int on_unsent(nghttp2_session *session, const nghttp2_frame *frame, int code, void *user)
{
	struct h2_line *h = user;
	struct h2_stream *s = frame->hd.stream_id ? find_stream(h, frame->hd.stream_id) : NULL;

	if (s && frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
		s->is_unsent = s->is_due = h->is_due = true;
		s->id = 0;
		s->close_code = code == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED
					? NGHTTP2_REFUSED_STREAM
					: NGHTTP2_INTERNAL_ERROR;
	}
	return 0;
}

/* ---- the line ---- */

static int make_session(struct h2_line *h)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_MAX_HEAD},
	};
	static nghttp2_mem mem = {NULL, get_h2, give_back, get_zero, get_more};
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	int r = nghttp2_session_callbacks_new(&callbacks);

	if (r == 0)
		r = nghttp2_option_new(&option);
	if (r == 0) {
		h2_set_answer_callbacks(callbacks);
		nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
		nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_unsent);
		nghttp2_option_set_no_auto_window_update(option, 1);
		nghttp2_option_set_max_outbound_ack(option, H2_NOISE / 16);
		nghttp2_option_set_max_send_header_block_length(option, 3 * HTTP_MAX_HEAD);
		r = nghttp2_session_client_new3(&h->session, callbacks, h, option, &mem);
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	if (r == 0)
		r = nghttp2_submit_settings(
			h->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings));
	if (r == 0)
		r = nghttp2_session_set_local_window_size(
			h->session, NGHTTP2_FLAG_NONE, 0, H2_LINE_WINDOW);
	return r;
}

static bool begin_h2(struct origin *o, struct line *l)
{
	struct h2_line *h = l->proto = xcalloc(1, sizeof(*h));

	*h = (struct h2_line){.o = o,
		.l = l,
		.spare_window = H2_SPARE_WINDOW,
		.noise = H2_NOISE,
		.noise_ms = clock_mono_ms()};
	arena_init(&h->arena, HTTP_ARENA_SIZE);
	arena_init(&h->req_arena, HTTP_ARENA_SIZE);
	if (secret_init(&h->out, H2_SEND_ROOM, NULL) < 0 || make_session(h) < 0)
		return false;
	flush_h2(h);
	return !h->why;
}

static void done_h2(struct origin *o, struct line *l)
{
	struct h2_line *h = TAKE(l->proto);

	while (h->first) {
		if (h->first->x)
			h->first->x->stream = NULL; /* line_drop reports it */
		h->first->id = 0;
		h2_free_stream(h->first);
	}
	nghttp2_session_del(h->session);
	arena_done(&h->arena);
	arena_done(&h->req_arena);
	secret_done(&h->out);
	free(h);
}

static bool can_take(const struct line *l)
{
	const struct h2_line *h = l->proto;
	uint32_t max = nghttp2_session_get_remote_settings(
		h->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

	return !h->why && !h->is_deaf &&
	       MAX(h->n_streams, l->n_exchanges) < MIN(max, H2_MAX_STREAMS) &&
	       nghttp2_session_check_request_allowed(h->session);
}

static void leave_h2(struct origin *o, struct line *l, struct exchange *x)
{
	struct h2_line *h = l->proto;
	struct h2_stream *s = TAKE(x->stream);

	if (!s)
		return;
	l->n_served += s->has_end;
	s->x = NULL;
	if (s->id == 0) {
		if (!h->is_walking)
			h2_free_stream(s);
		return;
	}
	out_done(&s->up);
	bufq_done(&s->held);
	/* A stream with both ends closes without a reset. */
	if (!s->up_said || !s->has_end)
		(void)nghttp2_submit_rst_stream(
			h->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
	if (!h->in_recv)
		flush_h2(h);
}

/* ---- turns ---- */

enum turn { TURN_WAITS, TURN_MOVED, TURN_OVER };

/* nghttp2 does not report unknown frames: the rest of the data belongs to them. */
static void count_noise(struct h2_line *h, size_t n)
{
	size_t carried = MIN(h->n_carried, n);

	h->n_carried -= carried;
	h->n_wasted += n - carried;
	h->noise -= (int64_t)(h->n_wasted / H2_NOISE_BYTES);
	h->n_wasted %= H2_NOISE_BYTES;
	if (h->noise < 0)
		h2_break(h, "too many HTTP/2 frames without data");
}

static enum turn read_some(struct h2_line *h)
{
	ssize_t n = line_recv(h->l, buf, sizeof(buf)), r;

	if (n == -EAGAIN)
		return TURN_WAITS;
	if (n <= 0) {
		h2_break(h, n == 0 ? "connection closed" : "connection lost");
		return TURN_OVER;
	}
	h->n_read += (uint64_t)n;
	h->in_recv = true;
	r = nghttp2_session_mem_recv(h->session, buf, (size_t)n);
	h->in_recv = false;
	if (r < 0)
		h2_break(h, "HTTP/2 protocol error");
	count_noise(h, (size_t)n);
	return h->why ? TURN_OVER : TURN_MOVED;
}

static void refill_noise(struct h2_line *h)
{
	uint64_t now = clock_mono_ms();

	h->noise = MIN(h->noise + (int64_t)(now - h->noise_ms), H2_NOISE);
	h->noise_ms = now;
}

/* Ends everything on the line, then drops it. */
static void fail_all(struct h2_line *h)
{
	h->is_walking = true;
	for (struct h2_stream *s = h->first; s; s = s->next) {
		bool untouched = h->n_read == s->n_read_before && h->l->n_served > 0;

		if (s->x)
			h->o->ops->on_fail(h->o, s->x, ORIGIN_BAD_ANSWER, untouched, h->why);
	}
	h->is_walking = false; /* line_drop frees them */
}

/* nghttp2 has sent GOAWAY because of a violation, and reads no more. */
static bool has_given_up(const struct h2_line *h)
{
	const struct h2_stream *s = h->first;

	while (s && !(s->x && s->id > 0))
		s = s->next;
	return s && !nghttp2_session_want_read(h->session) &&
	       !nghttp2_session_want_write(h->session);
}

static void pump_h2(struct origin *o, struct line *l)
{
	struct h2_line *h = l->proto;
	bool was_idle = l->n_exchanges == 0;
	enum turn turn = TURN_MOVED;

	line_hold(l);
	refill_noise(h);
	for (unsigned i = 0; i < ROUNDS && turn == TURN_MOVED; i++) {
		flush_h2(h);
		turn = read_some(h);
		h2_settle(h);
	}
	flush_h2(h);
	h2_settle(h);
	if (has_given_up(h))
		h2_break(h, "HTTP/2 protocol error");
	if (h->why) {
		fail_all(h);
		line_release(o, l);
		line_drop(o, l);
		return;
	}
	if (l->n_exchanges == 1 && was_idle) { /* only this function holds it */
		line_release(o, l);
		if (turn == TURN_MOVED || l->is_closing)
			line_drop(o, l); /* it sends without end to no exchange */
		return;
	}
	if (l->n_exchanges > 1 && turn == TURN_MOVED)
		line_again(o, l);
	/* Settling forwards held data, which opens the server's window: the server waits for that
	 * update. */
	flush_later(h);
	if (line_release(o, l) == 0)
		line_settle(o, l);
}

static void resume_h2(struct origin *o, struct line *l, struct exchange *x)
{
	struct h2_line *h = l->proto;

	line_hold(l);
	if (x->stream)
		(void)!h2_give_held(x->stream);
	flush_later(h);
	if (line_release(o, l) == 0)
		line_settle(o, l);
}

const struct line_ops line_h2 = {
	.kind = LINE_H2,
	.alpn = "h2",
	.begin = begin_h2,
	.done = done_h2,
	.can_take = can_take,
	.start = start_h2,
	.room = room_h2,
	.body = body_h2,
	.end = end_h2,
	.leave = leave_h2,
	.resume = resume_h2,
	.on_event = pump_h2,
};
