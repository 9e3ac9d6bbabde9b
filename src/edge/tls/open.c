/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terminates the guest's TLS, between the wire and c->in and c->out, which then hold plain data:
 *
 *   wire -> o->in -> TLS -> c->in -> HTTP engine        read only as far as c->in has room
 *   wire <- o->out <- TLS <- c->out <- HTTP engine      a record is made when the wire pulls it
 *
 * so each direction stops when the next stage does not read, and no queue grows.
 *
 * An event of a stream is sent immediately as its own record. A record is not longer than a frame
 * of the wire. A complete answer ends with close_notify, a cut one without it. A guest that closes
 * without close_notify ends its requests as usual, but its websocket is cut, not ended. A
 * connection holds at most a window of the wire (64 KiB), OPEN_IN, OPEN_OUT, OPEN_RECORDS, and one
 * record per direction in TLS itself.
 */
#include "open_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <openssl/err.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define ALERT_INTERNAL 80
#define TLS_STATE 65536 /* estimated memory of TLS for one connection */

/* ---- how it begins ---- */

/* For the target that the policy decided about, never for the name in the ClientHello. */
static int use_leaf(const struct opener *opener, SSL *ssl, const struct host *host, struct err *err)
{
	struct slice der;
	X509 *cert;
	bool ok;
	int r = mint_leaf(opener->mint, host, clock_wall_ms() / 1000, &der, err);

	if (r == 0)
		r = mint_x509(opener->mint, der, &cert);
	if (r < 0)
		return r;
	ok = SSL_use_certificate(ssl, cert) == 1 &&
	     SSL_use_PrivateKey(ssl, mint_leaf_key(opener->mint)) == 1;
	X509_free(cert);
	return ok ? 0 : -EIO;
}

static int make_ssl(
	const struct opener *opener, struct open *o, const struct host *host, struct err *err)
{
	BIO *bio;

	o->ssl = SSL_new(opener->ctx);
	bio = o->ssl ? open_bio_new(opener, o) : NULL;
	if (!bio)
		return -ENOMEM;
	SSL_set_bio(o->ssl, bio, bio);
	SSL_set_accept_state(o->ssl);
	return use_leaf(opener, o->ssl, host, err);
}

void open_free(struct conn *c)
{
	struct open *o = TAKE(c->open);

	if (!o)
		return;
	c->sni = NULL;
	SSL_free(o->ssl);
	bufq_done(&o->in);
	bufq_done(&o->out);
	free(o);
	ERR_clear_error();
}

static void note_name(struct conn *c, const struct hello *h)
{
	if (h->has_name && host_from_wire(hello_name(h), &c->open->sni, NULL) == 0)
		c->sni = &c->open->sni;
}

static void shake_open(struct edge *e, struct conn *c);

void open_begin(struct edge *e, struct conn *c, const struct hello *h)
{
	struct open *o = xcalloc(1, sizeof(*o));
	struct err err = {0};
	char fault[EDGE_MAX_TEXT];
	int r = make_ssl(e->opener, o, &c->target.host, &err);

	assert(!c->open);
	c->open = o;
	note_name(c, h);
	if (r < 0) {
		open_free(c);
		(void)snprintf(
			fault, sizeof(fault), "cannot issue a certificate: %s", err_text(&err, r));
		conn_report_fault(e, c, EDGE_ASK_TUNNEL, fault);
		conn_alert(e, c, ALERT_INTERNAL);
		return;
	}
	/* Received data is TLS already; unsent data, our answer to the CONNECT, precedes it. */
	o->in = c->in;
	o->out = c->out;
	bufq_init(&c->in, OPEN_IN);
	bufq_init(&c->out, OPEN_OUT);
	c->state = CONN_SHAKING;
	conn_set_timer(e, c, e->first_ms);
	shake_open(e, c);
}

/* ---- failures ---- */

static bool is_distrust(int reason)
{
	switch (reason) {
	case SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_CA:
	case SSL_AD_REASON_OFFSET + SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_UNKNOWN:
	case SSL_AD_REASON_OFFSET + SSL_AD_UNSUPPORTED_CERTIFICATE:
		return true;
	default:
		return false;
	}
}

static void say_why(char *buf, size_t n, bool shaking)
{
	unsigned long error = ERR_peek_last_error();
	const char *text = ERR_reason_error_string(error);

	if (ERR_GET_LIB(error) == ERR_LIB_SSL && is_distrust(ERR_GET_REASON(error)))
		(void)snprintf(buf, n, "the guest does not trust the sandbox CA (%s)", text);
	else
		(void)snprintf(buf, n, "%s: %s",
			shaking ? "the TLS handshake failed" : "the TLS connection failed",
			text ? text : "unknown reason");
}

/* Sends an alert that TLS has written, then ends; drops other output. */
static void give_up(struct edge *e, struct conn *c, const char *fault)
{
	conn_report_fault(e, c, EDGE_ASK_TUNNEL, fault);
	c->open->broken = true;
	bufq_consume(&c->out, bufq_len(&c->out));
	bufq_trim(&c->out);
	conn_end(e, c);
}

static void on_error(struct edge *e, struct conn *c)
{
	char fault[EDGE_MAX_TEXT];

	c->proto = EDGE_PROTO_TLS;
	say_why(fault, sizeof(fault), c->state == CONN_SHAKING);
	ERR_clear_error();
	give_up(e, c, fault);
}

void open_on_timer(struct edge *e, struct conn *c)
{
	char fault[EDGE_MAX_TEXT];

	(void)snprintf(fault, sizeof(fault), "the TLS handshake did not complete within %u s",
		e->first_ms / 1000);
	conn_report_fault(e, c, EDGE_ASK_TUNNEL, fault);
	conn_reset(e, c);
}

/* ---- from the guest ---- */

/* After each step of TLS: returns the consumed window to the guest, and sends output. */
static void after_step(struct edge *e, struct conn *c)
{
	struct open *o = c->open;

	if (bufq_len(&o->in) == 0)
		bufq_trim(&o->in);
	if (o->n_taken > 0 && c->sid)
		wire_consumed(e->net->port.wire, c->sid, o->n_taken);
	o->n_taken = 0;
	if (bufq_len(&o->out) > 0 || bufq_len(&c->out) > 0)
		wire_resume(e->net->port.wire, c->sid);
}

static bool has_engine(const struct conn *c)
{
	return c->state == CONN_HTTP || c->state == CONN_H2;
}

/* Returns true if the guest has closed and TLS has consumed all of its data. */
static bool is_cut(const struct open *o)
{
	return o->in_end && bufq_len(&o->in) == 0;
}

/* Returns true if c->in has new data, or its end. */
static bool take_some(struct edge *e, struct conn *c)
{
	static uint8_t plain[OPEN_IN];
	struct open *o = c->open;
	size_t room = bufq_space(&c->in);
	int r, error;

	if (c->in_end || room == 0)
		return false;
	ERR_clear_error();
	r = SSL_read(o->ssl, plain, (int)MIN(room, sizeof(plain)));
	error = SSL_get_error(o->ssl, r);
	after_step(e, c);
	if (r > 0)
		return bufq_put(&c->in, slice_of(plain, (size_t)r)) > 0;
	if (error == SSL_ERROR_ZERO_RETURN || (error == SSL_ERROR_WANT_READ && is_cut(o))) {
		c->in_end = true;
		c->in_cut = error != SSL_ERROR_ZERO_RETURN;
		return true;
	}
	if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
		on_error(e, c);
	return false;
}

static void pump_open(struct edge *e, struct conn *c)
{
	uint32_t idx = c->idx, gen = c->gen;

	while (c && c->open && has_engine(c) && take_some(e, c)) {
		http_on_bytes(e, c);
		c = conn_find(e, idx, gen);
	}
}

static bool chose_h2(const struct open *o)
{
	const unsigned char *name;
	unsigned int n;

	SSL_get0_alpn_selected(o->ssl, &name, &n);
	return slice_eq_str(slice_of(name, n), "h2");
}

static void begin_inside(struct edge *e, struct conn *c)
{
	uint32_t idx = c->idx, gen = c->gen;

	/* Not needed again: there is no second handshake. */
	SSL_certs_clear(c->open->ssl);
	conn_set_timer(e, c, 0);
	if (chose_h2(c->open)) {
		c->proto = EDGE_PROTO_HTTP;
		c->state = CONN_H2;
		h2_begin(e, c);
	} else {
		http_begin(e, c);
	}
	c = conn_find(e, idx, gen);
	if (c)
		pump_open(e, c);
}

static void shake_open(struct edge *e, struct conn *c)
{
	struct open *o = c->open;
	int r, error;

	ERR_clear_error();
	r = SSL_do_handshake(o->ssl);
	error = SSL_get_error(o->ssl, r);
	after_step(e, c);
	if (r == 1)
		begin_inside(e, c);
	else if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
		on_error(e, c);
	else if (is_cut(o))
		give_up(e, c, "the guest closed the connection during the TLS handshake");
}

static void go_on(struct edge *e, struct conn *c)
{
	if (c->state == CONN_SHAKING)
		shake_open(e, c);
	else
		pump_open(e, c);
}

void open_on_bytes(struct edge *e, struct conn *c, struct slice bytes)
{
	size_t n = bufq_put(&c->open->in, bytes);

	/* lib/wire/wire limits the data to the window, which is the size of the queue. */
	assert(n == bytes.n);
	go_on(e, c);
}

void open_on_end(struct edge *e, struct conn *c)
{
	c->open->in_end = true;
	if (c->state != CONN_ENDING)
		go_on(e, c);
}

void open_deafen(struct edge *e, struct conn *c)
{
	struct open *o = c->open;

	o->n_taken += bufq_len(&o->in);
	bufq_consume(&o->in, bufq_len(&o->in));
	after_step(e, c);
}

/* ---- to the guest ---- */

void open_on_room(struct edge *e, struct conn *c)
{
	uint32_t idx = c->idx, gen = c->gen;

	if (has_engine(c)) {
		http_on_room(e, c);
		c = conn_find(e, idx, gen);
	}
	if (c && c->state != CONN_ENDING)
		go_on(e, c);
}

static int make_record(struct conn *c)
{
	struct open *o = c->open;
	struct slice run = bufq_peek(&c->out);
	int r;

	ERR_clear_error();
	r = SSL_write(o->ssl, run.p, (int)MIN(run.n, OPEN_RECORD));
	/* o->out was empty and has room for more than one record. So TLS can only wait for the rest
	 * of a key update that the guest has split. */
	if (r <= 0) {
		bool waits = SSL_get_error(o->ssl, r) == SSL_ERROR_WANT_READ;

		ERR_clear_error();
		return waits ? 0 : -ECONNRESET;
	}
	bufq_consume(&c->out, (size_t)r);
	bufq_trim(&c->out);
	return 0;
}

/* Returns the next record, if there is data. */
static int fill_out(struct conn *c)
{
	struct open *o = c->open;

	if (o->broken || c->state == CONN_SHAKING)
		return 0;
	if (bufq_len(&c->out) > 0)
		return make_record(c);
	if (c->out_end && !c->out_cut && !o->said_goodbye) {
		o->said_goodbye = true;
		(void)SSL_shutdown(o->ssl);
	}
	return 0;
}

/* 0, end of stream, without a preceding close_notify is a cut that the guest's TLS detects. */
ssize_t open_pull(struct conn *c, uint8_t *buf, size_t n)
{
	struct open *o = c->open;

	if (bufq_len(&o->out) == 0 && fill_out(c) < 0)
		return -ECONNRESET;
	if (bufq_len(&o->out) == 0)
		return c->out_end ? 0 : -EAGAIN;
	n = bufq_take(&o->out, buf, n);
	if (bufq_len(&o->out) == 0) {
		bufq_done(&o->out);
		bufq_init(&o->out, OPEN_RECORDS);
	}
	return (ssize_t)n;
}

size_t open_worth(const struct conn *c)
{
	const struct open *o = c->open;

	return o ? TLS_STATE + conn_queue_size(&o->in) + conn_queue_size(&o->out) : 0;
}
