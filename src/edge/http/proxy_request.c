/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy_internal.h"

#include <assert.h>
#include <errno.h>
#include "lib/wire/http/canon/canon_named.h"

/* One HEAD frame and an END; also the largest send other than data. */
static uint8_t frames[CANON_FRAME_HEADER + CANON_MAX_HEAD + CANON_FRAME_HEADER + CANON_MAX_END];

/* Rules use the canonical form of lib/rules/policy. */
static int canonical_host(struct slice text, char *buf, size_t size)
{
	struct host host;
	struct err err;

	if (host_from_wire(text, &host, &err) < 0 || host.n >= size)
		return -EINVAL;
	memcpy(buf, host.name, host.n);
	return host.n;
}

static void eat_request(struct edge *e, struct conn *c, size_t n)
{
	if (n > 0)
		conn_eat(e, c, n);
}

static bool wants_json(const struct http_headers *headers)
{
	for (size_t i = 0; i < headers->n; i++)
		if (slice_eq_str(headers->list[i].name, "accept") &&
			deny_wants_json(headers->list[i].value))
			return true;
	return false;
}

/* Notes the target that the request itself names, so that a denial can name it. Later checks may
 * still reject the target. */
static void note_target(struct proxy_exchange *x, const struct http_req *req)
{
	uint16_t port;
	struct slice text;
	struct host host;

	if (canon_split_authority(req->authority, &text, &port) < 0 ||
		host_from_wire(text, &host, NULL) < 0)
		return;
	(void)!slice_to_cstr(host_slice(&host), x->host, sizeof(x->host));
	if (port == 0 && req->form == HTTP_FORM_ABSOLUTE)
		port = canon_default_port(req->scheme);
	x->port = port;
}

/* Copies what is needed after the arena is freed. */
static void note_request(struct proxy_exchange *x, struct http_req *req)
{
	*x = (struct proxy_exchange){.req = req, .port = req->port};
	(void)!slice_to_cstr(req->host, x->host, sizeof(x->host));
	x->is_head = slice_eq_str(req->method, "HEAD");
	x->http10 = req->http10;
	/* HTTP/1.0 would need a Connection: keep-alive, which our answers never contain. */
	x->keep_alive = req->keep_alive && !req->http10;
	x->websocket = req->websocket;
	x->json = wants_json(&req->headers);
}

static_assert(EDGE_MAX_TARGET > HTTP_MAX_TARGET, "each canonical target fits into an ASK");
static_assert(EDGE_MAX_NAMED > CANON_NAMED_MAX && EDGE_MAX_WANTS >= CANON_NAMED_NAMES,
	"and the headers that rules name");

/* Path and query, as the keeper's ticket has them. */
static int put_target(const struct http_req *req, char *buf, size_t size)
{
	int r = slice_to_cstr(req->path, buf, size);

	if (r < 0 || !req->has_query)
		return r;
	if (req->path.n + 1 >= size)
		return -ENAMETOOLONG;
	buf[req->path.n] = '?';
	return slice_to_cstr(req->query, buf + req->path.n + 1, size - req->path.n - 1);
}

enum proxy_step proxy_ask(
	struct edge *e, struct conn *c, const struct http_req *req, const char *wants, uint32_t id)
{
	static const struct http_fault large = {431, "the headers that rules name are too large"};
	struct edge_ask ask = {
		.kind = EDGE_ASK_HTTP, .via = c->via, .proto = EDGE_PROTO_HTTP, .port = req->port};
	struct wr wr = wr_init(ask.named, sizeof(ask.named) - 1);

	ask.tls = conn_is_opened(c);
	ask.wants_id = id;
	if (canon_named_write(&wr, &req->headers, slice_from_str(wants)) < 0)
		return proxy_refuse(e, c, &large);
	if (slice_to_cstr(req->host, ask.host, sizeof(ask.host)) < 0 ||
		slice_to_cstr(req->method, ask.method, sizeof(ask.method)) < 0 ||
		put_target(req, ask.target, sizeof(ask.target)) < 0) {
		static const struct http_fault fault = {400, "the request has no canonical form"};

		return proxy_refuse(e, c, &fault);
	}
	c->proxy->state = PROXY_ASKED;
	/* Last: the answer may arrive immediately. */
	conn_ask(e, c, &ask);
	return PROXY_WAIT;
}

/* The rest is a tunnel, which the HTTP engine does not handle. */
static enum proxy_step leave_by_connect(
	struct edge *e, struct conn *c, const struct http_req *req, const struct http_fault *bad)
{
	uint16_t port = req->port;
	struct host host;
	struct err err;

	if (host_from_wire(req->host, &host, &err) < 0)
		return proxy_refuse(e, c, bad);
	proxy_free(e, c);
	conn_connect(e, c, &host, port);
	return PROXY_GONE;
}

enum proxy_step proxy_on_head(struct edge *e, struct conn *c, struct http_req *req)
{
	struct proxy *p = c->proxy;
	struct canon_where where = {.scheme = HTTP_SCHEME_HTTP, .canonical_host = canonical_host};
	struct http_fault fault = {
		400, "invalid proxy request: expected http://HOST/... or CONNECT"};

	conn_set_timer(e, c, 0);
	if (conn_is_opened(c))
		where.scheme = HTTP_SCHEME_HTTPS;
	if (c->sni)
		where.sni = (struct canon_name){.given = true, .host = host_slice(c->sni)};
	if (c->target.given)
		where.target =
			(struct canon_name){true, host_slice(&c->target.host), c->target.port};
	else if (req->authority.n == 0)
		return proxy_refuse(e, c, &fault);
	else
		note_target(&p->x, req);
	if (canon_make_req(req, &where, &p->arena, &fault) < 0)
		return proxy_refuse(e, c, &fault);
	if (req->form == HTTP_FORM_AUTHORITY)
		return leave_by_connect(e, c, req, &fault);
	note_request(&p->x, req);
	return proxy_ask(e, c, req, c->wants ? c->wants : "", c->wants_id);
}

/* A head is parsed only if there is room for a denial: nothing else is written before the answer,
 * so there is room later too. */
enum proxy_step proxy_read_head(struct edge *e, struct conn *c)
{
	struct proxy *p = c->proxy;
	struct http1_event ev;

	if (conn_room(c) < DENY_ROOM)
		return PROXY_WAIT;
	if (c->proxy->tongue->next_event(e, c, &ev))
		return ev.kind == HTTP1_EV_HEAD ? proxy_on_head(e, c, ev.req)
						: proxy_refuse(e, c, &ev.fault);
	if (c->in_end)
		return proxy_finish(e, c);
	if (http1_is_idle(&p->h)) {
		bufq_trim(&c->in);
		bufq_trim(&c->out);
	} else if (!p->in_head) {
		p->in_head = true;
		conn_set_timer(e, c, PROXY_HEAD_MS);
	}
	return PROXY_WAIT;
}

enum proxy_step proxy_discard(struct edge *e, struct conn *c)
{
	struct http1_event ev;

	while (c->proxy->tongue->next_event(e, c, &ev)) {
		if (ev.kind == HTTP1_EV_END)
			return proxy_next(e, c);
		if (ev.kind != HTTP1_EV_DATA)
			return proxy_finish(e, c);
		conn_eat(e, c, ev.data.n);
	}
	return PROXY_WAIT;
}

size_t proxy_send_some(struct edge *e, struct conn *c, struct slice head, struct slice bytes)
{
	struct proxy_exchange *x = &c->proxy->x;
	ssize_t r;

	if (x->deaf || !x->writable)
		return 0;
	r = conn_send(c, head, bytes);
	if (r >= 0)
		return (size_t)r;
	if (r != -EAGAIN) {
		x->deaf = true;
		return 0;
	}
	x->writable = false;
	conn_want_room(e, c);
	return 0;
}

static void send_frames(struct edge *e, struct conn *c, struct slice bytes)
{
	struct proxy *p = c->proxy;
	size_t n = p->to_fd.n ? 0 : proxy_send_some(e, c, (struct slice){0}, bytes);

	proxy_rest_add(&p->to_fd, canon_text_cut(bytes, n, bytes.n));
}

/* The request was read: frees it. A websocket's direction stays open. */
static int put_end(struct conn *c, struct wr *wr, const struct http_headers *trailers)
{
	struct proxy *p = c->proxy;
	int r = p->x.websocket ? 0 : canon_put_end(wr, 1, trailers);

	p->x.req_done = true;
	p->x.req = NULL;
	arena_done(&p->arena);
	return r;
}

enum proxy_step proxy_start_exchange(struct edge *e, struct conn *c)
{
	static const struct http_fault bad = {400, "the request has no canonical form"};
	struct proxy *p = c->proxy;
	struct wr wr = wr_init(frames, sizeof(frames));
	const struct http_body *body = &p->x.req->body;
	bool has_body = body->kind == HTTP_BODY_CHUNKED || body->length > 0;
	struct http1_event ev;
	int r = canon_put_req(&wr, 1, p->x.req);

	p->state = PROXY_EXCHANGE;
	p->x.writable = true; /* the event of the socket says when it is readable */
	/* Without a body the END is sent with the head. */
	if (r == 0 && !has_body && p->tongue->next_event(e, c, &ev))
		r = ev.kind == HTTP1_EV_END ? put_end(c, &wr, ev.trailers) : -EBADMSG;
	if (r < 0)
		return proxy_refuse(e, c, &bad);
	send_frames(e, c, slice_of(frames, wr.n));
	return PROXY_AGAIN;
}

/* Sends the current frame as far as the socket accepts; true if all of it was sent. */
static bool send_data(struct edge *e, struct conn *c)
{
	struct proxy_exchange *x = &c->proxy->x;

	while (x->data_left > 0) {
		struct slice head = slice_of(
			&x->data_head[CANON_FRAME_HEADER - x->n_data_head], x->n_data_head);
		struct slice data = canon_text_cut(bufq_peek(&c->in), 0, x->data_left);
		size_t n = proxy_send_some(e, c, head, data), n_head = MIN(n, x->n_data_head);

		if (n == 0)
			return false;
		x->n_data_head -= n_head;
		x->data_left -= n - n_head;
		eat_request(e, c, n - n_head);
	}
	return true;
}

static bool send_rest(struct edge *e, struct conn *c)
{
	struct proxy *p = c->proxy;

	while (p->to_fd.n > 0) {
		size_t n = proxy_send_some(e, c, (struct slice){0}, proxy_rest_slice(&p->to_fd));

		if (n == 0)
			return false;
		proxy_rest_eat(&p->to_fd, n);
	}
	return true;
}

static enum proxy_step on_body_event(struct edge *e, struct conn *c, const struct http1_event *ev)
{
	static const struct http_fault bad = {400, "forbidden trailer field"};
	struct proxy_exchange *x = &c->proxy->x;
	struct wr wr;

	if (ev->kind == HTTP1_EV_DATA) {
		wr = wr_init(x->data_head, sizeof(x->data_head));
		if (canon_put_data_head(&wr, 1, ev->data.n) < 0)
			return proxy_hang_up(e, c);
		x->n_data_head = CANON_FRAME_HEADER;
		x->data_left = ev->data.n;
		return PROXY_AGAIN;
	}
	if (ev->kind != HTTP1_EV_END)
		return proxy_refuse(e, c, &ev->fault);
	wr = wr_init(frames, sizeof(frames));
	if (put_end(c, &wr, ev->trailers) < 0)
		return proxy_refuse(e, c, &bad);
	send_frames(e, c, slice_of(frames, wr.n));
	return PROXY_AGAIN;
}

/* Sends as much of the body as is available and the socket accepts. Once egress reads no more, the
 * body is not read further: its answer decides. */
enum proxy_step proxy_send_body(struct edge *e, struct conn *c)
{
	struct proxy_exchange *x = &c->proxy->x;
	struct http1_event ev;

	while (send_rest(e, c) && !x->req_done && send_data(e, c)) {
		if (!c->proxy->tongue->next_event(e, c, &ev))
			break;
		if (on_body_event(e, c, &ev) == PROXY_GONE)
			return PROXY_GONE;
	}
	return PROXY_WAIT;
}
