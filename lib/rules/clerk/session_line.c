/* SPDX-License-Identifier: Apache-2.0 */
/* An exchange with sbx-origin. */
#include <errno.h>
#include <sys/socket.h>
#include "session_internal.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/wire/http/canon/canon_named.h"

#define ROUNDS 16
#define PIECE 32768
/* What rewriting may add to the bytes of one read, and a head. */
#define ANSWER_ROOM (2 * OUT_READ + CANON_MAX_HEAD)

static const struct loop_key key = {.kind = SESSION_EV_LINE};

void line_close(struct session *s)
{
	if (s->is_line_watched)
		loop_del(&s->loop, s->line_fd);
	s->is_line_watched = false;
	fd_close(&s->line_fd);
	canon_reader_done(&s->line_frames);
	canon_reader_init(&s->line_frames);
	out_done(&s->to_line);
	s->down = (struct canon_flow){0};
	s->use = SESSION_LINE_NONE;
}

/* Not at all while edge does not read: the end of the socket would be an event all the time. */
static void watch_line(struct session *s, bool room)
{
	bool read = out_room(&s->to_edge) >= ANSWER_ROOM;
	uint32_t events = (read ? EPOLLIN : 0) | (room ? EPOLLOUT : 0);
	int r = 0;

	if (events && s->is_line_watched)
		r = loop_mod(&s->loop, s->line_fd, events, key);
	else if (events)
		r = loop_add(&s->loop, s->line_fd, events, key);
	else if (s->is_line_watched)
		loop_del(&s->loop, s->line_fd);
	s->is_line_watched = events != 0;
	if (r < 0)
		session_end(s);
}

/* ---- what the program needs ---- */

static int make_want(struct session *s, struct session_want *ret)
{
	int r = s->program->make_want ? s->program->make_want(s, ret) : -EINVAL;

	if (r == 0)
		ret->req.body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = s->n_need};
	return r;
}

int line_get_named(struct session *s, char *named)
{
	struct wr wr = wr_init(named, CANON_NAMED_MAX);
	struct session_want want;

	if (make_want(s, &want) < 0 ||
		canon_named_write(&wr, &want.req.headers, slice_from_str(s->open.wants)) < 0)
		return -EINVAL;
	named[wr.n] = '\0';
	return 0;
}

static void drop_need(struct session *s)
{
	free(TAKE(s->need));
	s->n_need = 0;
}

void line_not_given(struct session *s)
{
	drop_need(s);
	s->program->take_end(s, false);
	session_report(s);
}

/* ---- sending ---- */

static void open_line(struct session *s, int fd, enum session_line use)
{
	s->line_fd = fd;
	s->use = use;
	s->is_good = false;
}

static bool queue_piece(struct session *s)
{
	struct slice *from = s->due[0].n ? &s->due[0] : &s->due[1];
	size_t n = MIN(from->n, (size_t)PIECE);
	struct wr wr = out_wr(&s->to_line, PIECE + 64);

	if (n == 0 && !s->is_end_due)
		return false;
	if (n > 0) {
		if (canon_put_data_head(&wr, OUT_STREAM, n) < 0)
			return false;
		wr_bytes(&wr, slice_take(from, n));
	} else {
		(void)!canon_put_end(&wr, OUT_STREAM, NULL);
		s->is_end_due = false;
	}
	out_put_wr(&s->to_line, &wr);
	return true;
}

/* A server that answers early reads no more: its answer counts. */
static void flush_line(struct session *s)
{
	uint64_t n = 0;
	int r;

	do
		r = out_flush(&s->to_line, s->line_fd, &n);
	while (r == 0 && queue_piece(s));
	if (r < 0 && r != -EAGAIN) {
		out_done(&s->to_line);
		s->due[0] = s->due[1] = (struct slice){0};
		s->is_end_due = false;
	}
	watch_line(s, r == -EAGAIN);
}

static int queue_head(struct session *s, const struct http_req *req)
{
	struct wr wr = out_wr(&s->to_line, CANON_MAX_HEAD + 64);
	int r = canon_put_req(&wr, OUT_STREAM, req);

	if (r == 0)
		out_put_wr(&s->to_line, &wr);
	s->is_end_due = true;
	return r;
}

void line_on_given(struct session *s, int fd)
{
	struct session_want want;
	AUTO_CLOSE int owned = fd;

	if (make_want(s, &want) < 0 || queue_head(s, &want.req) < 0) {
		line_close(s);
		line_not_given(s);
		return;
	}
	open_line(s, TAKE_FD(owned), SESSION_LINE_WANT);
	s->due[0] = slice_of(s->need, s->n_need);
	s->due[1] = (struct slice){0};
	flush_line(s);
}

void line_send(struct session *s, int fd)
{
	AUTO_CLOSE int owned = fd;

	if (s->rewrite) /* the answer must be readable */
		canon_remove_header(&s->req.headers, "accept-encoding");
	if (queue_head(s, &s->req) < 0) {
		edge_fail(s, "the request cannot be sent");
		return;
	}
	open_line(s, TAKE_FD(owned), SESSION_LINE_RELAY);
	s->program->get_body(s, s->due);
	flush_line(s);
}

/* ---- answers ---- */

static int put_data(struct session *s, struct slice data)
{
	while (data.n > 0) {
		struct slice some = slice_take(&data, CANON_MAX_DATA);
		struct wr wr = out_wr(&s->to_edge, some.n + 64);

		if (canon_put_data_head(&wr, OUT_STREAM, some.n) < 0)
			return -ENOBUFS;
		wr_bytes(&wr, some);
		if (wr.bad)
			return -ENOBUFS;
		out_put_wr(&s->to_edge, &wr);
	}
	return 0;
}

static void put_rewritten(void *arg, struct slice bytes)
{
	struct session *s = arg;

	s->is_good = put_data(s, bytes) == 0 && s->is_good;
}

static int rewritten_head(struct session *s, struct http_resp *resp)
{
	struct wr wr = out_wr(&s->to_edge, CANON_MAX_HEAD + 64);

	s->is_good = s->rewrite->head(s, resp);
	if (s->is_good) /* its length changes */
		resp->body = (struct http_body){.kind = HTTP_BODY_CHUNKED};
	if (canon_put_resp(&wr, OUT_STREAM, resp) < 0)
		return -EBADMSG;
	out_put_wr(&s->to_edge, &wr);
	return 0;
}

static int on_head(struct session *s, struct slice payload)
{
	struct http_resp resp;
	struct arena lists;
	int r;

	arena_init(&lists, HTTP_ARENA_SIZE);
	r = canon_get_resp(payload, &lists, &resp);
	if (r == 0)
		r = canon_flow_resp(&s->down, &resp);
	if (r == 0 && resp.status >= 200) {
		if (s->use == SESSION_LINE_WANT)
			s->is_good = s->program->take_head(s, &resp);
		else
			r = rewritten_head(s, &resp);
	}
	arena_done(&lists);
	return r;
}

static int on_data(struct session *s, struct slice data)
{
	if (canon_flow_data(&s->down, data.n) < 0)
		return -EBADMSG;
	if (s->use == SESSION_LINE_WANT)
		s->program->take_data(s, data);
	else if (!s->is_good)
		return put_data(s, data);
	else if (s->rewrite->data(s, data, put_rewritten, s) < 0 || !s->is_good)
		return -EBADMSG;
	return 0;
}

/* What the program needed; it may need more. */
static void end_want(struct session *s, bool complete)
{
	line_close(s);
	drop_need(s);
	s->program->take_end(s, complete);
	session_report(s);
}

static int on_end(struct session *s)
{
	const struct http_headers none = {0};
	struct wr wr;

	if (canon_flow_end(&s->down, &none) < 0)
		return -EBADMSG;
	if (s->use == SESSION_LINE_WANT) {
		end_want(s, s->is_good);
		return 0;
	}
	if (s->is_good && s->rewrite->end(s) < 0)
		return -EBADMSG;
	wr = out_wr(&s->to_edge, 256);
	if (canon_put_end(&wr, OUT_STREAM, NULL) < 0)
		return -ENOBUFS;
	out_put_wr(&s->to_edge, &wr);
	s->is_answered = true;
	line_close(s);
	edge_flush(s);
	return 0;
}

static int on_frame(struct session *s, const struct canon_frame *frame)
{
	if (frame->stream != OUT_STREAM)
		return -EBADMSG;
	switch (frame->kind) {
	case CANON_HEAD:
		return on_head(s, frame->payload);
	case CANON_DATA:
		return on_data(s, frame->payload);
	case CANON_END:
		return on_end(s);
	default:
		return -EPIPE;
	}
}

static int take_bytes(struct session *s, struct slice in)
{
	struct canon_frame frame;
	int r = 0;

	if (s->use == SESSION_LINE_RELAY && !s->rewrite)
		return out_put(&s->to_edge, in);
	while (s->line_fd >= 0 && (r = canon_reader_feed(&s->line_frames, &in, &frame)) == 1) {
		r = on_frame(s, &frame);
		if (r < 0)
			return r;
	}
	return s->line_fd >= 0 ? r : 0;
}

/* The end of the socket, or an answer that is not one. Edge sees that the answer is cut off. */
static void break_line(struct session *s)
{
	if (s->use == SESSION_LINE_WANT) {
		end_want(s, false);
		return;
	}
	line_close(s);
	s->is_answered = true;
	edge_flush(s);
}

static void read_line(struct session *s)
{
	static uint8_t buf[OUT_READ];

	for (unsigned i = 0; i < ROUNDS && s->line_fd >= 0 && !s->control.done; i++) {
		ssize_t n;

		if (out_room(&s->to_edge) < ANSWER_ROOM)
			break;
		n = recv(s->line_fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0 || take_bytes(s, slice_of(buf, (size_t)n)) < 0) {
			break_line(s);
			return;
		}
	}
	if (s->line_fd >= 0 && s->use != SESSION_LINE_WANT && !s->control.done)
		edge_flush(s);
}

void line_resume(struct session *s)
{
	if (s->line_fd >= 0)
		watch_line(s, out_len(&s->to_line) > 0);
}

void line_on_event(struct session *s, uint32_t events)
{
	if (s->line_fd < 0)
		return;
	if (events & EPOLLOUT)
		flush_line(s);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && s->line_fd >= 0 && !s->control.done)
		read_line(s);
}
