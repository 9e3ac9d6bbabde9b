/*
 * ballast - space that sbxd holds so that it can give it up when the disk is full.
 *
 * How      STATE/ballast is a file of BALLAST_BYTES that is allocated, not sparse. Before `rm`,
 *          `stop` and a change of the policy sbxd looks at the free space: below BALLAST_LOW the
 *          file is removed, so that the registry, the policy and the audit log can be written. It
 *          is made again, before any request, when there is BALLAST_ENOUGH.
 * Trust    The user's own folder. The guest's bytes are never in it.
 * Limits   BALLAST_BYTES.
 * See      tests/e2e/test_disk_full.py
 */
#pragma once

#include <stdbool.h>

#define BALLAST_BYTES (4u << 20)
#define BALLAST_LOW (2u << 20)
#define BALLAST_ENOUGH (64u << 20)

/* `dir` is the state folder. is_needed: what follows must work on a full disk. */
void ballast_look(const char *dir, bool is_needed);
