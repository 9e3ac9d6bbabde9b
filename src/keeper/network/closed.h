/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closed - the network of a sandbox that only installs something: what its spec names, and nothing
 * else.
 *
 * How      The user's policy with every allow left out and those of the spec put in. A deny still
 *          wins, so what the user forbids is not opened by installing something.
 * Trust    The policy of the same user; resources of the spec, read by lib/rules/policy.
 * Owns     The text is the caller's.
 * Never    Gives more than the spec names: what cannot be read or made denies everything.
 * See      closed_test.c, netpolicy.c; no credential either: vault_link.c
 */
#pragma once

#include "lib/base/slice.h"
#include "lib/rules/spec/spec.h"

/* The policy of a sandbox whose spec has `only`, on the heap. A text that cannot be read stays
 * what it is, and denies everything. */
char *closed_policy(const struct spec *spec, struct slice text);
