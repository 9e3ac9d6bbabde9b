/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lost - branches of a sandbox that have commits which the host repository does not have.
 *
 * How      lost_find compares the refs of the sandbox with those of the host. lost_fetch fetches
 *          the commits through the quarantine and stores them as refs/sbx/SANDBOX/BRANCH. A
 *          detached HEAD is the branch HEAD. An earlier value of a ref stays in its reflog.
 * Trust    Names and object names were checked by refs.h, objects are checked by transfer.h.
 * Owns     struct lost owns its lists.
 * Limits   REFS_MAX branches.
 * See      transfer.h, clone.h
 */
#pragma once

#include "transfer.h"

struct lost {
	char **oids, **names; /* without refs/heads/ */
	size_t n;
};

void lost_done(struct lost *l);
#define AUTO_LOST CLEANUP(lost_done)

/* Whether a ref of the host below `where`, or any ref, has the commit. */
bool lost_is_kept(const struct repo *repo, const char *oid, const char *const *where);
void lost_find(const struct repo *repo, const struct refs *refs, struct lost *ret);
void lost_add(struct lost *l, const char *oid, const char *name);
int lost_keep_ref(const struct repo *repo, const char *sandbox, const char *name, const char *oid,
	struct problem *p) MUST_CHECK;
int lost_fetch(const struct transfer *pl, const struct lost *l, struct problem *p) MUST_CHECK;
