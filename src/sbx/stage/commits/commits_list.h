/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commits_list - the branches that a review has shown, in a file of the state directory.
 *
 * How      A line per branch: workspace, object name, branch. An apply reads them back.
 * Trust    The user's own file. The lines are checked anyway.
 * Owns     The lists, until commits_list_done.
 */
#pragma once

#include "src/sbx/stage/area.h"

struct commits_rows {
	char **oids, **branches;
	size_t n;
};

/* By workspace. */
struct commits_list {
	struct commits_rows v[SPEC_MAX_WORKSPACES];
};

void commits_list_done(struct commits_list *l);
#define AUTO_COMMITS_LIST CLEANUP(commits_list_done)

void commits_list_add(struct commits_list *l, size_t ws, const char *oid, const char *branch);
size_t commits_list_count(const struct commits_list *l);
int commits_list_save(
	const struct area *a, const struct commits_list *l, struct err *err) MUST_CHECK;
/* -ENOENT and the command that helps, if nothing was reviewed. */
int commits_list_load(const struct area *a, struct commits_list *ret, struct problem *p) MUST_CHECK;
