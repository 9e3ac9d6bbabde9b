/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closed - the own rules of a sandbox that only installs software: the hosts its spec names.
 *
 * How      Copies the deny rules of the sandbox and adds the resources of the spec as allow rules.
 *          The table of these rules is closed (table_wish.only): allow rules for all sandboxes do
 *          not count, and their deny rules still win, so an installation cannot reach a host that
 *          the user denies.
 * Trust    The policy of the same user; resources of the spec, read by lib/rules/policy.
 * Owns     The rules are the caller's.
 * Never    Allows more than the spec names: on any error the table has a fault.
 * See      closed_test.c, tables.c; no credential either: src/keeper/credential/vault_link.c
 */
#pragma once

#include "lib/rules/policy/rules.h"
#include "lib/rules/spec/spec.h"

/* pick: the sandbox's rules in `all`. *ret must be all zero, and is so after an error. */
int closed_rules(const struct spec *spec, const struct rules *all, const uint32_t *pick, size_t n,
	struct rules *ret, struct err *err) MUST_CHECK;
