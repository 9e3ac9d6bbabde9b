/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceiling - the managed policy for commands that decide recorded or possible requests again.
 *
 * How      ceiling_load reads it and prints what it means for the result: a note, or a warning if
 *          it cannot be used. A request needs both policies, so these commands ask both.
 * Trust    The file is root's (lib/rules/managed/managed.h).
 * Owns     Its rules.
 */
#pragma once

#include "lib/rules/contain/contain.h"
#include "lib/rules/managed/managed.h"

struct ceiling {
	struct managed managed;
	struct contain_limit limit;
};

/* NULL: there is no managed policy. */
const struct contain_limit *ceiling_load(struct ceiling *c);
void ceiling_done(struct ceiling *c);
#define AUTO_CEILING CLEANUP(ceiling_done)
