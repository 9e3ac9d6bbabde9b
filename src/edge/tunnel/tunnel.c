/* SPDX-License-Identifier: Apache-2.0 */
/* A tunnel: allowed by the keeper, opened by egress, then uninspected data in both directions,
 * except for the server's answer to a ClientHello and the guest's reaction (check.c). */
#include "tunnel_internal.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/mem.h"
#include "lib/wire/http/deny.h"

#define STREAM 1 /* the only one on its socket */
#define HEAD_ROOM 1024
#define ANSWER_ARENA 8192

/* ---- failures before it is open ---- */

static bool is_forward(const struct conn *c)
{
	return c->kind == CONN_PROXY && !c->answered;
}

static void say_and_end(struct edge *e, struct conn *c, const struct wr *wr, int r)
{
	if (r < 0 || conn_room(c) < wr->n) {
		conn_reset(e, c);
		return;
	}
	conn_say(e, c, slice_of(wr->p, wr->n));
	conn_end(e, c);
}

static struct deny deny_of(const struct conn *c)
{
	return (struct deny){
		.host = host_slice(&c->target.host), .port = c->target.port, .count = 1};
}

/* The policy denies, in the keeper or in egress. */
static void deny_tunnel(struct edge *e, struct conn *c, const struct deny *d)
{
	uint8_t buf[DENY_ROOM];
	struct wr wr = wr_init(buf, sizeof(buf));

	if (is_forward(c))
		say_and_end(e, c, &wr, deny_write_connect(&wr, d));
	else if (c->proto == EDGE_PROTO_TLS)
		conn_alert(e, c, CONN_ALERT_DENIED);
	else
		conn_reset(e, c);
}

static void fail_tunnel(struct edge *e, struct conn *c, uint16_t status, struct slice reason)
{
	uint8_t buf[DENY_ROOM];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct deny d = deny_of(c);

	d.reason = reason;
	if (is_forward(c))
		say_and_end(e, c, &wr, deny_write_failed(&wr, &d, status, false, false, true));
	else
		conn_reset(e, c);
}

/* ---- opening ---- */

/* The socket is new and empty: a head fits, or the socket is broken. */
static int send_head(struct conn *c)
{
	struct http_req req = {.method = slice_from_str("CONNECT"),
		.form = HTTP_FORM_AUTHORITY,
		.scheme = HTTP_SCHEME_HTTPS,
		.host = host_slice(&c->target.host),
		.port = c->target.port,
		.body = {.kind = HTTP_BODY_TUNNEL}};
	uint8_t buf[HEAD_ROOM];
	struct wr wr = wr_init(buf, sizeof(buf));
	int r = canon_put_req(&wr, STREAM, &req);

	if (r < 0)
		return r;
	return send(c->fd, buf, wr.n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)wr.n ? 0 : -EPIPE;
}

static void opened_tunnel(struct edge *e, struct conn *c);

static void keep_wants(struct conn *c, const struct edge_verdict *verdict)
{
	if (!verdict->wants_id)
		return;
	c->wants = c->own_wants = xstrdup(verdict->wants);
	c->wants_id = verdict->wants_id;
}

void tunnel_on_verdict(struct edge *e, struct conn *c, const struct edge_verdict *verdict, int fd)
{
	if (!verdict->allowed) {
		struct deny d = deny_of(c);

		d.rule = slice_from_str(verdict->rule);
		d.reason = slice_from_str(verdict->reason);
		d.sandbox = slice_from_str(verdict->sandbox);
		d.count = verdict->count;
		d.no_rule_helps = verdict->no_rule_helps;
		deny_tunnel(e, c, &d);
		return;
	}
	c->opened = verdict->opened;
	if (c->opened) {
		keep_wants(c, verdict);
		opened_tunnel(e, c);
		return;
	}
	if (conn_take_fd(e, c, fd) < 0 || send_head(c) < 0) {
		fail_tunnel(e, c, 502, slice_from_str("no connection to the network"));
		return;
	}
	c->reader = xmalloc(sizeof(*c->reader));
	canon_reader_init(c->reader);
	c->state = CONN_OPENING;
	conn_set_timer(e, c, CONN_OPEN_MS);
}

static void opened_tunnel(struct edge *e, struct conn *c)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

	if (is_forward(c)) {
		if (conn_room(c) < sizeof(established)) {
			conn_reset(e, c);
			return;
		}
		conn_say(e, c, slice_from_str(established));
		c->answered = true;
	}
	/* The guest may have sent data already. */
	wire_resume(e->net->port.wire, c->sid);
	check_begin(e, c);
}

static struct slice reason_of(const struct http_resp *resp)
{
	size_t at;

	if (canon_find_header(&resp->headers, "sbx-reason", &at) < 0)
		return slice_from_str("no reason was given");
	return resp->headers.list[at].value;
}

static void on_answer(struct edge *e, struct conn *c, const struct http_resp *resp)
{
	if (resp->status == 200 && resp->body.kind == HTTP_BODY_TUNNEL) {
		opened_tunnel(e, c);
	} else if (resp->status == 403) {
		struct deny d = deny_of(c);

		d.reason = reason_of(resp);
		d.sandbox = slice_from_str(e->net->sandbox);
		deny_tunnel(e, c, &d);
	} else {
		fail_tunnel(e, c, resp->status == 504 ? 504 : 502, reason_of(resp));
	}
}

/* One read of no more than the answer itself: the server's data follows. Returns 0 if there may be
 * more, 1 with a frame; negative if egress closed, waits or violates the protocol. */
static int read_frame(struct conn *c, uint8_t *buf, size_t size, struct canon_frame *ret)
{
	struct canon_reader *rd = c->reader;
	size_t want = rd->n_head < CANON_FRAME_HEADER ? CANON_FRAME_HEADER - rd->n_head : rd->want;
	struct slice in;
	ssize_t n;

	do {
		n = recv(c->fd, buf, MIN(want, size), MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	in = slice_of(buf, (size_t)n);
	return canon_reader_feed(rd, &in, ret);
}

static void read_answer(struct edge *e, struct conn *c)
{
	struct canon_reader *rd = c->reader;
	struct canon_frame frame;
	struct http_resp resp;
	struct arena arena;
	UNINITIALIZED uint8_t buf[4096];
	int r;

	do {
		r = read_frame(c, buf, sizeof(buf), &frame);
	} while (r == 0);
	if (r == -EAGAIN)
		return;
	/* The text of the answer is in buf or in the reader, which is freed only afterwards. */
	c->reader = NULL;
	conn_set_timer(e, c, 0);
	arena_init(&arena, ANSWER_ARENA);
	if (r == 1 && frame.kind == CANON_HEAD && frame.stream == STREAM &&
		canon_get_resp(frame.payload, &arena, &resp) == 0)
		on_answer(e, c, &resp);
	else
		fail_tunnel(e, c, 502, slice_from_str("the connection to the network was lost"));
	arena_done(&arena);
	canon_reader_done(rd);
	free(rd);
}

/* ---- open ---- */

/* Sends as much as the socket accepts; negative if it is broken. */
static ssize_t send_some(int fd, const struct iovec *iov, size_t n)
{
	struct msghdr mh = {.msg_iov = (struct iovec *)iov, .msg_iovlen = n};
	ssize_t r;

	do {
		r = sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno == EAGAIN ? 0 : -errno;
	return r;
}

/* Called when c->in is empty: forwards the guest's end, and closes a finished tunnel. */
static void drained_tunnel(struct edge *e, struct conn *c)
{
	if (!c->sid)
		conn_over(e, c);
	else if (c->in_end)
		(void)shutdown(c->fd, SHUT_WR);
}

/* How much of c->in may be sent to the server now. */
static size_t may_send(const struct conn *c)
{
	return c->retry ? c->n_may : bufq_len(&c->in);
}

static void sent_tunnel(struct edge *e, struct conn *c, size_t n)
{
	if (c->retry) {
		c->n_may -= n;
		c->n_seen -= n;
	}
	conn_eat(e, c, n);
}

static void drain_tunnel(struct edge *e, struct conn *c)
{
	while (may_send(c)) {
		size_t left = may_send(c);
		struct slice runs[2];
		struct iovec iov[2];
		ssize_t r;

		conn_runs(&c->in, runs);
		for (size_t i = 0; i < 2; i++) {
			iov[i] = (struct iovec){(void *)runs[i].p, MIN(runs[i].n, left)};
			left -= iov[i].iov_len;
		}
		r = send_some(c->fd, iov, iov[1].iov_len ? 2 : 1);
		if (r < 0) {
			conn_reset(e, c);
			return;
		}
		if (r == 0) {
			conn_want_room(e, c);
			return;
		}
		sent_tunnel(e, c, (size_t)r);
	}
	if (bufq_len(&c->in) == 0)
		drained_tunnel(e, c);
}

void tunnel_begin(struct edge *e, struct conn *c)
{
	c->state = CONN_TUNNEL;
	wire_resume(e->net->port.wire, c->sid);
	drain_tunnel(e, c);
}

static void put_in(struct conn *c, struct slice bytes)
{
	size_t n = bufq_put(&c->in, bytes);

	/* lib/wire/wire limits the data to the window, which is the size of the queue. */
	assert(n == bytes.n);
}

void tunnel_flush(struct edge *e)
{
	struct net *net = e->net;
	struct conn *c = TAKE(net->gathered);
	size_t left;
	ssize_t r;

	if (!c)
		return;
	r = send_some(c->fd, net->gather, net->n_gather);
	if (r < 0) {
		conn_reset(e, c);
		return;
	}
	wire_consumed(net->port.wire, c->sid, (size_t)r);
	left = (size_t)r;
	for (unsigned i = 0; i < net->n_gather; i++) {
		struct slice s = slice_of(net->gather[i].iov_base, net->gather[i].iov_len);
		size_t gone = MIN(left, s.n);

		put_in(c, slice_of(s.p + gone, s.n - gone));
		left -= gone;
	}
	if (bufq_len(&c->in))
		conn_want_room(e, c);
}

/* The pieces are in the buffer that is being parsed, so they can be gathered there. */
void tunnel_on_bytes(struct edge *e, struct conn *c, struct slice bytes)
{
	struct net *net = e->net;
	uint32_t idx = c->idx, gen = c->gen;

	if (c->retry) {
		put_in(c, bytes);
		tunnel_on_room(e, c);
		return;
	}
	if (net->gathered != c || net->n_gather == NET_GATHER) {
		tunnel_flush(e);
		c = conn_find(e, idx, gen);
		if (!c)
			return;
	}
	if (bufq_len(&c->in)) {
		put_in(c, bytes);
		return;
	}
	if (net->gathered != c)
		net->n_gather = 0;
	net->gathered = c;
	net->gather[net->n_gather++] = (struct iovec){(void *)bytes.p, bytes.n};
}

void tunnel_on_end(struct edge *e, struct conn *c)
{
	if (bufq_len(&c->in) == 0)
		drained_tunnel(e, c);
	else
		(void)check_second(e, c);
}

void tunnel_on_room(struct edge *e, struct conn *c)
{
	if (check_second(e, c))
		drain_tunnel(e, c);
}

void tunnel_on_fd(struct edge *e, struct conn *c, uint32_t events)
{
	uint32_t idx = c->idx, gen = c->gen;

	if (c->state == CONN_OPENING) {
		if (events & ~(uint32_t)EPOLLOUT)
			read_answer(e, c);
		return;
	}
	if (events & EPOLLOUT && c->state == CONN_TUNNEL && bufq_len(&c->in)) {
		drain_tunnel(e, c);
		c = conn_find(e, idx, gen);
	} else if (events & EPOLLOUT) {
		conn_ignore_room(e, c);
	}
	if (c && c->sid && events & ~(uint32_t)EPOLLOUT)
		wire_resume(e->net->port.wire, c->sid);
}

void tunnel_on_timer(struct edge *e, struct conn *c)
{
	if (c->state == CONN_OPENING)
		fail_tunnel(e, c, 504, slice_from_str("no connection within 120 s"));
	else /* the guest has closed, and its last data is not sent yet */
		conn_over(e, c);
}

/* Egress half-closes when the server ends its direction, and closes only after both have ended. A
 * socket that closes earlier is broken: a reset by the server, or an exit of egress. The guest must
 * not take it for a regular end. */
static bool is_cut(const struct conn *c)
{
	struct pollfd p = {.fd = c->fd};

	return !c->in_end && poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

ssize_t tunnel_pull(struct edge *e, struct conn *c, uint8_t *buf, size_t n)
{
	ssize_t r;

	if (check_holds(c))
		return -EAGAIN;
	do {
		r = recv(c->fd, buf, n, MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	if (r == 0 && is_cut(c))
		return -ECONNRESET;
	c->server_spoke = c->server_spoke || r > 0;
	c->fd_eof = r == 0;
	check_on_server(e, c, slice_of(buf, (size_t)r));
	return r;
}
