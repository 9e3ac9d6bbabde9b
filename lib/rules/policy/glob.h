/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glob - patterns inside one label of a host name: `*`, `?`, `[a-c1]`.
 *
 * How      `*` matches any number of bytes, also none, `?` one, a set one of its bytes. A pattern
 *          never reaches over a dot: callers cut names into labels first. Matching goes back to the
 *          last star only, so its cost is bounded by the product of the lengths.
 * Trust    Patterns are the user's, labels the guest's, canonical already (host.h). No heap.
 * Never    Supports escapes or excluded sets: glob_check rejects patterns that are easily misread.
 * See      glob_test.c
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/slice.h"

/* Whether a label is a pattern rather than itself. */
bool glob_is_pattern(struct slice label);
/* -EINVAL unless it is a pattern over a-z, 0-9, '-' and '_', lower case. */
int glob_check(struct slice pattern, struct err *err) MUST_CHECK;
bool glob_match(struct slice pattern, struct slice label);
/* Whether a label could match both; may return true for patterns that do not overlap. */
bool glob_may_meet(struct slice a, struct slice b);
