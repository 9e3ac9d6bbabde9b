/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From DER to what libssl takes. d2i_X509 of OpenSSL 3.0 searches all decoders of all providers for
 * the one of the public key, each time: seven times the cost of the signature. All our leaves have
 * one key, which is known. So they are read with a library context that has no decoders at all, and
 * are given the key afterwards; only a key of the older kind (EC_KEY) can be given without a
 * decoder.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* EC_KEY */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include "mint_internal.h"

/* The public half of the leaves' key as an EC_KEY. */
static EVP_PKEY *plain_public(EVP_PKEY *key)
{
	uint8_t point[80];
	size_t n;
	EC_KEY *ec = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
	EVP_PKEY *plain = EVP_PKEY_new();

	if (ec && plain &&
		EVP_PKEY_get_octet_string_param(
			key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &n) == 1 &&
		EC_KEY_oct2key(ec, point, n, NULL) == 1 && EVP_PKEY_assign_EC_KEY(plain, ec) == 1)
		return plain;
	EC_KEY_free(ec);
	EVP_PKEY_free(plain);
	return NULL;
}

int mint_reader_init(struct mint_reader *r, EVP_PKEY *leaf_key)
{
	r->no_decoders = OSSL_LIB_CTX_new();
	r->null = r->no_decoders ? OSSL_PROVIDER_load(r->no_decoders, "null") : NULL;
	r->leaf_public = plain_public(leaf_key);
	return r->null && r->leaf_public ? 0 : -EIO;
}

void mint_reader_done(struct mint_reader *r)
{
	EVP_PKEY_free(r->leaf_public);
	if (r->null)
		(void)OSSL_PROVIDER_unload(r->null);
	OSSL_LIB_CTX_free(r->no_decoders);
	*r = (struct mint_reader){0};
}

int mint_x509(const struct mint *m, struct slice der, X509 **ret)
{
	const uint8_t *p = der.p;
	X509 *cert = X509_new_ex(m->reader.no_decoders, NULL);
	bool ok;

	(void)ERR_set_mark();
	ok = cert && d2i_X509(&cert, &p, (long)der.n) && p == der.p + der.n &&
	     X509_set_pubkey(cert, m->reader.leaf_public) == 1;
	/* Reads the extensions once, and reports that the context has no SHA-1. */
	if (ok)
		(void)X509_get_extension_flags(cert);
	(void)ERR_pop_to_mark();
	if (!ok) {
		X509_free(cert);
		return -EBADMSG;
	}
	*ret = cert;
	return 0;
}
