/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cp_dest - where on the host a copy goes, without links that a guest could have created.
 *
 * How      cp_dest_find resolves the path that the user typed, one component after the other.
 *          Outside of workspaces it follows symbolic links as the kernel does. From the root of a
 *          workspace on it follows none: the rest of the path is given back as it is, for openat2
 *          beneath that root (tree_unpack_guarded). A last component that is a link to something
 *          else than a directory is not followed: the copy replaces the link.
 * Trust    Runs in sbx and sbx-prove. The path is the user's. Directories and links in workspaces
 *          are the guest's; they may change at any time, and no decision here depends on them.
 * Owns     cp_dest_done frees the strings.
 * Limits   PATH_MAX bytes a path, WALK_MAX_LINKS links.
 * See      lib/base/fs/walk.h, cp_dest_test.c, tests/cli/test_cp.py, lib/vm/share/place.h
 */
#pragma once

#include <stddef.h>
#include "lib/base/err.h"

struct cp_dest {
	char *root; /* the workspace; NULL: outside of all */
	char *path; /* beneath root, or absolute */
};

/* `roots` are the host paths of all workspaces, absolute and without symbolic links. */
int cp_dest_find(const char *typed, const char *const *roots, size_t n_roots, struct cp_dest *ret,
	struct err *err) MUST_CHECK;
/* The same for a file that is read: a link to it is followed, unless it is in a workspace. */
int cp_dest_find_source(const char *typed, const char *const *roots, size_t n_roots,
	struct cp_dest *ret, struct err *err) MUST_CHECK;
void cp_dest_done(struct cp_dest *d);
