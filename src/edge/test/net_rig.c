/* SPDX-License-Identifier: Apache-2.0 */
#include "net_rig.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define OUT_BYTES 65536

/* ---- one end of a connection ---- */

static void side_got(struct net_side *s, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s->n_got + i < NET_RIG_GOT)
			s->got[s->n_got + i] = p[i];
		if (s->check && p[i] != rig_pattern(s->n_got + i))
			fail_msg("byte %llu is wrong", (unsigned long long)(s->n_got + i));
	}
	s->n_got += n;
	if (s->on_got)
		s->on_got(s->ctx, slice_of(p, n));
}

static void side_say(struct net_side *s, const void *p, size_t n)
{
	s->send = xrealloc(s->send, s->n_send + n + 1);
	memcpy(s->send + s->n_send, p, n);
	s->n_send += n;
}

/* The next data to send, at most n; 0 if there is none now. */
static size_t side_next(const struct net_side *s, uint8_t *buf, size_t n)
{
	size_t left = s->n_send - s->sent;

	if (left) {
		n = MIN(n, left);
		memcpy(buf, s->send + s->sent, n);
		return n;
	}
	n = MIN(n, s->endless - s->n_endless);
	for (size_t i = 0; i < n; i++)
		buf[i] = rig_pattern(s->n_endless + i);
	return n;
}

static void side_sent(struct net_side *s, size_t n)
{
	if (s->sent < s->n_send)
		s->sent += n;
	else
		s->n_endless += n;
}

static bool side_is_empty(const struct net_side *s)
{
	return s->sent == s->n_send && s->n_endless == s->endless;
}

bool net_got(const struct net_side *s, const void *p, size_t len)
{
	return s->n_got == len && memcmp(s->got, p, len) == 0;
}

bool net_got_text(const struct net_side *s, const char *text)
{
	return s->n_got < NET_RIG_GOT && memmem(s->got, s->n_got, text, strlen(text));
}

/* ---- the guest ---- */

static void on_ready(void *ctx)
{
	((struct net_rig *)ctx)->ready = true;
}

static void on_reply(void *ctx, uint32_t sid, uint32_t slot, unsigned status)
{
	((struct net_rig *)ctx)->conns[slot]->status = status;
}

static void on_data(void *ctx, uint32_t sid, uint32_t slot, struct slice bytes)
{
	struct net_rig *n = ctx;
	struct net_side *s = &n->conns[slot]->side;

	side_got(s, bytes.p, bytes.n);
	if (s->paused)
		s->taken += bytes.n;
	else
		wire_consumed(n->guest, sid, bytes.n);
}

static void on_end(void *ctx, uint32_t sid, uint32_t slot)
{
	((struct net_rig *)ctx)->conns[slot]->side.eof = true;
}

static void on_close(void *ctx, uint32_t sid, uint32_t slot, int error)
{
	struct net_conn *c = ((struct net_rig *)ctx)->conns[slot];

	c->open = false;
	c->closed = true;
	c->reset = error != 0;
}

static ssize_t pull(void *ctx, uint32_t sid, uint32_t slot, uint8_t *buf, size_t len)
{
	struct net_side *s = &((struct net_rig *)ctx)->conns[slot]->side;
	size_t n = side_next(s, buf, len);

	if (n) {
		side_sent(s, n);
		return (ssize_t)n;
	}
	s->ended = s->end;
	return s->end ? 0 : -EAGAIN;
}

static const struct wire_ops guest_ops = {
	.on_ready = on_ready,
	.on_reply = on_reply,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull,
};

struct net_conn *net_open(struct net_rig *n, const char *path)
{
	struct net_conn *c = xcalloc(1, sizeof(*c));

	assert_true(n->n_conns < NET_RIG_CONNS);
	n->conns[n->n_conns] = c;
	assert_int_equal(wire_open(n->guest, path, n->n_conns, &c->sid), 0);
	c->open = true;
	n->n_conns++;
	return c;
}

void net_say(struct net_rig *n, struct net_conn *c, const void *p, size_t len)
{
	side_say(&c->side, p, len);
	wire_resume(n->guest, c->sid);
}

void net_end(struct net_rig *n, struct net_conn *c)
{
	c->side.end = true;
	wire_resume(n->guest, c->sid);
}

void net_pause(struct net_rig *n, struct net_conn *c, bool paused)
{
	c->side.paused = paused;
	if (!paused)
		wire_consumed(n->guest, c->sid, c->side.taken);
	if (!paused)
		c->side.taken = 0;
}

static void guest_read(struct net_rig *n)
{
	static uint8_t buf[OUT_BYTES];
	ssize_t r = read(n->fd, buf, sizeof(buf));

	if (r > 0 && wire_feed(n->guest, slice_of(buf, (size_t)r), clock_mono_ms()) < 0)
		fail_msg("the guest finds edge wrong: %s", wire_error(n->guest));
}

static void guest_write(struct net_rig *n)
{
	ssize_t r;

	if (n->n_out == 0) {
		r = wire_pull(n->guest, n->out, OUT_BYTES);
		assert_true(r >= 0);
		n->n_out = (size_t)r;
		n->out_at = 0;
	}
	if (n->n_out == 0)
		return;
	r = send(n->fd, n->out + n->out_at, n->n_out, MSG_NOSIGNAL);
	if (r > 0) {
		n->out_at += (size_t)r;
		n->n_out -= (size_t)r;
	}
}

/* ---- egress ---- */

static void way_send_resp(struct net_way *w, const struct http_resp *resp)
{
	uint8_t buf[2048];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_true(w->has_head);
	assert_int_equal(canon_put_resp(&wr, 1, resp), 0);
	assert_int_equal(send(w->fd, buf, wr.n, MSG_NOSIGNAL), wr.n);
}

void way_accept(struct net_way *w)
{
	way_send_resp(w, &(struct http_resp){.status = 200, .body = {.kind = HTTP_BODY_TUNNEL}});
}

void way_refuse(struct net_way *w, uint16_t status, const char *reason)
{
	struct http_header h = {slice_from_str("sbx-reason"), slice_from_str(reason)};

	way_send_resp(w, &(struct http_resp){.status = status, .headers = {&h, 1, 1}});
	fd_close(&w->fd);
}

void way_say(struct net_way *w, const void *p, size_t len)
{
	side_say(&w->side, p, len);
}

void way_say_head(struct net_way *w, uint16_t status, enum http_body_kind kind, uint64_t length)
{
	struct http_resp resp = {.status = status,
		.body = {.kind = kind, .length = length},
		.websocket = status == 101};
	uint8_t buf[256];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_int_equal(canon_put_resp(&wr, 1, &resp), 0);
	way_say(w, buf, wr.n);
}

void way_say_data(struct net_way *w, struct slice bytes)
{
	uint8_t buf[CANON_FRAME_HEADER];
	struct wr wr = wr_init(buf, sizeof(buf));

	assert_int_equal(canon_put_data_head(&wr, 1, bytes.n), 0);
	way_say(w, buf, wr.n);
	way_say(w, bytes.p, bytes.n);
}

void way_say_end(struct net_way *w)
{
	way_say(w, "\2\0\0\0\3\1\0\0\0\0", 10);
}

static void way_read_head(struct net_way *w)
{
	struct canon_reader rd;
	struct canon_frame frame;
	struct http_req req;
	struct arena arena;
	uint8_t buf[2048];
	struct slice in;
	ssize_t r;

	r = recv(w->fd, buf, sizeof(buf), 0);
	assert_true(r > 0);
	in = slice_of(buf, (size_t)r);
	canon_reader_init(&rd);
	arena_init(&arena, HTTP_ARENA_SIZE);
	assert_int_equal(canon_reader_feed(&rd, &in, &frame), 1);
	assert_int_equal(frame.kind, CANON_HEAD);
	assert_int_equal(frame.stream, 1);
	assert_int_equal(canon_get_req(frame.payload, &arena, &req), 0);
	assert_true(slice_eq_str(req.method, "CONNECT") && req.headers.n == 0);
	assert_int_equal(slice_to_cstr(req.host, w->host, sizeof(w->host)), 0);
	w->port = req.port;
	w->has_head = true;
	/* No data of the guest before we accept. */
	assert_int_equal(in.n, 0);
	arena_done(&arena);
	canon_reader_done(&rd);
}

static void way_read(struct net_way *w)
{
	static uint8_t buf[OUT_BYTES];
	ssize_t r = recv(w->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (r > 0)
		side_got(&w->side, buf, (size_t)r);
	else if (r == 0)
		w->side.eof = true;
	else if (errno != EAGAIN)
		w->gone = w->side.eof = true;
}

static void way_write(struct net_way *w)
{
	uint8_t buf[16384];
	size_t n = side_next(&w->side, buf, sizeof(buf));
	ssize_t r = n ? send(w->fd, buf, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

	if (r > 0)
		side_sent(&w->side, (size_t)r);
	if (side_is_empty(&w->side) && w->side.end && !w->side.ended) {
		w->side.ended = true;
		(void)shutdown(w->fd, SHUT_WR);
	}
}

/* ---- the keeper ---- */

static void answer(struct net_rig *n, struct net_ask *a, struct edge_verdict *v, int fd)
{
	assert_false(a->answered);
	a->answered = true;
	n->n_unanswered--;
	v->count = 1;
	(void)snprintf(v->sandbox, sizeof(v->sandbox), "demo");
	assert_int_equal(edge_answer_ask(n->rig->keeper, a->id, v, fd), 0);
}

void net_deny(struct net_rig *n, struct net_ask *a, const char *reason)
{
	struct edge_verdict v = {0};

	(void)snprintf(v.reason, sizeof(v.reason), "%s", reason);
	answer(n, a, &v, -1);
}

void net_allow_opened(struct net_rig *n, struct net_ask *a)
{
	struct edge_verdict v = {.allowed = true, .opened = true, .wants = "x-a", .wants_id = 5};

	answer(n, a, &v, -1);
}

void net_want(struct net_rig *n, struct net_ask *a, const char *names, uint32_t id)
{
	struct edge_verdict v = {.wants_id = id};

	(void)snprintf(v.wants, sizeof(v.wants), "%s", names);
	answer(n, a, &v, -1);
}

#define CHANNEL 7 /* the number of the one to origin */

static void start_origin(struct net_rig *n)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(chan_send_plain(n->rig->keeper, EDGE_CHANNEL, CHANNEL, fds[1]), 0);
	(void)close(fds[1]);
	mux_rig_start(&n->origin, fds[0], true);
}

/* A request inside TLS: a stream to origin. */
static int allow_stream(struct net_rig *n, struct edge_verdict *v)
{
	if (n->origin.sock < 0)
		start_origin(n);
	v->channel = CHANNEL;
	v->stream = ++n->n_streams;
	return mux_rig_add(&n->origin, v->stream);
}

struct net_way *net_allow(struct net_rig *n, struct net_ask *a)
{
	struct edge_verdict v = {.allowed = true};
	struct net_way *w;
	int fds[2] = {-1, -1};

	if (!edge_ask_has_socket(a->ask.kind)) {
		answer(n, a, &v, -1);
		return NULL;
	}
	if (a->ask.tls)
		fds[0] = allow_stream(n, &v);
	else
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	w = xcalloc(1, sizeof(*w));
	w->fd = fds[0];
	w->has_head = a->ask.kind == EDGE_ASK_AGENT; /* bytes of the guest from the first on */
	assert_true(n->n_ways < NET_RIG_CONNS);
	n->ways[n->n_ways++] = w;
	answer(n, a, &v, fds[1]);
	fd_close(&fds[1]);
	if (n->decide == NET_BY_HAND && a->ask.kind == EDGE_ASK_TUNNEL) {
		struct pollfd p = {.fd = w->fd, .events = POLLIN};

		/* The guest may have closed meanwhile: then there is no head. */
		if (poll(&p, 1, 60000) == 1 && !(p.revents & POLLHUP))
			way_read_head(w);
		else
			w->gone = true;
	}
	return w;
}

static void on_ask(void *ctx, const struct ipc_msg *msg)
{
	struct net_rig *n = ctx;
	struct net_ask *a;

	n->asks = xrealloc(n->asks, (n->n_asks + 1) * sizeof(*n->asks));
	a = &n->asks[n->n_asks++];
	*a = (struct net_ask){.id = msg->id};
	assert_int_equal(edge_get_ask(msg, &a->ask), 0);
	for (unsigned i = 0; i + 1 < n->n_asks; i++)
		assert_true(n->asks[i].answered || n->asks[i].id != a->id);
	n->n_unanswered++;
	n->most_unanswered = MAX(n->most_unanswered, n->n_unanswered);
	if (n->decide == NET_DENY || (n->decide == NET_ALLOW && a->ask.fault[0]))
		net_deny(n, a, "");
	else if (n->decide == NET_ALLOW)
		(void)net_allow(n, a);
}

struct net_ask *net_asked(
	struct net_rig *n, enum edge_ask_kind kind, const char *host, uint16_t port)
{
	struct net_ask *a = n->n_asks ? &n->asks[n->n_asks - 1] : NULL;

	if (!a || a->answered || a->ask.kind != kind || a->ask.port != port || a->ask.fault[0])
		return NULL;
	return strcmp(a->ask.host, host) == 0 ? a : NULL;
}

bool net_faulted(struct net_rig *n, const char *text)
{
	struct net_ask *a = n->n_asks ? &n->asks[n->n_asks - 1] : NULL;

	if (!a || a->answered || !a->ask.fault[0])
		return false;
	if (!strstr(a->ask.fault, text))
		fail_msg("fault: %s", a->ask.fault);
	net_deny(n, a, "");
	return true;
}

/* ---- the rig ---- */

struct net_rig *net_new(void)
{
	return net_new_saved(&(struct edge_ca){0});
}

struct net_rig *net_new_saved(const struct edge_ca *ca)
{
	struct net_rig *n = xcalloc(1, sizeof(*n));
	struct rlimit lim;
	int fds[2];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &lim), 0);
	lim.rlim_cur = MIN(lim.rlim_max, 8192);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
	n->origin.sock = -1;
	n->rig = rig_new(NULL);
	n->rig->on_ask = on_ask;
	n->rig->ask_ctx = n;
	n->out = xmalloc(OUT_BYTES);
	n->guest = wire_new(WIRE_CLIENT, WIRE_NET, &guest_ops, n);
	rig_config_saved(n->rig, 60000, ca);
	rig_until(n->rig, n->rig->ready);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	n->fd = fds[0];
	assert_int_equal(fd_set_nonblock(n->fd, true), 0);
	assert_int_equal(chan_send_plain(n->rig->keeper, EDGE_NET, 0, fds[1]), 0);
	fd_close(&fds[1]);
	net_until(n, n->ready);
	return n;
}

void net_free(struct net_rig *n)
{
	rig_free(n->rig);
	mux_rig_stop(&n->origin);
	fd_close(&n->fd);
	wire_free(n->guest);
	for (unsigned i = 0; i < n->n_conns; i++) {
		free(n->conns[i]->side.send);
		free(n->conns[i]);
	}
	for (unsigned i = 0; i < n->n_ways; i++) {
		fd_close(&n->ways[i]->fd);
		free(n->ways[i]->side.send);
		free(n->ways[i]);
	}
	free(n->asks);
	free(n->out);
	free(n);
}

static short way_events(const struct net_way *w)
{
	const struct net_side *s = &w->side;
	bool in = !s->paused && !s->eof && !w->gone;
	bool out = w->has_head && (!side_is_empty(s) || (s->end && !s->ended));

	return (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));
}

static void way_step(struct net_rig *n, struct net_way *w, short revents)
{
	if (revents & (POLLIN | POLLHUP) && !w->has_head) {
		way_read_head(w);
		if (n->decide == NET_ALLOW)
			way_accept(w);
		return;
	}
	if (revents & (POLLIN | POLLHUP) && !w->side.paused)
		way_read(w);
	if (revents & POLLOUT)
		way_write(w);
}

void net_step(struct net_rig *n, int ms)
{
	static struct pollfd p[NET_RIG_CONNS + 3];
	unsigned n_ways = n->n_ways;

	p[0] = (struct pollfd){.fd = n->rig->keeper_deaf ? -1 : n->rig->keeper, .events = POLLIN};
	p[1] = (struct pollfd){.fd = n->deaf ? -1 : n->fd,
		.events = (short)(POLLIN | (n->n_out || wire_wants_write(n->guest) ? POLLOUT : 0))};
	for (unsigned i = 0; i < n_ways; i++) {
		short events = n->ways[i]->fd >= 0 ? way_events(n->ways[i]) : 0;

		p[i + 2] = (struct pollfd){.fd = events ? n->ways[i]->fd : -1, .events = events};
	}
	(void)poll(p, n_ways + 2, ms);
	if (p[1].revents & (POLLIN | POLLHUP))
		guest_read(n);
	if (p[1].revents & POLLOUT)
		guest_write(n);
	for (unsigned i = 0; i < n_ways; i++) {
		if (p[i + 2].revents)
			way_step(n, n->ways[i], p[i + 2].revents);
	}
	rig_step(n->rig, 0);
}

void net_for(struct net_rig *n, unsigned ms)
{
	uint64_t end = clock_mono_ms() + ms;

	while (clock_mono_ms() < end)
		net_step(n, 10);
}

/* ---- input of guests ---- */

static void be16(struct wr *wr, size_t v)
{
	wr_u8(wr, (uint8_t)(v >> 8));
	wr_u8(wr, (uint8_t)v);
}

size_t net_hello(uint8_t *buf, size_t size, const char *name, bool ech)
{
	uint8_t exts[600], random[32] = {7};
	struct wr ext = wr_init(exts, sizeof(exts)), wr = wr_init(buf, size);
	size_t n_name = name ? strlen(name) : 0, n_hello;

	if (name) {
		be16(&ext, 0);
		be16(&ext, n_name + 5);
		be16(&ext, n_name + 3);
		wr_u8(&ext, 0);
		be16(&ext, n_name);
		wr_bytes(&ext, slice_of(name, n_name));
	}
	wr_bytes(&ext, slice_of("\0\x2b\0\3\2\3\4", 7));
	if (ech)
		wr_bytes(&ext, slice_of("\xfe\x0d\0\4\0xyz", 8));
	n_hello = 2 + 32 + 1 + 4 + 2 + 2 + ext.n;
	wr_bytes(&wr, slice_of("\x16\3\1", 3));
	be16(&wr, n_hello + 4);
	wr_bytes(&wr, slice_of("\1\0", 2));
	be16(&wr, n_hello);
	be16(&wr, 0x0303);
	wr_bytes(&wr, slice_of(random, sizeof(random)));
	wr_bytes(&wr, slice_of("\0\0\2\x13\1\1\0", 7));
	be16(&wr, ext.n);
	wr_bytes(&wr, slice_of(exts, ext.n));
	assert_int_equal(wr_finish(&wr), 0);
	return wr.n;
}

size_t net_query(uint8_t *buf, size_t size, const char *name, uint16_t type)
{
	struct wr wr = wr_init(buf, size);

	wr_bytes(&wr, slice_of("\x12\x34\1\0\0\1\0\0\0\0\0\1", 12));
	while (*name) {
		size_t n = strcspn(name, ".");

		wr_u8(&wr, (uint8_t)n);
		wr_bytes(&wr, slice_of(name, n));
		name += n + (name[n] == '.');
	}
	wr_u8(&wr, 0);
	be16(&wr, type);
	be16(&wr, 1);
	wr_bytes(&wr, slice_of("\0\0\x29\4\xd0\0\0\0\0\0\0", 11));
	assert_int_equal(wr_finish(&wr), 0);
	return wr.n;
}

/* ---- common steps of the tests ---- */

const char net_established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

struct net_conn *net_ask_dns(struct net_rig *n, const char *path, const char *name, uint16_t type)
{
	struct net_conn *c = net_open(n, path);
	uint8_t q[512];

	net_say(n, c, q, net_query(q, sizeof(q), name, type));
	net_end(n, c);
	return c;
}

/* The address that a name gets, as the path of a connection to it. */
void net_caught_path(struct net_rig *n, const char *name, unsigned port, char path[64])
{
	struct net_conn *c = net_ask_dns(n, "/dns/udp", name, 1);
	const uint8_t *a;

	if (n->decide == NET_BY_HAND) {
		net_until(n, net_asked(n, EDGE_ASK_DNS, name, 0));
		(void)net_allow(n, net_asked(n, EDGE_ASK_DNS, name, 0));
	}
	net_until(n, c->closed);
	assert_false(c->reset);
	/* One answer: a pointer, A, IN, TTL, length, address; the OPT follows. */
	a = c->side.got + 12 + strlen(name) + 2 + 4 + 12;
	assert_true(c->side.got[7] == 1 && a[0] == 198 && (a[1] & 0xfe) == 18);
	(void)snprintf(path, 64, "/tcp/%u.%u.%u.%u/%u", a[0], a[1], a[2], a[3], port);
}

struct net_conn *net_open_caught(struct net_rig *n, const char *name, unsigned port)
{
	char path[64];

	net_caught_path(n, name, port, path);
	return net_open(n, path);
}

struct net_conn *net_open_connect(struct net_rig *n, const char *target)
{
	struct net_conn *c = net_open(n, "/proxy");
	char head[256];

	(void)snprintf(
		head, sizeof(head), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target);
	net_say(n, c, head, strlen(head));
	return c;
}

/* Answers the next ask for a tunnel. */
struct net_way *net_allow_tunnel(struct net_rig *n, const char *host, uint16_t port)
{
	struct net_way *w;

	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, host, port));
	w = net_allow(n, net_asked(n, EDGE_ASK_TUNNEL, host, port));
	if (w->has_head) {
		assert_string_equal(w->host, host);
		assert_int_equal(w->port, port);
	}
	return w;
}

struct net_way *net_accept_tunnel(struct net_rig *n, const char *host, uint16_t port)
{
	struct net_way *w = net_allow_tunnel(n, host, port);

	way_accept(w);
	return w;
}

struct net_way *net_raw_tunnel(struct net_rig *n, struct net_conn **ret)
{
	struct net_way *w;

	*ret = net_open_connect(n, NET_RIG_HOST ":9999");
	net_say(n, *ret, "\1", 1);
	w = net_accept_tunnel(n, NET_RIG_HOST, 9999);
	net_until(n, w->side.n_got == 1 && (*ret)->side.n_got == strlen(net_established));
	w->side.n_got = 0;
	(*ret)->side.n_got = 0;
	return w;
}
