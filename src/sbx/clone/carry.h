/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carry - the uncommitted changes of a work tree as two commits.
 *
 * How      A copy of the index gives the staged tree. Then `git add` puts modified, deleted and
 *          untracked files, and the ignored files that the user selects, into the copy: the tree of
 *          the work tree. Both become commits in a directory of objects of our own. The work tree,
 *          its index and its objects are only read. Filters of the repository do not run.
 * Trust    The user's files.
 * Owns     carry_done removes the directory.
 * See      seed.c
 */
#pragma once

#include "lib/client/cli/opt.h"
#include "repo.h"

struct carry {
	char *dir, *objects;
	char *staged; /* commit; NULL: the index has conflicts */
	char *tree;   /* commit; NULL: nothing to carry */
};

void carry_done(struct carry *c);
#define AUTO_CARRY CLEANUP(carry_done)

/* `head`: the current commit; NULL: none. */
int carry_make(const struct repo *repo, const char *id, const char *head,
	const struct opt_list *globs, struct carry *c, struct problem *p) MUST_CHECK;
