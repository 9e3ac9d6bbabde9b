/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forget - releases files of the workspaces that no program in the guest uses.
 *
 * How      The kernel caches the names it has seen, and the host holds a file open for each.
 *          Reconfiguring a file system without a change drops its unused names: of this file system
 *          only, while drop_caches would also drop those of the disks. A child does it for each
 *          virtiofs of PID 1's mount namespace, latest mount first (its path is the shortest:
 *          looking it up may need the host).
 * Trust    The host requests it. Guest root can defeat it; then its own workspaces fail.
 * Owns     The child, one at a time.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "lib/base/err.h"

struct forget {
	pid_t pid; /* 0: none */
};

/* -EINPROGRESS: until forget_on_exit returns true. */
int forget_begin(struct forget *f, struct err *err) MUST_CHECK;
bool forget_on_exit(struct forget *f, pid_t pid);
