/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold - directories that the guest cannot rename or remove, because a pinned entry is below them.
 *
 * How      The rule: no operation of the guest renames or removes a directory that contains a
 *          pinned entry (a read-only workspace inside a writable one, a covered directory).
 *          hold_above binds each directory between the writable root and the pinned entry onto
 *          itself. The kernel does not rename, exchange or remove a mount point (EBUSY), and it
 *          does not link or rename across mounts (EXDEV). So every name on the way to the pinned
 *          entry keeps its meaning, in any order of operations, also when virtiofsd is compromised.
 * Trust    Runs in the jailed child before exec, in its mount namespace. The directories are the
 *          host user's and may hold anything that a guest made: no symbolic link is followed.
 * Owns     Nothing. The mounts end with the namespace.
 * Never    Creates anything in a workspace.
 * Not      Against the host. When a host program replaces a pinned entry, the new one is not pinned
 *          until the next start.
 * See      scaffold.h, hold_test.c
 */
#pragma once

#include "lib/base/err.h"

/* `outer` is a prefix of `path`; both are absolute paths below `root`, a descriptor of the tree.
 * Each directory strictly between them becomes a mount point. */
int hold_above(int root, const char *outer, const char *path, struct err *err) MUST_CHECK;
