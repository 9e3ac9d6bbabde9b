/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 session of one connection: data to and from nghttp2, floods, the end. */
#include "h2_internal.h"

#include <errno.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

/* A smaller window update can only be meant to cost time. */
#define TINY_UPDATE 256

static const char broken_rules[] = "HTTP/2 protocol error";

void h2_touch(struct h2 *h)
{
	conn_note_room(h->e, h->c);
}

void h2_set_timer(struct h2 *h)
{
	static const uint64_t ms[] = {
		[H2_WAIT_IDLE] = PROXY_IDLE_MS, [H2_WAIT_BLOCK] = PROXY_HEAD_MS};
	enum h2_wait wait = h->in_block	   ? H2_WAIT_BLOCK
			    : h->n_streams ? H2_WAIT_NOTHING
					   : H2_WAIT_IDLE;

	if (wait != h->wait)
		conn_set_timer(h->e, h->c, ms[wait]);
	h->wait = wait;
}

static int refuse_h2(struct h2 *h, const char *why)
{
	if (!h->why)
		h->why = why;
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

void h2_fail(struct h2 *h)
{
	(void)refuse_h2(h, "internal HTTP/2 error");
	h2_touch(h);
}

static int spend_junk(struct h2 *h)
{
	return bucket_take(&h->junk, clock_mono_ms())
		       ? 0
		       : refuse_h2(h, "too many HTTP/2 frames without data");
}

/* ---- frames of the guest ---- */

static struct conn *stream_of(struct h2 *h, int32_t id)
{
	return nghttp2_session_get_stream_user_data(h->session, id);
}

/* Also counts each frame that nghttp2 will ignore: data of a closed stream, extensions.
 * CONTINUATION is junk too: nghttp2 accepts few of them per head. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user)
{
	struct h2 *h = user;

	/* on_begin_headers begins a block: a HEADERS frame that nghttp2 ignores is never ended
	 * here. */
	h->in_block = h->in_block && hd->type == NGHTTP2_CONTINUATION;
	switch (hd->type) {
	case NGHTTP2_DATA:
		return stream_of(user, hd->stream_id) ? 0 : spend_junk(user);
	case NGHTTP2_HEADERS:
	case NGHTTP2_WINDOW_UPDATE:
	case NGHTTP2_GOAWAY:
		return 0;
	default:
		return spend_junk(user);
	}
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h = user;
	bool is_request = frame->headers.cat == NGHTTP2_HCAT_REQUEST;
	struct conn *c = is_request ? h2_stream_new(h, (uint32_t)frame->hd.stream_id)
				    : stream_of(h, frame->hd.stream_id);

	h->n_block = 0;
	h->in_block = true;
	h->heading = c;
	if (c && is_request)
		h2_begin_req(&h->block, &c->proxy->arena);
	else if (c && c->proxy)
		h2_begin_trailers(&h->block, &c->proxy->arena);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
	struct h2 *h = user;

	h->n_block += n_name + n_value + H2_FIELD_COST;
	if (h->n_block > H2_MAX_BLOCK)
		return refuse_h2(h, "the HTTP/2 header block is too large");
	/* If an answer came before the trailers, the arena was freed with the engine's state. */
	if (h->heading && h->heading->proxy)
		h2_add(&h->block, slice_of(name, n_name), slice_of(value, n_value));
	return 0;
}

static void on_block(struct h2 *h, const nghttp2_frame *frame)
{
	bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	struct conn *c = TAKE(h->heading);

	if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
		if (c && c->proxy)
			h2_stream_on_head(h, c, ended);
		else
			(void)nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE,
				frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
	} else if (c && c->proxy) {
		h2_stream_on_trailers(h, c, ended);
	} else if (c) {
		c->in_end = true;
	}
}

static int on_data_frame(struct h2 *h, const nghttp2_frame *frame)
{
	struct conn *c = stream_of(h, frame->hd.stream_id);

	if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return frame->hd.length > frame->data.padlen ? 0 : spend_junk(h);
	if (c)
		h2_stream_on_end(h, c);
	return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h = user;

	h->in_block = false;
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		on_block(h, frame);
		return 0;
	case NGHTTP2_DATA:
		return on_data_frame(h, frame);
	case NGHTTP2_WINDOW_UPDATE:
		return frame->window_update.window_size_increment < TINY_UPDATE ? spend_junk(h) : 0;
	default:
		return 0;
	}
}

static int on_data_chunk(
	nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *user)
{
	struct h2 *h = user;
	struct conn *c = stream_of(h, id);

	if (!c)
		return nghttp2_session_consume(session, id, n);
	return h2_stream_on_data(h, c, slice_of(p, n)) < 0
		       ? refuse_h2(h, "HTTP/2 flow control window exceeded")
		       : 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct h2 *h = user;
	struct conn *c = stream_of(h, id);

	if (c)
		conn_over(h->e, c);
	return 0;
}

/* Frames of unknown types are skipped, as HTTP/2 requires; they were counted. */
static int on_extension(
	nghttp2_session *session, void **payload, const nghttp2_frame_hd *hd, void *user)
{
	return NGHTTP2_ERR_CANCEL;
}

static int on_extension_chunk(nghttp2_session *session, const nghttp2_frame_hd *hd,
	const uint8_t *p, size_t n, void *user)
{
	return NGHTTP2_ERR_CANCEL;
}

/* ---- frames to the guest ---- */

/* Each reset that we send is counted too: a guest may violate rules only to be reset. */
static int before_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h = user;

	if (frame->hd.type == NGHTTP2_RST_STREAM)
		return spend_junk(h);
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
		conn_report_fault(h->e, h->c, EDGE_ASK_HTTP, broken_rules);
	return 0;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h = user;
	struct conn *c = stream_of(h, frame->hd.stream_id);

	if (c)
		h2_stream_on_sent(h, c, frame);
	return 0;
}

/* nghttp2 cannot write this head: without it there is no answer. */
static int on_frame_not_send(
	nghttp2_session *session, const nghttp2_frame *frame, int error, void *user)
{
	struct h2 *h = user;

	if (frame->hd.type == NGHTTP2_HEADERS && stream_of(h, frame->hd.stream_id))
		(void)nghttp2_submit_rst_stream(
			session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_INTERNAL_ERROR);
	return 0;
}

/* ---- the session ---- */

static nghttp2_session_callbacks *make_callbacks(void)
{
	nghttp2_session_callbacks *cbs;

	if (nghttp2_session_callbacks_new(&cbs) != 0)
		abort();
	nghttp2_session_callbacks_set_on_begin_frame_callback(cbs, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cbs, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cbs, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cbs, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cbs, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(cbs, on_stream_close);
	nghttp2_session_callbacks_set_unpack_extension_callback(cbs, on_extension);
	nghttp2_session_callbacks_set_on_extension_chunk_recv_callback(cbs, on_extension_chunk);
	nghttp2_session_callbacks_set_before_frame_send_callback(cbs, before_frame_send);
	nghttp2_session_callbacks_set_on_frame_send_callback(cbs, on_frame_send);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(cbs, on_frame_not_send);
	return cbs;
}

static nghttp2_option *make_options(void)
{
	nghttp2_option *opt;

	if (nghttp2_option_new(&opt) != 0)
		abort();
	nghttp2_option_set_no_auto_window_update(opt, 1);
	nghttp2_option_set_no_closed_streams(opt, 1);
	nghttp2_option_set_no_http_messaging(opt, 1);
	nghttp2_option_set_max_send_header_block_length(opt, 4 * HTTP_MAX_HEAD);
	nghttp2_option_set_max_settings(opt, H2_MAX_SETTINGS);
	nghttp2_option_set_max_outbound_ack(opt, H2_MAX_ACKS);
	nghttp2_option_set_stream_reset_rate_limit(opt, H2_JUNK_BURST, H2_JUNK_PER_S);
	/* Otherwise nghttp2 would skip unknown types, and they could not be counted. */
	for (unsigned type = 10; type <= 255; type++)
		nghttp2_option_set_user_recv_extension_type(opt, (uint8_t)type);
	return opt;
}

static nghttp2_session *make_session(struct h2 *h)
{
	const nghttp2_settings_entry iv[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_MAX_STREAMS},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_MAX_HEAD},
	};
	nghttp2_session_callbacks *cbs = make_callbacks();
	nghttp2_option *opt = make_options();
	nghttp2_session *session;

	if (nghttp2_session_server_new2(&session, cbs, h, opt) != 0 ||
		nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, iv, ARRAY_LEN(iv)) != 0 ||
		nghttp2_session_set_local_window_size(
			session, NGHTTP2_FLAG_NONE, 0, H2_CONN_WINDOW) != 0)
		abort();
	nghttp2_session_callbacks_del(cbs);
	nghttp2_option_del(opt);
	return session;
}

static void recv_all(struct h2 *h)
{
	struct conn *c = h->c;

	while (!h->why && bufq_len(&c->in) > 0) {
		struct slice run = bufq_peek(&c->in);
		ssize_t r = nghttp2_session_mem_recv(h->session, run.p, run.n);

		if (r < 0)
			(void)refuse_h2(h, broken_rules);
		conn_eat(h->e, c, run.n);
		if (nghttp2_session_get_outbound_queue_size(h->session) > H2_MAX_QUEUED)
			(void)refuse_h2(h, "the HTTP/2 client does not read responses");
	}
}

static void send_all(struct h2 *h)
{
	struct conn *c = h->c;

	while (!h->why && conn_room(c) > 0) {
		ssize_t r = (ssize_t)h->n_out;
		size_t n;

		if (r == 0)
			r = nghttp2_session_mem_send(h->session, &h->out);
		if (r < 0)
			(void)refuse_h2(h, broken_rules);
		if (r <= 0)
			return;
		n = MIN((size_t)r, conn_room(c));
		conn_say(h->e, c, slice_of(h->out, n));
		h->out += n;
		h->n_out = (size_t)r - n;
	}
}

/* nghttp2 must not be called any more: edge writes the GOAWAY itself, at a frame boundary. */
static void end_broken(struct h2 *h)
{
	const uint8_t goaway[] = {0, 0, 8, NGHTTP2_GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		NGHTTP2_ENHANCE_YOUR_CALM};
	struct edge *e = h->e;
	struct conn *c = h->c;

	conn_report_fault(e, c, EDGE_ASK_HTTP, h->why);
	if (h->n_out == 0 && conn_room(c) >= sizeof(goaway))
		conn_say(e, c, slice_of(goaway, sizeof(goaway)));
	conn_end(e, c);
}

static bool is_over(const struct h2 *h)
{
	return h->n_out == 0 && !nghttp2_session_want_read(h->session) &&
	       !nghttp2_session_want_write(h->session);
}

/* The connection may be freed at its end; callers must not use it. */
static void pump_h2(struct h2 *h)
{
	struct conn *c = h->c;

	h->again = true;
	if (h->busy)
		return;
	h->busy = true;
	while (h->again) {
		h->again = false;
		recv_all(h);
		send_all(h);
	}
	h->busy = false;
	h2_set_timer(h);
	if (h->why)
		end_broken(h);
	else if (is_over(h) || (c->in_end && bufq_len(&c->in) == 0))
		conn_end(h->e, c);
}

void h2_begin(struct edge *e, struct conn *c)
{
	struct h2 *h = xcalloc(1, sizeof(*h));

	*h = (struct h2){.e = e, .c = c, .junk = bucket_init(H2_JUNK_BURST, H2_JUNK_PER_S)};
	h->session = make_session(h);
	c->h2 = h;
	c->state = CONN_H2;
	h2_set_timer(h);
	h2_touch(h);
}

void h2_on_bytes(struct edge *e, struct conn *c)
{
	if (c->h2)
		pump_h2(c->h2);
}

void h2_on_room(struct edge *e, struct conn *c)
{
	if (c->h2)
		pump_h2(c->h2);
}

void h2_on_timer(struct edge *e, struct conn *c)
{
	struct h2 *h = c->h2;

	if (!h)
		return;
	h->wait = H2_WAIT_NOTHING;
	if (h->in_block)
		(void)refuse_h2(h, "timed out reading the request head");
	else
		(void)nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
	pump_h2(h);
}

void h2_free(struct edge *e, struct conn *c)
{
	struct h2 *h = TAKE(c->h2);

	if (!h)
		return;
	while (h->streams)
		conn_over(e, h->streams);
	nghttp2_session_del(h->session);
	free(h);
}
