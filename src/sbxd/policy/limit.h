/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit - whether new rules would allow something that the managed policy does not.
 *
 * How      limit_check proves with lib/rules/contain that the managed policy contains the network
 *          rules, or finds a request that it does not permit and names the managed rule. A rule
 *          about requests is refused only if a managed deny rule without options covers it, or
 *          matches one of its literal paths or repositories. What is not proven is accepted:
 *          keeper, sbx-egress and sbx-origin ask the managed policy about each request, so a rule
 *          that is wider than it allows nothing more.
 * Trust    Rules of the same user; the managed policy is root's.
 * Owns     Nothing.
 * See      limit_test.c, lib/rules/managed/managed.h
 */
#pragma once

#include "lib/rules/managed/managed.h"

/* The allow rules of the list, those of a preset excepted: presets are offered whatever the managed
 * policy is. -EPERM: the message has the request and the managed rule. */
int limit_check(const struct managed *m, const struct rules *rules, uint64_t now_ms,
	struct err *err) MUST_CHECK;
