/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <openssl/rand.h>
#include "der.h"
#include "mint_internal.h"

#define MAX_SIG 80 /* an ECDSA signature of P-256 has at most 72 bytes */

static const uint8_t version_3[] = {0xa0, 3, 2, 1, 2};
static const uint8_t ecdsa_with_sha256[] = {0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2};
static const uint8_t subject_alt_name[] = {6, 3, 0x55, 0x1d, 0x11};

int mint_signer_init(struct mint_signer *s, EVP_PKEY *key)
{
	s->key = key;
	s->sign = key ? EVP_PKEY_CTX_new(key, NULL) : NULL;
	s->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	s->md_ctx = EVP_MD_CTX_new();
	return s->sign && s->md && s->md_ctx && EVP_PKEY_sign_init(s->sign) == 1 ? 0 : -EIO;
}

void mint_signer_done(struct mint_signer *s)
{
	EVP_MD_CTX_free(s->md_ctx);
	EVP_MD_free(s->md);
	EVP_PKEY_CTX_free(s->sign);
	EVP_PKEY_free(s->key);
	*s = (struct mint_signer){0};
}

static int sign_cert(struct mint_signer *s, struct slice text, uint8_t *ret_sig, size_t *ret_n)
{
	uint8_t hash[32];
	size_t n = MAX_SIG;

	if (EVP_DigestInit_ex2(s->md_ctx, s->md, NULL) != 1 ||
		EVP_DigestUpdate(s->md_ctx, text.p, text.n) != 1 ||
		EVP_DigestFinal_ex(s->md_ctx, hash, NULL) != 1 ||
		EVP_PKEY_sign(s->sign, ret_sig, &n, hash, sizeof(hash)) != 1)
		return -EIO;
	*ret_n = n;
	return 0;
}

static void put_alt_name(struct der *d, const struct host *host)
{
	size_t extension = der_mark(d);

	if (host->is_addr)
		der_put(d, slice_of(host->addr.b, host->addr.n));
	else
		der_put(d, host_slice(host));
	der_wrap(d, host->is_addr ? DER_CONTEXT_7 : DER_CONTEXT_2, extension);
	der_wrap(d, DER_SEQUENCE, extension);
	der_wrap(d, DER_OCTET_STRING, extension);
	der_put(d, slice_of(subject_alt_name, sizeof(subject_alt_name)));
	der_wrap(d, DER_SEQUENCE, extension);
}

static void put_extensions(struct der *d, const struct mint_parts *parts)
{
	size_t end = der_mark(d);

	if (parts->host)
		put_alt_name(d, parts->host);
	der_put(d, parts->exts);
	der_wrap(d, DER_SEQUENCE, end);
	der_wrap(d, DER_CONTEXT_3_OF, end);
}

static void put_validity(struct der *d, const struct mint_parts *parts)
{
	size_t end = der_mark(d);

	der_time(d, parts->not_after);
	der_time(d, parts->not_before);
	der_wrap(d, DER_SEQUENCE, end);
}

/* What is signed: the fields in the order of RFC 5280, the last one first. */
static void write_body(const struct mint_parts *parts, const uint8_t *serial, struct der *d)
{
	size_t end = der_mark(d), mark;

	put_extensions(d, parts);
	der_put(d, parts->spki);
	der_put(d, parts->subject);
	put_validity(d, parts);
	der_put(d, parts->issuer);
	der_put(d, slice_of(ecdsa_with_sha256, sizeof(ecdsa_with_sha256)));
	mark = der_mark(d);
	der_put(d, slice_of(serial, MINT_SERIAL));
	der_wrap(d, DER_INTEGER, mark);
	der_put(d, slice_of(version_3, sizeof(version_3)));
	der_wrap(d, DER_SEQUENCE, end);
}

int mint_cert_make(
	struct mint_signer *s, const struct mint_parts *parts, uint8_t *buf, struct slice *ret)
{
	uint8_t body[MINT_MAX_CERT], sig[MAX_SIG], serial[MINT_SERIAL], unused_bits = 0;
	struct der in = der_init(body, sizeof(body)), out = der_init(buf, MINT_MAX_CERT);
	struct slice text;
	size_t n_sig, end = der_mark(&out);
	int r;

	if (RAND_bytes(serial, sizeof(serial)) != 1)
		return -EIO;
	/* A positive number that always has its full length. */
	serial[0] = (uint8_t)((serial[0] & 0x7f) | 0x40);
	write_body(parts, serial, &in);
	r = der_end(&in, &text);
	if (r == 0)
		r = sign_cert(s, text, sig, &n_sig);
	if (r < 0)
		return r;
	der_put(&out, slice_of(sig, n_sig));
	der_put(&out, slice_of(&unused_bits, 1));
	der_wrap(&out, DER_BIT_STRING, end);
	der_put(&out, slice_of(ecdsa_with_sha256, sizeof(ecdsa_with_sha256)));
	der_put(&out, text);
	der_wrap(&out, DER_SEQUENCE, end);
	return der_end(&out, ret);
}
