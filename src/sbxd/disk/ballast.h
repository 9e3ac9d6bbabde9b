/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ballast - space that sbxd holds so that it can give it up when the disk is full.
 *
 * How      STATE/ballast.0 and so on are BALLAST_PIECES files of BALLAST_PIECE bytes that are
 *          allocated, not sparse. Before `rm`, `stop`, a change of the policy and its own start
 *          sbxd looks at the free space: below BALLAST_LOW it removes as many of them as that
 *          takes, so that the registry, the policy and the audit log can be written. The others are
 *          for the requests that follow: whoever filled the disk may take what was freed. All are
 *          made again, before any request, when there is BALLAST_ENOUGH.
 * Trust    The user's own folder. The guest's bytes are never in it.
 * Limits   BALLAST_PIECES requests on a disk that is filled again after each of them.
 * See      tests/e2e/test_disk_full.py
 */
#pragma once

#include <stdbool.h>

#define BALLAST_PIECES 8
#define BALLAST_PIECE (1u << 20)
#define BALLAST_LOW (512u << 10)
#define BALLAST_ENOUGH (64u << 20)

/* `dir` is the state folder. is_needed: what follows must work on a full disk. */
void ballast_look(const char *dir, bool is_needed);
