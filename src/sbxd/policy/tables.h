/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables - the policy as the files that a keeper gets (lib/rules/policy/table.h).
 *
 * How      The rules for all sandboxes are compiled once for each revision of the rulebook, and all
 *          keepers get the same file; the same applies to the managed policy. The rules of one
 *          sandbox are compiled when its keeper needs them: an index, made with the first table,
 *          finds them.
 * Trust    Rules of the user's own directory.
 * Owns     The files for all sandboxes and the index. A sandbox's own file is the caller's.
 * Never    Compiles uncommitted changes. A policy that cannot be read becomes a table with a fault,
 *          which denies everything; no policy becomes one that is unset.
 * See      tables_test.c, src/sbxd/keepers/reload.c
 */
#pragma once

#include "lib/rules/policy/table.h"
#include "lib/rules/spec/spec.h"
#include "rulebook.h"

struct tables {
	bool made; /* the rest is of this revision */
	uint64_t revision;
	int all, managed;
	uint32_t *scoped; /* the indexes of rules for one sandbox, by its name */
	size_t n_scoped;
};

void tables_init(struct tables *t);
void tables_done(struct tables *t);
/* ret[POLICY_OWN] is the caller's, the others stay here and are valid until the next call. On
 * an error there is neither. */
int tables_get(struct tables *t, struct rulebook *b, const struct spec *spec,
	int ret[POLICY_N_PARTS]) MUST_CHECK;
/* The policy of a sandbox as its keeper has it, of no sandbox if name is NULL. Never NULL. */
struct policy *tables_open(struct tables *t, struct rulebook *b, const char *name);
