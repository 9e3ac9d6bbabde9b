/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha1 - SHA-1, which two old formats ask for: the name of a certificate in /etc/ssl/certs and
 * Java's trust store.
 *
 * How      sha1_add as often as wanted, then sha1_end.
 * Trust    Names and sums of files, never a proof of anything. The guest's program is static and
 *          has no OpenSSL, hence own code.
 * Owns     Nothing.
 * See      sha1_test.c, certname.h, jks.h, oci.h
 */
#pragma once

#include "lib/base/slice.h"

#define SHA1_BYTES 20

struct sha1 {
	uint32_t h[5];
	uint64_t n; /* bytes so far */
	uint8_t block[64];
};

void sha1_init(struct sha1 *s);
void sha1_add(struct sha1 *s, struct slice bytes);
void sha1_end(struct sha1 *s, uint8_t ret[SHA1_BYTES]);
