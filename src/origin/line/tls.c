/* SPDX-License-Identifier: Apache-2.0 */
/* TLS to the server. Verified only against the roots from the keeper: OpenSSL opens no file and
 * reads no configuration here. */
#include "protocol.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

/* Supported protocols, in order of preference. */
static const struct line_ops *const spoken[] = {&line_h2, &line_h1};

/* An unreadable certificate is skipped: the others still apply. */
static int add_roots(X509_STORE *store, struct slice text)
{
	BIO *bio = BIO_new_mem_buf(text.p, (int)text.n);
	int n = 0;

	while (bio) {
		X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
		bool is_end = !cert && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;

		ERR_clear_error();
		if (is_end || (!cert && BIO_pending(bio) == 0))
			break;
		if (cert)
			n += X509_STORE_add_cert(store, cert) == 1;
		X509_free(cert);
	}
	BIO_free(bio);
	ERR_clear_error();
	return n;
}

/* The certificate must match this host: its names, or its addresses, no partial labels. */
static int set_host(SSL_CTX *ctx, const struct host *host)
{
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ctx);

	X509_VERIFY_PARAM_set_hostflags(
		param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (host->is_addr)
		return X509_VERIFY_PARAM_set1_ip_asc(param, host->name);
	return X509_VERIFY_PARAM_set1_host(param, host->name, host->n);
}

int tls_init(struct origin *o, struct slice roots, struct err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	o->tls = ctx;
	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) || !set_host(ctx, &o->host))
		return err_set(err, -EIO, "cannot configure OpenSSL");
	SSL_CTX_set_security_level(ctx, 2);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	/* An answer may contain the value: its text must not stay in OpenSSL's buffers. */
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_CLEANSE_PLAINTEXT | SSL_OP_NO_TICKET);
	/* The buffers of a line live as long as the line: the one for reading has no text that was
	 * passed on, in the other one the text was encrypted in place. */
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(ctx, 1);
	if (add_roots(SSL_CTX_get_cert_store(ctx), roots) == 0)
		return err_set(err, -EINVAL, "no certificate found");
	return 0;
}

static bool offer_tls(SSL *ssl, bool h1_only)
{
	unsigned char list[64];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(spoken); i++) {
		size_t len = strlen(spoken[i]->alpn);

		if (h1_only && spoken[i]->kind != LINE_H1)
			continue;
		list[n++] = (unsigned char)len;
		memcpy(list + n, spoken[i]->alpn, len);
		n += len;
	}
	return SSL_set_alpn_protos(ssl, list, (unsigned)n) == 0;
}

int tls_begin(struct origin *o, struct line *l)
{
	l->ssl = SSL_new(o->tls);
	if (!l->ssl || !SSL_set_fd(l->ssl, l->fd) || !offer_tls(l->ssl, l->h1_only))
		return -EIO;
	if (!o->host.is_addr && !SSL_set_tlsext_host_name(l->ssl, o->host.name))
		return -EIO;
	SSL_set_connect_state(l->ssl);
	return 0;
}

/* A server without ALPN uses HTTP/1.1; OpenSSL rejects a protocol that was not offered. */
static const struct line_ops *chosen_tls(const SSL *ssl)
{
	const unsigned char *name = NULL;
	unsigned n = 0;

	SSL_get0_alpn_selected(ssl, &name, &n);
	if (n == 0)
		return &line_h1;
	for (size_t i = 0; i < ARRAY_LEN(spoken); i++) {
		if (slice_eq_str(slice_of(name, n), spoken[i]->alpn))
			return spoken[i];
	}
	return NULL;
}

static int finish_tls(struct line *l, const char **ret_why)
{
	X509 *cert = SSL_get0_peer_certificate(l->ssl);
	unsigned n = 0;

	*ret_why = "no certificate";
	if (!cert || SSL_get_verify_result(l->ssl) != X509_V_OK ||
		!X509_digest(cert, EVP_sha256(), l->cert, &n) || n != ORIGIN_CERT_HASH)
		return -EKEYREJECTED;
	l->ops = chosen_tls(l->ssl);
	*ret_why = "no common protocol";
	return l->ops ? 0 : -EPROTO;
}

int tls_handshake(struct origin *o, struct line *l, const char **ret_why)
{
	long verified;
	unsigned long code;
	int r, why;

	ERR_clear_error();
	r = SSL_do_handshake(l->ssl);
	if (r == 1)
		return finish_tls(l, ret_why);
	why = SSL_get_error(l->ssl, r);
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	verified = SSL_get_verify_result(l->ssl);
	code = ERR_peek_last_error();
	*ret_why = verified != X509_V_OK ? X509_verify_cert_error_string(verified)
		   : code		 ? ERR_reason_error_string(code)
					 : "connection lost";
	ERR_clear_error();
	return verified != X509_V_OK ? -EKEYREJECTED : -EPROTO;
}

void tls_end(struct line *l)
{
	if (!l->ssl)
		return;
	/* one attempt to send close_notify; the answer is not awaited */
	if (SSL_is_init_finished(l->ssl))
		(void)SSL_shutdown(l->ssl);
	ERR_clear_error();
	SSL_free(l->ssl);
	l->ssl = NULL;
}

static ssize_t failed_tls(struct line *l, int r)
{
	int why = SSL_get_error(l->ssl, r);

	ERR_clear_error();
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	return why == SSL_ERROR_ZERO_RETURN ? 0 : -EPIPE;
}

ssize_t line_recv(struct line *l, void *p, size_t n)
{
	int r;

	ERR_clear_error();
	r = SSL_read(l->ssl, p, (int)n);
	return r > 0 ? r : failed_tls(l, r);
}

bool line_may_have_more(const struct line *l)
{
	return l->is_hung_up || SSL_has_pending(l->ssl);
}

ssize_t line_send(struct line *l, struct slice bytes)
{
	ssize_t r;
	int n;

	ERR_clear_error();
	n = SSL_write(l->ssl, bytes.p, (int)MIN(bytes.n, INT32_MAX));
	if (n > 0)
		return n;
	r = failed_tls(l, n);
	return r == 0 ? -EPIPE : r;
}
