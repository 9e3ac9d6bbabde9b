/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_crypto.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include "audit_crypto_internal.h"

/* Separates what this key signs: a head is never a cut. */
#define CONTEXT_HEAD "sbx audit head 1\n"
#define CONTEXT_CUT "sbx audit cut 1\n"
#define MAX_SIGNED 4096
#define MAX_CONTEXT sizeof(CONTEXT_HEAD)

void audit_hash_init(struct audit_hash *h)
{
	h->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	h->ctx = EVP_MD_CTX_new();
	assert(h->md && h->ctx);
}

void audit_hash_done(struct audit_hash *h)
{
	EVP_MD_CTX_free(h->ctx);
	EVP_MD_free(h->md);
	*h = (struct audit_hash){0};
}

void audit_hash_of(struct audit_hash *h, struct slice s, uint8_t ret[AUDIT_HASH_LEN])
{
	int ok = EVP_DigestInit_ex2(h->ctx, h->md, NULL) && EVP_DigestUpdate(h->ctx, s.p, s.n) &&
		 EVP_DigestFinal_ex(h->ctx, ret, NULL);

	assert(ok);
}

static int put_context(struct wr *wr, const char *context, struct slice head)
{
	wr_bytes(wr, slice_from_str(context));
	wr_bytes(wr, head);
	return wr_finish(wr);
}

static int sign_crypto(
	const uint8_t *seed, const char *context, struct slice head, uint8_t *ret_sig)
{
	uint8_t buf[MAX_SIGNED + MAX_CONTEXT];
	struct wr wr = wr_init(buf, sizeof(buf));
	size_t n_sig = AUDIT_SIG_LEN;
	EVP_PKEY *pkey;
	EVP_MD_CTX *ctx;
	int r, ok;

	r = put_context(&wr, context, head);
	if (r < 0)
		return r;
	pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, AUDIT_KEY_LEN);
	ctx = EVP_MD_CTX_new();
	ok = pkey && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
	     EVP_DigestSign(ctx, ret_sig, &n_sig, buf, wr.n) == 1 && n_sig == AUDIT_SIG_LEN;
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	return ok ? 0 : -EIO;
}

int audit_seed_sign(const uint8_t seed[AUDIT_KEY_LEN], struct slice head, uint8_t *ret_sig)
{
	return sign_crypto(seed, CONTEXT_HEAD, head, ret_sig);
}

int audit_seed_sign_cut(const uint8_t seed[AUDIT_KEY_LEN], struct slice cut, uint8_t *ret_sig)
{
	return sign_crypto(seed, CONTEXT_CUT, cut, ret_sig);
}

int audit_seed_pub(const uint8_t seed[AUDIT_KEY_LEN], struct audit_pub *ret)
{
	EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, AUDIT_KEY_LEN);
	size_t n = sizeof(ret->b);
	int ok = pkey && EVP_PKEY_get_raw_public_key(pkey, ret->b, &n) == 1 && n == sizeof(ret->b);

	EVP_PKEY_free(pkey);
	return ok ? 0 : -EIO;
}

static int check_crypto(const struct audit_pub *pub, const char *context, struct slice head,
	const uint8_t sig[AUDIT_SIG_LEN])
{
	uint8_t buf[MAX_SIGNED + MAX_CONTEXT];
	struct wr wr = wr_init(buf, sizeof(buf));
	EVP_PKEY *pkey;
	EVP_MD_CTX *ctx;
	int r, ok;

	r = put_context(&wr, context, head);
	if (r < 0)
		return -EBADMSG;
	pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, pub->b, sizeof(pub->b));
	ctx = EVP_MD_CTX_new();
	ok = pkey && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
	     EVP_DigestVerify(ctx, sig, AUDIT_SIG_LEN, buf, wr.n) == 1;
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	return ok ? 0 : -EBADMSG;
}

int audit_check(const struct audit_pub *pub, struct slice head, const uint8_t sig[AUDIT_SIG_LEN])
{
	return check_crypto(pub, CONTEXT_HEAD, head, sig);
}

int audit_check_cut(const struct audit_pub *pub, struct slice cut, const uint8_t sig[AUDIT_SIG_LEN])
{
	return check_crypto(pub, CONTEXT_CUT, cut, sig);
}
