/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive - the meaning of a network policy in the fewest words, for tests.
 *
 * How      naive_decide goes through all rules and all their resources for each question, and
 *          matches text against text. It shares with policy.c only the table of address classes.
 * Trust    Test code; rules and hosts of random_rules.c.
 */
#pragma once

#include "lib/rules/policy/policy.h"

/* A rule as text: what rule_print_resources gives. */
struct naive_rule {
	const struct rule *rule;
	const char *resources;
};

/* One host with an optional port; `every_port`: without one it means all, else 80 and 443. The
 * special addresses are as all others. */
bool naive_matches_host(const char *resource, const struct policy_op *op, bool every_port);
bool naive_matches(const struct naive_rule *rule, const struct policy_op *op);
bool naive_decide(
	const struct naive_rule *rules, size_t n, const char *sandbox, const struct policy_op *op);
