/* SPDX-License-Identifier: Apache-2.0 */
/* TLS intercepted by a real, sealed sbx-edge: which clients get a handshake, with which
 * certificate, and what is permitted inside. The clients use OpenSSL. */
#include "open_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "src/edge/edge.h"

#define HOST NET_RIG_HOST

static const char get[] = "GET /a HTTP/1.1\r\nHost: " HOST "\r\n\r\n";

/* Both versions, by CONNECT and redirected: the same asks, and https requests. */
static void test_requests_inside(void **state)
{
	static const char named[] = "GET /a HTTP/1.1\r\nHost: " HOST "\r\nX-A: 1\r\n\r\n";
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	struct net_rig *n = net_new();

	for (unsigned i = 0; i < 4; i++) {
		struct client_plan plan = {.version = versions[i & 1], .caught = i > 1};
		struct client *cl = client_up(n, &plan);
		unsigned n_asks = n->n_asks;
		struct net_way *w;

		assert_int_equal(SSL_version(cl->ssl), versions[i & 1]);
		client_say_text(cl, named);
		client_say_text(cl, get); /* pipelined: asked about after the first is done */
		w = client_allow(cl, "GET", "/a");
		assert_int_equal(n->asks[n->n_asks - 1].ask.via,
			i > 1 ? EDGE_VIA_TRANSPARENT : EDGE_VIA_FORWARD);
		assert_string_equal(n->asks[n->n_asks - 1].ask.named, "x-a:1\n");
		assert_int_equal(n->asks[n->n_asks - 1].ask.wants_id, 5);
		client_until(cl, way_has_request(w, "/a"));
		assert_int_equal(n->n_asks, n_asks + 1);
		way_answer(w, "one");
		w = client_allow(cl, "GET", "/a");
		way_answer(w, "two");
		client_until(cl, client_got_text(cl, "content-length: 3\r\n\r\ntwo"));
		assert_true(client_got_text(cl, "content-length: 3\r\n\r\none"));
		/* The guest's close_notify between two requests is answered. */
		client_goodbye(cl);
		client_until(cl, cl->goodbye && cl->c->side.eof);
		net_end(n, cl->c);
		client_until(cl, cl->c->closed);
		assert_false(cl->c->reset);
		client_free(cl);
	}
	net_free(n);
}

/* A push of git is allowed before its content is read, and waits later. */
static void test_the_keeper_knows_who_has_ended(void **state)
{
	struct net_rig *n = net_new();

	for (unsigned i = 0; i < 4; i++) {
		struct client *cl = client_up(n, &(struct client_plan){0});
		struct net_way *w = NULL;
		bool early = i & 1;

		client_say_text(cl, get);
		client_until(cl, net_asked(n, EDGE_ASK_HTTP, HOST, 443));
		if (!early)
			w = client_allow(cl, "GET", "/a");
		if (i > 1)
			client_goodbye(cl);
		else
			net_end(n, cl->c); /* as a program that was killed */
		client_until(cl, n->rig->n_ended == i + 1);
		assert_int_equal(n->rig->ended, n->asks[n->n_asks - 1].id);
		if (early)
			w = client_allow(cl, "GET", "/a");
		client_until(cl, way_has_request(w, "/a"));
		way_answer(w, "one");
		client_until(cl, client_got_text(cl, "content-length: 3\r\n\r\none"));
		assert_int_equal(n->rig->n_ended, i + 1);
		client_free(cl);
	}
	assert_int_equal(n->rig->n_gone, 0);
	net_free(n);
}

static bool is_signed_by(const struct edge_ca *ca, X509 *leaf)
{
	BIO *bio = BIO_new_mem_buf(ca->pem, -1);
	X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	bool ok = X509_verify(leaf, X509_get0_pubkey(cert)) == 1;

	X509_free(cert);
	BIO_free(bio);
	return ok;
}

/* The leaf is for the target only, signed by the CA that the keeper has. */
static void test_the_right_leaf(void **state)
{
	struct net_rig *n = net_new();
	struct client *cl = client_up(n, &(struct client_plan){.name = "EXAMPLE.test."});
	X509 *leaf = SSL_get0_peer_certificate(cl->ssl);

	assert_int_equal(X509_check_host(leaf, HOST, 0, 0, NULL), 1);
	assert_int_equal(X509_check_host(leaf, "www." HOST, 0, 0, NULL), 0);
	assert_true(is_signed_by(&n->rig->ca, leaf));
	assert_int_equal(sk_X509_num(SSL_get_peer_cert_chain(cl->ssl)), 1);
	client_free(cl);
	/* An address has no server name, and its leaf has the address. */
	cl = client_up(n, &(struct client_plan){.host = "192.0.2.7", .name = ""});
	leaf = SSL_get0_peer_certificate(cl->ssl);
	assert_int_equal(X509_check_ip_asc(leaf, "192.0.2.7", 0), 1);
	client_free(cl);
	cl = client_up(n, &(struct client_plan){.host = "2001:db8::1", .name = "", .port = 8443});
	client_free(cl);
	net_free(n);
}

/* The name in a ClientHello never gets a certificate: the alert is sent before one is created. */
static void test_names_that_do_not_agree(void **state)
{
	static const struct {
		struct client_plan plan;
		const char *fault;
	} cases[] = {
		{{.name = "other.test"}, "the TLS server name is not the target"},
		{{.name = "www." HOST}, "the TLS server name is not the target"},
		{{.name = ""}, "TLS without a server name"},
		{{.host = "192.0.2.7", .name = HOST}, "the TLS server name is not the target"},
		{{.name = "other.test", .caught = true}, "the TLS server name is not the target"},
	};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct client *cl = client_new(n, &cases[i].plan);

		client_until(cl, net_faulted(n, cases[i].fault));
		client_until(cl, cl->error == SSL_AD_REASON_OFFSET + SSL_AD_UNRECOGNIZED_NAME);
		client_until(cl, cl->c->side.eof);
		assert_int_equal(cl->c->side.n_got, 7);
		client_free(cl);
	}
	net_free(n);
}

static struct net_conn *open_here(struct net_rig *n)
{
	struct net_conn *c = net_open_connect(n, HOST ":443");

	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	net_allow_opened(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 443));
	net_until(n, net_got(&c->side, net_established, strlen(net_established)));
	return c;
}

static void test_first_bytes_that_are_no_hello(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = open_here(n);
	uint8_t hello[512];
	struct net_ask *a;

	net_say(n, c, hello, net_hello(hello, sizeof(hello), HOST, true));
	net_until(n, net_faulted(n, "the TLS server name is hidden"));
	net_until(n, c->side.eof);
	c = open_here(n);
	net_say(n, c, "SSH-2.0-x\r\n", 11);
	net_until(n, net_faulted(n, "neither TLS nor HTTP"));
	net_until(n, c->reset);
	/* On any port. */
	c = net_open_connect(n, HOST ":9999");
	net_until(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 9999));
	net_allow_opened(n, net_asked(n, EDGE_ASK_TUNNEL, HOST, 9999));
	net_say(n, c, "SSH-2.0-x\r\n", 11);
	net_until(n, net_faulted(n, "neither TLS nor HTTP"));
	/* HTTP without TLS is asked about as HTTP. */
	c = open_here(n);
	net_say(n, c, "GET /p HTTP/1.1\r\nHost: " HOST ":443\r\n\r\n", 43);
	net_until(n, net_asked(n, EDGE_ASK_HTTP, HOST, 443));
	a = net_asked(n, EDGE_ASK_HTTP, HOST, 443);
	assert_false(a->ask.tls);
	net_deny(n, a, "use https");
	net_until(n, net_got_text(&c->side, "HTTP/1.1 403 "));
	net_free(n);
}

static void test_a_guest_that_does_not_trust_us(void **state)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	struct net_rig *n = net_new();

	for (unsigned i = 0; i < 2; i++) {
		struct client *cl = client_new(
			n, &(struct client_plan){.distrust = true, .version = versions[i]});

		client_until(cl, net_faulted(n, "the guest does not trust the sandbox CA"));
		assert_int_equal(n->asks[n->n_asks - 1].ask.kind, EDGE_ASK_TUNNEL);
		assert_string_equal(n->asks[n->n_asks - 1].ask.host, HOST);
		client_until(cl, cl->c->side.eof);
		client_free(cl);
	}
	net_free(n);
}

static void test_alpn(void **state)
{
	static const struct {
		const char *offered, *chosen;
	} cases[] = {
		{"\x2h2\x8http/1.1", "h2"},
		{"\x8http/1.1", "http/1.1"},
		{"\x6spdy/3\x8http/1.1", "http/1.1"},
		{NULL, ""},
		{"\x6spdy/3", NULL},
	};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct client *cl = client_new(n, &(struct client_plan){.alpn = cases[i].offered});
		const uint8_t *name;
		unsigned len;

		client_until(cl, cl->shaken || cl->error);
		SSL_get0_alpn_selected(cl->ssl, &name, &len);
		if (cases[i].chosen)
			assert_true(slice_eq_str(slice_of(name, len), cases[i].chosen));
		else
			client_until(cl, net_faulted(n, "the TLS handshake failed"));
		assert_int_equal(cl->shaken, cases[i].chosen != NULL);
		client_free(cl);
	}
	net_free(n);
}

/* A request that does not match the connection, or is not permitted inside one, ends it. */
static void test_requests_that_do_not_fit(void **state)
{
	static const struct {
		const char *request, *answer, *fault;
	} cases[] = {
		{"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", "HTTP/1.1 421 ",
			"the Host header is not the target"},
		{"GET / HTTP/1.1\r\nHost: " HOST ":80\r\n\r\n", "HTTP/1.1 421 ",
			"the Host header is not the target"},
		{"GET http://" HOST "/ HTTP/1.1\r\nHost: " HOST "\r\n\r\n", "HTTP/1.1 400 ",
			"the scheme does not match the connection"},
		{"CONNECT " HOST ":443 HTTP/1.1\r\nHost: " HOST ":443\r\n\r\n", "HTTP/1.1 400 ",
			"CONNECT on a connection that has a target"},
		{"GET / HTTP/1.1\r\nHost : " HOST "\r\n\r\n", "HTTP/1.1 400 ", ""},
	};
	struct net_rig *n = net_new();

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct client *cl = client_up(n, &(struct client_plan){0});

		client_say_text(cl, cases[i].request);
		client_until(cl, net_faulted(n, cases[i].fault));
		assert_true(n->asks[n->n_asks - 1].ask.tls);
		client_until(cl, client_got_text(cl, cases[i].answer) && cl->goodbye);
		client_free(cl);
	}
	net_free(n);
}

static void test_refusals_inside(void **state)
{
	struct net_rig *n = net_new();
	struct client *cl = client_up(n, &(struct client_plan){0});

	/* A denial by a rule applies to the request. */
	client_say_text(cl, get);
	client_until(cl, net_asked(n, EDGE_ASK_HTTP, HOST, 443));
	net_deny(n, net_asked(n, EDGE_ASK_HTTP, HOST, 443), "");
	client_until(cl, client_got_text(cl, "Blocked by network policy: " HOST ":443\n"));
	client_say_text(cl, get);
	way_answer(client_allow(cl, "GET", "/a"), "still here");
	client_until(cl, client_got_text(cl, "still here"));
	/* A denial with a reason applies to the connection. */
	client_say_text(cl, get);
	client_until(cl, net_asked(n, EDGE_ASK_HTTP, HOST, 443));
	net_deny(n, net_asked(n, EDGE_ASK_HTTP, HOST, 443), "its credential was removed");
	client_until(cl, cl->goodbye);
	assert_true(client_got_text(cl, "its credential was removed"));
	assert_true(client_got_text(cl, "connection: close\r\n"));
	client_free(cl);
	net_free(n);
}

/* ---- bytes ---- */

static void test_byte_by_byte(void **state)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	struct net_rig *n = net_new();

	for (unsigned i = 0; i < 2; i++) {
		struct client *cl = client_new(n, &(struct client_plan){.version = versions[i]});

		cl->crumb = 1;
		client_until(cl, cl->shaken);
		client_say_text(cl, get);
		way_answer(client_allow(cl, "GET", "/a"), "crumbs");
		client_until(cl, client_got_text(cl, "crumbs"));
		client_free(cl);
	}
	net_free(n);
}

/* Only data of the test follows it. */
static void send_hello_only(struct client *cl)
{
	client_pump(cl);
	assert_false(cl->shaken);
	cl->held = true;
	client_until(cl, cl->c->side.n_got > 0);
}

static void test_garbage_after_the_hello(void **state)
{
	static const char garbage[] = "\x17\3\3\0\x20"
				      "this is not a record that anybody has encrypted";
	struct net_rig *n = net_new();
	struct client *cl = client_new(n, &(struct client_plan){0});

	send_hello_only(cl);
	net_say(n, cl->c, garbage, sizeof(garbage));
	client_until(cl, net_faulted(n, "the TLS handshake failed"));
	client_until(cl, cl->c->side.eof);
	client_free(cl);
	/* And inside: the current request is not continued. */
	cl = client_up(n, &(struct client_plan){0});
	client_say_text(cl, "POST /b HTTP/1.1\r\nHost: " HOST "\r\nContent-Length: 9\r\n\r\n1234");
	(void)client_allow(cl, "POST", "/b");
	client_until(cl, n->ways[0]->side.n_got > 0);
	net_say(n, cl->c, garbage, sizeof(garbage));
	client_until(cl, net_faulted(n, "the TLS connection failed"));
	client_until(cl, n->ways[0]->side.eof && cl->c->side.eof);
	assert_false(cl->goodbye);
	assert_int_equal(cl->n_got, 0);
	client_free(cl);
	net_free(n);
}

static void test_a_handshake_that_stalls(void **state)
{
	rig_first_ms = "3000";

	struct net_rig *n = net_new();
	struct client *stalled = client_new(n, &(struct client_plan){0}), *gone;
	uint64_t began = clock_mono_ms();

	rig_first_ms = NULL;

	send_hello_only(stalled);
	gone = client_new(n, &(struct client_plan){0});
	send_hello_only(gone);
	net_end(n, gone->c);
	client_until(gone, net_faulted(n, "closed the connection during the TLS handshake"));
	client_until(stalled, net_faulted(n, "not complete within 3 s"));
	client_until(stalled, stalled->c->reset);
	assert_true(clock_mono_ms() - began >= 2700);
	client_free(stalled);
	client_free(gone);
	net_free(n);
}

static void test_no_second_handshake(void **state)
{
	struct net_rig *n = net_new();
	struct client *cl = client_up(n, &(struct client_plan){.version = TLS1_2_VERSION});

	assert_int_equal(SSL_renegotiate(cl->ssl), 1);
	cl->shaken = false;
	client_until(cl, cl->error);
	assert_int_equal(cl->error, SSL_R_NO_RENEGOTIATION);
	client_free(cl);
	/* A key update is not a renegotiation. */
	cl = client_up(n, &(struct client_plan){.version = TLS1_3_VERSION});
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(SSL_key_update(cl->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
		client_say_text(cl, get);
		way_answer(client_allow(cl, "GET", "/a"), "new keys");
		client_until(cl, client_got_text(cl, "new keys"));
		cl->n_got = 0;
	}
	client_free(cl);
	net_free(n);
}

/* Nothing of one connection can be used in another. */
static void test_no_sessions(void **state)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	struct net_rig *n = net_new();

	for (unsigned i = 0; i < 2; i++) {
		struct client *cl = client_up(n, &(struct client_plan){.version = versions[i]}),
			      *next;
		SSL_SESSION *session;

		client_say_text(cl, get);
		way_answer(client_allow(cl, "GET", "/a"), "x");
		client_until(cl, client_got_text(cl, "\r\n\r\nx"));
		session = SSL_get1_session(cl->ssl);
		assert_false(SSL_SESSION_has_ticket(session));
		assert_int_equal(SSL_SESSION_get_max_early_data(session), 0);
		assert_null(SSL_get_current_compression(cl->ssl));
		next = client_up(
			n, &(struct client_plan){.version = versions[i], .session = session});
		assert_false(SSL_session_reused(next->ssl));
		SSL_SESSION_free(session);
		client_free(cl);
		client_free(next);
	}
	net_free(n);
}

/* ---- the CA ---- */

static void test_the_next_edge_has_the_same_ca(void **state)
{
	struct net_rig *n = net_new();
	struct edge_ca ca = n->rig->ca, bad = {.n_saved = 7, .saved = "nothing"};
	struct client *cl;

	assert_true(ca.n_saved > 0);
	net_free(n);
	n = net_new_saved(&ca);
	assert_string_equal(n->rig->ca.pem, ca.pem);
	cl = client_up(n, &(struct client_plan){0});
	assert_true(is_signed_by(&ca, SSL_get0_peer_certificate(cl->ssl)));
	client_free(cl);
	net_free(n);
	/* Without a valid one, a new CA is created. */
	n = net_new_saved(&bad);
	assert_string_not_equal(n->rig->ca.pem, ca.pem);
	net_free(n);
}

/* Only for a tunnel, and only if allowed. */
static void test_opened_for_what_cannot_be(void **state)
{
	struct net_rig *n = net_new();
	struct net_conn *c = net_open(n, "/proxy");
	static const char plain[] = "GET http://" HOST "/ HTTP/1.1\r\nHost: " HOST "\r\n\r\n";

	net_say(n, c, plain, strlen(plain));
	net_until(n, net_asked(n, EDGE_ASK_HTTP, HOST, 80));
	net_allow_opened(n, net_asked(n, EDGE_ASK_HTTP, HOST, 80));
	assert_int_equal(rig_exit(n->rig), CONTROL_EXIT_KEEPER);
	net_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_inside),
		cmocka_unit_test(test_the_keeper_knows_who_has_ended),
		cmocka_unit_test(test_the_right_leaf),
		cmocka_unit_test(test_names_that_do_not_agree),
		cmocka_unit_test(test_first_bytes_that_are_no_hello),
		cmocka_unit_test(test_a_guest_that_does_not_trust_us),
		cmocka_unit_test(test_alpn),
		cmocka_unit_test(test_requests_that_do_not_fit),
		cmocka_unit_test(test_refusals_inside),
		cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_garbage_after_the_hello),
		cmocka_unit_test(test_a_handshake_that_stalls),
		cmocka_unit_test(test_no_second_handshake),
		cmocka_unit_test(test_no_sessions),
		cmocka_unit_test(test_the_next_edge_has_the_same_ca),
		cmocka_unit_test(test_opened_for_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
