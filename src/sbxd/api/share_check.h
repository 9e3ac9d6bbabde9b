/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share_check - the host paths of a new sandbox's workspaces, without links that a guest could have
 * created.
 *
 * How      share_check walks each path as the user typed it (lib/base/fs/walk.h). A symbolic link
 *          in a writable workspace of any sandbox, running or not, or of this request, is refused.
 *          Other links are followed, and the path that the walk arrived at is stored: later starts
 *          follow no link (lib/vm/share/place.h).
 * Trust    Runs in sbxd. The path is the user's; links and directories in workspaces are the
 *          guest's, and may change at any time. The workspaces of removed sandboxes are not known.
 * Limits   SPEC_MAX_WORKSPACES paths, WALK_MAX_LINKS links each.
 * See      ref_check.c, src/sbx/sandbox/workspace.h, tests/cli/test_planted.py,
 *          tests/api/test_api.py
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/rules/spec/spec.h"

/* Replaces the host paths of `spec`. Returns -ELOOP for a planted symlink; *ret_hint, on the heap,
 * is then a command for its target, or NULL. Other errors are -EINVAL. */
int share_check(struct sbxd *d, struct spec *spec, char **ret_hint, struct err *err) MUST_CHECK;
