/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mint - the certificate authority of one sandbox, and a leaf for each intercepted host.
 *
 * How      mint_new makes a P-256 CA in memory, and one more P-256 key that all leaves share.
 *          mint_leaf gives the certificate of a host: from a cache of the last used ones, or
 *          written with der.h from parts that are ready, and signed once. A leaf that expires soon
 *          is renewed. mint_save and mint_load let the next edge of a sandbox use the same CA,
 *          which the guest trusts already.
 * Trust    For edge. The host is the target that policy decided about, canonical (host.h), never
 *          the name of a ClientHello; it is checked again here. A guest that compromises edge has a
 *          CA that only this guest trusts.
 * Owns     A struct mint owns its keys and leaves; the keys are OpenSSL's and cleared by it.
 * Limits   MINT_MAX_LEAVES leaves, MINT_MAX_CERT bytes each. A CA signs no leaf after MINT_CA_DAYS.
 * Never    Opens a file or reads the clock: it works in a sealed edge. OpenSSL is initialized
 *          without its configuration, unless it was used before. Signs a wildcard, or anything but
 *          its own CA and leaves for servers.
 * See      mint_test.c, mint_client_test.c, mint_sealed_test.c, bench/mint
 */
#pragma once

#include "lib/rules/policy/host.h"

#define MINT_MAX_LEAVES 1024
#define MINT_MAX_CERT 1024
#define MINT_MAX_ID 48
#define MINT_MAX_SAVED (MINT_MAX_CERT + 256)
#define MINT_CA_DAYS 365
#define MINT_LEAF_DAYS 30
#define MINT_RENEW_DAYS 7 /* a leaf with less left is renewed */

struct mint;
struct evp_pkey_st; /* EVP_PKEY of OpenSSL */
struct x509_st;	    /* X509 */

/* `id` is the sandbox's: letters, digits, '.', '-' and '_'. now: seconds since 1970. */
int mint_new(const char *id, uint64_t now, struct mint **ret, struct err *err) MUST_CHECK;
void mint_free(struct mint *m);

/* The CA's certificate for the guest: PEM, and as it is. */
struct slice mint_ca_pem(const struct mint *m);
struct slice mint_ca_der(const struct mint *m);

/*
 * The certificate of a host, DER; valid until the next call. -EINVAL for what is not a canonical
 * host, -EKEYEXPIRED when the time is outside the CA's.
 */
int mint_leaf(struct mint *m, const struct host *host, uint64_t now, struct slice *ret_der,
	struct err *err) MUST_CHECK;
/*
 * A leaf of this mint for SSL_use_certificate; the caller frees it, before the mint.
 * SSL_use_certificate_ASN1 takes the same bytes, ten times as slowly. -EBADMSG: not a certificate.
 */
int mint_x509(const struct mint *m, struct slice der, struct x509_st **ret) MUST_CHECK;
/* The key of every leaf; it stays the mint's. */
struct evp_pkey_st *mint_leaf_key(const struct mint *m);

/*
 * The CA with its secret key in `buf` of MINT_MAX_SAVED bytes, for the next edge of this sandbox;
 * gives the number of bytes. The bytes are the sandbox's CA key: the caller clears them.
 */
int mint_save(const struct mint *m, uint8_t *buf, size_t *ret_n) MUST_CHECK;
/* -EBADMSG when it is not what mint_save wrote; a new leaf key is generated. */
int mint_load(struct slice saved, struct mint **ret, struct err *err) MUST_CHECK;
