/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_crypto - SHA-256 and Ed25519 for the audit log, and the key of the installation.
 *
 * How      audit_key_load reads the key, or makes it once: the file appears atomically, and of two
 *          writers one wins. The 32 secret bytes are in a separate page (locked, not in core files,
 *          cleared by audit_key_free); OpenSSL sees them for one signature at a time.
 * Trust    The user's own state directory. keeper and sbxd hold the key; verifiers need only the 32
 *          public bytes (audit_pub_load).
 * Owns     A struct audit_key owns its page, a struct audit_hash its OpenSSL context.
 * Limits   Locking is best effort: RLIMIT_MEMLOCK may forbid it.
 * Never    Creates a second key: if key.pub exists without the key, audit_key_load fails.
 * See      proto/PROTOCOL.audit, audit_crypto_test.c
 */
#pragma once

#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define AUDIT_HASH_LEN 32
#define AUDIT_KEY_LEN 32
#define AUDIT_SIG_LEN 64

struct audit_hash {
	void *md;
	void *ctx;
};

void audit_hash_init(struct audit_hash *h);
void audit_hash_done(struct audit_hash *h);
void audit_hash_of(struct audit_hash *h, struct slice s, uint8_t ret[AUDIT_HASH_LEN]);

struct audit_pub {
	uint8_t b[AUDIT_KEY_LEN];
};

struct audit_key;

/* `dir` is state/audit; it is created if missing. -EPERM when others could read the key. */
int audit_key_load(const char *dir, struct audit_key **ret, struct err *err) MUST_CHECK;
/* A process that is forked from now on does not have the secret, and must not use the key. */
void audit_key_keep_from_children(struct audit_key *k);
void audit_key_free(struct audit_key *k);
const struct audit_pub *audit_key_pub(const struct audit_key *k);
/* -ENOENT with a sentence when this installation has no key yet. */
int audit_pub_load(const char *dir, struct audit_pub *ret, struct err *err) MUST_CHECK;

/* Signs and checks a head: the bytes of its line in front of the signature. -EBADMSG: not by pub.
 */
int audit_sign(const struct audit_key *k, struct slice head, uint8_t ret[AUDIT_SIG_LEN]) MUST_CHECK;
int audit_check(const struct audit_pub *pub, struct slice head,
	const uint8_t sig[AUDIT_SIG_LEN]) MUST_CHECK;
/* The same for a cut (audit_cut.h): neither is taken for the other. */
int audit_sign_cut(
	const struct audit_key *k, struct slice cut, uint8_t ret[AUDIT_SIG_LEN]) MUST_CHECK;
int audit_check_cut(
	const struct audit_pub *pub, struct slice cut, const uint8_t sig[AUDIT_SIG_LEN]) MUST_CHECK;
