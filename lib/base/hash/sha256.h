/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256 - SHA-256 (FIPS 180-4) of bytes in memory.
 *
 * How      sha256 hashes one slice; sha256_begin, sha256_add and sha256_end hash a sequence of
 *          slices. For programs without OpenSSL: sbx-ssh-agent in its jail, sbx.
 * Trust    Input: untrusted, any length. Handles no secrets: nothing is wiped.
 * See      sha256_test.c
 */
#pragma once

#include "lib/base/slice.h"

#define SHA256_BYTES 32

struct sha256 {
	uint32_t h[8];
	uint64_t n;	  /* bytes so far */
	uint8_t rest[64]; /* n % 64 of them */
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, struct slice in);
void sha256_end(struct sha256 *s, uint8_t ret[SHA256_BYTES]);
void sha256(struct slice in, uint8_t ret[SHA256_BYTES]);
