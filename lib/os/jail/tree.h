/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - mounts as file descriptors: clone a host directory or file, find its place, attach it.
 *
 * How      tree_clone opens a path once and makes a detached copy of the mounts below it;
 *          tree_place walks to the mount point under the new root one name at a time and makes
 *          what is missing, but only in the tmpfs itself; tree_attach joins the two. No path is
 *          looked up a second time.
 * Trust    Runs in the jailed child before exec, on paths of the plan. Host files may change
 *          under it: symlinks below the new root are never followed.
 * Owns     Fds are the caller's.
 * Never    Creates anything in a bound host directory. Clears a flag of the source mount.
 * See      jail_test.c, lib/vm/share/scaffold.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"

enum tree_flags {
	TREE_RW = 1 << 0,
	TREE_DEV = 1 << 1,
	TREE_NOEXEC = 1 << 2,
};

/* A detached recursive clone of what `fd` (O_PATH, of this mount namespace) refers to, read-only
 * unless TREE_RW, nosuid, nodev unless TREE_DEV. */
int tree_clone(int fd, unsigned flags, int *ret_tree) MUST_CHECK;
/* An empty tmpfs, detached. `size` as in mount(8). */
int tree_tmpfs(const char *size, const char *mode, int *ret_tree) MUST_CHECK;
/* The fd of the directory (or empty file) `path` below `root`, created with `mode` if missing. */
int tree_place(int root, const char *path, bool dir, unsigned mode, int *ret_place,
	struct err *err) MUST_CHECK;
int tree_attach(int tree, int place) MUST_CHECK;
/* Makes one mount (not those below it) read-only. */
int tree_set_readonly(int tree) MUST_CHECK;
