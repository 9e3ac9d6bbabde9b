/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <openssl/x509.h>
#include "der.h"
#include "lib/base/mem.h"
#include "mint_internal.h"

#define BYTES(a) slice_of(a, sizeof(a))

static const uint8_t common_name[] = {6, 3, 0x55, 4, 3};
static const uint8_t ca_true_no_ca_below[] = {
	0x30, 18, 6, 3, 0x55, 0x1d, 0x13, 1, 1, 0xff, 4, 8, 0x30, 6, 1, 1, 0xff, 2, 1, 0};
static const uint8_t signs_certificates[] = {
	0x30, 14, 6, 3, 0x55, 0x1d, 0x0f, 1, 1, 0xff, 4, 4, 3, 2, 2, 0x04};
static const uint8_t subject_key_id[] = {0x30, 29, 6, 3, 0x55, 0x1d, 0x0e, 4, 22, 4, MINT_KEY_ID};
static const uint8_t ca_false[] = {0x30, 12, 6, 3, 0x55, 0x1d, 0x13, 1, 1, 0xff, 4, 2, 0x30, 0};
static const uint8_t signs_handshakes[] = {
	0x30, 14, 6, 3, 0x55, 0x1d, 0x0f, 1, 1, 0xff, 4, 4, 3, 2, 7, 0x80};
static const uint8_t for_servers[] = {
	0x30, 19, 6, 3, 0x55, 0x1d, 0x25, 4, 12, 0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 1};
static const uint8_t authority_key_id[] = {
	0x30, 31, 6, 3, 0x55, 0x1d, 0x23, 4, 24, 0x30, 22, 0x80, MINT_KEY_ID};

/* Into the front of dst. */
static int write_name(const char *cn, uint8_t *dst, size_t *ret_n)
{
	uint8_t buf[MINT_MAX_NAME];
	struct der d = der_init(buf, sizeof(buf));
	size_t end = der_mark(&d);
	struct slice all;
	int r;

	der_put(&d, slice_from_str(cn));
	der_wrap(&d, DER_UTF8_STRING, end);
	der_put(&d, BYTES(common_name));
	der_wrap(&d, DER_SEQUENCE, end);
	der_wrap(&d, DER_SET, end);
	der_wrap(&d, DER_SEQUENCE, end);
	r = der_end(&d, &all);
	if (r < 0)
		return r;
	memcpy(dst, all.p, all.n);
	*ret_n = all.n;
	return 0;
}

int mint_ca_name(struct mint *m)
{
	char cn[MINT_MAX_ID + 16];

	(void)snprintf(cn, sizeof(cn), "sbx sandbox CA %s", m->id);
	return write_name(cn, m->issuer, &m->n_issuer);
}

static int write_spki(EVP_PKEY *key, uint8_t *dst)
{
	uint8_t *p = dst;

	if (i2d_PUBKEY(key, NULL) != MINT_SPKI)
		return -EIO;
	return i2d_PUBKEY(key, &p) == MINT_SPKI ? 0 : -EIO;
}

/* The first bytes of the hash of the public key (RFC 7093). */
static int make_key_id(const struct mint_signer *ca, uint8_t *ret)
{
	uint8_t spki[MINT_SPKI], hash[32];
	int r = write_spki(ca->key, spki);

	if (r < 0)
		return r;
	if (EVP_Digest(spki, sizeof(spki), hash, NULL, ca->md, NULL) != 1)
		return -EIO;
	memcpy(ret, hash, MINT_KEY_ID);
	return 0;
}

int mint_ca_make(struct mint *m)
{
	uint8_t exts[MINT_MAX_EXTS], spki[MINT_SPKI], id[MINT_KEY_ID], buf[MINT_MAX_CERT];
	struct wr wr = wr_init(exts, sizeof(exts));
	struct mint_parts parts = {.issuer = slice_of(m->issuer, m->n_issuer),
		.subject = slice_of(m->issuer, m->n_issuer),
		.spki = BYTES(spki),
		.not_before = m->not_before,
		.not_after = m->not_after};
	struct slice der;
	int r = make_key_id(&m->ca, id);

	if (r == 0)
		r = write_spki(m->ca.key, spki);
	if (r < 0)
		return r;
	wr_bytes(&wr, BYTES(ca_true_no_ca_below));
	wr_bytes(&wr, BYTES(signs_certificates));
	wr_bytes(&wr, BYTES(subject_key_id));
	wr_bytes(&wr, BYTES(id));
	r = wr_finish(&wr);
	parts.exts = slice_of(exts, wr.n);
	if (r == 0)
		r = mint_cert_make(&m->ca, &parts, buf, &der);
	if (r < 0)
		return r;
	memcpy(m->ca_der, der.p, der.n);
	m->n_ca_der = der.n;
	return 0;
}

/* As bytes: OpenSSL would ask libc for the calendar, and libc the file of the time zone. */
static bool has_times(const struct mint *m, struct slice der)
{
	uint8_t buf[64];
	struct der d = der_init(buf, sizeof(buf));
	struct slice times;

	der_time(&d, m->not_after);
	der_time(&d, m->not_before);
	return der_end(&d, &times) == 0 && memmem(der.p, der.n, times.p, times.n);
}

/* Whether it is a certificate for the issuer's name that this key signed, and nothing else. */
static bool is_own(const struct mint *m, struct slice der)
{
	const uint8_t *p = der.p, *name;
	X509 *cert = d2i_X509(NULL, &p, (long)der.n);
	size_t n_name;
	bool own = cert && p == der.p + der.n &&
		   X509_NAME_get0_der(X509_get_subject_name(cert), &name, &n_name) == 1 &&
		   slice_eq(slice_of(name, n_name), slice_of(m->issuer, m->n_issuer)) &&
		   X509_check_private_key(cert, m->ca.key) == 1 &&
		   X509_verify(cert, m->ca.key) == 1;

	X509_free(cert);
	return own;
}

int mint_ca_take(struct mint *m, struct slice der)
{
	if (der.n > sizeof(m->ca_der) || !has_times(m, der) || !is_own(m, der))
		return -EBADMSG;
	memcpy(m->ca_der, der.p, der.n);
	m->n_ca_der = der.n;
	return 0;
}

static void write_pem(struct mint *m)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----\n";
	static const char end[] = "-----END CERTIFICATE-----\n";
	const size_t line = 48; /* bytes that become 64 letters */
	char *p;

	m->ca_pem = xmalloc(sizeof(begin) + sizeof(end) + m->n_ca_der * 2);
	p = stpcpy(m->ca_pem, begin);
	for (size_t i = 0; i < m->n_ca_der; i += line) {
		p += EVP_EncodeBlock((uint8_t *)p, m->ca_der + i, (int)MIN(line, m->n_ca_der - i));
		*p++ = '\n';
	}
	p = stpcpy(p, end);
	m->n_ca_pem = (size_t)(p - m->ca_pem);
}

int mint_ca_pieces(struct mint *m)
{
	struct wr wr = wr_init(m->leaf_exts, sizeof(m->leaf_exts));
	uint8_t id[MINT_KEY_ID];
	int r = make_key_id(&m->ca, id);

	if (r == 0)
		r = write_spki(m->leaf_key, m->leaf_spki);
	if (r == 0)
		r = write_name("sbx leaf", m->subject, &m->n_subject);
	if (r < 0)
		return r;
	write_pem(m);
	wr_bytes(&wr, BYTES(ca_false));
	wr_bytes(&wr, BYTES(signs_handshakes));
	wr_bytes(&wr, BYTES(for_servers));
	wr_bytes(&wr, BYTES(authority_key_id));
	wr_bytes(&wr, BYTES(id));
	m->n_leaf_exts = wr.n;
	return wr_finish(&wr);
}
