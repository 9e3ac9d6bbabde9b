/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shrink - the rules that recorded requests need, and nothing more.
 *
 * How      shrink_add decides a recorded request again and notes its target for the rule that
 *          allows it. shrink_rules makes a copy of the rules in which each allow rule about hosts
 *          has only these targets: SHRINK_SIBLINGS or more names below one domain become
 *          `*.DOMAIN`, if the rule allows that, all others are literal. A rule without a target is
 *          left out. shrink_check proves that the copy allows no more (contain.h), with and without
 *          the managed policy, and that both together allow every noted target.
 * Trust    Rules of the same user; hosts of guests, canonical (host.h). No I/O.
 * Owns     The noted targets; the rules are the caller's and must live longer.
 * Limits   SHRINK_MAX_TARGETS different targets of all rules.
 * Never    Changes a deny rule, a rule about requests, or a resource that is an address or a
 *          network: a record does not say which address rule a resolved name needed.
 * See      shrink_test.c
 */
#pragma once

#include "contain.h"

#define SHRINK_SIBLINGS 3
#define SHRINK_MAX_TARGETS (1u << 20)

struct shrink;

/* With the managed policy, which requests need as well and which stays as it is; NULL: none. */
struct shrink *shrink_new(
	const struct rules *old, const struct contain_limit *limit, uint64_t now_ms);
void shrink_free(struct shrink *s);
/* A request that was allowed; port 0: a name that was resolved only. -EACCES: it is denied by the
 * rules of today. -E2BIG: too many different targets. */
int shrink_add(
	struct shrink *s, struct slice sandbox, const struct host *host, uint16_t port) MUST_CHECK;
/* Call once, after the last shrink_add. *ret must be all zero. */
int shrink_rules(struct shrink *s, struct rules *ret, struct err *err) MUST_CHECK;
/* CONTAIN_YES: `new` allows nothing more, and each target. *ret is as in contain.h, or the host and
 * port of a target that `new` denies. */
enum contain_result shrink_check(
	struct shrink *s, const struct rules *new, struct contain_witness *ret);
