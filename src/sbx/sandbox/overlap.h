/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlap - warnings about workspaces that are inside other workspaces.
 *
 * How      A guest that can write to a directory above a workspace can replace the workspace. The
 *          next start then fails (lib/vm/share/place.h), so the user gets a warning when the
 *          sandbox is created. Two sandboxes with the same workspace are not reported. A workspace
 *          that is at the same place in the guest is not reported either: there it is a mount
 *          point, which the guest cannot replace (lib/vm/share/hold.h).
 * Trust    Runs in sbx. Objects of sbxd.
 * See      overlap_test.c
 */
#pragma once

#include <jansson.h>

/* Compares the workspaces of `sandbox` with each other and with those of all sandboxes. */
void overlap_warn(const json_t *sandbox);
/* The warning about two workspaces, on the heap; NULL: none. `other` is the name of the second
 * one's sandbox; NULL: the same sandbox. */
char *overlap_text(const json_t *a, const json_t *b, const char *other);
