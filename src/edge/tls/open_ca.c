/* SPDX-License-Identifier: Apache-2.0 */
/* TLS interception: the sandbox CA, and one TLS configuration. */
#include "open_internal.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* In our order of preference, in ALPN format. */
static const uint8_t protocols[] = "\2h2\10http/1.1";

/* A client that offers only other protocols gets an alert; one that offers none uses HTTP/1.1. */
static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
	const unsigned char *offered, unsigned int n, void *ctx)
{
	unsigned char *chosen;

	if (SSL_select_next_proto(&chosen, ret_n, protocols, sizeof(protocols) - 1, offered, n) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*ret = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* No session outlives its connection: no tickets, no cache, no early data. A handshake takes less
 * than a millisecond, and there is no network between the two ends. */
static SSL_CTX *make_ctx(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
		SSL_CTX_set_num_tickets(ctx, 0) != 1 || SSL_CTX_set_max_early_data(ctx, 0) != 1) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	(void)SSL_CTX_set_options(
		ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	return ctx;
}

static int make_mint(const struct edge_config *config, struct mint **ret, struct err *err)
{
	int r;

	if (config->n_saved > 0) {
		r = mint_load(slice_of(config->saved, config->n_saved), ret, err);
		if (r == 0)
			return 0;
		/* The keeper gets the new CA and sends it to the guest. */
		log_warn("cannot load the sandbox CA: %s: creating a new one", err_text(err, r));
	}
	return mint_new(config->sandbox, clock_wall_ms() / 1000, ret, err);
}

int opener_new(const struct edge_config *config, struct opener **ret, struct err *err)
{
	struct opener *o = xcalloc(1, sizeof(*o));
	int r = make_mint(config, &o->mint, err); /* the first use of OpenSSL: see mint.h */

	if (r == 0) {
		o->ctx = make_ctx();
		o->method = open_bio_method();
		if (!o->ctx || !o->method)
			r = err_set(err, -EIO, "cannot initialize OpenSSL");
		ERR_clear_error();
	}
	if (r < 0)
		opener_free(o);
	else
		*ret = o;
	return r;
}

void opener_free(struct opener *o)
{
	if (!o)
		return;
	SSL_CTX_free(o->ctx);
	BIO_meth_free(o->method);
	mint_free(o->mint);
	free(o);
}

int opener_tell(const struct opener *o, int sock)
{
	struct edge_ca ca = {0};
	size_t n = 0;
	int r = slice_to_cstr(mint_ca_pem(o->mint), ca.pem, sizeof(ca.pem));

	static_assert(MINT_MAX_SAVED <= EDGE_MAX_SAVED, "a saved CA fits its message");
	if (r == 0)
		r = mint_save(o->mint, ca.saved, &n);
	ca.n_saved = (uint16_t)n;
	if (r == 0)
		r = edge_send_ca(sock, &ca);
	explicit_bzero(&ca, sizeof(ca));
	return r;
}
