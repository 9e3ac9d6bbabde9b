/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_file - the policy of this installation as the command line reads it.
 *
 * How      Reads the file state/policy itself, in one piece, so that what is listed and exported is
 *          one state of it, however long it is. Changes go through sbxd (policy_api.h).
 * Trust    The user's own file; texts in it are printed through ui.h and table.h.
 * Owns     The caller owns the rules.
 * See      proto/PROTOCOL.policy
 */
#pragma once

#include "lib/rules/managed/managed.h"
#include "lib/client/cli/ui.h"

/* The managed policy; its fault is not an error of the call. */
void policy_file_managed(struct managed *ret);
/* -ENOENT with a sentence and a hint when there is none; -EINVAL when it cannot be read. */
int policy_file_load(struct rules *ret, struct problem *p) MUST_CHECK;
/* Another file, or stdin for "-". The text is on the heap. */
int policy_file_read(
	const char *path, char **ret_text, size_t *ret_n, struct problem *p) MUST_CHECK;

struct policy_diff {
	size_t n_added, n_removed;
	char **added, **removed; /* lines, at most POLICY_DIFF_LINES of each */
	size_t n_shown_added, n_shown_removed;
	/* All of them, "+ RULE" or "- RULE", one resource each: new allow rules with a pattern, an
	 * address, a local name or ports other than 80 and 443, and deny rules that go. */
	char **wide;
	size_t n_wide;
};

#define POLICY_DIFF_LINES 10

/* Compares the content of rules: ids, origins and creation times are ignored. */
void policy_diff_make(const struct rules *old, const struct rules *new, struct policy_diff *ret);
void policy_diff_done(struct policy_diff *d);
