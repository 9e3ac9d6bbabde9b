/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_rig.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "src/edge/test/net_free.h"
#include "lib/wire/mux/test/mux_rig.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define MAX_ROUNDS 1000000
#define HOST "example.test"

static struct h2_rig *rig;

uint8_t h2_rig_pattern(uint64_t at)
{
	return (uint8_t)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

static void add_text(char *to, struct slice name, struct slice value)
{
	size_t n = strlen(to);

	(void)snprintf(to + n, RIG_TEXT - n, "%.*s: %.*s\n", (int)name.n, (const char *)name.p,
		(int)value.n, (const char *)value.p);
}

/* ---- stubs for the rest of edge ---- */

static void lose_guest(struct edge *e, const char *fmt, ...)
{
	abort();
}

static int take_ask(struct edge *e, uint32_t id, const struct edge_ask *ask)
{
	struct h2_rig *r = rig;

	assert(r->n_asks < RIG_ASKS);
	assert(ask->kind == EDGE_ASK_HTTP && !strcmp(ask->host, HOST));
	assert(ask->tls || ask->fault[0]); /* the connection itself has no TLS here */
	r->asks[r->n_asks].id = id;
	r->asks[r->n_asks++].ask = *ask;
	if (ask->fault[0]) {
		r->n_faults++;
		memcpy(r->fault, ask->fault, sizeof(r->fault));
	} else {
		r->n_asked++;
		r->last = *ask;
	}
	return 0;
}

static void drop_ask(struct edge *e, uint32_t id)
{
}

static const struct keeper_ops keeper_ops = {
	.lost = lose_guest, .send_ask = take_ask, .send_gone = drop_ask};

/* ---- the guest ---- */

static struct rig_stream *find(struct h2_rig *r, int32_t id)
{
	for (unsigned i = 0; i < r->n_streams; i++)
		if (r->streams[i].id == id)
			return &r->streams[i];
	return NULL;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
	struct rig_stream *s = find(user, frame->hd.stream_id);
	struct slice n = slice_of(name, n_name), v = slice_of(value, n_value);
	uint64_t status = 0;

	if (!s)
		return 0;
	if (slice_eq_str(n, ":status") && canon_text_to_u64(v, &status)) {
		s->n_informational += status < 200;
		s->status = (unsigned)status;
	}
	add_text(frame->headers.cat == NGHTTP2_HCAT_HEADERS && s->status >= 200 && n.p[0] != ':' &&
				 frame->hd.flags & NGHTTP2_FLAG_END_STREAM
			 ? s->trailers
			 : s->head,
		n, v);
	return 0;
}

static int on_data(
	nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *user)
{
	struct h2_rig *r = user;
	struct rig_stream *s = find(r, id);

	if (s->n_got < RIG_TEXT - 1)
		memcpy(s->body + s->n_got, p, MIN(n, RIG_TEXT - 1 - s->n_got));
	for (size_t i = 0; i < n; i++)
		s->is_wrong = s->is_wrong || p[i] != h2_rig_pattern(s->n_got + i);
	s->n_got += n;
	if (r->stalled)
		s->n_unread += n;
	else
		assert(nghttp2_session_consume(session, id, n) == 0);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct rig_stream *s = find(user, id);

	if (!s)
		return 0;
	s->closed = true;
	s->error = error;
	return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t n,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct rig_stream *s = source->ptr;
	nghttp2_nv tail = {.name = (uint8_t *)"x-tail", .namelen = 6};

	n = MIN(n, s->to_send);
	for (size_t i = 0; i < n; i++)
		buf[i] = h2_rig_pattern(s->n_sent + i);
	s->n_sent += n;
	s->to_send -= n;
	if (s->to_send == 0 && s->to_end) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (s->tail) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			tail.value = (uint8_t *)s->tail;
			tail.valuelen = strlen(s->tail);
			assert(nghttp2_submit_trailer(session, id, &tail, 1) == 0);
		}
		return (ssize_t)n;
	}
	return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

static void make_client(struct h2_rig *r)
{
	const nghttp2_settings_entry iv = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 256 * 1024};
	nghttp2_session_callbacks *cbs;
	nghttp2_option *opt;

	assert(nghttp2_session_callbacks_new(&cbs) == 0 && nghttp2_option_new(&opt) == 0);
	nghttp2_session_callbacks_set_on_header_callback(cbs, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cbs, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cbs, on_close);
	nghttp2_option_set_no_auto_window_update(opt, 1);
	nghttp2_option_set_max_send_header_block_length(opt, 1 << 20);
	assert(nghttp2_session_client_new2(&r->client, cbs, r, opt) == 0);
	assert(nghttp2_submit_settings(r->client, NGHTTP2_FLAG_NONE, &iv, 1) == 0);
	assert(nghttp2_session_set_local_window_size(
		       r->client, NGHTTP2_FLAG_NONE, 0, 64 * 1024 * 1024) == 0);
	nghttp2_session_callbacks_del(cbs);
	nghttp2_option_del(opt);
}

static nghttp2_nv make_nv(const char *name, const char *value)
{
	return (nghttp2_nv){.name = (uint8_t *)name,
		.value = (uint8_t *)value,
		.namelen = strlen(name),
		.valuelen = strlen(value)};
}

struct rig_stream *h2_rig_open(struct h2_rig *r, const char *method, const char *path,
	size_t to_send, const char *const *more)
{
	struct rig_stream *s = &r->streams[r->n_streams++];
	nghttp2_data_provider body = {.source = {.ptr = s}, .read_callback = read_body};
	nghttp2_nv nva[300] = {make_nv(":method", method), make_nv(":scheme", "https"),
		make_nv(":path", path), make_nv(":authority", HOST)};
	size_t n = 4;

	assert(r->n_streams <= RIG_STREAMS);
	for (; more && *more; more += 2) {
		bool is_authority = strcmp(more[0], ":authority") == 0;

		nva[is_authority ? 3 : n] = make_nv(more[0], more[1]);
		n += !is_authority;
	}
	if (to_send != SIZE_MAX) {
		s->to_send = to_send;
		s->to_end = to_send > 0;
	}
	s->id = nghttp2_submit_request(
		r->client, NULL, nva, n, to_send == SIZE_MAX ? NULL : &body, NULL);
	assert(s->id > 0);
	return s;
}

struct rig_stream *h2_rig_get(struct h2_rig *r, const char *path)
{
	return h2_rig_open(r, "GET", path, SIZE_MAX, NULL);
}

void h2_rig_send(struct h2_rig *r, struct rig_stream *s, size_t n, bool end)
{
	s->to_send += n;
	s->to_end = end;
	(void)nghttp2_session_resume_data(r->client, s->id);
}

void h2_rig_read(struct h2_rig *r)
{
	r->stalled = false;
	for (unsigned i = 0; i < r->n_streams; i++) {
		struct rig_stream *s = &r->streams[i];

		assert(nghttp2_session_consume(r->client, s->id, s->n_unread) == 0);
		s->n_unread = 0;
	}
}

void h2_rig_raw(struct h2_rig *r, struct slice bytes)
{
	r->up = xrealloc(r->up, r->n_up + bytes.n + 1);
	if (bytes.n)
		memcpy(r->up + r->n_up, bytes.p, bytes.n);
	r->n_up += bytes.n;
}

void h2_rig_frame(struct h2_rig *r, uint8_t type, uint8_t flags, uint32_t id, struct slice payload)
{
	uint8_t head[9] = {(uint8_t)(payload.n >> 16), (uint8_t)(payload.n >> 8),
		(uint8_t)payload.n, type, flags, (uint8_t)(id >> 24), (uint8_t)(id >> 16),
		(uint8_t)(id >> 8), (uint8_t)id};

	h2_rig_raw(r, slice_of(head, sizeof(head)));
	h2_rig_raw(r, payload);
}

void h2_rig_preface(struct h2_rig *r)
{
	h2_rig_raw(r, slice_of(NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN));
	h2_rig_frame(r, NGHTTP2_SETTINGS, 0, 0, (struct slice){0});
}

/* ---- bytes ---- */

struct conn *h2_rig_conn(struct h2_rig *r)
{
	struct conn *c = conn_find(&r->e, r->idx, r->gen);

	return c && c->state == CONN_H2 ? c : NULL;
}

static bool move_up(struct h2_rig *r)
{
	struct conn *c = h2_rig_conn(r);
	const uint8_t *p;
	ssize_t n = 0;
	size_t taken;

	if (r->client && r->n_up < 65536)
		while (r->n_up < 65536 && (n = nghttp2_session_mem_send(r->client, &p)) > 0)
			h2_rig_raw(r, slice_of(p, (size_t)n));
	if (!c || r->n_up == 0)
		return false;
	taken = bufq_put(&c->in, slice_of(r->up, r->n_up));
	memmove(r->up, r->up + taken, r->n_up - taken);
	r->n_up -= taken;
	h2_on_bytes(&r->e, c);
	return taken > 0;
}

static void see_frame(struct h2_rig *r)
{
	const uint8_t *f = r->frame;
	uint32_t code = (uint32_t)f[9 + 2] << 8 | f[9 + 3];

	r->n_frames[MIN(f[3], RIG_TYPES - 1)]++;
	if (f[3] == NGHTTP2_GOAWAY)
		r->goaway = (uint32_t)f[9 + 6] << 8 | f[9 + 7];
	if (f[3] == NGHTTP2_RST_STREAM)
		r->reset = code;
}

/* Edge's own frames are always complete. */
static void see_bytes(struct h2_rig *r, struct slice in)
{
	for (size_t i = 0; i < in.n; i++) {
		assert(r->n_frame < sizeof(r->frame));
		r->frame[r->n_frame++] = in.p[i];
		if (r->n_frame < 9)
			continue;
		if (r->n_frame - 9 ==
			((size_t)r->frame[0] << 16 | (size_t)r->frame[1] << 8 | r->frame[2])) {
			see_frame(r);
			r->n_frame = 0;
		}
	}
}

static bool move_down(struct h2_rig *r)
{
	static uint8_t buf[CONN_OUT];
	struct conn *c = conn_find(&r->e, r->idx, r->gen);
	size_t n = c ? bufq_take(&c->out, buf, MIN(sizeof(buf), r->reads)) : 0;

	if (n == 0)
		return false;
	if (r->reads != SIZE_MAX)
		r->reads -= n;
	conn_note_room(&r->e, c);
	see_bytes(r, slice_of(buf, n));
	if (r->client)
		assert(nghttp2_session_mem_recv(r->client, buf, n) == (ssize_t)n);
	return true;
}

/* ---- the keeper ---- */

#define CHANNEL 3 /* to origin */

void h2_rig_verdict(struct h2_rig *r, unsigned i, bool allowed)
{
	struct edge_verdict v = {.allowed = allowed, .count = !allowed, .sandbox = "demo"};
	uint32_t id = r->asks[i].id;
	int pair[2] = {-1, -1};

	if (!allowed && r->reason)
		(void)snprintf(v.reason, sizeof(v.reason), "%s", r->reason);
	if (allowed) {
		struct rig_way *w = &r->ways[r->n_ways++ % RIG_STREAMS];

		assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
		canon_reader_done(&w->reader);
		fd_close(&w->fd);
		free(w->out);
		*w = (struct rig_way){.fd = pair[0]};
		v.channel = CHANNEL;
		v.stream = r->n_ways % MUX_MAX_ID;
		mux_rig_add_here(v.stream, pair[1]);
		canon_reader_init(&w->reader);
		assert(fd_set_nonblock(pair[0], true) == 0);
	}
	r->asks[i] = r->asks[--r->n_asks];
	assert(net_on_verdict(&r->e, id, &v, -1) == 0);
}

static bool move_keeper(struct h2_rig *r)
{
	for (unsigned i = 0; i < r->n_asks; i++) {
		const struct edge_ask *ask = &r->asks[i].ask;
		bool yes = r->decide == 1 || (r->decide == 2 && !strstr(ask->target, "no"));

		if (!ask->fault[0] && r->decide == 0)
			continue;
		h2_rig_verdict(r, i, yes && !ask->fault[0]);
		return true;
	}
	return false;
}

/* ---- the origin ---- */

struct rig_way *h2_rig_way(struct h2_rig *r, const char *path)
{
	for (unsigned i = 0; i < RIG_STREAMS; i++)
		if (strcmp(r->ways[i].path, path) == 0)
			return &r->ways[i];
	return NULL;
}

void rig_way_bytes(struct rig_way *w, struct slice bytes)
{
	w->out = xrealloc(w->out, w->n_out + bytes.n + 1);
	if (bytes.n)
		memcpy(w->out + w->n_out, bytes.p, bytes.n);
	w->n_out += bytes.n;
}

void rig_way_head(struct rig_way *w, unsigned status, enum http_body_kind kind, uint64_t length,
	const char *name, const char *value)
{
	static uint8_t buf[CANON_FRAME_HEADER + CANON_MAX_HEAD];
	struct http_header header;
	struct http_resp resp = {
		.status = (uint16_t)status, .body = {.kind = kind, .length = length}};
	struct wr wr = wr_init(buf, sizeof(buf));

	resp.body.absent = strcmp(w->method, "HEAD") == 0 && status >= 200;
	if (resp.body.absent && kind != HTTP_BODY_LENGTH)
		resp.body.kind = HTTP_BODY_NONE;
	if (name) {
		header = (struct http_header){slice_from_str(name), slice_from_str(value)};
		resp.headers = (struct http_headers){&header, 1, 1};
	}
	assert(canon_put_resp(&wr, 1, &resp) == 0);
	rig_way_bytes(w, slice_of(buf, wr.n));
}

void rig_way_close(struct rig_way *w)
{
	fd_close(&w->fd);
	w->eof = true;
}

static void take_head(struct rig_way *w, struct slice payload)
{
	struct http_req req;
	struct arena arena;

	arena_init(&arena, HTTP_ARENA_SIZE);
	assert(canon_get_req(payload, &arena, &req) == 0 && canon_flow_req(&w->flow, &req) == 0);
	assert(slice_eq_str(req.host, HOST) && req.port == 443 && !req.websocket);
	(void)snprintf(w->method, sizeof(w->method), "%.*s", (int)req.method.n, req.method.p);
	(void)snprintf(w->path, sizeof(w->path), "%.*s", (int)req.path.n, req.path.p);
	for (size_t i = 0; i < req.headers.n; i++)
		add_text(w->head, req.headers.list[i].name, req.headers.list[i].value);
	w->body = req.body;
	w->te_trailers = req.te_trailers;
	w->expects = req.expect_continue;
	w->is_https = req.scheme == HTTP_SCHEME_HTTPS;
	arena_done(&arena);
}

static void take_end(struct rig_way *w, struct slice payload)
{
	struct http_headers trailers;
	struct arena arena;

	arena_init(&arena, HTTP_ARENA_SIZE);
	assert(canon_get_end(payload, &arena, &trailers) == 0 &&
		canon_flow_end(&w->flow, &trailers) == 0);
	for (size_t i = 0; i < trailers.n; i++)
		add_text(w->trailers, trailers.list[i].name, trailers.list[i].value);
	w->ended = true;
	arena_done(&arena);
}

static void take_frame(struct rig_way *w, const struct canon_frame *f)
{
	if (f->kind == CANON_HEAD) {
		take_head(w, f->payload);
	} else if (f->kind == CANON_DATA) {
		assert(canon_flow_data(&w->flow, f->payload.n) == 0);
		for (size_t i = 0; i < f->payload.n; i++)
			w->is_wrong =
				w->is_wrong || f->payload.p[i] != h2_rig_pattern(w->n_got + i);
		w->n_got += f->payload.n;
		if (w->echoes)
			w->to_say += f->payload.n;
	} else {
		assert(f->kind == CANON_END);
		take_end(w, f->payload);
	}
}

static bool way_in(struct rig_way *w)
{
	static uint8_t buf[65536];
	struct canon_frame f;
	struct slice in;
	ssize_t n;
	int k;

	if (w->fd < 0 || w->deaf || w->eof)
		return false;
	n = recv(w->fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n <= 0) {
		w->eof = n == 0 || errno != EAGAIN;
		return w->eof;
	}
	in = slice_of(buf, (size_t)n);
	while ((k = canon_reader_feed(&w->reader, &in, &f)) == 1)
		take_frame(w, &f);
	assert(k == 0);
	return true;
}

static void fill_way(struct rig_way *w)
{
	static uint8_t data[CANON_FRAME_HEADER + 16384];
	struct http_header tail;
	struct http_headers trailers = {&tail, 0, 1};
	struct wr wr = wr_init(data, sizeof(data));
	size_t n = MIN(w->to_say, (uint64_t)16384);

	if (w->n_out > 0)
		return;
	if (n > 0) {
		assert(canon_put_data_head(&wr, 1, n) == 0);
		for (size_t i = 0; i < n; i++)
			data[CANON_FRAME_HEADER + i] = h2_rig_pattern(w->n_said + i);
		rig_way_bytes(w, slice_of(data, CANON_FRAME_HEADER + n));
		w->n_said += n;
		w->to_say -= n;
	} else if (w->to_end) {
		w->to_end = false;
		if (w->tail) {
			tail = (struct http_header){
				slice_from_str("grpc-status"), slice_from_str(w->tail)};
			trailers.n = 1;
		}
		assert(canon_put_end(&wr, 1, &trailers) == 0);
		rig_way_bytes(w, slice_of(data, wr.n));
	}
}

static bool way_out(struct rig_way *w)
{
	ssize_t n;

	if (w->fd < 0)
		return false;
	fill_way(w);
	if (w->n_out == 0)
		return false;
	n = send(w->fd, w->out, w->n_out, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN) {
		w->n_out = 0;
		w->to_say = 0;
		w->to_end = false;
	}
	if (n <= 0)
		return false;
	memmove(w->out, w->out + n, w->n_out - (size_t)n);
	w->n_out -= (size_t)n;
	return true;
}

static bool move_ways(struct h2_rig *r)
{
	bool moved = mux_rig_turn();

	for (unsigned i = 0; i < RIG_STREAMS; i++) {
		moved = way_in(&r->ways[i]) || moved;
		moved = way_out(&r->ways[i]) || moved;
	}
	return moved;
}

/* ---- everything ---- */

static bool move_loop(struct h2_rig *r)
{
	struct pollfd pfd = {.fd = r->e.loop.epfd, .events = POLLIN};
	struct loop_event ev;

	if (!loop_has_more(&r->e.loop) && poll(&pfd, 1, 0) != 1)
		return false;
	loop_next(&r->e.loop, &ev);
	if (ev.key.kind == EDGE_EV_CONN)
		net_on_conn_event(&r->e, ev);
	else if (ev.key.kind == EDGE_EV_CHANNEL)
		net_on_channel_event(&r->e, &ev);
	else if (ev.key.kind == EDGE_EV_NET)
		return false;
	return true;
}

static void count_held(struct h2_rig *r)
{
	size_t held = 0;

	for (size_t i = 0; i < NET_MAX_CONNS; i++) {
		struct conn *c = r->e.net->conns[i];

		if (c)
			held += bufq_len(&c->in) + bufq_len(&c->out);
	}
	r->most_held = MAX(r->most_held, held);
}

void h2_rig_turn(struct h2_rig *r)
{
	static bool (*const moves[])(struct h2_rig *) = {
		move_up, move_keeper, move_loop, move_ways, move_down};
	bool moved = true;

	for (size_t i = 0; moved; i++) {
		assert(i < MAX_ROUNDS);
		moved = false;
		for (size_t k = 0; k < ARRAY_LEN(moves); k++) {
			moved = moves[k](r) || moved;
			net_flush(&r->e);
		}
		count_held(r);
	}
}

struct h2_rig *h2_rig_new(bool client)
{
	static struct host host;
	struct h2_rig *r = rig = xcalloc(1, sizeof(*r));
	struct conn *c;
	int fds[2];

	assert(loop_init(&r->e.loop) == 0);
	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	r->port = fds[0];
	assert(fd_set_nonblock(fds[1], true) == 0);
	r->e.keeper = &keeper_ops;
	net_start(&r->e, fds[1]);
	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	mux_rig_begin(fds[0]);
	net_on_channel(&r->e, CHANNEL, fds[1]);
	for (unsigned i = 0; i < RIG_STREAMS; i++)
		r->ways[i].fd = -1;
	r->reads = SIZE_MAX;
	r->decide = 1;
	r->goaway = r->reset = UINT32_MAX;
	c = conn_new(&r->e, CONN_TCP, 1); /* a stream unknown to the wire */
	r->idx = c->idx;
	r->gen = c->gen;
	c->via = EDGE_VIA_TRANSPARENT;
	c->proto = EDGE_PROTO_HTTP;
	assert(host_from_wire(slice_from_str(HOST), &host, NULL) == 0);
	c->target = (struct conn_target){.given = true, .host = host, .port = 443};
	c->sni = &host;
	if (client)
		make_client(r);
	h2_begin(&r->e, c);
	return r;
}

void h2_rig_free(struct h2_rig *r)
{
	net_free(&r->e);
	mux_rig_end();
	loop_done(&r->e.loop);
	fd_close(&r->port);
	for (unsigned i = 0; i < RIG_STREAMS; i++) {
		canon_reader_done(&r->ways[i].reader);
		fd_close(&r->ways[i].fd);
		free(r->ways[i].out);
	}
	if (r->client)
		nghttp2_session_del(r->client);
	free(r->up);
	free(r);
}
