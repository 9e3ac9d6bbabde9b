/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of edge: the request in, the answer out. */
#include <errno.h>
#include <sys/socket.h>
#include "session_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define ROUNDS 16 /* then other events are handled */
#define ANSWER_PIECE 32768

static const struct loop_key key = {.kind = SESSION_EV_EDGE};

/* After the request only its end is of interest, and room. */
static void watch_edge(struct session *s, bool room)
{
	uint32_t events = (s->is_ended ? 0 : EPOLLIN) | (room ? EPOLLOUT : 0);

	if (loop_mod(&s->loop, s->edge_fd, events, key) < 0)
		session_end(s);
}

int edge_open(struct session *s, int fd)
{
	s->edge_fd = fd;
	return loop_add(&s->loop, fd, EPOLLIN, key);
}

/* ---- the request ---- */

static int say_continue(struct session *s)
{
	struct http_resp resp = {.status = 100};
	struct wr wr = out_wr(&s->to_edge, 256);

	if (canon_put_resp(&wr, OUT_STREAM, &resp) < 0)
		return -EBADMSG;
	out_put_wr(&s->to_edge, &wr);
	edge_flush(s);
	return 0;
}

static int take_head(struct session *s, struct slice payload)
{
	s->head = xmalloc(payload.n);
	memcpy(s->head, payload.p, payload.n);
	if (canon_get_req(slice_of(s->head, payload.n), &s->arena, &s->req) < 0 ||
		canon_flow_req(&s->up, &s->req) < 0)
		return -EBADMSG;
	s->has_req = true;
	s->program->head(s);
	if (!s->req.expect_continue)
		return 0;
	s->req.expect_continue = false;
	return say_continue(s);
}

static int take_data(struct session *s, struct slice data)
{
	if (!s->has_req || s->open.is_advert || canon_flow_data(&s->up, data.n) < 0)
		return -EBADMSG;
	s->program->body(s, data);
	return 0;
}

/* Trailers of a request mean nothing, and are not sent on. */
static int take_end(struct session *s, struct slice payload)
{
	struct http_headers trailers;

	if (!s->has_req || canon_get_end(payload, &s->arena, &trailers) < 0 ||
		canon_flow_end(&s->up, &trailers) < 0)
		return -EBADMSG;
	s->is_ended = true;
	watch_edge(s, out_len(&s->to_edge) > 0);
	if (!s->open.is_advert)
		s->program->end(s);
	return 0;
}

static int take_frame(struct session *s, const struct canon_frame *frame)
{
	if (frame->stream != OUT_STREAM || s->is_ended)
		return -EBADMSG;
	switch (frame->kind) {
	case CANON_HEAD:
		return s->has_req ? -EBADMSG : take_head(s, frame->payload);
	case CANON_DATA:
		return take_data(s, frame->payload);
	case CANON_END:
		return take_end(s, frame->payload);
	default:
		return -EPIPE;
	}
}

static int read_some(struct session *s)
{
	static uint8_t buf[OUT_READ];
	struct canon_frame frame;
	ssize_t n = recv(s->edge_fd, buf, sizeof(buf), MSG_DONTWAIT);
	struct slice in = slice_of(buf, n > 0 ? (size_t)n : 0);
	int r;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -EPIPE;
	if (n == 0)
		return -EPIPE;
	while ((r = canon_reader_feed(&s->edge_frames, &in, &frame)) == 1) {
		r = take_frame(s, &frame);
		if (r < 0)
			return r;
	}
	return r;
}

static void read_edge(struct session *s)
{
	int r = 0;

	for (unsigned i = 0; i < ROUNDS && r == 0 && !s->is_ended; i++)
		r = read_some(s);
	if (r < 0 && r != -EAGAIN) {
		session_end(s);
		return;
	}
	session_report(s);
	if (s->is_ended && s->given_fd >= 0)
		line_send(s, TAKE_FD(s->given_fd));
}

void edge_on_event(struct session *s, uint32_t events)
{
	if (events & (EPOLLHUP | EPOLLERR)) { /* the client has left */
		session_end(s);
		return;
	}
	if (events & EPOLLIN && !s->is_ended)
		read_edge(s);
	if (events & EPOLLOUT && !s->control.done)
		edge_flush(s);
}

/* ---- the answer ---- */

static bool queue_answer(struct session *s)
{
	size_t n = MIN(s->n_answer - s->answer_at, (size_t)ANSWER_PIECE);
	struct wr wr;

	if (n == 0 || out_len(&s->to_edge) > 0)
		return false;
	wr = out_wr(&s->to_edge, n + 64);
	if (canon_put_data_head(&wr, OUT_STREAM, n) < 0)
		return false;
	wr_bytes(&wr, slice_of(s->answer + s->answer_at, n));
	s->answer_at += n;
	if (s->answer_at == s->n_answer)
		(void)!canon_put_end(&wr, OUT_STREAM, NULL);
	out_put_wr(&s->to_edge, &wr);
	return true;
}

void edge_flush(struct session *s)
{
	uint64_t n = 0;
	int r;

	do
		r = out_flush(&s->to_edge, s->edge_fd, &n);
	while (r == 0 && queue_answer(s));
	if (r < 0 && r != -EAGAIN) {
		session_end(s);
		return;
	}
	watch_edge(s, r == -EAGAIN);
	if (r == 0 && s->is_answered)
		session_end(s);
	else if (r == 0 && s->line_fd >= 0)
		line_resume(s);
}

void edge_fail(struct session *s, const char *why)
{
	out_put_refusal(&s->to_edge, 403, why);
	s->is_answered = true;
	edge_flush(s);
}

void session_answer(void *session, struct slice bytes)
{
	struct session *s = session;

	s->answer = xrealloc(s->answer, s->n_answer + bytes.n);
	memcpy(s->answer + s->n_answer, bytes.p, bytes.n);
	s->n_answer += bytes.n;
}

void edge_refuse(struct session *s, const struct clerk_decided *why)
{
	const char *type = s->program->refuse(s, why);
	struct http_header list[] = {
		{slice_from_str("content-type"), slice_from_str(type ? type : "")},
		{slice_from_str("cache-control"), slice_from_str("no-cache")}};
	struct http_resp resp = {.status = 200,
		.keep_alive = true,
		.headers = {.list = list, .n = ARRAY_LEN(list), .max = ARRAY_LEN(list)}};
	struct wr wr = out_wr(&s->to_edge, 1024);

	if (!type) {
		edge_fail(s, why->why);
		return;
	}
	resp.body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = s->n_answer};
	if (canon_put_resp(&wr, OUT_STREAM, &resp) < 0) {
		session_end(s);
		return;
	}
	out_put_wr(&s->to_edge, &wr);
	s->is_answered = true;
	edge_flush(s);
}
