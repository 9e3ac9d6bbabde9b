/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_rules - random rules and targets for tests and the bench.
 *
 * How      random_rule and random_op draw from a dozen labels, ports and networks, so that they
 *          often meet; random_rules_wide makes a large policy of many different names.
 * Trust    Test code. Deterministic: the same seed, the same rules.
 */
#pragma once

#include "lib/rules/policy/policy.h"

struct random_state {
	uint64_t x;
};

uint32_t random_below(struct random_state *rs, uint32_t n);
/* Adds one rule over few words. */
void random_rule(struct random_state *rs, struct rules *rules);
/* A host, a port and a time over the same words. */
void random_op(struct random_state *rs, struct host *host, struct policy_op *ret);
/* n rules, each with a name or network of its own, in the mix of a large installation. */
void random_rules_wide(struct random_state *rs, size_t n, struct rules *rules);
/* The i-th target of that policy: two of three match a rule. */
void random_op_wide(struct random_state *rs, size_t n, struct host *host, struct policy_op *ret);
