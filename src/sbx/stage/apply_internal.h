/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply_internal - one place in a workspace, shared by apply.c and undo.c.
 *
 * How      spot_open finds the directory of a step and the names in it. The functions move whole
 *          versions between the path, the temporary name next to it and the saved version.
 * Trust    See apply.h.
 * Owns     spot_close closes the descriptor.
 */
#pragma once

#include "apply.h"

struct spot {
	int dir;	  /* of the path; -1: it does not exist */
	const char *base; /* last component of the path */
	char temp[96];	  /* next to it */
	char saved[24];	  /* in the directory of the journal */
};

/* -ENOENT: the directory does not exist or is not a directory. */
int spot_open(
	const struct apply *a, const struct plan_step *s, size_t i, struct spot *ret) MUST_CHECK;
void spot_close(struct spot *s);
#define AUTO_SPOT CLEANUP(spot_close)
/* Moves the temporary file to the saved version, across file systems too. */
int spot_save(const struct apply *a, const struct spot *s, struct err *err) MUST_CHECK;
/* The reverse. */
int spot_unsave(const struct apply *a, const struct spot *s, struct err *err) MUST_CHECK;
bool spot_is_saved(const struct apply *a, const struct spot *s);
void spot_drop_temp(const struct spot *s);
/* Same type, content and permissions. */
bool spot_matches(const struct look *have, const struct look *want);
