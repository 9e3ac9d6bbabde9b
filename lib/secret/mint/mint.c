/* SPDX-License-Identifier: Apache-2.0 */
#include "mint.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include "lib/base/mem.h"
#include "mint_internal.h"

/* The first call of OpenSSL in this process, so that none of its files is looked for later. */
static int set_up_openssl(void)
{
	return OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) == 1
		       ? 0
		       : -EIO;
}

static bool is_id(struct slice id)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.-_";

	if (id.n == 0 || id.n > MINT_MAX_ID)
		return false;
	for (size_t i = 0; i < id.n; i++)
		if (!memchr(allowed, id.p[i], sizeof(allowed) - 1))
			return false;
	return true;
}

/* OpenSSL keeps what went wrong in a queue, where the next handshake would take it for its own. */
static int fail_mint(struct err *err, int r, const char *why)
{
	ERR_clear_error();
	return err_set(err, r, "%s", why);
}

/* Takes the CA's key over; everything but the CA's certificate. */
static int start_mint(struct slice id, uint64_t not_before, EVP_PKEY *key, struct mint **ret)
{
	struct mint *m = xcalloc(1, sizeof(*m));
	int r;

	m->not_before = not_before;
	m->not_after = not_before + MINT_CA_DAYS * (uint64_t)MINT_DAY;
	r = mint_signer_init(&m->ca, key);
	if (r == 0)
		r = slice_to_cstr(id, m->id, sizeof(m->id));
	if (r == 0)
		r = mint_ca_name(m);
	m->leaf_key = EVP_EC_gen("P-256");
	if (r == 0 &&
		(!m->leaf_key || RAND_bytes((uint8_t *)&m->cache.seed, sizeof(m->cache.seed)) != 1))
		r = -EIO;
	if (r == 0)
		r = mint_reader_init(&m->reader, m->leaf_key);
	*ret = m;
	return r;
}

static int end_start(struct mint *m, int r, struct mint **ret, struct err *err)
{
	if (r == 0)
		r = mint_ca_pieces(m);
	if (r < 0) {
		mint_free(m);
		return fail_mint(err, r, "OpenSSL cannot create the sandbox CA");
	}
	*ret = m;
	return 0;
}

int mint_new(const char *id, uint64_t now, struct mint **ret, struct err *err)
{
	struct mint *m;
	int r = set_up_openssl();

	if (r < 0)
		return fail_mint(err, r, "cannot initialize OpenSSL");
	if (!is_id(slice_from_str(id)) || now < MINT_DAY || now > UINT32_MAX)
		return err_set(err, -EINVAL, "invalid sandbox id or time");
	r = start_mint(slice_from_str(id), now - MINT_DAY, EVP_EC_gen("P-256"), &m);
	if (r == 0)
		r = mint_ca_make(m);
	return end_start(m, r, ret, err);
}

void mint_free(struct mint *m)
{
	if (!m)
		return;
	mint_cache_done(&m->cache);
	mint_signer_done(&m->ca);
	mint_reader_done(&m->reader);
	EVP_PKEY_free(m->leaf_key);
	free(m->ca_pem);
	free(m);
}

struct slice mint_ca_pem(const struct mint *m)
{
	return slice_of(m->ca_pem, m->n_ca_pem);
}

struct slice mint_ca_der(const struct mint *m)
{
	return slice_of(m->ca_der, m->n_ca_der);
}

EVP_PKEY *mint_leaf_key(const struct mint *m)
{
	return m->leaf_key;
}

/* ---- leaves ---- */

/* Checked for every caller: a certificate contains only a host in canonical form. */
static bool is_canonical(const struct host *host)
{
	struct host again;

	return host_from_wire(host_slice(host), &again, NULL) == 0 &&
	       again.is_addr == host->is_addr && slice_eq(host_slice(&again), host_slice(host)) &&
	       (!host->is_addr || addr_eq(&again.addr, &host->addr));
}

static int make_leaf(struct mint *m, const struct host *host, uint64_t now, struct mint_entry **ret)
{
	struct mint_parts parts = {.issuer = slice_of(m->issuer, m->n_issuer),
		.subject = slice_of(m->subject, m->n_subject),
		.spki = slice_of(m->leaf_spki, sizeof(m->leaf_spki)),
		.exts = slice_of(m->leaf_exts, m->n_leaf_exts),
		.host = host,
		.not_before = MAX(now - MINT_DAY, m->not_before)};
	uint8_t buf[MINT_MAX_CERT];
	struct slice der;
	int r;

	parts.not_after = MIN(now + (MINT_LEAF_DAYS - 1) * (uint64_t)MINT_DAY, m->not_after);
	r = mint_cert_make(&m->ca, &parts, buf, &der);
	if (r < 0)
		return r;
	*ret = mint_cache_put(&m->cache, host_slice(host), der);
	(*ret)->not_before = parts.not_before;
	(*ret)->not_after = parts.not_after;
	return 0;
}

/* The last leaves of a CA end with it: to make them again would gain nothing. */
static bool is_fresh(const struct mint *m, const struct mint_entry *e, uint64_t now)
{
	return now >= e->not_before && now < e->not_after &&
	       (e->not_after == m->not_after ||
		       e->not_after - now >= MINT_RENEW_DAYS * (uint64_t)MINT_DAY);
}

int mint_leaf(struct mint *m, const struct host *host, uint64_t now, struct slice *ret_der,
	struct err *err)
{
	struct mint_entry *e;
	int r = 0;

	if (host->n > HOST_MAX_NAME)
		return err_set(err, -EINVAL,
			"cannot issue a certificate: the host is not in canonical form");
	if (now < m->not_before || now >= m->not_after)
		return err_set(err, -EKEYEXPIRED,
			"the clock is outside the validity period of the sandbox CA");
	e = mint_cache_find(&m->cache, host_slice(host));
	if (!e || !is_fresh(m, e, now)) {
		if (!is_canonical(host))
			return err_set(err, -EINVAL,
				"cannot issue a certificate: the host is not in canonical form");
		r = make_leaf(m, host, now, &e);
	}
	if (r < 0)
		return fail_mint(err, r, "OpenSSL cannot sign a certificate");
	*ret_der = slice_of(e->bytes + e->n_name, e->n_der);
	return 0;
}

/* ---- for the next edge ---- */

#define SAVED 0x31434253 /* "SBC1" */

int mint_save(const struct mint *m, uint8_t *buf, size_t *ret_n)
{
	struct wr wr = wr_init(buf, MINT_MAX_SAVED);
	uint8_t *key = NULL;
	int n_key = i2d_PrivateKey(m->ca.key, &key), r;

	if (n_key <= 0)
		return fail_mint(NULL, -EIO, "");
	wr_u32(&wr, SAVED);
	wr_cstr(&wr, m->id);
	wr_u64(&wr, m->not_before);
	wr_str(&wr, slice_of(key, (size_t)n_key));
	wr_str(&wr, mint_ca_der(m));
	OPENSSL_clear_free(key, (size_t)n_key);
	r = wr_finish(&wr);
	if (r == 0)
		*ret_n = wr.n;
	return r;
}

/* Whether the secret half belongs to the public one. */
static bool is_pair(EVP_PKEY *key)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL);
	bool pair = ctx && EVP_PKEY_pairwise_check(ctx) == 1;

	EVP_PKEY_CTX_free(ctx);
	return pair;
}

static EVP_PKEY *read_key(struct slice text)
{
	/* How i2d_PrivateKey begins for P-256, the version included, which OpenSSL reads over. */
	static const uint8_t begin[] = {0x30, 119, 2, 1, 1, 4, 32};
	const uint8_t *p = text.p;
	EVP_PKEY *key = NULL;

	if (text.n > sizeof(begin) && memcmp(text.p, begin, sizeof(begin)) == 0)
		key = d2i_PrivateKey(EVP_PKEY_EC, NULL, &p, (long)text.n);
	if (key && p == text.p + text.n && EVP_PKEY_get_bits(key) == 256 && is_pair(key))
		return key;
	EVP_PKEY_free(key);
	return NULL;
}

int mint_load(struct slice saved, struct mint **ret, struct err *err)
{
	struct rd rd = rd_init(saved);
	uint32_t magic = rd_u32(&rd);
	struct slice id = rd_str(&rd);
	uint64_t not_before = rd_u64(&rd);
	struct slice key_text = rd_str(&rd), der = rd_str(&rd);
	EVP_PKEY *key;
	struct mint *m;
	int r = set_up_openssl();

	if (r < 0)
		return fail_mint(err, r, "cannot initialize OpenSSL");
	if (rd_finish(&rd) < 0 || magic != SAVED || !is_id(id) || not_before > UINT32_MAX)
		return err_set(err, -EBADMSG, "invalid saved CA");
	key = read_key(key_text);
	if (!key)
		return fail_mint(err, -EBADMSG, "the saved CA has no key");
	r = start_mint(id, not_before, key, &m);
	if (r == 0)
		r = mint_ca_take(m, der);
	return end_start(m, r, ret, err);
}
