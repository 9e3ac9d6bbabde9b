/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mint_internal - the parts of struct mint, for the files mint_*.c only.
 */
#pragma once

#include <openssl/evp.h>
#include <openssl/provider.h>
#include "mint.h"

#define MINT_KEY_ID 20 /* bytes of a key identifier */
#define MINT_SPKI 91   /* bytes of a P-256 public key as X.509 writes it */
#define MINT_SERIAL 16 /* bytes of a serial number */
#define MINT_MAX_EXTS 128
#define MINT_MAX_NAME 96 /* a name with one CN of at most 64 bytes */

#define MINT_DAY 86400u

/* One certificate in the cache, on the list of its bucket and on that of all by use. */
struct mint_entry {
	struct mint_entry *next_in_bucket;
	struct mint_entry *newer, *older;
	uint64_t not_before, not_after;
	uint32_t hash;
	uint16_t n_der;
	uint8_t n_name;
	uint8_t bytes[]; /* the name, then the certificate */
};

#define MINT_BUCKETS 1024 /* a power of two */

struct mint_cache {
	struct mint_entry *bucket[MINT_BUCKETS];
	struct mint_entry *newest, *oldest;
	uint64_t seed;
	size_t n;
};

struct mint_entry *mint_cache_find(struct mint_cache *c, struct slice name);
/* Copies both; takes the place of an entry of the same name, or of the oldest when it is full. */
struct mint_entry *mint_cache_put(struct mint_cache *c, struct slice name, struct slice der);
void mint_cache_done(struct mint_cache *c);

/* Contexts for signing, created once: creating them costs as much as signing. */
struct mint_signer {
	EVP_PKEY *key;
	EVP_PKEY_CTX *sign;
	EVP_MD *md;
	EVP_MD_CTX *md_ctx;
};

int mint_signer_init(struct mint_signer *s, EVP_PKEY *key) MUST_CHECK;
void mint_signer_done(struct mint_signer *s);

/* DER pieces of a certificate. */
struct mint_parts {
	struct slice issuer, subject, spki, exts;
	const struct host *host; /* its subjectAltName; NULL: none */
	uint64_t not_before, not_after;
};

/* Writes and signs; buf has MINT_MAX_CERT bytes, and *ret points into it. */
int mint_cert_make(struct mint_signer *s, const struct mint_parts *parts, uint8_t *buf,
	struct slice *ret) MUST_CHECK;

/* What mint_x509 reads with. */
struct mint_reader {
	OSSL_LIB_CTX *no_decoders;
	OSSL_PROVIDER *null;
	EVP_PKEY *leaf_public;
};

int mint_reader_init(struct mint_reader *r, EVP_PKEY *leaf_key) MUST_CHECK;
void mint_reader_done(struct mint_reader *r);

struct mint {
	char id[MINT_MAX_ID + 1];
	struct mint_signer ca;
	EVP_PKEY *leaf_key;
	struct mint_reader reader;
	uint64_t not_before, not_after; /* of the CA */
	uint8_t ca_der[MINT_MAX_CERT];
	size_t n_ca_der;
	char *ca_pem;
	size_t n_ca_pem;
	uint8_t issuer[MINT_MAX_NAME], subject[MINT_MAX_NAME];
	uint8_t leaf_spki[MINT_SPKI], leaf_exts[MINT_MAX_EXTS];
	size_t n_issuer, n_subject, n_leaf_exts;
	struct mint_cache cache;
};

/* Fills ca_der with a certificate of the CA's own key. */
int mint_ca_make(struct mint *m) MUST_CHECK;
/* As mint_ca_make, for an existing CA. -EBADMSG: it is not of this key and name. */
int mint_ca_take(struct mint *m, struct slice der) MUST_CHECK;
/* The pieces: the issuer's name from m->id; the PEM; what all leaves have. */
int mint_ca_name(struct mint *m) MUST_CHECK;
int mint_ca_pieces(struct mint *m) MUST_CHECK;
