/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ballast - reserved disk space that sbxd frees when the disk is full.
 *
 * How      STATE/ballast.0 and so on are BALLAST_PIECES files of BALLAST_PIECE bytes that are
 *          allocated, not sparse. Before `rm`, `stop`, a policy change and its own start sbxd
 *          checks the free space: below BALLAST_LOW it removes as many files as needed, so that the
 *          registry, the policy and the audit log can be written. The other files are for later
 *          requests: another process may use the freed space. All are created again, before any
 *          request, when BALLAST_ENOUGH is free.
 * Trust    The user's own directory. Contains no data of the guest.
 * Limits   BALLAST_PIECES requests on a disk that is filled again after each of them.
 * See      tests/e2e/test_disk_full.py
 */
#pragma once

#include <stdbool.h>

#define BALLAST_PIECES 8
#define BALLAST_PIECE (1u << 20)
#define BALLAST_LOW (512u << 10)
#define BALLAST_ENOUGH (64u << 20)

/* `dir` is the state directory. is_needed: the request must succeed on a full disk. */
void ballast_look(const char *dir, bool is_needed);
