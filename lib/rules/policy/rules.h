/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules - the rules of a policy as a list, and as a text file that people review.
 *
 * How      rules_decode reads a whole file: `policy 1` or `policy 2` first, `end` last, so that a
 *          truncated file is detected; between them rules, groups of rules and comments. Rules
 *          about requests are in `policy 2` only. rules_encode writes `policy 2` if there is one,
 *          else `policy 1`: decoding that gives the same rules again, and encoding those the same
 *          bytes.
 * Trust    Text of the same user, or of a file that the user imports. The first fault stops it,
 *          with its line.
 * Owns     A struct rules owns its rules and groups; rules_done frees them.
 * Limits   RULES_MAX_BYTES a file, RULES_MAX_RESOURCES in all its rules, RULES_MAX_GROUPS.
 * See      proto/PROTOCOL.policy, rules_test.c, policy_fuzz.c
 */
#pragma once

#include "rule.h"

#define RULES_MAX_BYTES (64u << 20)
#define RULES_MAX_RESOURCES (1u << 18)
#define RULES_MAX_GROUPS 1024

struct rules_group {
	char *name;
	char *comment; /* NULL: none */
};

struct rules {
	struct rule *rule;
	size_t n, size;
	size_t n_resources;
	struct rules_group *group;
	size_t n_groups;
};

/* *ret must be all zero, and is so after an error. `name` is the file's name for messages. */
int rules_decode(
	struct slice text, const char *name, struct rules *ret, struct err *err) MUST_CHECK;
/* Whether a rule is about requests: then the file is `policy 2`. */
bool rules_has_requests(const struct rules *rules);
/* On the heap. */
char *rules_encode(const struct rules *rules, enum rule_print what);
/* Moves the rule into the list; after an error (a limit) it still is the caller's. */
int rules_add(struct rules *rules, struct rule *rule, struct err *err) MUST_CHECK;
void rules_done(struct rules *rules);
#define AUTO_RULES CLEANUP(rules_done)
