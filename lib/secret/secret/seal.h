/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal - bytes that only the holder of the key can read or change. No I/O.
 *
 * How      A head (magic, version, where the key is, generation, salt, a check of the key, nonce,
 *          length) and AES-256-GCM over the rest, the whole head authenticated with it. A fresh
 *          random nonce for each writing. The anchor, under the same key, has the last written
 *          generation, so that an old copy is detected.
 * Trust    Input: an untrusted file; all sizes are checked before the key is used.
 * Owns     What it gives: the sealed bytes on the heap, the opened ones in a struct secret.
 * Limits   SEAL_MAX bytes.
 * See      safe.h, seal_test.c, seal_fuzz.c
 */
#pragma once

#include "lib/os/ipc/vault_item.h"
#include "secret.h"

#define SEAL_KEY 32
#define SEAL_SALT 16
#define SEAL_HEAD 68
#define SEAL_TAG 16
#define SEAL_ANCHOR 40
#define SEAL_MAX (4U << 20)

struct seal_head {
	enum vault_key source; /* where the key is; never VAULT_KEY_NONE */
	uint64_t generation;
	uint8_t salt[SEAL_SALT];
	uint8_t check[16];
	uint8_t nonce[12];
	uint32_t n; /* of the sealed bytes */
};

/* A key, or a salt. */
int seal_random(void *p, size_t n) MUST_CHECK;
/* scrypt; slow on purpose. */
int seal_key_from_passphrase(struct slice passphrase, const uint8_t salt[SEAL_SALT],
	struct secret *ret_key, struct err *err) MUST_CHECK;

/* Uses source, generation and salt of the head. */
int seal_write(const struct secret *key, const struct seal_head *head, struct slice plain,
	uint8_t **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* Reads the part that needs no key. -EBADMSG with a message if the file is not complete. */
int seal_read_head(struct slice file, struct seal_head *ret, struct err *err) MUST_CHECK;
/* -EKEYREJECTED with another key, -EBADMSG when it was changed. */
int seal_open(const struct secret *key, struct slice file, struct secret *ret_plain,
	struct err *err) MUST_CHECK;

int seal_anchor_make(const struct secret *key, const struct seal_head *head,
	uint8_t ret[SEAL_ANCHOR]) MUST_CHECK;
int seal_anchor_read(const struct secret *key, const struct seal_head *head, struct slice anchor,
	uint64_t *ret_generation) MUST_CHECK;
