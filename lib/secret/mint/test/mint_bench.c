/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a leaf costs, as one line of JSON: microseconds of processor time in ROUNDS rounds, the arms
 * of each round in turn and every second round backwards. `bare` is one P-256 signature of 32 bytes
 * and nothing else, and stands there twice (`null`), so that noise shows. `leaf` is mint_leaf of a
 * host that was never seen; `ready` the same and mint_x509, as a handshake needs it; `parsed` the
 * same with OpenSSL's own reading instead; `own_key` a key pair such as a leaf of its own would
 * need; `cached` a leaf that is there already.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include "lib/secret/mint/mint.h"

#define ROUNDS 61
#define EACH 300
#define NOW 1800000000u

struct bench {
	struct mint *mint;
	EVP_PKEY *key;
	EVP_PKEY_CTX *ctx;
	unsigned next_host;
};

static void must(bool ok)
{
	if (!ok)
		abort();
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sign_bare(struct bench *b)
{
	static const uint8_t hash[32] = {1};
	uint8_t sig[80];
	size_t n = sizeof(sig);

	must(EVP_PKEY_sign(b->ctx, sig, &n, hash, sizeof(hash)) == 1);
}

static struct slice leaf_of(struct bench *b, unsigned number)
{
	char name[64];
	struct slice der;
	struct host h;
	int n = snprintf(name, sizeof(name), "host-%08u.api.example.com", number);

	must(host_from_wire(slice_of(name, (size_t)n), &h, NULL) == 0);
	must(mint_leaf(b->mint, &h, NOW, &der, NULL) == 0);
	return der;
}

static void make_leaf(struct bench *b)
{
	(void)leaf_of(b, b->next_host++);
}

static void make_ready(struct bench *b)
{
	X509 *cert;

	must(mint_x509(b->mint, leaf_of(b, b->next_host++), &cert) == 0);
	X509_free(cert);
}

static void make_and_parse(struct bench *b)
{
	struct slice der = leaf_of(b, b->next_host++);
	const uint8_t *p = der.p;
	X509 *cert = d2i_X509(NULL, &p, (long)der.n);

	must(cert != NULL);
	X509_free(cert);
}

static void make_key(struct bench *b)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");

	must(key != NULL);
	EVP_PKEY_free(key);
}

static void find_leaf(struct bench *b)
{
	(void)leaf_of(b, b->next_host - 1);
}

static const struct arm {
	const char *name;
	void (*run)(struct bench *b);
} arms[] = {
	{"bare", sign_bare},
	{"leaf", make_leaf},
	{"null", sign_bare},
	{"ready", make_ready},
	{"parsed", make_and_parse},
	{"own_key", make_key},
	{"cached", find_leaf},
};

static double measure(struct bench *b, const struct arm *arm)
{
	uint64_t begin = now_ns();

	for (unsigned i = 0; i < EACH; i++)
		arm->run(b);
	return (double)(now_ns() - begin) / 1000 / EACH;
}

int main(void)
{
	static double us[ARRAY_LEN(arms)][ROUNDS];
	struct bench b = {0};

	must(mint_new("bench", NOW, &b.mint, NULL) == 0);
	b.key = EVP_EC_gen("P-256");
	b.ctx = EVP_PKEY_CTX_new(b.key, NULL);
	must(b.ctx && EVP_PKEY_sign_init(b.ctx) == 1);
	for (size_t i = 0; i < ARRAY_LEN(arms); i++)
		(void)measure(&b, &arms[i]);
	for (size_t round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < ARRAY_LEN(arms); i++) {
			size_t at = round % 2 ? ARRAY_LEN(arms) - 1 - i : i;

			us[at][round] = measure(&b, &arms[at]);
		}
	printf("{");
	for (size_t i = 0; i < ARRAY_LEN(arms); i++) {
		printf("%s\"%s\": [", i ? ", " : "", arms[i].name);
		for (size_t round = 0; round < ROUNDS; round++)
			printf("%s%.3f", round ? ", " : "", us[i][round]);
		printf("]");
	}
	printf("}\n");
	EVP_PKEY_CTX_free(b.ctx);
	EVP_PKEY_free(b.key);
	mint_free(b.mint);
	return 0;
}
