/* SPDX-License-Identifier: Apache-2.0 */
/*
 * siphash - SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of 64 bits for hash tables.
 *
 * How      siphash hashes one slice with a random key, so that a sender cannot choose collisions.
 * Trust    Input: untrusted. The sender does not know the key.
 * See      siphash_test.c
 */
#pragma once

#include "lib/base/slice.h"

uint64_t siphash(const uint8_t key[16], struct slice in);
