/* SPDX-License-Identifier: Apache-2.0 */
/* nghttp2's callbacks: what of HTTP/2 our two ends use is let through, the rest is a violation. */
#include "wire_internal.h"

#include <assert.h>
#include <errno.h>

/* A window update below this moves so little that it can only be meant to cost time. */
#define TINY_UPDATE 1024

enum head_field {
	HEAD_METHOD = 1 << 0,
	HEAD_SCHEME = 1 << 1,
	HEAD_AUTHORITY = 1 << 2,
	HEAD_PATH = 1 << 3,
	HEAD_STATUS = 1 << 4,
};

#define HEAD_REQUEST (HEAD_METHOD | HEAD_SCHEME | HEAD_AUTHORITY | HEAD_PATH)

static int refuse_recv(struct wire *w, const char *what)
{
	wire_fail(w, -EPROTO, "%s", what);
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int spend_junk(struct wire *w)
{
	return bucket_take(&w->junk, w->now_ms) ? 0
						: refuse_recv(w, "too many frames without data");
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user)
{
	struct wire *w = user;

	switch (hd->type) {
	case NGHTTP2_DATA:
		if (hd->flags & NGHTTP2_FLAG_PADDED)
			return refuse_recv(w, "padding");
		return hd->length || hd->flags & NGHTTP2_FLAG_END_STREAM ? 0 : spend_junk(w);
	case NGHTTP2_HEADERS:
		/* Our heads fit one frame, so CONTINUATION never has a reason to come. */
		if (!(hd->flags & NGHTTP2_FLAG_END_HEADERS) ||
			hd->flags & (NGHTTP2_FLAG_PADDED | NGHTTP2_FLAG_PRIORITY))
			return refuse_recv(w, "a header block of an unsupported form");
		return 0;
	case NGHTTP2_WINDOW_UPDATE:
		return 0;
	case NGHTTP2_SETTINGS:
	case NGHTTP2_PING:
	case NGHTTP2_RST_STREAM:
		return spend_junk(w);
	case NGHTTP2_GOAWAY:
		wire_fail(w, -ECONNRESET, "the peer closed the connection");
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	default:
		return refuse_recv(w, "an unsupported frame type");
	}
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct wire *w = user;
	nghttp2_headers_category want =
		w->role == WIRE_SERVER ? NGHTTP2_HCAT_REQUEST : NGHTTP2_HCAT_RESPONSE;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != want)
		return refuse_recv(w, "a second header block");
	w->head = (struct wire_head){0};
	return 0;
}

static bool path_is_ok(struct slice s)
{
	if (s.n == 0 || s.n >= WIRE_MAX_PATH || s.p[0] != '/')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	}
	return true;
}

static bool take_status(struct wire_head *head, struct slice value)
{
	if (value.n != 3)
		return false;
	for (size_t i = 0; i < 3; i++) {
		if (value.p[i] < '0' || value.p[i] > '9')
			return false;
		head->status = head->status * 10 + (value.p[i] - '0');
	}
	return head->status >= 200 && head->status <= 599;
}

/* Which field it is, 0 if it is unknown or its value is not the one we use. */
static unsigned take_field(struct wire *w, struct slice name, struct slice value)
{
	if (w->role == WIRE_CLIENT)
		return slice_eq_str(name, ":status") && take_status(&w->head, value) ? HEAD_STATUS
										     : 0;
	if (slice_eq_str(name, ":method") && slice_eq_str(value, "POST"))
		return HEAD_METHOD;
	if (slice_eq_str(name, ":scheme") && slice_eq_str(value, "http"))
		return HEAD_SCHEME;
	if (slice_eq_str(name, ":authority") && slice_eq_str(value, "sbx"))
		return HEAD_AUTHORITY;
	if (slice_eq_str(name, ":path") && path_is_ok(value) &&
		slice_to_cstr(value, w->head.path, sizeof(w->head.path)) == 0)
		return HEAD_PATH;
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
	struct wire *w = user;
	unsigned field = take_field(w, slice_of(name, n_name), slice_of(value, n_value));

	if (field == 0 || w->head.seen & field)
		return refuse_recv(w, "an unsupported header");
	w->head.seen |= field;
	return 0;
}

static int open_from_peer(struct wire *w, uint32_t id)
{
	struct wire_stream *s;
	uint32_t slot = 0;
	int r;

	if (w->head.seen != HEAD_REQUEST)
		return refuse_recv(w, "a request with missing fields");
	s = wire_stream_new(w, id, 0);
	(void)nghttp2_session_set_stream_user_data(w->session, (int32_t)id, s);
	r = w->ops->on_open(w->ctx, id, w->head.path, &slot);
	s->slot = slot;
	if (r < 0)
		wire_reset(w, id);
	return 0;
}

static int head_came(struct wire *w, const nghttp2_frame *frame)
{
	uint32_t id = (uint32_t)frame->hd.stream_id;
	struct wire_stream *s;

	if (w->role == WIRE_SERVER)
		return open_from_peer(w, id);
	if (w->head.seen != HEAD_STATUS)
		return refuse_recv(w, "a response without a status");
	s = wire_stream_find(w, id);
	if (s && !s->gone)
		w->ops->on_reply(w->ctx, id, s->slot, w->head.status);
	return 0;
}

static int settings_came(struct wire *w, const nghttp2_frame *frame)
{
	/* On sbx.net a second one is the first of another edge (src/guest/net/port.h). */
	if (!(frame->hd.flags & NGHTTP2_FLAG_ACK) && w->got_settings && w->role == WIRE_CLIENT &&
		w->max_streams == WIRE_NET_STREAMS)
		return refuse_recv(w, "the peer started again");
	if (frame->hd.flags & NGHTTP2_FLAG_ACK)
		w->got_ack = true;
	else
		w->got_settings = true;
	/* With fewer allowed, requests would pile up unsent in nghttp2's queue. */
	if (w->role == WIRE_CLIENT && w->got_settings &&
		nghttp2_session_get_remote_settings(
			w->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) < w->max_streams)
		return refuse_recv(w, "unsupported settings");
	if (!w->ready && w->got_settings && w->got_ack) {
		w->ready = true;
		if (w->ops->on_ready)
			w->ops->on_ready(w->ctx);
	}
	return 0;
}

static int ping_came(struct wire *w, const nghttp2_frame *frame)
{
	uint64_t cookie;

	memcpy(&cookie, frame->ping.opaque_data, sizeof(cookie));
	if (frame->hd.flags & NGHTTP2_FLAG_ACK && w->ops->on_pong)
		w->ops->on_pong(w->ctx, cookie);
	return 0;
}

static void end_came(struct wire *w, const nghttp2_frame *frame)
{
	struct wire_stream *s;

	if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return;
	s = wire_stream_find(w, (uint32_t)frame->hd.stream_id);
	if (s && !s->gone)
		w->ops->on_end(w->ctx, s->id, s->slot);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct wire *w = user;
	int r;

	switch (frame->hd.type) {
	case NGHTTP2_DATA:
		end_came(w, frame);
		return 0;
	case NGHTTP2_HEADERS:
		r = head_came(w, frame);
		if (r == 0)
			end_came(w, frame);
		return r;
	case NGHTTP2_SETTINGS:
		return settings_came(w, frame);
	case NGHTTP2_PING:
		return ping_came(w, frame);
	case NGHTTP2_WINDOW_UPDATE:
		return frame->window_update.window_size_increment < TINY_UPDATE ? spend_junk(w) : 0;
	default:
		return 0;
	}
}

static int on_data_chunk(
	nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *user)
{
	struct wire *w = user;
	struct wire_stream *s = wire_stream_find(w, (uint32_t)id);

	if (nghttp2_session_consume_connection(session, n) != 0)
		return refuse_recv(w, "out of memory");
	if (!s || s->gone)
		return 0;
	/* nghttp2 notices too, but hands out the frame that was too much first. */
	if (n > w->window - s->held)
		return refuse_recv(w, "more data than the window allows");
	s->held += (uint32_t)n;
	w->ops->on_data(w->ctx, s->id, s->slot, slice_of(p, n));
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct wire *w = user;
	struct wire_stream *s = wire_stream_find(w, (uint32_t)id);

	if (!s)
		return 0;
	if (!s->gone)
		w->ops->on_close(w->ctx, s->id, s->slot, error ? -ECONNRESET : 0);
	wire_stream_free(w, s);
	return 0;
}

/* A request that was reset before it went out never becomes a stream in nghttp2. */
static int on_frame_not_send(
	nghttp2_session *session, const nghttp2_frame *frame, int error, void *user)
{
	struct wire *w = user;

	if (frame->hd.type == NGHTTP2_HEADERS && w->role == WIRE_CLIENT)
		return on_stream_close(session, frame->hd.stream_id, NGHTTP2_CANCEL, user);
	return 0;
}

/* nghttp2 answers a violation with GOAWAY or RST_STREAM and continues; we do not. Its own resets
 * have another code: ours have CANCEL, a body that could not be pulled has INTERNAL_ERROR. */
static int before_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	if (frame->hd.type == NGHTTP2_GOAWAY)
		return refuse_recv(user, "the peer violated the protocol");
	if (frame->hd.type == NGHTTP2_RST_STREAM &&
		frame->rst_stream.error_code != NGHTTP2_CANCEL &&
		frame->rst_stream.error_code != NGHTTP2_INTERNAL_ERROR)
		return refuse_recv(user, "the peer violated the protocol of a stream");
	return 0;
}

static int on_invalid_frame(
	nghttp2_session *session, const nghttp2_frame *frame, int error, void *user)
{
	wire_fail(user, -EPROTO, "a frame that violates the protocol: %s", nghttp2_strerror(error));
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_extension(
	nghttp2_session *session, void **payload, const nghttp2_frame_hd *hd, void *user)
{
	return refuse_recv(user, "an unsupported frame type");
}

static int on_extension_chunk(nghttp2_session *session, const nghttp2_frame_hd *hd,
	const uint8_t *p, size_t n, void *user)
{
	return refuse_recv(user, "an unsupported frame type");
}

void wire_set_callbacks(nghttp2_session_callbacks *cbs)
{
	nghttp2_session_callbacks_set_on_begin_frame_callback(cbs, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cbs, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cbs, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cbs, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cbs, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(cbs, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(cbs, on_frame_not_send);
	nghttp2_session_callbacks_set_before_frame_send_callback(cbs, before_frame_send);
	nghttp2_session_callbacks_set_unpack_extension_callback(cbs, on_extension);
	nghttp2_session_callbacks_set_on_extension_chunk_recv_callback(cbs, on_extension_chunk);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cbs, on_invalid_frame);
}
