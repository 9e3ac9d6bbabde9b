/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha1 - SHA-1 (FIPS 180-4), for formats that require it: names in /etc/ssl/certs, Java's trust
 * store.
 *
 * How      sha1_init, any number of sha1_add, then sha1_end. For sbx-guest, which is static and
 *          has no OpenSSL.
 * Trust    Input: untrusted. Names files only: SHA-1 authenticates nothing.
 * See      sha1_test.c, src/guest/trust/certname.h, src/guest/trust/jks.h, src/guest/docker/oci.h
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
