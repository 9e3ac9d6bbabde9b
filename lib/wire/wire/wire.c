/* SPDX-License-Identifier: Apache-2.0 */
#include "wire_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "lib/base/mem.h"

int wire_fail(struct wire *w, int r, const char *fmt, ...)
{
	va_list ap;

	if (w->broken)
		return w->broken;
	w->broken = r;
	va_start(ap, fmt);
	(void)vsnprintf(w->why, sizeof(w->why), fmt, ap);
	va_end(ap);
	return r;
}

static int fail_lib(struct wire *w, int error)
{
	int r = error == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;

	return wire_fail(w, r, "HTTP/2: %s", nghttp2_strerror(error));
}

struct wire_stream *wire_stream_new(struct wire *w, uint32_t id, uint32_t slot)
{
	struct wire_stream *s = xcalloc(1, sizeof(*s));

	*s = (struct wire_stream){.id = id, .slot = slot, .next = w->streams};
	if (s->next)
		s->next->prev = s;
	w->streams = s;
	w->n_streams++;
	return s;
}

void wire_stream_free(struct wire *w, struct wire_stream *s)
{
	(void)nghttp2_session_set_stream_user_data(w->session, (int32_t)s->id, NULL);
	if (s->prev)
		s->prev->next = s->next;
	else
		w->streams = s->next;
	if (s->next)
		s->next->prev = s->prev;
	w->n_streams--;
	free(s);
}

/* nghttp2 knows a stream from the moment its head goes out; before that only the list does. */
struct wire_stream *wire_stream_find(struct wire *w, uint32_t id)
{
	struct wire_stream *s = nghttp2_session_get_stream_user_data(w->session, (int32_t)id);

	if (s)
		return s;
	for (s = w->streams; s && s->id != id; s = s->next)
		;
	return s;
}

static nghttp2_option *make_options(const struct wire *w)
{
	nghttp2_option *opt;

	if (nghttp2_option_new(&opt) != 0)
		abort();
	nghttp2_option_set_no_auto_window_update(opt, 1);
	nghttp2_option_set_no_closed_streams(opt, 1);
	nghttp2_option_set_peer_max_concurrent_streams(opt, w->max_streams);
	nghttp2_option_set_max_deflate_dynamic_table_size(opt, 0);
	nghttp2_option_set_max_send_header_block_length(opt, 1024);
	nghttp2_option_set_max_settings(opt, 16);
	nghttp2_option_set_max_outbound_ack(opt, 256);
	nghttp2_option_set_stream_reset_rate_limit(opt, WIRE_JUNK_BURST, WIRE_JUNK_PER_S);
	/* nghttp2 skips unregistered types silently; registered types can be rejected. */
	for (unsigned type = 10; type <= 255; type++)
		nghttp2_option_set_user_recv_extension_type(opt, (uint8_t)type);
	return opt;
}

static void make_session(struct wire *w)
{
	nghttp2_session_callbacks *cbs;
	nghttp2_option *opt = make_options(w);
	int r;

	if (nghttp2_session_callbacks_new(&cbs) != 0)
		abort();
	wire_set_callbacks(cbs);
	r = w->role == WIRE_CLIENT ? nghttp2_session_client_new2(&w->session, cbs, w, opt)
				   : nghttp2_session_server_new2(&w->session, cbs, w, opt);
	nghttp2_session_callbacks_del(cbs);
	nghttp2_option_del(opt);
	if (r != 0)
		abort();
}

static void submit_settings(struct wire *w)
{
	const nghttp2_settings_entry iv[] = {
		{NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 0},
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, w->max_streams},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, w->window},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 1024},
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	};
	/* A server must not mention push at all. */
	size_t n = w->role == WIRE_CLIENT ? ARRAY_LEN(iv) : ARRAY_LEN(iv) - 1;

	if (nghttp2_submit_settings(w->session, NGHTTP2_FLAG_NONE, iv, n) != 0 ||
		nghttp2_session_set_local_window_size(
			w->session, NGHTTP2_FLAG_NONE, 0, WIRE_CONN_WINDOW) != 0)
		abort();
}

struct wire *wire_new(
	enum wire_role role, enum wire_port port, const struct wire_ops *ops, void *ctx)
{
	struct wire *w = xcalloc(1, sizeof(*w));

	w->role = role;
	w->max_streams = port == WIRE_NET ? WIRE_NET_STREAMS : WIRE_MAX_STREAMS;
	/* Towards the guest a stream may be fast on both ports: its memory is its own affair. */
	w->window = port == WIRE_NET && role == WIRE_SERVER ? WIRE_NET_WINDOW : WIRE_STREAM_WINDOW;
	w->ops = ops;
	w->ctx = ctx;
	w->junk = bucket_init(WIRE_JUNK_BURST, WIRE_JUNK_PER_S);
	make_session(w);
	submit_settings(w);
	return w;
}

void wire_free(struct wire *w)
{
	if (!w)
		return;
	while (w->streams)
		wire_stream_free(w, w->streams);
	nghttp2_session_del(w->session);
	free(w);
}

static int feed_session(struct wire *w, const uint8_t *p, size_t n)
{
	ssize_t r = nghttp2_session_mem_recv(w->session, p, n);

	if (w->broken)
		return w->broken;
	return r < 0 ? fail_lib(w, (int)r) : 0;
}

/* Drops what comes before the client's magic: after a restart of the host's end, bytes of the old
 * connection may still be in the pipe. The "P" of "HTTP" in the magic may begin it again. */
static int skip_to_preface(struct wire *w, struct slice *bytes)
{
	static const char magic[] = NGHTTP2_CLIENT_MAGIC;
	size_t i = 0;

	for (; i < bytes->n && w->preface < NGHTTP2_CLIENT_MAGIC_LEN; i++) {
		char c = (char)bytes->p[i];

		if (c == magic[w->preface])
			w->preface++;
		else if (w->preface == 10 && c == 'R')
			w->preface = 2;
		else
			w->preface = c == 'P';
	}
	*bytes = slice_of(bytes->p + i, bytes->n - i);
	if (w->preface < NGHTTP2_CLIENT_MAGIC_LEN)
		return 0;
	w->preface++;
	return feed_session(w, (const uint8_t *)magic, NGHTTP2_CLIENT_MAGIC_LEN);
}

int wire_feed(struct wire *w, struct slice bytes, uint64_t now_ms)
{
	int r = w->broken;

	w->now_ms = now_ms;
	if (r == 0 && w->role == WIRE_SERVER && w->preface < NGHTTP2_CLIENT_MAGIC_LEN)
		r = skip_to_preface(w, &bytes);
	if (r == 0 && bytes.n)
		r = feed_session(w, bytes.p, bytes.n);
	if (r == 0 && nghttp2_session_get_outbound_queue_size(w->session) > WIRE_MAX_QUEUED)
		r = wire_fail(w, -EPROTO, "the peer does not read");
	return r;
}

ssize_t wire_pull(struct wire *w, uint8_t *buf, size_t n)
{
	size_t done = 0;

	while (done < n && !w->broken) {
		size_t part;
		ssize_t r;

		if (w->n_out == 0) {
			r = nghttp2_session_mem_send(w->session, &w->out);
			if (w->broken)
				break;
			if (r < 0)
				return fail_lib(w, (int)r);
			if (r == 0)
				break;
			w->n_out = (size_t)r;
		}
		part = MIN(w->n_out, n - done);
		memcpy(buf + done, w->out, part);
		w->out += part;
		w->n_out -= part;
		done += part;
	}
	return w->broken ? w->broken : (ssize_t)done;
}

bool wire_wants_write(const struct wire *w)
{
	return !w->broken && (w->n_out || nghttp2_session_want_write(w->session));
}

const char *wire_error(const struct wire *w)
{
	return w->why;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t n,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct wire *w = user;
	struct wire_stream *s = wire_stream_find(w, (uint32_t)id);
	ssize_t r;

	if (!s || s->gone)
		return NGHTTP2_ERR_DEFERRED;
	r = w->ops->pull(w->ctx, s->id, s->slot, buf, n);
	if (r == 0)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (r >= 0)
		return r;
	return r == -EAGAIN ? NGHTTP2_ERR_DEFERRED : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static nghttp2_nv make_nv(const char *name, const char *value)
{
	return (nghttp2_nv){.name = (uint8_t *)name,
		.value = (uint8_t *)value,
		.namelen = strlen(name),
		.valuelen = strlen(value),
		.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

int wire_open(struct wire *w, const char *path, uint32_t slot, uint32_t *ret_id)
{
	const nghttp2_nv head[] = {
		make_nv(":method", "POST"),
		make_nv(":scheme", "http"),
		make_nv(":authority", "sbx"),
		make_nv(":path", path),
	};
	const nghttp2_data_provider body = {.read_callback = read_body};
	struct wire_stream *s;
	int32_t id;

	assert(w->role == WIRE_CLIENT);
	if (w->broken)
		return -EPIPE;
	if (path[0] != '/' || strlen(path) >= WIRE_MAX_PATH)
		return -EINVAL;
	if (w->n_streams >= w->max_streams)
		return -EBUSY;
	s = wire_stream_new(w, 0, slot);
	id = nghttp2_submit_request(w->session, NULL, head, ARRAY_LEN(head), &body, s);
	if (id < 0) {
		wire_stream_free(w, s);
		return -EPIPE;
	}
	s->id = (uint32_t)id;
	*ret_id = s->id;
	return 0;
}

int wire_reply(struct wire *w, uint32_t id, unsigned status)
{
	const nghttp2_data_provider body = {.read_callback = read_body};
	struct wire_stream *s = wire_stream_find(w, id);
	char text[12];
	nghttp2_nv head;

	assert(w->role == WIRE_SERVER && status >= 200 && status <= 599);
	if (w->broken || !s || s->gone)
		return -EPIPE;
	(void)snprintf(text, sizeof(text), "%u", status);
	head = make_nv(":status", text);
	return nghttp2_submit_response(w->session, (int32_t)id, &head, 1, &body) == 0 ? 0 : -EPIPE;
}

void wire_resume(struct wire *w, uint32_t id)
{
	/* Fails harmlessly when the stream does not wait or is over. */
	(void)nghttp2_session_resume_data(w->session, (int32_t)id);
}

void wire_consumed(struct wire *w, uint32_t id, size_t n)
{
	struct wire_stream *s = wire_stream_find(w, id);

	if (!s)
		return;
	assert(n <= s->held);
	s->held -= (uint32_t)n;
	if (!w->broken && nghttp2_session_consume_stream(w->session, (int32_t)id, n) != 0)
		(void)wire_fail(w, -ENOMEM, "out of memory");
}

void wire_reset(struct wire *w, uint32_t id)
{
	struct wire_stream *s = wire_stream_find(w, id);

	if (!s || s->gone)
		return;
	s->gone = true;
	if (!w->broken && nghttp2_submit_rst_stream(
				  w->session, NGHTTP2_FLAG_NONE, (int32_t)id, NGHTTP2_CANCEL) != 0)
		(void)wire_fail(w, -ENOMEM, "out of memory");
}

int wire_ping(struct wire *w, uint64_t cookie)
{
	uint8_t opaque[sizeof(cookie)];

	if (w->broken)
		return -EPIPE;
	memcpy(opaque, &cookie, sizeof(cookie));
	return nghttp2_submit_ping(w->session, NGHTTP2_FLAG_NONE, opaque) == 0 ? 0 : -ENOMEM;
}

bool wire_is_opening(const struct wire *w)
{
	return w->got_settings && !w->ready;
}

unsigned wire_n_streams(const struct wire *w)
{
	return w->n_streams;
}
