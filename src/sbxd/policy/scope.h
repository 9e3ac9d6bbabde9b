/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope - updates the rules of one sandbox when it is renamed or removed.
 *
 * How      scope_prepare changes them and writes the policy to a new file. After the other steps,
 *          scope_commit renames it into place, or scope_abandon discards it. A sandbox without its
 *          own rules needs no work, and a policy that cannot be read is not changed: it allows
 *          nothing.
 * Trust    As rulebook.h.
 * See      tests/api/test_policy.py
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/base/err.h"

/* to NULL: the rules are removed. *ret_n is their number. */
int scope_prepare(struct sbxd *d, const char *sandbox, const char *to, uint64_t *ret_n,
	struct err *err) MUST_CHECK;
/* Returns 0 also if there was nothing to do. */
int scope_commit(struct sbxd *d, struct err *err) MUST_CHECK;
void scope_abandon(struct sbxd *d);
/* Before a sandbox of this name is created. */
int scope_drop_left_over(struct sbxd *d, const char *sandbox, struct err *err) MUST_CHECK;
