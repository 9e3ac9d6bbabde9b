/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256 - SHA-256 of bytes in memory (FIPS 180-4), for the fingerprints of public keys.
 *
 * How      One call. A process that only names keys needs no cipher library in its jail.
 * Trust    Hostile bytes of any length; holds no secret, so nothing is wiped.
 * See      sshagent_test.c
 */
#pragma once

#include "lib/base/slice.h"

#define SHA256_BYTES 32

void sha256(struct slice in, uint8_t ret[SHA256_BYTES]);
