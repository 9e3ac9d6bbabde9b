/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile guest on sbx.net, in any order with verdicts of the keeper, answers of egress and
 * timers. The input is a list of steps: one byte selects the step, its arguments follow. */
#include "net_free.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_ASKS NET_ASKS
#define MAX_WAYS 16

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct way {
	int fd;
	bool accepted, head, web, spoken;
};

/* Created once: its content is random, and no step depends on it. */
static struct opener *opener;

static struct fuzz {
	struct edge e;
	struct rd in;
	int guest; /* the other end of the port */
	uint32_t next_sid;
	struct {
		uint32_t id;
		bool fault;
		enum edge_ask_kind kind;
	} asks[MAX_ASKS];
	unsigned n_asks;
	struct way ways[MAX_WAYS];
	unsigned n_ways;
} f;

static void must(bool cond)
{
	if (!cond)
		__builtin_trap();
}

/* ---- stubs for the rest of edge ---- */

static void lose_guest(struct edge *e, const char *fmt, ...)
{
	e->control.done = true;
}

static int take_ask(struct edge *e, uint32_t id, const struct edge_ask *ask)
{
	must(f.n_asks < MAX_ASKS);
	must(ask->fault[0] || ask->kind == EDGE_ASK_AGENT ||
		(ask->host[0] && (ask->port || ask->kind == EDGE_ASK_DNS)));
	f.asks[f.n_asks].id = id;
	f.asks[f.n_asks].fault = ask->fault[0];
	f.asks[f.n_asks++].kind = ask->kind;
	return 0;
}

static int drop_ask(struct edge *e, uint32_t id, bool ended)
{
	return 0;
}

static const struct keeper_ops keeper_ops = {
	.lost = lose_guest, .send_ask = take_ask, .send_left = drop_ask};

/* ---- steps ---- */

static void drain(int fd)
{
	uint8_t buf[65536];

	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

static void feed(const void *p, size_t n)
{
	if (!f.e.control.done)
		port_feed(&f.e, &f.e.net->port, slice_of(p, n));
}

static void feed_frame(uint8_t type, uint8_t flags, uint32_t sid, struct slice payload)
{
	uint8_t head[9] = {0, (uint8_t)(payload.n >> 8), (uint8_t)payload.n, type, flags, 0, 0,
		(uint8_t)(sid >> 8), (uint8_t)sid};

	feed(head, sizeof(head));
	feed(payload.p, payload.n);
}

static void open_stream(void)
{
	static const char *const paths[] = {"/proxy", "/dns/udp", "/dns/tcp",
		"/tcp/203.0.113.9/443", "/tcp/203.0.113.9/80", "/tcp/203.0.113.9/22",
		"/tcp/198.18.0.1/443", "/tcp/198.18.9.9/443", "/may/203.0.113.9/22",
		"/may/198.18.9.9/443"};
	uint8_t what = rd_u8(&f.in), buf[128];
	struct wr wr = wr_init(buf, sizeof(buf));
	struct slice path =
		slice_from_str((what & 127) == 127 ? "/link" : paths[what % ARRAY_LEN(paths)]);

	if (f.next_sid == 1)
		wr_u8(&wr, 0x20);
	wr_bytes(&wr, slice_of("\x83\x86\x04", 3));
	wr_u8(&wr, (uint8_t)path.n);
	wr_bytes(&wr, path);
	wr_bytes(&wr, slice_of("\x01\x03sbx", 5));
	feed_frame(1, what & 128 ? 5 : 4, f.next_sid, slice_of(buf, wr.n));
	f.next_sid += 2;
}

static void send_data(void)
{
	uint8_t what = rd_u8(&f.in);
	size_t n = rd_u16(&f.in);
	struct slice bytes = rd_bytes(&f.in, MIN(n, f.in.n));

	if (bytes.n <= WIRE_MAX_FRAME)
		feed_frame(0, what & 128 ? 1 : 0, 2 * (what & 63u) + 1, bytes);
}

static void answer(void)
{
	struct edge_verdict v = {.count = 1, .sandbox = "x"};
	uint8_t what = rd_u8(&f.in);
	unsigned i = f.n_asks ? what % f.n_asks : 0;
	int fds[2] = {-1, -1};
	uint32_t id;

	if (!f.n_asks || f.n_ways == MAX_WAYS)
		return;
	v.allowed = what & 128 && !f.asks[i].fault;
	v.opened = v.allowed && what & 64 && f.asks[i].kind == EDGE_ASK_TUNNEL;
	if (v.allowed && !v.opened && edge_ask_has_socket(f.asks[i].kind)) {
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
		f.ways[f.n_ways++] = (struct way){.fd = fds[0]};
	}
	id = f.asks[i].id;
	f.asks[i] = f.asks[--f.n_asks]; /* the next ask may follow immediately */
	must(net_on_verdict(&f.e, id, &v, fds[1]) == 0);
}

/* "CONNECT" is at 13 of its frame, then host and port. */
static void check_head(struct way *w, struct slice got)
{
	struct rd rd = rd_init(got);
	size_t n = rd_u32(&rd);

	must(rd_u8(&rd) == CANON_HEAD && got.n >= n + 8);
	w->head = true;
	(void)rd_bytes(&rd, 6);
	if (!slice_eq_str(rd_str(&rd), "CONNECT"))
		return;
	/* Before egress accepts, its socket has no other data. */
	must(got.n == n + 8);
	(void)rd_str(&rd);
	n = rd_u16(&rd);
	w->web = n == 80 || n == 443;
}

static void check_way(struct way *w)
{
	uint8_t buf[65536];
	ssize_t r = recv(w->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (r <= 0)
		return;
	if (!w->head) {
		check_head(w, slice_of(buf, (size_t)r));
		return;
	}
	/* Data in a tunnel to a web port is TLS. */
	must(!w->web || (w->accepted && (w->spoken || buf[0] == 0x16)));
	w->spoken = true;
}

static void wake(uint32_t events)
{
	for (uint32_t i = 0; i < NET_MAX_CONNS && !f.e.control.done; i++) {
		struct conn *c = f.e.net->conns[i];

		if (c && c->fd >= 0)
			net_on_conn_event(
				&f.e, (struct loop_event){
					      .key = {.gen = c->gen, .idx = i}, .events = events});
	}
}

static void egress_says(void)
{
	static const char yes[] = "\x0f\0\0\0\1\1\0\0\2\0\xc8\0\4\0\0\0\0\0\0\0\0\0\0";
	uint8_t what = rd_u8(&f.in);
	struct way *w = f.n_ways ? &f.ways[(what & 31u) % f.n_ways] : NULL;
	size_t n = rd_u8(&f.in);
	struct slice bytes = rd_bytes(&f.in, MIN(n, f.in.n));

	if (!w || w->fd < 0)
		return;
	check_way(w);
	if (what & 128) {
		w->accepted = true;
		(void)!send(w->fd, yes, sizeof(yes) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	(void)!send(w->fd, bytes.p, bytes.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (what & 64)
		fd_close(&w->fd);
	wake(what & 32 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void fire_timer(void)
{
	uint32_t i = rd_u8(&f.in);
	struct conn *c = f.e.net->conns[i];

	if (c && c->timer.pos) {
		struct loop_key key = c->timer.key;

		loop_timer_clear(&f.e.loop, &c->timer);
		net_on_timer(&f.e, key);
	}
}

static void feed_raw(void)
{
	size_t n = rd_u16(&f.in);
	struct slice bytes = rd_bytes(&f.in, MIN(n, f.in.n));

	feed(bytes.p, bytes.n);
}

static void reset_stream(void)
{
	feed_frame(3, 0, 2 * (rd_u8(&f.in) & 63u) + 1, slice_of("\0\0\0\x08", 4));
}

static void (*const steps[])(void) = {
	feed_raw, open_stream, send_data, answer, egress_says, fire_timer, reset_stream};

static void step(void)
{
	steps[rd_u8(&f.in) % ARRAY_LEN(steps)]();
	if (f.e.control.done)
		return;
	net_flush(&f.e);
	drain(f.guest);
	net_on_event(&f.e, EPOLLOUT);
	must(f.e.net->n_conns <= NET_MAX_CONNS && f.e.net->n_asked == f.n_asks);
}

static void start(const uint8_t *p, size_t n)
{
	static const char hello[] =
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0";
	static const struct edge_config config = {.sandbox = "fuzz"};
	struct err err;
	int fds[2];

	memset(&f, 0, sizeof(f));
	must(opener || opener_new(&config, &opener, &err) == 0);
	f.e.opener = opener;
	f.in = rd_init(slice_of(p, n));
	f.next_sid = 1;
	must(loop_init(&f.e.loop) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	f.guest = fds[0];
	f.e.keeper = &keeper_ops;
	net_start(&f.e, fds[1]);
	feed(hello, sizeof(hello) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	start(p, n);
	while (f.in.n > 0 && !f.in.bad && !f.e.control.done)
		step();
	net_free(&f.e);
	loop_done(&f.e.loop);
	fd_close(&f.guest);
	for (unsigned i = 0; i < f.n_ways; i++)
		fd_close(&f.ways[i].fd);
	return 0;
}
