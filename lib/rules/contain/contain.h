/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contain - whether a policy allows something that another policy denies, with a witness.
 *
 * How      contain_check compiles both policies for each sandbox that a rule names, and for one
 *          that none names, at each moment when a rule expires. Then it decides about
 *          representatives: contain_names.c finds one name for each set of patterns that a name
 *          can match together (the product of the patterns as automata), contain_addrs.c the edges
 *          of all networks and classes of addresses. Ports are the edges of all ranges.
 * Trust    Rules of the same user, or of a file. No I/O.
 * Owns     Nothing.
 * Limits   CONTAIN_MAX_STATES, CONTAIN_MAX_TRIES, CONTAIN_MAX_VIEWS: beyond them, and if rules
 *          about requests differ, the result is CONTAIN_UNPROVEN.
 * Never    Returns a witness that policy_decide does not confirm.
 * See      contain_test.c, which has random policies and the naive matcher as the judge
 */
#pragma once

#include "lib/rules/policy/policy.h"

#define CONTAIN_MAX_STATES (1u << 17) /* of the product of all patterns */
#define CONTAIN_MAX_TRIES (20u << 20) /* decisions */
#define CONTAIN_MAX_VIEWS 256	      /* sandboxes, times moments */

enum contain_result { CONTAIN_YES, CONTAIN_NO, CONTAIN_UNPROVEN };

struct contain_witness {
	struct host host;
	uint16_t port;
	char sandbox[RULE_MAX_WORD + 1]; /* empty: any that no rule names */
	uint64_t at_ms;
	const char *why; /* CONTAIN_UNPROVEN: a sentence */
};

/* The managed policy, which limits all policies (policy_limit); NULL in its place: none. */
struct contain_limit {
	const struct rules *rules; /* empty if it is faulty */
	const char *fault; /* why it cannot be used, so that everything is denied; NULL: it can */
};

/* Whether `outer` allows everything that `inner` allows, from now_ms on. _limited: each of them
 * together with the managed policy. */
enum contain_result contain_check(const struct rules *inner, const struct rules *outer,
	uint64_t now_ms, struct contain_witness *ret);
enum contain_result contain_check_limited(const struct rules *inner, const struct rules *outer,
	const struct contain_limit *limit, uint64_t now_ms, struct contain_witness *ret);
/* As policy_new, with the managed policy. */
struct policy *contain_compile(
	const struct rules *rules, const struct contain_limit *limit, const char *sandbox);
