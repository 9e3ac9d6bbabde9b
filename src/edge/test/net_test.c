/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing traffic: a real, sealed sbx-edge with guest, keeper and egress played by the test. */
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

#define HOST NET_RIG_HOST
#define ALERT_NAME "\x15\3\1\0\2\2\x70"
#define ALERT_DENIED "\x15\3\1\0\2\2\x31"

/* ---- caught connections ---- */

static void test_caught_tls(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open_caught(n, HOST, 443);
	uint8_t hello[512];
	size_t len = net_hello(hello, sizeof(hello), "Example.TEST", false);
	struct net_way *w;

	net_until(n, c->status == 200);
	net_say(n, c, hello, len);
	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	assert_int_equal(n->asks[n->n_asks - 1].ask.proto, EDGE_PROTO_TLS);
	assert_int_equal(n->asks[n->n_asks - 1].ask.via, EDGE_VIA_TRANSPARENT);
	w = net_accept_tunnel(n, HOST, 443);
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
	c = connect	  ? net_open_connect(n, target)
	    : row->target ? net_open_caught(n, host, 443)
			  : net_open(n, "/tcp/203.0.113.9/443");
	if (connect) {
		w = net_accept_tunnel(n, host, 443);
		net_until(n, net_got(&c->side, net_established, strlen(net_established)));
		c->side.n_got = 0;
	}
	for (size_t i = 0; i < len; i += step) {
		net_say(n, c, hello + i, MIN(step, len - i));
		if (step == 1)
			net_step(n, 1);
	}
	if (!connect)
		w = net_accept_tunnel(n, host, 443);
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
	/* No data was sent. */
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

	/* The record is one byte longer than the message. */
	hello[4]++;
	hello[len++] = 0;
	for (size_t step = 1; step <= len; step += len - 1) {
		struct net_conn *c = net_open_caught(n, HOST, 443);
		struct net_way *w;

		for (size_t i = 0; i < len; i += step)
			net_say(n, c, hello + i, step);
		w = net_accept_tunnel(n, HOST, 443);
		net_until(n, net_faulted(n, "ClientHello rejected"));
		net_until(n, c->side.eof && w->side.eof);
		assert_int_equal(w->side.n_got, 0);
	}
	net_free(n);
}

static void test_server_first(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open_caught(n, HOST, 22);
	struct net_way *w;
	uint64_t at = clock_mono_ms();

	/* After some silence, edge asks. */
	w = net_accept_tunnel(n, HOST, 22);
	assert_true(clock_mono_ms() - at >= 200);
	assert_int_equal(n->asks[n->n_asks - 1].ask.proto, EDGE_PROTO_UNKNOWN);
	way_say(w, "SSH-2.0-x\r\n", 11);
	net_until(n, net_got(&c->side, "SSH-2.0-x\r\n", 11));
	/* Later data is not an HTTP request. */
	net_say(n, c, "GET / HTTP/1.1\r\n", 16);
	net_until(n, net_got(&w->side, "GET / HTTP/1.1\r\n", 16));
	net_free(n);
}

/* On the web ports, data of a server that speaks first is held until the guest's data is known. */
static void test_server_first_is_held_on_443(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open_connect(n, HOST ":443");
	struct net_way *w = net_accept_tunnel(n, HOST, 443);
	uint8_t hello[512];

	way_say(w, "early", 5);
	net_for(n, 100);
	assert_true(net_got(&c->side, net_established, strlen(net_established)));
	net_say(n, c, hello, net_hello(hello, sizeof(hello), HOST, false));
	net_until(n, c->side.n_got == strlen(net_established) + 5);
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
		c = i % 2 ? net_open_connect(n, target) : net_open_caught(n, HOST, port);
		net_say(n, c, "\1\2raw", 5);
		w = net_accept_tunnel(n, HOST, port);
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

/* HTTP never uses a tunnel, whatever the port and however it is split. */
static void test_http_is_no_tunnel(void **state)
{
	static const char *const heads[] = {"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		struct net_conn *c = net_open_caught(n, HOST, i % 2 ? 80 : 8080);
		struct net_way *w;

		net_say(n, c, heads[i], strlen(heads[i]));
		net_until(n, net_faulted(n, ""));
		net_until(n, c->side.eof);
		assert_true(net_got_text(&c->side, "HTTP/1.1 "));

		c = net_open_connect(n, i % 2 ? HOST ":80" : HOST ":8080");
		w = net_accept_tunnel(n, HOST, i % 2 ? 80 : 8080);
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

/* The keeper must not send for nobody what a person approves. */
static void test_the_keeper_knows_who_has_left(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open_connect(n, HOST ":443"), *next;
	struct net_ask *a;

	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	a = net_asked(n, EDGE_ASK_TUNNEL, HOST, 443);
	net_for(n, 50);
	assert_int_equal(n->rig->n_gone, 0);
	wire_reset(n->guest, c->sid);
	net_until(n, n->rig->n_gone == 1);
	assert_int_equal(n->rig->gone, a->id);
	net_deny(n, a, "the client has left");
	next = net_open_connect(n, HOST ":443");
	(void)net_accept_tunnel(n, HOST, 443);
	net_until(n, next->status == 200);
	assert_int_equal(n->rig->n_gone, 1);
	net_free(n);
}

/* A guest that closes its direction may still read: edge goes on, and the keeper decides. */
static void test_the_keeper_knows_who_has_ended(void **state)
{
	static const char get[] = "GET http://" HOST "/ HTTP/1.1\r\nHost: " HOST "\r\n\r\n";
	struct net_rig *n = net_new();
	struct net_conn *c = net_open_connect(n, HOST ":443"), *next;
	struct net_ask *a;

	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	a = net_asked(n, EDGE_ASK_TUNNEL, HOST, 443);
	net_end(n, c);
	net_until(n, n->rig->n_ended == 1);
	assert_int_equal(n->rig->ended, a->id);
	next = net_open(n, "/proxy");
	net_say(n, next, get, sizeof(get) - 1);
	net_end(n, next);
	net_until(n, net_asked(n, EDGE_ASK_HTTP, HOST, 80));
	net_until(n, n->rig->n_ended == 2);
	a = net_asked(n, EDGE_ASK_HTTP, HOST, 80);
	assert_int_equal(n->rig->ended, a->id);
	net_for(n, 50);
	assert_int_equal(n->rig->n_ended, 2);
	net_free(n);
}

/* The timeout comes from the keeper; its default is 10 s. */
static void test_silence_is_bounded(void **state)
{
	rig_first_ms = "3000";

	struct net_rig *n = net_new();
	struct net_conn *quiet = net_open_connect(n, HOST ":443"), *half, *ssh;
	struct net_way *w[3];
	uint64_t at = clock_mono_ms();

	rig_first_ms = NULL;

	w[0] = net_accept_tunnel(n, HOST, 443);
	half = net_open_connect(n, HOST ":9999");
	w[1] = net_accept_tunnel(n, HOST, 9999);
	net_say(n, half, "GE", 2);
	ssh = net_open_connect(n, HOST ":22");
	w[2] = net_accept_tunnel(n, HOST, 22);
	n->decide = NET_DENY;
	net_until(n, quiet->closed && half->closed && w[0]->side.eof && w[1]->side.eof);
	assert_true(quiet->reset && half->reset && clock_mono_ms() - at >= 2700);
	assert_string_equal(n->asks[n->n_asks - 2].ask.fault, EDGE_SILENT "3 s");
	assert_true(strstr(n->asks[n->n_asks - 1].ask.fault, "unknown protocol"));
	assert_int_equal(w[1]->side.n_got, 0);
	assert_true(ssh->open && !w[2]->side.eof);
	net_free(n);
}

static void test_addresses(void **state)
{
	static const struct {
		const char *path, *host, *fault;
	} rows[] = {
		{"/tcp/198.18.77.5/443", "198.18.77.5", "no host name"},
		{"/tcp/198.19.255.255/443", "198.19.255.255", "no host name"},
		{"/tcp/fd5b:7862:19d3:1::77/443", "fd5b:7862:19d3:1::77", "no host name"},
		{"/tcp/fd5b:7862:19d3:1:0:1:0:77/443", "fd5b:7862:19d3:1:0:1:0:77", "no host name"},
		{"/tcp/::ffff:198.18.77.5/443", "198.18.77.5", "no host name"},
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
	(void)net_accept_tunnel(n, "203.0.113.7", 9999);
	net_free(n);
}

/* The guest's query before it permits a connection. */
static void test_may_be_connected(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/may/203.0.113.9/9999");
	char path[64];

	net_end(n, c);
	net_until(n, net_asked(n, EDGE_ASK_CONNECT, "203.0.113.9", 9999));
	assert_int_equal(n->asks[n->n_asks - 1].ask.via, EDGE_VIA_TRANSPARENT);
	assert_int_equal(c->status, 0);
	net_deny(n, net_asked(n, EDGE_ASK_CONNECT, "203.0.113.9", 9999), "");
	net_until(n, c->closed);
	assert_true(c->status == 403 && !c->reset && c->side.n_got == 0);

	/* An address that was returned for a name means that name. */
	net_caught_path(n, HOST, 22, path);
	memcpy(path, "/may", 4);
	c = net_open(n, path);
	net_end(n, c);
	net_until(n, net_asked(n, EDGE_ASK_CONNECT, HOST, 22));
	(void)net_allow(n, net_asked(n, EDGE_ASK_CONNECT, HOST, 22));
	net_until(n, c->closed);
	assert_true(c->status == 200 && !c->reset);
	assert_int_equal(n->n_ways, 0);

	/* An address without a name is blocked by edge and recorded. */
	c = net_open(n, "/may/198.18.77.5/443");
	net_end(n, c);
	net_until(n, net_faulted(n, "no host name is assigned"));
	net_until(n, c->closed);
	assert_true(c->status == 403 && !c->reset);

	/* The guest does not wait for the answer: it is dropped. */
	c = net_open(n, "/may/203.0.113.9/22");
	net_until(n, net_asked(n, EDGE_ASK_CONNECT, "203.0.113.9", 22));
	wire_reset(n->guest, c->sid);
	net_for(n, 50);
	(void)net_allow(n, net_asked(n, EDGE_ASK_CONNECT, "203.0.113.9", 22));
	net_for(n, 50);

	c = net_open(n, "/may/203.0.113.9/0");
	net_until(n, c->closed);
	assert_true(c->reset);
	net_free(n);
}

/* ---- refusals ---- */

static void test_denied(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open_connect(n, HOST ":22");
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

	c = net_open_caught(n, HOST, 9999);
	net_say(n, c, "\1", 1);
	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 9999));
	net_deny(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 9999), "");
	net_until(n, c->closed);
	assert_true(c->reset && c->side.n_got == 0);

	c = net_open_caught(n, HOST, 443);
	net_say(n, c, hello, net_hello(hello, sizeof(hello), HOST, false));
	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	net_deny(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443), "");
	net_until(n, c->side.eof);
	assert_true(net_got(&c->side, ALERT_DENIED, 7));
	net_free(n);
}

/* The host's SSH agent: data is not inspected, and none is forwarded before the verdict. */
static void test_agent(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/agent");
	struct net_ask *a;
	struct net_way *w;

	net_say(n, c, "\0\0\0\1\x0b", 5);
	net_until(n, net_asked(n, EDGE_ASK_AGENT, "", 0));
	net_deny(n, net_asked(n, EDGE_ASK_AGENT, "", 0), "no");
	net_until(n, c->closed);
	assert_true(c->reset && c->side.n_got == 0);

	c = net_open(n, "/agent");
	net_say(n, c, "\0\0\0\1\x0b", 5);
	net_until(n, (a = net_asked(n, EDGE_ASK_AGENT, "", 0)));
	w = net_allow(n, a);
	net_until(n, net_got(&w->side, "\0\0\0\1\x0b", 5));
	way_say(w, "\0\0\0\1\5", 5);
	net_until(n, net_got(&c->side, "\0\0\0\1\5", 5));
	net_end(n, c);
	net_until(n, w->side.eof);
	w->side.end = true;
	net_until(n, c->closed);
	assert_false(c->reset);

	c = net_open(n, "/agent/x"); /* there is only one */
	net_until(n, c->closed);
	assert_true(c->reset);
	net_free(n);
}

static void test_egress_says_no(void **state)
{
	static const uint16_t statuses[] = {403, 502, 504};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		struct net_conn *c = net_open_connect(n, HOST ":443");
		char line[32];

		(void)snprintf(line, sizeof(line), "HTTP/1.1 %u ", statuses[i]);
		way_refuse(net_allow_tunnel(n, HOST, 443), statuses[i], "the sky fell");
		net_until(n, c->side.eof);
		assert_true(net_got_text(&c->side, line));
		assert_true(net_got_text(&c->side, "the sky fell"));
		c = net_open_caught(n, HOST, 9999);
		way_refuse(net_allow_tunnel(n, HOST, 9999), statuses[i], "the sky fell");
		net_until(n, c->closed);
		assert_true(c->reset && c->side.n_got == 0);
	}
	net_free(n);
}

/* Egress may be compromised by a server: an invalid answer ends one connection. */
static void test_egress_is_wrong(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} rows[] = {
		{"", 0}, {"\1", 1}, {"\xff\xff\xff\xff\1\1\0\0", 8},
		{"\1\0\0\0\2\1\0\0x", 9},				    /* DATA */
		{"\1\0\0\0\1\1\0\0x", 9},				    /* an invalid head */
		{"\x0f\0\0\0\1\2\0\0\2\0\xc8\0\4\0\0\0\0\0\0\0\0\0\0", 23}, /* stream 2 */
		{"\x0f\0\0\0\1\1\0\0\2\0\xc8\0\0\0\0\0\0\0\0\0\0\0\0",
			23}, /* 200 without a tunnel */
	};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct net_conn *c = net_open_connect(n, HOST ":443");
		struct net_way *w = net_allow_tunnel(n, HOST, 443);

		if (rows[i].n)
			assert_int_equal(send(w->fd, rows[i].bytes, rows[i].n, 0), rows[i].n);
		assert_int_equal(shutdown(w->fd, SHUT_WR), 0);
		net_until(n, c->side.eof && w->side.eof);
		assert_true(net_got_text(&c->side, "HTTP/1.1 502 "));
	}
	net_free(n);
}

/* The answer may be split anywhere, with the server's data right after it. */
static void test_answer_in_pieces(void **state)
{
	static const char good[] = "\x0f\0\0\0\1\1\0\0\2\0\xc8\0\4\0\0\0\0\0\0\0\0\0\0server";
	struct net_rig *n = net_new();

	for (size_t step = 1; step < sizeof(good); step += 7) {
		struct net_conn *c = net_open_connect(n, HOST ":22");
		struct net_way *w = net_allow_tunnel(n, HOST, 22);

		for (size_t i = 0; i < sizeof(good) - 1; i += step) {
			size_t part = MIN(step, sizeof(good) - 1 - i);

			assert_int_equal(send(w->fd, good + i, part, 0), part);
			net_step(n, 1);
		}
		net_until(n, c->side.n_got == strlen(net_established) + 6);
		assert_memory_equal(c->side.got + strlen(net_established), "server", 6);
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
	struct net_conn *c = net_ask_dns(n, "/dns/udp", "Example.Test", 1), *d;
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
	d = net_ask_dns(n, "/dns/tcp", HOST, 1);
	net_until(n, d->closed);
	assert_memory_equal(d->side.got + 12 + 14 + 4 + 12, a, 4);
	(void)snprintf(name, sizeof(name), "%u.%u.%u.%u.in-addr.arpa", a[3], a[2], a[1], a[0]);
	d = net_ask_dns(n, "/dns/udp", name, 12);
	net_until(n, d->closed);
	assert_true(rcode(d) == 0 && net_got_text(&d->side, "\7example\4test"));
	d = net_ask_dns(n, "/dns/udp", "9.9.19.198.in-addr.arpa", 12);
	net_until(n, d->closed);
	assert_int_equal(rcode(d), 3);
	/* No ECH key, only addresses. */
	d = net_ask_dns(n, "/dns/udp", HOST, 65);
	net_until(n, d->closed);
	assert_true(rcode(d) == 0 && d->side.got[7] == 0);
	d = net_ask_dns(n, "/dns/udp", HOST, 16);
	net_until(n, d->closed);
	assert_true(rcode(d) == 0 && d->side.got[7] == 0);
	net_free(n);
}

static void test_dns_denied(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_ask_dns(n, "/dns/udp", HOST, 1);

	net_until(n, net_asked(n, EDGE_ASK_DNS, HOST, 0));
	net_deny(n, &n->asks[0], "");
	net_until(n, c->closed);
	assert_true(rcode(c) == 3 && net_got_text(&c->side, "no applicable policies"));
	c = net_ask_dns(n, "/dns/udp", HOST, 28);
	net_until(n, net_asked(n, EDGE_ASK_DNS, HOST, 0));
	net_deny(n, net_asked(n, EDGE_ASK_DNS, HOST, 0), "because");
	net_until(n, c->closed);
	assert_true(rcode(c) == 3 && net_got_text(&c->side, "because"));
	/* An invalid name is blocked without an ask, and reported. */
	c = net_ask_dns(n, "/dns/udp", "127.0.0.1", 1);
	net_until(n, net_faulted(n, "an address is not a name"));
	net_until(n, c->closed);
	assert_int_equal(rcode(c), 3);
	c = net_ask_dns(n, "/dns/udp", "a b", 1);
	net_until(n, net_faulted(n, "not a host name"));
	net_until(n, c->closed);
	assert_int_equal(rcode(c), 3);
	c = net_ask_dns(n, "/dns/udp", "-x.test", 1);
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
		c = net_ask_dns(n, "/dns/udp", names[i], 1);
		net_until(n, c->closed);
		assert_memory_equal(
			c->side.got + 12 + strlen(names[i]) + 2 + 4 + 12, "\xc6\x12\0\1", 4);
		c = net_ask_dns(n, "/dns/tcp", names[i], 28);
		net_until(n, c->closed);
		assert_memory_equal(c->side.got + 12 + strlen(names[i]) + 2 + 4 + 12, v6, 16);
	}
	c = net_ask_dns(n, "/dns/udp", "1.0.18.198.in-addr.arpa", 12);
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
	/* A query of zeros has no question. */
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
	/* A second query after the first is ignored. */
	c = net_open(n, "/dns/udp");
	net_say(n, c, q, net_query(q, sizeof(q), HOST, 1));
	net_say(n, c, q, net_query(q, sizeof(q), HOST, 1));
	net_end(n, c);
	net_until(n, c->closed);
	assert_true(!c->reset && rcode(c) == 1);
	assert_int_equal(n->n_asks, 0);
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
		cmocka_unit_test(test_the_keeper_knows_who_has_left),
		cmocka_unit_test(test_the_keeper_knows_who_has_ended),
		cmocka_unit_test(test_silence_is_bounded),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_may_be_connected),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_agent),
		cmocka_unit_test(test_egress_says_no),
		cmocka_unit_test(test_egress_is_wrong),
		cmocka_unit_test(test_answer_in_pieces),
		cmocka_unit_test(test_dns),
		cmocka_unit_test(test_dns_denied),
		cmocka_unit_test(test_dns_of_the_gateway),
		cmocka_unit_test(test_dns_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
