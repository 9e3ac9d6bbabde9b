/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forget - lets go of the workspaces' files that nothing in the guest uses.
 *
 * How      The kernel remembers the names it has seen, and the host holds a file open for each. A
 *          file system that is configured anew, with nothing changed, loses the names that are not
 *          in use: of this file system alone, where drop_caches would take those of the disks too.
 *          A child does it for each virtiofs of PID 1's mount namespace, latest mount first (its
 *          path is the shortest way: looking it up may need the host).
 * Trust    The host asks. Guest root can make it useless; then its own workspaces fail.
 * Owns     The child, one at a time.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "lib/base/err.h"

struct forget {
	pid_t pid; /* 0: none */
};

/* -EINPROGRESS: until forget_on_exit says true. */
int forget_begin(struct forget *f, struct err *err) MUST_CHECK;
bool forget_on_exit(struct forget *f, pid_t pid);
