/* The guest's way out: a real, sealed sbx-edge with guest, keeper and egress played by the test. */
#include "net_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define MIB (1024 * 1024)
#define HOST "example.test"
#define ALERT_NAME "\x15\3\1\0\2\2\x70"
#define ALERT_DENIED "\x15\3\1\0\2\2\x31"

/* ---- getting there ---- */

static struct net_conn *ask_dns(
	struct net_rig *n, const char *path, const char *name, uint16_t type)
{
	struct net_conn *c = net_open(n, path);
	uint8_t q[512];

	net_say(n, c, q, net_query(q, sizeof(q), name, type));
	net_end(n, c);
	return c;
}

/* The address that a name gets, as the path of a connection to it. */
static void caught_path(struct net_rig *n, const char *name, unsigned port, char path[64])
{
	struct net_conn *c = ask_dns(n, "/dns/udp", name, 1);
	const uint8_t *a;

	if (n->decide == NET_BY_HAND) {
		net_until(n, net_asked(n, EDGE_ASK_DNS, name, 0));
		(void)net_allow(n, net_asked(n, EDGE_ASK_DNS, name, 0));
	}
	net_until(n, c->closed);
	assert_false(c->reset);
	/* One answer: a pointer, A, IN, TTL, length, address; the OPT is behind it. */
	a = c->side.got + 12 + strlen(name) + 2 + 4 + 12;
	assert_true(c->side.got[7] == 1 && a[0] == 198 && (a[1] & 0xfe) == 18);
	(void)snprintf(path, 64, "/tcp/%u.%u.%u.%u/%u", a[0], a[1], a[2], a[3], port);
}

static struct net_conn *open_caught(struct net_rig *n, const char *name, unsigned port)
{
	char path[64];

	caught_path(n, name, port, path);
	return net_open(n, path);
}

static struct net_conn *open_connect(struct net_rig *n, const char *target)
{
	struct net_conn *c = net_open(n, "/proxy");
	char head[256];

	(void)snprintf(
		head, sizeof(head), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target);
	net_say(n, c, head, strlen(head));
	return c;
}

/* The answer to the tunnel that is asked for next. */
static struct net_way *allow_tunnel(struct net_rig *n, const char *host, uint16_t port)
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

static struct net_way *accept_tunnel(struct net_rig *n, const char *host, uint16_t port)
{
	struct net_way *w = allow_tunnel(n, host, port);

	way_accept(w);
	return w;
}

static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

/* ---- caught connections ---- */

static void test_caught_tls(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = open_caught(n, HOST, 443);
	uint8_t hello[512];
	size_t len = net_hello(hello, sizeof(hello), "Example.TEST", false);
	struct net_way *w;

	net_until(n, c->status == 200);
	net_say(n, c, hello, len);
	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	assert_int_equal(n->asks[n->n_asks - 1].ask.proto, EDGE_PROTO_TLS);
	assert_int_equal(n->asks[n->n_asks - 1].ask.via, EDGE_VIA_TRANSPARENT);
	w = accept_tunnel(n, HOST, 443);
	net_until(n, net_got(&w->side, hello, len));
	way_say(w, "server", 6);
	net_until(n, net_got(&c->side, "server", 6));
	net_say(n, c, "more", 4);
	net_end(n, c);
	net_until(n, w->side.eof && w->side.n_got == len + 4);
	way_say(w, " bytes", 6);
	w->side.end = true;
	net_until(n, c->closed);
	assert_false(c->reset);
	assert_true(net_got(&c->side, "server bytes", 12));
	net_free(n);
}

struct hello_case {
	const char *what, *target; /* NULL: the address */
	const char *name;
	bool ech, good;
	const char *fault;
};

static void try_hello(struct net_rig *n, const struct hello_case *row, bool connect, size_t step)
{
	const char *host = row->target ? row->target : "203.0.113.9";
	struct net_conn *c;
	struct net_way *w;
	uint8_t hello[512];
	size_t len = net_hello(hello, sizeof(hello), row->name, row->ech);
	char target[64];

	(void)snprintf(target, sizeof(target), "%s:443", host);
	c = connect	  ? open_connect(n, target)
	    : row->target ? open_caught(n, host, 443)
			  : net_open(n, "/tcp/203.0.113.9/443");
	if (connect) {
		w = accept_tunnel(n, host, 443);
		net_until(n, net_got(&c->side, established, strlen(established)));
		c->side.n_got = 0;
	}
	for (size_t i = 0; i < len; i += step) {
		net_say(n, c, hello + i, MIN(step, len - i));
		if (step == 1)
			net_step(n, 1);
	}
	if (!connect)
		w = accept_tunnel(n, host, 443);
	if (row->good) {
		net_until(n, net_got(&w->side, hello, len));
		wire_reset(n->guest, c->sid);
		net_until(n, w->side.eof);
		return;
	}
	net_until(n, net_faulted(n, row->fault));
	net_until(n, c->side.eof && w->side.eof);
	if (!net_got(&c->side, ALERT_NAME, 7))
		fail_msg("%s: no alert", row->what);
	/* Not one byte went out. */
	assert_int_equal(w->side.n_got, 0);
	net_end(n, c);
	net_until(n, c->closed);
}

static void test_names_of_tls(void **state)
{
	static const struct hello_case rows[] = {
		{"right", HOST, HOST, false, true, NULL},
		{"dot", HOST, "example.test.", false, true, NULL},
		{"other", HOST, "evil.test", false, false, "is not the target"},
		{"longer", HOST, "a.example.test", false, false, "is not the target"},
		{"two dots", HOST, "example.test..", false, false, "not a host name"},
		{"odd", HOST, "example test", false, false, "not a host name"},
		{"none", HOST, NULL, false, false, "without a server name"},
		{"hidden", HOST, HOST, true, false, "Encrypted Client Hello"},
		{"address", NULL, NULL, false, true, NULL},
		{"address with a name", NULL, HOST, false, false, "is not the target"},
		{"address as a name", NULL, "203.0.113.9", false, false, "is not the target"},
	};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		try_hello(n, &rows[i], false, 512);
		try_hello(n, &rows[i], true, 512);
		try_hello(n, &rows[i], i % 2, 1);
	}
	net_free(n);
}

static void test_bad_hello(void **state)
{
	struct net_rig *n = net_new();
	uint8_t hello[512];
	size_t len = net_hello(hello, sizeof(hello), HOST, false);

	/* The record says one byte more than the message has. */
	hello[4]++;
	hello[len++] = 0;
	for (size_t step = 1; step <= len; step += len - 1) {
		struct net_conn *c = open_caught(n, HOST, 443);
		struct net_way *w;

		for (size_t i = 0; i < len; i += step)
			net_say(n, c, hello + i, step);
		w = accept_tunnel(n, HOST, 443);
		net_until(n, net_faulted(n, "ClientHello is refused"));
		net_until(n, c->side.eof && w->side.eof);
		assert_int_equal(w->side.n_got, 0);
	}
	net_free(n);
}

static void test_server_first(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = open_caught(n, HOST, 22);
	struct net_way *w;
	uint64_t at = clock_mono_ms();

	/* Silence is asked about after a while. */
	w = accept_tunnel(n, HOST, 22);
	assert_true(clock_mono_ms() - at >= 200);
	assert_int_equal(n->asks[n->n_asks - 1].ask.proto, EDGE_PROTO_UNKNOWN);
	way_say(w, "SSH-2.0-x\r\n", 11);
	net_until(n, net_got(&c->side, "SSH-2.0-x\r\n", 11));
	/* Whatever comes after that is no HTTP request. */
	net_say(n, c, "GET / HTTP/1.1\r\n", 16);
	net_until(n, net_got(&w->side, "GET / HTTP/1.1\r\n", 16));
	net_free(n);
}

/* On the ports of the web a server that speaks first is held until the guest's bytes are known. */
static void test_server_first_is_held_on_443(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = open_connect(n, HOST ":443");
	struct net_way *w = accept_tunnel(n, HOST, 443);
	uint8_t hello[512];

	way_say(w, "early", 5);
	net_for(n, 100);
	assert_true(net_got(&c->side, established, strlen(established)));
	net_say(n, c, hello, net_hello(hello, sizeof(hello), HOST, false));
	net_until(n, c->side.n_got == strlen(established) + 5);
	net_free(n);
}

static void test_raw_bytes(void **state)
{
	static const unsigned ports[] = {80, 443, 9999};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < 2 * ARRAY_LEN(ports); i++) {
		uint16_t port = (uint16_t)ports[i / 2];
		char target[64];
		struct net_conn *c;
		struct net_way *w;

		(void)snprintf(target, sizeof(target), HOST ":%u", port);
		c = i % 2 ? open_connect(n, target) : open_caught(n, HOST, port);
		net_say(n, c, "\1\2raw", 5);
		w = accept_tunnel(n, HOST, port);
		if (port == 9999) {
			net_until(n, net_got(&w->side, "\1\2raw", 5));
			continue;
		}
		net_until(n, net_faulted(n, "neither TLS nor HTTP"));
		net_until(n, c->closed && w->side.eof);
		assert_true(c->reset);
		assert_int_equal(w->side.n_got, 0);
	}
	net_free(n);
}

/* HTTP never goes through a tunnel, whatever the port, and however it comes. */
static void test_http_is_no_tunnel(void **state)
{
	static const char *const heads[] = {"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		struct net_conn *c = open_caught(n, HOST, i % 2 ? 80 : 8080);
		struct net_way *w;

		net_say(n, c, heads[i], strlen(heads[i]));
		net_until(n, net_faulted(n, ""));
		net_until(n, c->side.eof);
		assert_true(net_got_text(&c->side, "HTTP/1.1 "));

		c = open_connect(n, i % 2 ? HOST ":80" : HOST ":8080");
		w = accept_tunnel(n, HOST, i % 2 ? 80 : 8080);
		for (size_t k = 0; heads[i][k]; k++) {
			net_say(n, c, &heads[i][k], 1);
			net_step(n, 0);
		}
		net_until(n, net_faulted(n, ""));
		net_until(n, c->side.eof && w->side.eof);
		assert_int_equal(w->side.n_got, 0);
	}
	net_free(n);
}

static void test_silence_is_bounded(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *quiet = open_connect(n, HOST ":443"), *half, *ssh;
	struct net_way *w[3];
	uint64_t at = clock_mono_ms();

	w[0] = accept_tunnel(n, HOST, 443);
	half = open_connect(n, HOST ":9999");
	w[1] = accept_tunnel(n, HOST, 9999);
	net_say(n, half, "GE", 2);
	ssh = open_connect(n, HOST ":22");
	w[2] = accept_tunnel(n, HOST, 22);
	n->decide = NET_DENY;
	net_until(n, quiet->closed && half->closed && w[0]->side.eof && w[1]->side.eof);
	assert_true(quiet->reset && half->reset && clock_mono_ms() - at >= 9000);
	assert_string_equal(n->asks[n->n_asks - 2].ask.fault, "nothing was sent within 10 s");
	assert_true(strstr(n->asks[n->n_asks - 1].ask.fault, "not clear"));
	assert_int_equal(w[1]->side.n_got, 0);
	assert_true(ssh->open && !w[2]->side.eof);
	net_free(n);
}

static void test_addresses(void **state)
{
	static const struct {
		const char *path, *host, *fault;
	} rows[] = {
		{"/tcp/198.18.77.5/443", "198.18.77.5", "stands for no name"},
		{"/tcp/198.19.255.255/443", "198.19.255.255", "stands for no name"},
		{"/tcp/fd5b:7862:19d3:1::77/443", "fd5b:7862:19d3:1::77", "stands for no name"},
		{"/tcp/fd5b:7862:19d3:1:0:1:0:77/443", "fd5b:7862:19d3:1:0:1:0:77", "no name"},
		{"/tcp/::ffff:198.18.77.5/443", "198.18.77.5", "stands for no name"},
		{"/tcp/198.18.0.1/22", "198.18.0.1", "gateway"},
		{"/tcp/fd5b:7862:19d3:1::1/443", "fd5b:7862:19d3:1::1", "gateway"},
	};
	static const char *const odd[] = {"/", "/tcp", "/tcp/", "/tcp/1.2.3.4", "/tcp/1.2.3.4/",
		"/tcp/1.2.3.4/0", "/tcp/1.2.3.4/65536", "/tcp/1.2.3.4/08", "/tcp/1.2.3/80",
		"/tcp/01.2.3.4/80", "/tcp/[::1]/80", "/tcp/host/80", "/tcp/1.2.3.4/80/",
		"/udp/1.2.3.4/80", "/tcp//80", "/dns", "/dns/udp/", "/proxy/", "/proxy?"};
	struct net_rig *n = net_new();
	struct net_conn *c;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		c = net_open(n, rows[i].path);
		net_until(n, net_faulted(n, rows[i].fault));
		assert_string_equal(n->asks[n->n_asks - 1].ask.host, rows[i].host);
		net_until(n, c->closed);
		assert_true(c->reset);
	}
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		unsigned before = n->n_asks;

		c = net_open(n, odd[i]);
		net_until(n, c->closed);
		assert_true(c->reset && n->n_asks == before);
	}
	/* An address in any spelling is one address. */
	c = net_open(n, "/tcp/::ffff:203.0.113.7/9999");
	net_say(n, c, "\1", 1);
	(void)accept_tunnel(n, "203.0.113.7", 9999);
	net_free(n);
}

/* ---- refusals ---- */

static void test_denied(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = open_connect(n, HOST ":22");
	uint8_t hello[512];

	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 22));
	assert_int_equal(n->asks[0].ask.via, EDGE_VIA_FORWARD);
	net_deny(n, &n->asks[0], "");
	net_until(n, c->side.eof);
	assert_true(net_got_text(&c->side, "HTTP/1.1 403 "));
	assert_true(net_got_text(&c->side, "Blocked by network policy: " HOST ":22"));
	assert_true(net_got_text(&c->side, "no applicable policies for op(action=net:connect:tcp"));
	assert_true(net_got_text(&c->side, "--sandbox demo"));
	net_end(n, c);
	net_until(n, c->closed);
	assert_false(c->reset);

	c = open_caught(n, HOST, 9999);
	net_say(n, c, "\1", 1);
	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 9999));
	net_deny(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 9999), "");
	net_until(n, c->closed);
	assert_true(c->reset && c->side.n_got == 0);

	c = open_caught(n, HOST, 443);
	net_say(n, c, hello, net_hello(hello, sizeof(hello), HOST, false));
	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	net_deny(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443), "");
	net_until(n, c->side.eof);
	assert_true(net_got(&c->side, ALERT_DENIED, 7));
	net_free(n);
}

static void test_egress_says_no(void **state)
{
	static const uint16_t statuses[] = {403, 502, 504};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		struct net_conn *c = open_connect(n, HOST ":443");
		char line[32];

		(void)snprintf(line, sizeof(line), "HTTP/1.1 %u ", statuses[i]);
		way_refuse(allow_tunnel(n, HOST, 443), statuses[i], "the sky fell");
		net_until(n, c->side.eof);
		assert_true(net_got_text(&c->side, line));
		assert_true(net_got_text(&c->side, "the sky fell"));
		c = open_caught(n, HOST, 9999);
		way_refuse(allow_tunnel(n, HOST, 9999), statuses[i], "the sky fell");
		net_until(n, c->closed);
		assert_true(c->reset && c->side.n_got == 0);
	}
	net_free(n);
}

/* Egress may be taken over by an origin: what it says wrong ends one connection. */
static void test_egress_is_wrong(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} rows[] = {
		{"", 0}, {"\1", 1}, {"\xff\xff\xff\xff\1\1\0\0", 8},
		{"\1\0\0\0\2\1\0\0x", 9}, /* DATA */
		{"\1\0\0\0\1\1\0\0x", 9}, /* a head that is none */
		{"\x0f\0\0\0\1\2\0\0\2\0\xc8\0\4\0\0\0\0\0\0\0\0\0\0", 23}, /* stream 2 */
		{"\x0f\0\0\0\1\1\0\0\2\0\xc8\0\0\0\0\0\0\0\0\0\0\0\0",
			23}, /* 200 without a tunnel */
	};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct net_conn *c = open_connect(n, HOST ":443");
		struct net_way *w = allow_tunnel(n, HOST, 443);

		if (rows[i].n)
			assert_int_equal(send(w->fd, rows[i].bytes, rows[i].n, 0), rows[i].n);
		assert_int_equal(shutdown(w->fd, SHUT_WR), 0);
		net_until(n, c->side.eof && w->side.eof);
		assert_true(net_got_text(&c->side, "HTTP/1.1 502 "));
	}
	net_free(n);
}

/* The answer may come in any pieces, and the server's bytes right behind it. */
static void test_answer_in_pieces(void **state)
{
	static const char good[] = "\x0f\0\0\0\1\1\0\0\2\0\xc8\0\4\0\0\0\0\0\0\0\0\0\0server";
	struct net_rig *n = net_new();

	for (size_t step = 1; step < sizeof(good); step += 7) {
		struct net_conn *c = open_connect(n, HOST ":22");
		struct net_way *w = allow_tunnel(n, HOST, 22);

		for (size_t i = 0; i < sizeof(good) - 1; i += step) {
			size_t part = MIN(step, sizeof(good) - 1 - i);

			assert_int_equal(send(w->fd, good + i, part, 0), part);
			net_step(n, 1);
		}
		net_until(n, c->side.n_got == strlen(established) + 6);
		assert_memory_equal(c->side.got + strlen(established), "server", 6);
	}
	net_free(n);
}

/* ---- DNS ---- */

static unsigned rcode(const struct net_conn *c)
{
	return c->side.got[3] & 15;
}

static void test_dns(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = ask_dns(n, "/dns/udp", "Example.Test", 1), *d;
	char name[80];
	const uint8_t *a;

	net_until(n, net_asked(n, EDGE_ASK_DNS, HOST, 0));
	assert_int_equal(n->asks[0].ask.qtype, 1);
	(void)net_allow(n, &n->asks[0]);
	net_until(n, c->closed);
	assert_true(rcode(c) == 0 && !c->reset);
	assert_memory_equal(c->side.got + 13, "Example", 7);
	a = c->side.got + 12 + 14 + 4 + 12;

	/* The same name, the same address; the address, the name. */
	n->decide = NET_ALLOW;
	d = ask_dns(n, "/dns/tcp", HOST, 1);
	net_until(n, d->closed);
	assert_memory_equal(d->side.got + 12 + 14 + 4 + 12, a, 4);
	(void)snprintf(name, sizeof(name), "%u.%u.%u.%u.in-addr.arpa", a[3], a[2], a[1], a[0]);
	d = ask_dns(n, "/dns/udp", name, 12);
	net_until(n, d->closed);
	assert_true(rcode(d) == 0 && net_got_text(&d->side, "\7example\4test"));
	d = ask_dns(n, "/dns/udp", "9.9.19.198.in-addr.arpa", 12);
	net_until(n, d->closed);
	assert_int_equal(rcode(d), 3);
	/* No key for ECH, and nothing but addresses at all. */
	d = ask_dns(n, "/dns/udp", HOST, 65);
	net_until(n, d->closed);
	assert_true(rcode(d) == 0 && d->side.got[7] == 0);
	d = ask_dns(n, "/dns/udp", HOST, 16);
	net_until(n, d->closed);
	assert_true(rcode(d) == 0 && d->side.got[7] == 0);
	net_free(n);
}

static void test_dns_denied(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = ask_dns(n, "/dns/udp", HOST, 1);

	net_until(n, net_asked(n, EDGE_ASK_DNS, HOST, 0));
	net_deny(n, &n->asks[0], "");
	net_until(n, c->closed);
	assert_true(rcode(c) == 3 && net_got_text(&c->side, "no applicable policies"));
	c = ask_dns(n, "/dns/udp", HOST, 28);
	net_until(n, net_asked(n, EDGE_ASK_DNS, HOST, 0));
	net_deny(n, net_asked(n, EDGE_ASK_DNS, HOST, 0), "because");
	net_until(n, c->closed);
	assert_true(rcode(c) == 3 && net_got_text(&c->side, "because"));
	/* What is no name is refused without a question, and told. */
	c = ask_dns(n, "/dns/udp", "127.0.0.1", 1);
	net_until(n, net_faulted(n, "an address is not a name"));
	net_until(n, c->closed);
	assert_int_equal(rcode(c), 3);
	c = ask_dns(n, "/dns/udp", "a b", 1);
	net_until(n, net_faulted(n, "not a host name"));
	net_until(n, c->closed);
	assert_int_equal(rcode(c), 3);
	c = ask_dns(n, "/dns/udp", "-x.test", 1);
	net_until(n, net_faulted(n, "not a host name"));
	net_until(n, c->closed);
	assert_int_equal(rcode(c), 3);
	net_free(n);
}

static void test_dns_of_the_gateway(void **state)
{
	static const char *const names[] = {"gateway.docker.internal", "GATEWAY.sbx.internal"};
	static const uint8_t v6[16] = {0xfd, 0x5b, 0x78, 0x62, 0x19, 0xd3, 0, 1, [15] = 1};
	struct net_rig *n = net_new();
	struct net_conn *c;

	for (size_t i = 0; i < 2; i++) {
		c = ask_dns(n, "/dns/udp", names[i], 1);
		net_until(n, c->closed);
		assert_memory_equal(
			c->side.got + 12 + strlen(names[i]) + 2 + 4 + 12, "\xc6\x12\0\1", 4);
		c = ask_dns(n, "/dns/tcp", names[i], 28);
		net_until(n, c->closed);
		assert_memory_equal(c->side.got + 12 + strlen(names[i]) + 2 + 4 + 12, v6, 16);
	}
	c = ask_dns(n, "/dns/udp", "1.0.18.198.in-addr.arpa", 12);
	net_until(n, c->closed);
	assert_true(net_got_text(&c->side, "\7gateway\6docker\10internal"));
	assert_int_equal(n->n_asks, 0);
	net_free(n);
}

static void test_dns_odd(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/dns/udp");
	uint8_t q[4096] = {0};

	/* No header: no answer. */
	net_say(n, c, "short", 5);
	net_end(n, c);
	net_until(n, c->closed);
	assert_true(!c->reset && c->side.n_got == 0);
	/* A query of zeros asks no question. */
	c = net_open(n, "/dns/tcp");
	net_say(n, c, q, 100);
	net_end(n, c);
	net_until(n, c->closed);
	assert_true(!c->reset && rcode(c) == 1);
	/* Too long. */
	c = net_open(n, "/dns/tcp");
	net_say(n, c, q, sizeof(q));
	net_until(n, c->closed);
	assert_true(c->reset);
	/* A second query behind the first is none. */
	c = net_open(n, "/dns/udp");
	net_say(n, c, q, net_query(q, sizeof(q), HOST, 1));
	net_say(n, c, q, net_query(q, sizeof(q), HOST, 1));
	net_end(n, c);
	net_until(n, c->closed);
	assert_true(!c->reset && rcode(c) == 1);
	assert_int_equal(n->n_asks, 0);
	net_free(n);
}

/* ---- many, and the slow ---- */

static unsigned count_got(const struct net_rig *n, uint64_t each)
{
	unsigned k = 0;

	for (unsigned i = 0; i < n->n_conns; i++)
		k += n->conns[i]->side.n_got >= each;
	return k;
}

static unsigned count_closed(const struct net_rig *n)
{
	unsigned k = 0;

	for (unsigned i = 0; i < n->n_conns; i++)
		k += n->conns[i]->closed;
	return k;
}

static void test_1000_at_once(void **state)
{
	struct net_rig *n = net_new();
	uint64_t before, during, after;
	uint8_t hello[512];
	size_t len = net_hello(hello, sizeof(hello), HOST, false);
	char path[64];

	n->decide = NET_ALLOW;
	caught_path(n, HOST, 443, path);
	before = rig_memory(n->rig, "RssAnon:");
	for (unsigned i = 0; i < 1000; i++)
		net_say(n, net_open(n, path), hello, len);
	net_until(n, n->n_ways == 1000);
	for (unsigned i = 0; i < 1000; i++)
		n->ways[i]->side.endless = 10000;
	net_until(n, count_got(n, 10000) == 1000);
	assert_true(n->most_unanswered <= 64);
	during = rig_memory(n->rig, "RssAnon:");
	for (unsigned i = 0; i < 1000; i++)
		assert_true(
			n->ways[i]->side.n_got == len && !memcmp(n->ways[i]->side.got, hello, len));
	for (unsigned i = 1; i < n->n_conns; i++)
		net_end(n, n->conns[i]);
	for (unsigned i = 0; i < 1000; i++)
		n->ways[i]->side.end = true;
	net_until(n, count_closed(n) == n->n_conns);
	net_for(n, 100);
	after = rig_memory(n->rig, "RssAnon:");
	print_message("1,000 connections: %u KiB before, %u during, %u after\n",
		(unsigned)(before / 1024), (unsigned)(during / 1024), (unsigned)(after / 1024));
	assert_true(during < before + 10 * MIB);
	assert_true(after < before + MIB);
	net_free(n);
}

static struct net_way *raw_tunnel(struct net_rig *n, struct net_conn **ret)
{
	struct net_way *w;

	*ret = open_connect(n, HOST ":9999");
	net_say(n, *ret, "\1", 1);
	w = accept_tunnel(n, HOST, 9999);
	net_until(n, w->side.n_got == 1 && (*ret)->side.n_got == strlen(established));
	w->side.n_got = 0;
	(*ret)->side.n_got = 0;
	return w;
}

/* Who does not read stops who writes, and edge keeps next to nothing. */
static void test_slow_readers(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *slow, *fast, *other;
	struct net_way *ws = raw_tunnel(n, &slow), *wf = raw_tunnel(n, &fast), *wo;
	uint64_t before = rig_memory(n->rig, "RssAnon:"), sent;

	/* A guest that does not read, and a server that does not. */
	net_pause(n, slow, true);
	ws->side.endless = 1024 * (uint64_t)MIB;
	wf->side.paused = true;
	fast->side.endless = 1024 * (uint64_t)MIB;
	wire_resume(n->guest, fast->sid);
	net_for(n, 500);
	sent = ws->side.n_endless + fast->side.n_endless;
	net_for(n, 500);
	assert_true(sent > MIB / 4 && sent == ws->side.n_endless + fast->side.n_endless);
	assert_true(rig_memory(n->rig, "RssAnon:") < before + MIB);
	/* Nobody else waits. */
	wo = raw_tunnel(n, &other);
	wo->side.endless = 8 * MIB;
	other->side.check = true;
	net_until(n, other->side.n_got == 8 * MIB);
	/* And it goes on. */
	wf->side.check = true;
	net_pause(n, slow, false);
	wf->side.paused = false;
	net_until(n, slow->side.n_got > 4 * MIB && wf->side.n_got > 4 * MIB);
	net_free(n);
}

static void test_bulk_both_ways(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c;
	struct net_way *w = raw_tunnel(n, &c);
	uint64_t at = clock_mono_ms();

	c->side.check = w->side.check = true;
	c->side.endless = w->side.endless = 64 * MIB;
	c->side.end = w->side.end = true;
	wire_resume(n->guest, c->sid);
	net_until(n, c->closed && w->side.eof);
	assert_false(c->reset);
	assert_true(c->side.n_got == 64 * MIB && w->side.n_got == 64 * MIB);
	print_message("64 MiB each way: %u ms\n", (unsigned)(clock_mono_ms() - at));
	net_free(n);
}

/* Both ends have said all, and the server is slow to take the last of it. */
static void test_last_bytes_are_delivered(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c;
	struct net_way *w = raw_tunnel(n, &c);

	w->side.paused = w->side.end = w->side.check = true;
	c->side.endless = 260000; /* more than a socket takes, less than that and a window */
	c->side.end = true;
	wire_resume(n->guest, c->sid);
	net_until(n, c->closed);
	assert_false(c->reset);
	net_for(n, 50);
	w->side.paused = false;
	net_until(n, w->side.eof);
	assert_int_equal(w->side.n_got, 260000);
	net_free(n);
}

/* ---- resets, limits, and a keeper or a guest that is wrong ---- */

static void test_reset_in_each_state(void **state)
{
	struct net_rig *n = net_new();
	uint8_t hello[512];
	size_t len = net_hello(hello, sizeof(hello), HOST, false);
	struct net_ask *a;
	struct net_conn *c;
	struct net_way *w;

	c = open_caught(n, HOST, 443); /* sniffing */
	net_until(n, c->status);
	wire_reset(n->guest, c->sid);
	c = open_caught(n, HOST, 443); /* asked, and the verdict comes too late */
	net_say(n, c, hello, len);
	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	wire_reset(n->guest, c->sid);
	net_for(n, 50);
	w = net_allow(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	assert_true(w->gone);
	c = open_connect(n, HOST ":443"); /* opening */
	w = allow_tunnel(n, HOST, 443);
	wire_reset(n->guest, c->sid);
	net_until(n, w->side.eof);
	c = open_connect(n, HOST ":443"); /* checking */
	w = accept_tunnel(n, HOST, 443);
	net_say(n, c, hello, 20);
	net_until(n, c->side.n_got);
	wire_reset(n->guest, c->sid);
	net_until(n, w->side.eof);
	assert_int_equal(w->side.n_got, 0);
	w = raw_tunnel(n, &c); /* open */
	wire_reset(n->guest, c->sid);
	net_until(n, w->side.eof);
	w = raw_tunnel(n, &c); /* the server goes */
	w->side.endless = 1000;
	net_until(n, c->side.n_got == 1000);
	fd_close(&w->fd);
	net_until(n, c->side.eof);
	net_say(n, c, "late", 4);
	net_until(n, c->closed);
	c = ask_dns(n, "/dns/udp", HOST, 1); /* DNS */
	net_until(n, net_asked(n, EDGE_ASK_DNS, HOST, 0));
	a = net_asked(n, EDGE_ASK_DNS, HOST, 0);
	wire_reset(n->guest, c->sid);
	net_for(n, 20);
	(void)net_allow(n, a);
	/* Everything still works, and nobody was forgotten. */
	w = raw_tunnel(n, &c);
	net_free(n);
}

/* A connection that is reset before its verdict still has its place. */
static void test_unanswered_count(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = NULL;
	unsigned n_open = 0;

	for (unsigned i = 0; i < WIRE_NET_STREAMS; i++) {
		c = ask_dns(n, "/dns/udp", HOST, 1);
		if (i % 100 == 99)
			net_until(n, c->status);
	}
	net_until(n, n->n_asks == 64 && c->status);
	for (unsigned i = 0; i < n->n_conns; i++)
		wire_reset(n->guest, n->conns[i]->sid);
	net_for(n, 100);
	/* 64 questions were asked, the others are forgotten. */
	assert_int_equal(n->n_asks, 64);
	for (unsigned i = 0; i < WIRE_NET_STREAMS; i++) {
		c = net_open(n, "/tcp/203.0.113.1/9999");
		if (i % 100 == 99)
			net_for(n, 10);
	}
	net_for(n, 50);
	for (unsigned i = WIRE_NET_STREAMS; i < n->n_conns; i++)
		n_open += !n->conns[i]->closed;
	assert_int_equal(n_open, WIRE_NET_STREAMS - 64);
	for (unsigned i = 0; i < 64; i++)
		net_deny(n, &n->asks[i], "");
	net_for(n, 100);
	c = net_open(n, "/tcp/203.0.113.1/9999");
	net_until(n, c->status);
	assert_true(c->open);
	net_free(n);
}

static void test_keeper_reads_late(void **state)
{
	struct net_rig *n = net_new();

	n->rig->keeper_deaf = true;
	for (unsigned i = 0; i < 300; i++)
		(void)ask_dns(n, "/dns/udp", HOST, 1);
	net_for(n, 200);
	assert_int_equal(n->n_asks, 0);
	n->rig->keeper_deaf = false;
	n->decide = NET_ALLOW;
	net_until(n, count_closed(n) == 300);
	for (unsigned i = 0; i < 300; i++)
		assert_true(!n->conns[i]->reset && n->conns[i]->side.got[7] == 1);
	net_free(n);
}

static void test_keeper_is_wrong(void **state)
{
	static const struct {
		bool allowed, fd;
		int id; /* added to the right one */
		const char *path;
	} rows[] = {
		{true, true, 1, "/dns/udp"},  /* unknown */
		{true, true, 64, "/dns/udp"}, /* the right place, another time */
		{true, true, 0, "/dns/udp"},  /* a socket for DNS */
		{true, false, 0, "tunnel"},   /* none for a tunnel */
		{true, true, 0, "fault"},     /* yes to a fault */
		{true, false, 0, "fault"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct edge_verdict v = {.allowed = rows[i].allowed};
		struct net_rig *n = net_new();
		int fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		if (rows[i].path[0] == '/')
			(void)ask_dns(n, rows[i].path, HOST, 1);
		else if (rows[i].path[0] == 't')
			(void)open_connect(n, HOST ":22");
		else
			(void)net_open(n, "/tcp/198.18.0.1/1");
		net_until(n, n->n_asks == 1);
		assert_int_equal(
			edge_answer_ask(n->rig->keeper, n->asks[0].id + (uint32_t)rows[i].id, &v,
				rows[i].fd ? fds[0] : -1),
			0);
		if (rig_exit(n->rig) != 4)
			fail_msg("row %zu", i);
		fd_close(&fds[0]);
		fd_close(&fds[1]);
		net_free(n);
	}
}

static void test_keeper_says_net_twice(void **state)
{
	struct net_rig *n = net_new();
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(edge_ask_net(n->rig->keeper, fds[0]), 0);
	assert_int_equal(rig_exit(n->rig), 4);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	net_free(n);
	/* A verdict without a network. */
	{
		struct rig *r = rig_new(NULL);

		rig_up(r);
		assert_int_equal(edge_answer_ask(r->keeper, 0, &(struct edge_verdict){0}, -1), 0);
		assert_int_equal(rig_exit(r), 4);
		rig_free(r);
	}
}

/* Raw frames of a guest that does not use our library; its stream 1 is open. */
static void flood(const char *frame, size_t len, unsigned times, const char *text)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/proxy");
	uint64_t before = rig_memory(n->rig, "RssAnon:"), most = before;

	net_until(n, c->status);

	n->deaf = true;
	for (unsigned i = 0; i < times && !n->rig->lost; i++) {
		(void)send(n->fd, frame, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (i % 500 == 499) {
			net_step(n, 1);
			most = MAX(most, n->rig->lost ? 0 : rig_memory(n->rig, "RssAnon:"));
		}
	}
	net_until(n, n->rig->lost);
	if (!strstr(n->rig->lost_text, text))
		fail_msg("lost, but: %s", n->rig->lost_text);
	assert_true(most < before + 8 * MIB);
	assert_int_equal(rig_exit(n->rig), 3);
	net_free(n);
}

#define FLOOD(frame, text) flood(frame, sizeof(frame) - 1, 100000, text)

static void test_floods(void **state)
{
	/* Ours or nghttp2's limit, whichever comes first. */
	FLOOD("\0\0\x08\6\0\0\0\0\0whatever", "");			     /* PING */
	FLOOD("\0\0\0\4\0\0\0\0\0", "");				     /* SETTINGS */
	FLOOD("\0\0\1\1\0\0\0\0\3\x83\0\0\1\x09\0\0\0\0\3\x86", "not used"); /* CONTINUATION */
	FLOOD("\0\0\0\0\0\0\0\0\1", "move nothing");			     /* empty DATA */
	FLOOD("\0\0\x09\1\4\0\0\0\3\x83\x86\x84\x40\1a\1b\xbe", "not used"); /* HPACK */
	FLOOD("\0\0\4\3\0\0\0\0\3\0\0\0\x08", "protocol");		     /* RST_STREAM, idle */
	FLOOD("\0\0\4\x08\0\0\0\0\0\0\0\0\1", "move nothing");		     /* WINDOW_UPDATE */
	FLOOD("\0\0\5\2\0\0\0\0\1\0\0\0\0\1", "not used");		     /* PRIORITY */
}

/* Opens and resets as fast as it can. */
static void test_rapid_reset(void **state)
{
	struct net_rig *n = net_new();
	uint64_t before = rig_memory(n->rig, "RssAnon:"), most = before;
	uint8_t q[512];
	size_t len = net_query(q, sizeof(q), HOST, 1);

	n->decide = NET_DENY;
	for (unsigned i = 0; i < 4000 && !n->rig->lost; i++) {
		struct net_conn *c = net_open(n, "/dns/udp");

		net_say(n, c, q, len);
		net_end(n, c);
		net_step(n, 0);
		wire_reset(n->guest, c->sid);
		net_step(n, 0);
		if (i % 200 == 0 && !n->rig->lost)
			most = MAX(most, rig_memory(n->rig, "RssAnon:"));
	}
	assert_true(most < before + 8 * MIB);
	assert_true(n->most_unanswered <= 64);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_caught_tls),
		cmocka_unit_test(test_names_of_tls),
		cmocka_unit_test(test_bad_hello),
		cmocka_unit_test(test_server_first),
		cmocka_unit_test(test_server_first_is_held_on_443),
		cmocka_unit_test(test_raw_bytes),
		cmocka_unit_test(test_http_is_no_tunnel),
		cmocka_unit_test(test_silence_is_bounded),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_egress_says_no),
		cmocka_unit_test(test_egress_is_wrong),
		cmocka_unit_test(test_answer_in_pieces),
		cmocka_unit_test(test_dns),
		cmocka_unit_test(test_dns_denied),
		cmocka_unit_test(test_dns_of_the_gateway),
		cmocka_unit_test(test_dns_odd),
		cmocka_unit_test(test_1000_at_once),
		cmocka_unit_test(test_slow_readers),
		cmocka_unit_test(test_bulk_both_ways),
		cmocka_unit_test(test_last_bytes_are_delivered),
		cmocka_unit_test(test_reset_in_each_state),
		cmocka_unit_test(test_unanswered_count),
		cmocka_unit_test(test_keeper_reads_late),
		cmocka_unit_test(test_keeper_is_wrong),
		cmocka_unit_test(test_keeper_says_net_twice),
		cmocka_unit_test(test_floods),
		cmocka_unit_test(test_rapid_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
