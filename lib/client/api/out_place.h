/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out_place - where a file that the user names is written or read, without links that a guest could
 * have created.
 *
 * How      out_place_find gets all workspaces from sbxd and resolves the path with cp_dest.h. In a
 *          workspace the directory of the file is opened with openat2, which follows no link, and
 *          `path` goes through that descriptor: the guest cannot replace it afterwards. A path that
 *          ends outside of workspaces is given back resolved: the kernel would resolve `..` after a
 *          planted link differently. out_place_open_source opens a file to read it. In a workspace
 *          that a guest can write, the file is opened beneath the workspace's root without links,
 *          and must be a regular file. Elsewhere it may be a link, a pipe or a terminal: these are
 *          the user's own.
 * Trust    Runs in sbx and sbx-prove. The path is the user's; directories in workspaces are the
 *          guest's.
 * Owns     out_place_done closes the directory and frees the path.
 * See      cp_dest.h, lib/base/fs/file.h (file_new_open replaces the last component)
 */
#pragma once

#include "cp_dest.h"
#include "lib/client/cli/ui.h"

struct out_place {
	int dir;
	char *path;
};

#define AUTO_OUT_PLACE CLEANUP(out_place_done)

int out_place_find(const char *typed, struct out_place *ret, struct problem *p) MUST_CHECK;
void out_place_done(struct out_place *o);
/* The destination of a copy: the same workspaces. */
int out_place_dest(const char *typed, struct cp_dest *ret, struct problem *p) MUST_CHECK;
/* The source of a copy, resolved: `root` is set in a workspace that a guest can write. */
int out_place_source(const char *typed, struct cp_dest *ret, struct problem *p) MUST_CHECK;
/* A descriptor to read from. */
int out_place_open_source(const char *typed, struct problem *p) MUST_CHECK;
