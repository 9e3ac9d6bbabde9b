/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base - the version of a file that the sandbox and the host have both changed.
 *
 * How      In this order: what the last apply has put there, what an earlier review has seen there
 *          while the host had not changed it, the blob of the commit that HEAD was when the sandbox
 *          was created. A hash of known.h must match. The commit comes from the reflog; without an
 *          entry that is old enough there is none: the HEAD of now may have changes of the host.
 *          The tree and the blobs are read by a jailed git in a repository that sbx has written
 *          (src/sbx/clone/clone.h), which obeys no configuration of the workspace.
 * Trust    The user's repository and state directory. A user may have applied files below .git.
 * Owns     struct bases owns the trees, until bases_done.
 * Limits   BASE_MAX_FILES and BASE_MAX_TOTAL for the copies of one review.
 * Not      A file with uncommitted changes at the start of the sandbox has an older base: lines
 *          that the host then changed back come again with the merge. The reviewer sees them.
 * See      merge.h
 */
#pragma once

#include "saved.h"
#include "src/sbx/stage/area.h"

#define BASE_MAX_FILES 2000
#define BASE_MAX_TOTAL (64ull << 20)

struct bases {
	const struct area *a;
	struct clone_tree *trees[SPEC_MAX_WORKSPACES];
	bool tried[SPEC_MAX_WORKSPACES];
	size_t n_copied;
	uint64_t n_bytes;
};

void bases_done(struct bases *b);
#define AUTO_BASES CLEANUP(bases_done)

/* False: there is none. */
bool base_find(struct bases *b, const struct plan_step *s, struct saved *ret);
/* Whether the host had something at the path of a step, and has deleted it. */
bool base_was_there(struct bases *b, const struct plan_step *s);
/* Keeps the host's version of a step for a later review. */
void base_keep(struct bases *b, const struct plan_step *s);
