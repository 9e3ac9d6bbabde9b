/* SPDX-License-Identifier: Apache-2.0 */
/* A guest whose TLS edge intercepts: a real handshake, then the input inside and around the TLS, in
 * any order with verdicts, answers of egress and timers. The input is a byte that selects the start
 * and a list of steps: one byte for the kind, two for the length. */
#include "src/edge/test/net_free.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include "lib/wire/mux/test/mux_rig.h"
#include "lib/base/mem.h"

#define HOST "example.test"
#define MAX_ASKS NET_ASKS
#define MAX_WAYS 16
#define OUT_MAX (256 * 1024)
#define ROUNDS 64 /* of a step: more than any step needs */

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static struct fuzz {
	struct edge e;
	struct rd in;
	int guest;
	struct wire *wire;
	uint32_t sid;
	bool open, paused, end;
	size_t unread; /* bytes that the paused guest has not returned */
	struct bufq out;
	size_t crumb;
	SSL *ssl;
	BIO *from, *to;
	bool established, over; /* TLS has begun, has failed or ended */
	char first[8];		/* of the decrypted data */
	size_t n_first;
	struct {
		uint32_t id;
		struct edge_ask ask;
	} asks[MAX_ASKS];
	unsigned n_asks;
	int ways[MAX_WAYS];
	unsigned n_ways;
} f;

static SSL_CTX *client_ctx;
static struct opener *opener;

static void must(bool cond)
{
	if (!cond)
		__builtin_trap();
}

/* ---- stubs for the rest of edge ---- */

static void lose_guest(struct edge *e, const char *fmt, ...)
{
	/* The guest's wire is in order, whatever its payload. */
	must(false);
}

static int take_ask(struct edge *e, uint32_t id, const struct edge_ask *ask)
{
	must(f.n_asks < MAX_ASKS && strcmp(ask->host, HOST) == 0 && ask->port == 443);
	must(!ask->tls || ask->kind == EDGE_ASK_HTTP);
	f.asks[f.n_asks].id = id;
	f.asks[f.n_asks++].ask = *ask;
	return 0;
}

static void drop_ask(struct edge *e, uint32_t id)
{
}

static const struct keeper_ops keeper_ops = {
	.lost = lose_guest, .send_ask = take_ask, .send_gone = drop_ask};

/* ---- the guest ---- */

static void put_out(struct slice bytes)
{
	(void)bufq_put(&f.out, bytes);
	if (f.open)
		wire_resume(f.wire, f.sid);
}

static void on_data(void *ctx, uint32_t sid, uint32_t slot, struct slice bytes)
{
	if (f.established)
		(void)BIO_write(f.from, bytes.p, (int)bytes.n);
	/* The answer to the CONNECT comes alone: the guest's TLS has not begun. */
	f.established = true;
	if (f.paused)
		f.unread += bytes.n;
	else
		wire_consumed(f.wire, sid, bytes.n);
}

static void on_close(void *ctx, uint32_t sid, uint32_t slot, int error)
{
	f.open = false;
}

static ssize_t pull(void *ctx, uint32_t sid, uint32_t slot, uint8_t *buf, size_t n)
{
	n = bufq_take(&f.out, buf, MIN(n, f.crumb));
	return n || (f.end && bufq_len(&f.out) == 0) ? (ssize_t)n : -EAGAIN;
}

static void on_reply(void *ctx, uint32_t sid, uint32_t slot, unsigned status)
{
	must(status == 200);
}

static void on_end(void *ctx, uint32_t sid, uint32_t slot)
{
}

static const struct wire_ops guest_ops = {.on_reply = on_reply,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_close,
	.pull = pull};

/* For any input, the guest gets an HTTP answer or nothing. */
static void check_answer(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n && f.n_first < 7; i++)
		f.first[f.n_first++] = (char)p[i];
	must(strncmp(f.first, "HTTP/1.1", f.n_first) == 0);
}

static bool move_tls(void)
{
	uint8_t buf[16384];
	bool any = false;
	int r = 0;

	ERR_clear_error();
	while (f.established && !f.over && (r = SSL_read(f.ssl, buf, sizeof(buf))) > 0) {
		check_answer(buf, (size_t)r);
		any = true;
	}
	if (f.established && !f.over)
		f.over = SSL_get_error(f.ssl, r) != SSL_ERROR_WANT_READ;
	while ((r = BIO_read(f.to, buf, sizeof(buf))) > 0) {
		put_out(slice_of(buf, (size_t)r));
		any = true;
	}
	return any;
}

static bool move_wire(void)
{
	static uint8_t buf[65536];
	ssize_t n = wire_pull(f.wire, buf, sizeof(buf)), r;

	must(n >= 0);
	if (n > 0)
		port_feed(&f.e, &f.e.net->port, slice_of(buf, (size_t)n));
	net_flush(&f.e);
	r = recv(f.guest, buf, sizeof(buf), MSG_DONTWAIT);
	if (r > 0) {
		must(wire_feed(f.wire, slice_of(buf, (size_t)r), 0) == 0);
		net_on_event(&f.e, EPOLLOUT);
	}
	return n > 0 || r > 0;
}

static void wake(void)
{
	for (uint32_t i = 0; i < NET_MAX_CONNS; i++) {
		struct conn *c = f.e.net->conns[i];

		if (c && c->fd >= 0)
			net_on_conn_event(
				&f.e, (struct loop_event){.key = {.gen = c->gen, .idx = i},
					      .events = EPOLLIN | EPOLLOUT});
	}
	net_on_channel_event(
		&f.e, &(struct loop_event){.key = {.gen = 1}, .events = EPOLLIN | EPOLLOUT});
}

static void drain_ways(void)
{
	static uint8_t buf[65536];

	for (unsigned i = 0; i < f.n_ways; i++) {
		while (f.ways[i] >= 0 && recv(f.ways[i], buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
	}
}

static void move(unsigned rounds)
{
	bool any = true;

	for (unsigned i = 0; i < rounds && any; i++) {
		any = move_wire();
		any = move_tls() || any;
		(void)mux_rig_turn();
		drain_ways();
		wake();
	}
}

/* ---- steps ---- */

static void say(struct slice s)
{
	ERR_clear_error();
	if (f.established && !f.over && SSL_is_init_finished(f.ssl) && s.n > 0)
		(void)SSL_write(f.ssl, s.p, (int)s.n);
}

static void answer(bool yes, struct slice reason)
{
	struct edge_verdict v = {.count = 1, .sandbox = "x"};
	const struct edge_ask *ask = &f.asks[0].ask;
	int fds[2] = {-1, -1};
	uint32_t id = f.asks[0].id;

	if (!f.n_asks || f.n_ways == MAX_WAYS)
		return;
	v.allowed = yes && !ask->fault[0];
	v.opened = v.allowed && ask->kind == EDGE_ASK_TUNNEL;
	if (v.allowed && !v.opened) {
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
		f.ways[f.n_ways++] = fds[0];
		v.channel = 1;
		v.stream = f.n_ways;
		mux_rig_add_here(v.stream, fds[1]);
	}
	if (!yes && reason.n > 0)
		(void)snprintf(v.reason, sizeof(v.reason), "why not");
	f.n_asks--;
	memmove(&f.asks[0], &f.asks[1], f.n_asks * sizeof(f.asks[0]));
	must(net_on_verdict(&f.e, id, &v, -1) == 0);
}

static void egress_says(struct slice s)
{
	if (f.n_ways && f.ways[f.n_ways - 1] >= 0)
		(void)!send(f.ways[f.n_ways - 1], s.p, s.n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void fire_timers(void)
{
	for (uint32_t i = 0; i < NET_MAX_CONNS; i++) {
		struct conn *c = f.e.net->conns[i];
		struct loop_key key;

		if (!c || !c->timer.pos)
			continue;
		key = c->timer.key;
		loop_timer_clear(&f.e.loop, &c->timer);
		net_on_timer(&f.e, key);
	}
}

static void read_again(bool reads)
{
	f.paused = !reads;
	if (reads && f.open)
		wire_consumed(f.wire, f.sid, f.unread);
	if (reads)
		f.unread = 0;
}

static void step(uint8_t which, struct slice s)
{
	switch (which % 12) {
	case 0:
		say(s);
		break;
	case 1:
		put_out(s);
		break;
	case 2:
		answer(true, s);
		break;
	case 3:
		answer(false, s);
		break;
	case 4:
		egress_says(s);
		break;
	case 5:
		if (f.n_ways)
			fd_close(&f.ways[f.n_ways - 1]);
		break;
	case 6:
		fire_timers();
		break;
	case 7:
		if (!f.over && SSL_is_init_finished(f.ssl))
			(void)SSL_shutdown(f.ssl);
		break;
	case 8:
		f.end = true;
		put_out((struct slice){0});
		break;
	case 9:
		if (!f.over && SSL_is_init_finished(f.ssl))
			(void)SSL_key_update(f.ssl, SSL_KEY_UPDATE_REQUESTED);
		break;
	case 10:
		read_again(s.n > 0);
		break;
	case 11:
		if (f.open)
			wire_reset(f.wire, f.sid);
		f.open = false;
		break;
	}
	ERR_clear_error();
}

/* ---- all of it ---- */

static void start_once(void)
{
	static const struct edge_config config = {.sandbox = "fuzz"};
	struct err err;

	if (opener)
		return;
	must(opener_new(&config, &opener, &err) == 0);
	client_ctx = SSL_CTX_new(TLS_client_method());
	must(client_ctx != NULL);
}

static void start_tls(int version)
{
	f.ssl = SSL_new(client_ctx);
	f.from = BIO_new(BIO_s_mem());
	f.to = BIO_new(BIO_s_mem());
	must(f.ssl && f.from && f.to);
	SSL_set_bio(f.ssl, f.from, f.to);
	SSL_set_connect_state(f.ssl);
	must(SSL_set_max_proto_version(f.ssl, version) == 1);
	must(SSL_set_tlsext_host_name(f.ssl, HOST) == 1);
}

/* Low bits: TLS 1.2, progress of the handshake before the first step, and bytes per read. */
static void start(uint8_t how)
{
	static const char connect[] = "CONNECT " HOST ":443 HTTP/1.1\r\nHost: " HOST "\r\n\r\n";
	int fds[2];

	start_once();
	f.e.opener = opener;
	f.crumb = how & 8 ? 1u + (how >> 4) : SIZE_MAX;
	bufq_init(&f.out, OUT_MAX);
	must(loop_init(&f.e.loop) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	f.guest = fds[0];
	f.e.keeper = &keeper_ops;
	net_start(&f.e, fds[1]);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	mux_rig_begin(fds[0]);
	net_on_channel(&f.e, 1, fds[1]);
	f.wire = wire_new(WIRE_CLIENT, WIRE_NET, &guest_ops, NULL);
	start_tls(how & 1 ? TLS1_2_VERSION : TLS1_3_VERSION);
	must(wire_open(f.wire, "/proxy", 0, &f.sid) == 0);
	f.open = true;
	put_out(slice_from_str(connect));
	for (unsigned i = 0; i < 256 && f.n_asks == 0; i++)
		move(1);
	answer(true, (struct slice){0});
	for (unsigned i = 0; i < 16 && !f.established; i++)
		(void)move_wire();
	must(f.established);
	move((how & 6) == 6 ? 4 * 1024 : (how & 6) >> 1);
}

static void stop(void)
{
	net_free(&f.e);
	mux_rig_end();
	loop_done(&f.e.loop);
	wire_free(f.wire);
	SSL_free(f.ssl);
	fd_close(&f.guest);
	bufq_done(&f.out);
	for (unsigned i = 0; i < f.n_ways; i++)
		fd_close(&f.ways[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	memset(&f, 0, sizeof(f));
	f.in = rd_init(slice_of(p, n));
	start(rd_u8(&f.in));
	while (f.in.n > 0 && !f.in.bad) {
		uint8_t which = rd_u8(&f.in);
		size_t len = rd_u16(&f.in);

		step(which, rd_bytes(&f.in, MIN(len, f.in.n)));
		move(ROUNDS);
	}
	stop();
	return 0;
}
