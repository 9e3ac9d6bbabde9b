/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refresh - lets an overlay see that the host has replaced files below it.
 *
 * How      An overlay keeps the entries of the share that it has looked up. When the host replaces
 *          such a file, every use of its path fails with ESTALE until the overlay forgets the
 *          entry. Reconfiguring a mounted file system without a change makes the kernel forget all
 *          entries that are not in use. refresh_start forks a child that does so with the overlay
 *          every REFRESH_MS; the share itself keeps its entries and pages. refresh_now does so
 *          with both.
 * Trust    Runs in the guest as root, on mounts of stage.c.
 * Owns     The child, as long as the overlay is mounted. PID 1 reaps it.
 * Limits   A file that a program has open stays as it was until it is closed. The inode
 *          number of a directory can change while no program has it open.
 * See      stage.h, tests/e2e/test_share_walls.py
 */
#pragma once

#include "lib/base/err.h"

#define REFRESH_MS 1000

void refresh_start(const char *merged);
int refresh_now(const char *merged, const char *lower, struct err *err) MUST_CHECK;
