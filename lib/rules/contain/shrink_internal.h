/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shrink_internal - what the parts of shrink.h share: a noted target, and the rule for its targets.
 */
#pragma once

#include "shrink.h"

struct shrink_target {
	char *host; /* a name, or an address as addr_print writes it */
	uint32_t rule, sandbox;
	uint16_t port;
	bool is_addr;
};

/* Adds a copy of the rule. */
int shrink_keep_rule(const struct rule *rule, struct rules *ret, struct err *err) MUST_CHECK;
/* Adds what is left of an allow rule: nothing, the rule itself, or rules for its targets. */
int shrink_one_rule(const struct rule *rule, const struct shrink_target *v, size_t n,
	struct rules *ret, struct err *err) MUST_CHECK;
