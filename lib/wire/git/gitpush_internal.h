/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gitpush_internal - the state of a judged push. Internal to lib/wire/git.
 *
 * How      gitpush.c has objects, verbs and needs, gitpush_diff.c compares two trees. A function
 *          that misses an object fills p->need and returns -EAGAIN.
 * Trust    As gitpush.h.
 */
#pragma once

#include "gitpush.h"

struct gitpush {
	const struct gitcommands *commands;
	struct gitpack *pack[1 + GITPUSH_MAX_SUPPLIES]; /* the first is the push's, maybe NULL */
	uint32_t *mark[1 + GITPUSH_MAX_SUPPLIES]; /* the last walk that has seen each object */
	unsigned n_packs;
	uint32_t walk;
	bool paths;
	bool unfiltered;
	bool failed; /* what was needed for paths was not given */
	bool knows_head, has_head;
	struct git_oid head;
	struct gitpush_need need, asked;
	unsigned n_supplies;
	uint32_t n_visits;
	unsigned next; /* the ref that is being judged */
	bool tried;    /* its commits were requested */
	struct gitpush_ref *ref;
};

/* Content of an object of this type; the caller frees it. -EAGAIN if it is not there. */
int gitpush_load(struct gitpush *p, const struct git_oid *oid, enum gitobject_type type,
	uint8_t **ret, size_t *ret_n, struct err *err) MUST_CHECK;
/* Counts work; -E2BIG. */
int gitpush_visit(struct gitpush *p, struct err *err) MUST_CHECK;
/* What differs between two trees, NULL being an empty one, is added to the ref. */
int gitpush_diff(struct gitpush *p, const struct git_oid *old, const struct git_oid *new,
	struct gitpush_ref *ref, struct err *err) MUST_CHECK;
