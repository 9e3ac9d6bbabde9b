/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naive_request - the meaning of rules about requests in the fewest words, for tests.
 *
 * How      naive_request goes through all rules, resources and terms for each effect, and compares
 *          text with text, by recursion. It shares nothing with lib/rules/effect but the struct.
 * Trust    Test code; rules and requests of random_requests.c.
 */
#pragma once

#include "lib/rules/policy/policy_request.h"
#include "naive.h"

struct naive_answer {
	enum policy_verdict verdict;
	bool is_governed;
};

/* A rule as naive_rule, whose resources are what rule_print_what gives. `network` is the decision
 * of naive_decide. */
struct naive_answer naive_request(const struct naive_rule *rules, size_t n, const char *sandbox,
	const struct policy_request *req, bool network);
/* Whether the named rule may have decided: it matches the effect, and says the verdict. */
bool naive_request_names(const struct naive_rule *rule, const struct policy_request *req,
	const struct policy_outcome *out);
