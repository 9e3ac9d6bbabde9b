/* SPDX-License-Identifier: Apache-2.0 */
#include "sigv4_internal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include "lib/base/hex.h"

void sigv4_sum_init(struct sigv4_sum *sum)
{
	*sum = (struct sigv4_sum){.ctx = EVP_MD_CTX_new()};
	sum->bad = !sum->ctx || EVP_DigestInit_ex(sum->ctx, EVP_sha256(), NULL) != 1;
}

void sigv4_sum_add(struct sigv4_sum *sum, struct slice s)
{
	if (!sum->bad && s.n > 0 && EVP_DigestUpdate(sum->ctx, s.p, s.n) != 1)
		sum->bad = true;
}

void sigv4_sum_add_str(struct sigv4_sum *sum, const char *s)
{
	sigv4_sum_add(sum, slice_from_str(s));
}

int sigv4_sum_end(struct sigv4_sum *sum, uint8_t ret[SIGV4_HASH])
{
	return sum->bad || EVP_DigestFinal_ex(sum->ctx, ret, NULL) != 1 ? -EIO : 0;
}

void sigv4_sum_done(struct sigv4_sum *sum)
{
	EVP_MD_CTX_free(sum->ctx);
	sum->ctx = NULL;
}

int sigv4_hash(struct slice s, uint8_t ret[SIGV4_HASH])
{
	AUTO_SIGV4_SUM struct sigv4_sum sum;

	sigv4_sum_init(&sum);
	sigv4_sum_add(&sum, s);
	return sigv4_sum_end(&sum, ret);
}

int sigv4_mac(struct slice key, struct slice text, uint8_t ret[SIGV4_HASH])
{
	unsigned n = SIGV4_HASH;

	return HMAC(EVP_sha256(), key.p, (int)key.n, text.p, text.n, ret, &n) ? 0 : -EIO;
}

bool sigv4_is_hex(struct slice s)
{
	uint8_t hash[SIGV4_HASH];

	return s.n == SIGV4_HEX && hex_decode(s, hash) == 0;
}

int sigv4_chain_next(struct sigv4_chain *chain, struct slice to_sign)
{
	uint8_t mac[SIGV4_HASH];
	int r = sigv4_mac(slice_of(chain->key, sizeof(chain->key)), to_sign, mac);

	if (r < 0)
		return r;
	hex_encode(mac, SIGV4_HASH, chain->signature);
	return 0;
}

void sigv4_chain_wipe(struct sigv4_chain *chain)
{
	OPENSSL_cleanse(chain, sizeof(*chain));
}
