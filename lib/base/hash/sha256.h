/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256 - SHA-256 (FIPS 180-4) of bytes in memory.
 *
 * How      sha256 hashes one slice. For programs without OpenSSL: sbx-ssh-agent in its jail, sbx.
 * Trust    Input: untrusted, any length. Handles no secrets: nothing is wiped.
 * See      sha256_test.c
 */
#pragma once

#include "lib/base/slice.h"

#define SHA256_BYTES 32

void sha256(struct slice in, uint8_t ret[SHA256_BYTES]);
