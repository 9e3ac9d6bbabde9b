/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy_rig.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "src/edge/http/proxy_internal.h"

/* Rounds of a turn; more means an endless loop. */
#define MAX_ROUNDS 1000000

void proxy_rig_add(struct proxy_rig_bytes *b, struct slice bytes)
{
	if (b->at > 65536) {
		memmove(b->p, b->p + b->at, b->n - b->at);
		b->n -= b->at;
		b->at = 0;
	}
	b->p = xrealloc(b->p, b->n + bytes.n + 1);
	if (bytes.n)
		memcpy(b->p + b->n, bytes.p, bytes.n);
	b->n += bytes.n;
	b->p[b->n] = '\0';
}

static struct slice left(const struct proxy_rig_bytes *b)
{
	return slice_of(b->p ? b->p + b->at : NULL, b->n - b->at);
}

static struct proxy_rig *rig_of(struct edge *e)
{
	return (struct proxy_rig *)e;
}

/* ---- stubs for conn.c ---- */

static void take_out(struct proxy_rig *r, size_t max)
{
	size_t n = MIN(max, bufq_len(&r->c->out));
	AUTO_FREE uint8_t *buf = xmalloc(n + 1);

	n = bufq_take(&r->c->out, buf, n);
	proxy_rig_add(&r->got, slice_of(buf, n));
	if (r->reads != SIZE_MAX)
		r->reads -= MIN(n, r->reads);
}

static void drop_conn(struct proxy_rig *r, enum proxy_rig_end end)
{
	struct conn *c = TAKE(r->c);

	r->end = end;
	proxy_free(&r->edge, c);
	if (c->fd >= 0)
		close(c->fd);
	bufq_done(&c->in);
	bufq_done(&c->out);
	free(c);
}

void conn_eat(struct edge *e, struct conn *c, size_t n)
{
	assert(c == rig_of(e)->c);
	bufq_consume(&c->in, n);
}

void conn_say(struct edge *e, struct conn *c, struct slice bytes)
{
	struct proxy_rig *r = rig_of(e);

	assert(c == r->c && bytes.n <= conn_room(c));
	(void)!bufq_put(&c->out, bytes);
	r->max_out = MAX(r->max_out, bufq_len(&c->out));
}

void conn_end(struct edge *e, struct conn *c)
{
	assert(c == rig_of(e)->c);
	take_out(rig_of(e), SIZE_MAX);
	drop_conn(rig_of(e), RIG_ENDED);
}

void conn_reset(struct edge *e, struct conn *c)
{
	assert(c == rig_of(e)->c);
	drop_conn(rig_of(e), RIG_RESET);
}

void conn_ask(struct edge *e, struct conn *c, const struct edge_ask *ask)
{
	struct proxy_rig *r = rig_of(e);

	assert(c == r->c && !c->asking);
	c->asking = true;
	if (r->n_asks < RIG_MAX_ASKS)
		r->was_head[r->n_asks] = strcmp(ask->method, "HEAD") == 0;
	r->n_asks++;
	r->ask = *ask;
}

void conn_report_named_fault(struct edge *e, struct conn *c, enum edge_ask_kind kind,
	const char *host, uint16_t port, const char *fault)
{
	struct proxy_rig *r = rig_of(e);

	assert(c == r->c && kind == EDGE_ASK_HTTP && *fault);
	r->n_faults++;
	snprintf(r->fault, sizeof(r->fault), "%s", fault);
	snprintf(r->fault_host, sizeof(r->fault_host), "%s", host);
	r->fault_port = port;
}

void conn_report_fault(struct edge *e, struct conn *c, enum edge_ask_kind kind, const char *fault)
{
	assert(c->target.given);
	conn_report_named_fault(e, c, kind, c->target.host.name, c->target.port, fault);
}

int conn_take_fd(struct edge *e, struct conn *c, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};

	assert(c->fd < 0);
	c->fd = fd;
	c->fd_waits = false;
	return epoll_ctl(rig_of(e)->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static void watch_room(struct edge *e, struct conn *c, bool waits)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};

	if (waits)
		ev.events |= EPOLLOUT;
	if (c->fd_waits != waits && epoll_ctl(rig_of(e)->epfd, EPOLL_CTL_MOD, c->fd, &ev) < 0)
		abort();
	c->fd_waits = waits;
}

void conn_want_room(struct edge *e, struct conn *c)
{
	watch_room(e, c, true);
}

void conn_ignore_room(struct edge *e, struct conn *c)
{
	watch_room(e, c, false);
}

int conn_take_stream(struct edge *e, struct conn *c, uint32_t channel, uint32_t stream)
{
	return -EPIPE;
}

ssize_t conn_send(struct conn *c, struct slice a, struct slice b)
{
	struct iovec iov[2] = {{(void *)a.p, a.n}, {(void *)b.p, b.n}};
	const struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t r = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

	return r < 0 ? -errno : r;
}

ssize_t conn_recv(struct conn *c, uint8_t *buf, size_t n)
{
	ssize_t r = recv(c->fd, buf, n, MSG_DONTWAIT);

	return r < 0 ? -errno : r;
}

ssize_t conn_recv_out(struct conn *c, size_t max)
{
	return bufq_recv(&c->out, c->fd, max);
}

void conn_shut(struct conn *c)
{
	(void)shutdown(c->fd, SHUT_WR);
}

void conn_drop_fd(struct edge *e, struct conn *c)
{
	fd_close(&c->fd);
}

void conn_set_timer(struct edge *e, struct conn *c, uint64_t ms)
{
	assert(c == rig_of(e)->c);
	rig_of(e)->timer_ms = ms;
}

void conn_connect(struct edge *e, struct conn *c, const struct host *host, uint16_t port)
{
	struct proxy_rig *r = rig_of(e);

	assert(c == r->c && !c->proxy && c->fd < 0 && conn_room(c) >= DENY_ROOM);
	r->connect_host = *host;
	r->connect_port = port;
	r->n_raw = bufq_len(&c->in) + r->to_say.n - r->to_say.at;
	take_out(r, SIZE_MAX);
	drop_conn(r, RIG_CONNECT);
}

/* ---- the guest ---- */

struct proxy_rig *proxy_rig_new(const char *target, uint16_t port)
{
	struct proxy_rig *r = xcalloc(1, sizeof(*r));
	struct conn *c = r->c = xcalloc(1, sizeof(*c));
	struct err err;

	r->epfd = epoll_create1(EPOLL_CLOEXEC);
	r->far = c->fd = -1;
	r->reads = SIZE_MAX;
	r->decide = 1;
	c->kind = target ? CONN_TCP : CONN_PROXY;
	c->via = target ? EDGE_VIA_TRANSPARENT : EDGE_VIA_FORWARD;
	bufq_init(&c->in, WIRE_NET_WINDOW);
	bufq_init(&c->out, CONN_OUT);
	if (target) {
		c->target.given = true;
		c->target.port = port;
		if (host_from_wire(slice_from_str(target), &c->target.host, &err) < 0)
			abort();
	}
	proxy_begin(&r->edge, c);
	return r;
}

void proxy_rig_free(struct proxy_rig *r)
{
	if (r->c)
		drop_conn(r, RIG_ENDED);
	canon_reader_done(&r->reader);
	fd_close(&r->far);
	fd_close(&r->epfd);
	free(r->to_say.p);
	free(r->got.p);
	free(r->to_answer.p);
	free(r->body.p);
	free(r->seen.p);
	free(r);
}

static bool move_guest_in(struct proxy_rig *r)
{
	struct slice s = left(&r->to_say);
	size_t n;

	if (!r->c || (s.n == 0 && (!r->to_end || r->c->in_end)))
		return false;
	if (s.n == 0) {
		r->c->in_end = true;
		proxy_on_bytes(&r->edge, r->c);
		return true;
	}
	n = bufq_put(&r->c->in, canon_text_cut(s, 0, r->piece ? r->piece : s.n));
	r->to_say.at += n;
	if (n > 0)
		proxy_on_bytes(&r->edge, r->c);
	return n > 0;
}

static bool move_guest_out(struct proxy_rig *r)
{
	if (!r->c || bufq_len(&r->c->out) == 0 || r->reads == 0)
		return false;
	take_out(r, r->reads);
	proxy_on_room(&r->edge, r->c);
	return true;
}

/* ---- egress ---- */

static void on_head(struct proxy_rig *r, struct slice payload)
{
	static uint8_t text[4 * HTTP_MAX_HEAD];
	struct wr wr = wr_init(text, sizeof(text));
	struct http_req req;
	struct arena arena;

	arena_init(&arena, HTTP_ARENA_SIZE);
	if (canon_get_req(payload, &arena, &req) < 0 || canon_flow_req(&r->flow, &req) < 0 ||
		canon_write_req(&wr, &req, CANON_TO_ORIGIN) < 0)
		abort();
	r->begun = r->seen.n;
	r->body_kind = req.body;
	r->websocket = req.websocket;
	proxy_rig_add(&r->seen, slice_of(text, wr.n));
	arena_done(&arena);
	if (r->websocket) {
		r->n_requests++;
		r->n_whole = r->seen.n;
		if (r->answer)
			r->answer(r);
	}
}

/* As canon_rig writes it: a body is one chunk. */
static void on_end(struct proxy_rig *r, struct slice payload)
{
	static uint8_t text[HTTP_MAX_HEAD];
	struct wr wr = wr_init(text, sizeof(text));
	bool chunked = r->body_kind.kind == HTTP_BODY_CHUNKED;
	struct http_headers trailers;
	struct arena arena;

	arena_init(&arena, HTTP_ARENA_SIZE);
	if (canon_get_end(payload, &arena, &trailers) < 0 ||
		canon_flow_end(&r->flow, &trailers) < 0)
		abort();
	if (chunked && r->body.n > 0) {
		canon_write_chunk(&wr, r->body.n);
		proxy_rig_add(&r->seen, slice_of(text, wr.n));
	}
	proxy_rig_add(&r->seen, slice_of(r->body.p, r->body.n));
	wr = wr_init(text, sizeof(text));
	if (chunked && r->body.n > 0)
		wr_bytes(&wr, slice_from_str("\r\n"));
	if (chunked && canon_write_last_chunk(&wr, &trailers) < 0)
		abort();
	proxy_rig_add(&r->seen, slice_of(text, wr.n));
	arena_done(&arena);
	r->n_requests++;
	r->n_whole = r->seen.n;
	if (r->answer)
		r->answer(r);
}

static void on_frame(struct proxy_rig *r, const struct canon_frame *f)
{
	if (f->kind == CANON_HEAD)
		on_head(r, f->payload);
	else if (f->kind == CANON_DATA && canon_flow_data(&r->flow, f->payload.n) == 0)
		proxy_rig_add(&r->body, f->payload);
	else if (f->kind == CANON_END)
		on_end(r, f->payload);
	else
		r->n_bad++;
}

static void close_far(struct proxy_rig *r)
{
	fd_close(&r->far);
	r->to_answer.at = r->to_answer.n;
	r->hang_up = false;
}

static bool move_egress_in(struct proxy_rig *r)
{
	uint8_t buf[8192];
	struct canon_frame f;
	struct slice in;
	ssize_t n;
	int k = 0;

	if (r->far < 0 || r->deaf)
		return false;
	n = recv(r->far, buf, sizeof(buf), MSG_DONTWAIT);
	if (n <= 0) {
		if (n == 0)
			close_far(r);
		return n == 0;
	}
	in = slice_of(buf, (size_t)n);
	while (!r->raw && in.n > 0 && (k = canon_reader_feed(&r->reader, &in, &f)) == 1)
		on_frame(r, &f);
	if (k < 0)
		r->n_bad++;
	if (r->raw) {
		r->n_raw += in.n;
		proxy_rig_add(&r->body, in);
	}
	return true;
}

static bool move_egress_out(struct proxy_rig *r)
{
	struct slice s = left(&r->to_answer);
	ssize_t n;

	if (r->far < 0)
		return false;
	if (s.n == 0) {
		if (!r->hang_up)
			return false;
		close_far(r);
		return true;
	}
	n = send(r->far, s.p, s.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN)
		close_far(r);
	if (n > 0)
		r->to_answer.at += (size_t)n;
	return n > 0;
}

void proxy_rig_verdict(struct proxy_rig *r, bool allowed)
{
	struct edge_verdict verdict = {.allowed = allowed, .sandbox = "demo"};
	int pair[2] = {-1, -1};

	assert(r->c && r->c->asking);
	r->c->asking = false;
	if (allowed && r->decide != 2) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			abort();
		fd_close(&r->far);
		r->far = pair[0];
		r->to_answer.at = r->to_answer.n;
		r->hang_up = false;
		r->raw = false;
		r->body.n = 0;
		r->flow = (struct canon_flow){0};
		canon_reader_done(&r->reader);
		canon_reader_init(&r->reader);
	}
	if (!allowed)
		verdict.count = ++r->n_denied;
	proxy_on_verdict(&r->edge, r->c, &verdict, pair[1]);
}

static bool move_keeper(struct proxy_rig *r)
{
	if (!r->c || !r->c->asking || r->decide == 0)
		return false;
	proxy_rig_verdict(r, r->decide > 0);
	return true;
}

static bool move_events(struct proxy_rig *r)
{
	struct epoll_event ev;

	if (!r->c || r->c->fd < 0 || epoll_wait(r->epfd, &ev, 1, 0) != 1)
		return false;
	proxy_on_fd(&r->edge, r->c, ev.events);
	return true;
}

void proxy_rig_turn(struct proxy_rig *r)
{
	static bool (*const moves[])(struct proxy_rig *) = {move_guest_in, move_keeper, move_events,
		move_egress_in, move_egress_out, move_guest_out};
	bool moved = true;

	for (size_t i = 0; moved; i++) {
		if (i == MAX_ROUNDS)
			abort();
		moved = false;
		for (size_t k = 0; k < ARRAY_LEN(moves); k++)
			moved = moves[k](r) || moved;
	}
}

void proxy_rig_say(struct proxy_rig *r, const char *text)
{
	proxy_rig_add(&r->to_say, slice_from_str(text));
	proxy_rig_turn(r);
}

void proxy_rig_timer(struct proxy_rig *r)
{
	assert(r->timer_ms > 0 && r->c);
	r->timer_ms = 0;
	proxy_on_timer(&r->edge, r->c);
}

void proxy_rig_head_with(
	struct proxy_rig *r, struct http_resp *resp, const char *name, const char *value)
{
	static uint8_t buf[CANON_FRAME_HEADER + CANON_MAX_HEAD];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct http_header header;

	if (name) {
		header = (struct http_header){slice_from_str(name), slice_from_str(value)};
		resp->headers = (struct http_headers){.list = &header, .n = 1, .max = 1};
	}
	if (canon_put_resp(&wr, 1, resp) < 0)
		abort();
	proxy_rig_add(&r->to_answer, slice_of(buf, wr.n));
}

void proxy_rig_head(struct proxy_rig *r, uint16_t status, enum http_body_kind kind, uint64_t length,
	bool absent)
{
	struct http_resp resp = {.status = status,
		.body = {.kind = kind, .length = length, .absent = absent},
		.websocket = status == 101};

	proxy_rig_head_with(r, &resp, NULL, NULL);
}

void proxy_rig_data(struct proxy_rig *r, struct slice bytes)
{
	uint8_t head[CANON_FRAME_HEADER];

	while (bytes.n > 0) {
		struct slice s = canon_text_cut(bytes, 0, CANON_MAX_DATA);
		struct wr wr = wr_init(head, sizeof(head));

		if (canon_put_data_head(&wr, 1, s.n) < 0)
			abort();
		proxy_rig_add(&r->to_answer, slice_of(head, wr.n));
		proxy_rig_add(&r->to_answer, s);
		bytes = canon_text_cut(bytes, s.n, bytes.n);
	}
}

void proxy_rig_finish(struct proxy_rig *r, const char *trailer, const char *value)
{
	uint8_t buf[512];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct http_header header;
	struct http_headers trailers = {.list = &header, .n = trailer ? 1 : 0, .max = 1};

	if (trailer)
		header = (struct http_header){slice_from_str(trailer), slice_from_str(value)};
	if (canon_put_end(&wr, 1, &trailers) < 0)
		abort();
	proxy_rig_add(&r->to_answer, slice_of(buf, wr.n));
}

void proxy_rig_ok(struct proxy_rig *r)
{
	if (r->websocket) {
		proxy_rig_head(r, 101, HTTP_BODY_TUNNEL, 0, false);
		r->raw = true;
		return;
	}
	if (strncmp((const char *)r->seen.p + r->begun, "HEAD ", 5) == 0)
		proxy_rig_head(r, 200, HTTP_BODY_LENGTH, 7, true);
	else
		proxy_rig_head(r, 200, HTTP_BODY_LENGTH, 0, false);
	proxy_rig_finish(r, NULL, NULL);
}

int proxy_rig_host(struct slice text, char *buf, size_t size)
{
	struct host host;
	struct err err;

	if (host_from_wire(text, &host, &err) < 0 || host.n >= size)
		return -EINVAL;
	memcpy(buf, host.name, host.n);
	return host.n;
}
