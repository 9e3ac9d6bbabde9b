/* SPDX-License-Identifier: Apache-2.0 */
/*
 * siphash - SipHash-2-4: a short keyed hash, so that who chooses the keys cannot choose the chains.
 *
 * How      The published algorithm (Aumasson and Bernstein, 2012), 64 bits out.
 * Trust    Hashes hostile bytes under a random key that they do not know.
 * See      synth_test.c
 */
#pragma once

#include "lib/base/slice.h"

uint64_t siphash(const uint8_t key[16], struct slice in);
