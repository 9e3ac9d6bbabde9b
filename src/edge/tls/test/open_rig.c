/* SPDX-License-Identifier: Apache-2.0 */
#include "open_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

static void on_got(void *ctx, struct slice bytes)
{
	struct client *cl = ctx;

	assert_int_equal(BIO_write(cl->from, bytes.p, (int)bytes.n), bytes.n);
}

static void trust_ca(struct client *cl)
{
	BIO *bio = BIO_new_mem_buf(cl->n->rig->ca.pem, -1);
	X509 *ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);

	assert_non_null(ca);
	assert_int_equal(X509_STORE_add_cert(SSL_CTX_get_cert_store(cl->ctx), ca), 1);
	X509_free(ca);
	BIO_free(bio);
}

static void make_ssl(struct client *cl, const struct client_plan *p)
{
	const char *host = p->host ? p->host : NET_RIG_HOST;
	const char *name = p->name ? p->name : host, *verified = p->verified ? p->verified : host;

	cl->ctx = SSL_CTX_new(TLS_client_method());
	assert_non_null(cl->ctx);
	SSL_CTX_set_verify(cl->ctx, SSL_VERIFY_PEER, NULL);
	if (!p->distrust)
		trust_ca(cl);
	cl->ssl = SSL_new(cl->ctx);
	assert_non_null(cl->ssl);
	cl->from = BIO_new(BIO_s_mem());
	cl->to = BIO_new(BIO_s_mem());
	SSL_set_bio(cl->ssl, cl->from, cl->to);
	SSL_set_connect_state(cl->ssl);
	if (p->version) {
		assert_int_equal(SSL_set_min_proto_version(cl->ssl, p->version), 1);
		assert_int_equal(SSL_set_max_proto_version(cl->ssl, p->version), 1);
	}
	if (name[0])
		assert_int_equal(SSL_set_tlsext_host_name(cl->ssl, name), 1);
	if (!X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(cl->ssl), verified))
		assert_int_equal(SSL_set1_host(cl->ssl, verified), 1);
	if (p->alpn)
		assert_int_equal(SSL_set_alpn_protos(cl->ssl, (const uint8_t *)p->alpn,
					 (unsigned)strlen(p->alpn)),
			0);
	if (p->session)
		assert_int_equal(SSL_set_session(cl->ssl, p->session), 1);
	ERR_clear_error();
}

static void take_over(struct client *cl)
{
	cl->c->side.n_got = 0;
	cl->c->side.on_got = on_got;
	cl->c->side.ctx = cl;
}

static void answer_opened(struct client *cl, const char *host, uint16_t port)
{
	client_until(cl, net_asked(cl->n, EDGE_ASK_TUNNEL, host, port));
	net_allow_opened(cl->n, net_asked(cl->n, EDGE_ASK_TUNNEL, host, port));
}

struct client *client_new(struct net_rig *n, const struct client_plan *p)
{
	const char *host = p->host ? p->host : NET_RIG_HOST;
	uint16_t port = p->port ? p->port : 443;
	struct client *cl = xcalloc(1, sizeof(*cl));
	char target[300];

	cl->n = n;
	make_ssl(cl, p);
	(void)snprintf(target, sizeof(target), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
	cl->held = true;
	if (p->caught) {
		cl->c = net_open_caught(n, host, port);
		cl->held = false;
		take_over(cl);
		answer_opened(cl, host, port);
		assert_int_equal(n->asks[n->n_asks - 1].ask.proto, EDGE_PROTO_TLS);
	} else {
		cl->c = net_open_connect(n, target);
		answer_opened(cl, host, port);
		net_until(n, net_got(&cl->c->side, net_established, strlen(net_established)));
		take_over(cl);
		cl->held = false;
	}
	return cl;
}

struct client *client_up(struct net_rig *n, const struct client_plan *p)
{
	struct client *cl = client_new(n, p);

	client_until(cl, cl->shaken);
	return cl;
}

void client_free(struct client *cl)
{
	cl->c->side.on_got = NULL;
	SSL_free(cl->ssl);
	SSL_CTX_free(cl->ctx);
	free(cl->got);
	free(cl);
}

static void failed(struct client *cl, int r)
{
	int error = SSL_get_error(cl->ssl, r);

	if (error == SSL_ERROR_ZERO_RETURN)
		cl->goodbye = true;
	else if (error == SSL_ERROR_WANT_READ)
		cl->cut = cl->c && (cl->c->side.eof || cl->c->closed);
	else
		cl->error = ERR_GET_REASON(ERR_peek_last_error());
}

static void read_some(struct client *cl)
{
	uint8_t buf[16384];
	int r;

	while ((r = SSL_read(cl->ssl, buf, sizeof(buf))) > 0) {
		if (!cl->got)
			cl->got = xmalloc(OPEN_RIG_GOT);
		assert_true(cl->n_got + (size_t)r < OPEN_RIG_GOT);
		memcpy(cl->got + cl->n_got, buf, (size_t)r);
		cl->n_got += (size_t)r;
	}
	failed(cl, r);
}

static void send_some(struct client *cl)
{
	char buf[65536];
	int n = 0;

	if (!cl->held && cl->c && cl->c->open)
		n = BIO_read(cl->to, buf, cl->crumb ? (int)cl->crumb : (int)sizeof(buf));
	if (n > 0)
		net_say(cl->n, cl->c, buf, (size_t)n);
}

void client_pump(struct client *cl)
{
	ERR_clear_error();
	if (!cl->error && !cl->shaken) {
		int r = SSL_do_handshake(cl->ssl);

		cl->shaken = r == 1;
		if (r != 1)
			failed(cl, r);
	}
	if (!cl->error && cl->shaken && !cl->goodbye)
		read_some(cl);
	send_some(cl);
}

void client_say(struct client *cl, const void *p, size_t len)
{
	for (size_t at = 0; at < len;) {
		int r = SSL_write(cl->ssl, (const uint8_t *)p + at, (int)MIN(len - at, 16384));

		assert_true(r > 0);
		at += (size_t)r;
	}
}

void client_say_text(struct client *cl, const char *text)
{
	client_say(cl, text, strlen(text));
}

void client_goodbye(struct client *cl)
{
	assert_true(SSL_shutdown(cl->ssl) >= 0);
}

bool client_got_text(const struct client *cl, const char *text)
{
	return cl->n_got && memmem(cl->got, cl->n_got, text, strlen(text));
}

struct net_way *client_allow(struct client *cl, const char *method, const char *url)
{
	struct net_ask *a;
	struct net_way *w;

	client_until(cl, net_asked(cl->n, EDGE_ASK_HTTP, NET_RIG_HOST, 443));
	a = net_asked(cl->n, EDGE_ASK_HTTP, NET_RIG_HOST, 443);
	assert_true(a->ask.tls);
	assert_string_equal(a->ask.method, method);
	assert_string_equal(a->ask.target, url);
	w = net_allow(cl->n, a);
	w->has_head = true;
	return w;
}

bool way_has_request(const struct net_way *w, const char *path)
{
	struct slice in = slice_of(w->side.got, w->side.n_got);
	struct canon_reader rd;
	struct canon_frame frame;
	struct http_req req;
	struct arena arena;
	bool ok;

	if (w->side.n_got == 0)
		return false;
	canon_reader_init(&rd);
	arena_init(&arena, HTTP_ARENA_SIZE);
	ok = canon_reader_feed(&rd, &in, &frame) == 1 && frame.kind == CANON_HEAD &&
	     canon_get_req(frame.payload, &arena, &req) == 0 && req.port == 443 &&
	     slice_eq_str(req.host, NET_RIG_HOST) && req.scheme == HTTP_SCHEME_HTTPS &&
	     slice_eq_str(req.path, path);
	canon_reader_done(&rd);
	arena_done(&arena);
	return ok;
}

void way_answer(struct net_way *w, const char *body)
{
	way_say_head(w, 200, HTTP_BODY_LENGTH, strlen(body));
	way_say_data(w, slice_from_str(body));
	way_say_end(w);
}
