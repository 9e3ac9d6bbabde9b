/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closed - the network policy of a sandbox that only installs software: the hosts its spec names.
 *
 * How      Copies the user's policy without its allow rules and adds the resources of the spec as
 *          allow rules. Deny rules still win, so an installation cannot reach a host that the user
 *          denies.
 * Trust    The policy of the same user; resources of the spec, read by lib/rules/policy.
 * Owns     The text is the caller's.
 * Never    Allows more than the spec names: on any error the policy denies everything.
 * See      closed_test.c, netpolicy.c; no credential either: vault_link.c
 */
#pragma once

#include "lib/base/slice.h"
#include "lib/rules/spec/spec.h"

/* Returns the policy of a sandbox whose spec has `only`, on the heap. A policy that does not parse
 * is returned unchanged; the gate then denies everything. */
char *closed_policy(const struct spec *spec, struct slice text);
