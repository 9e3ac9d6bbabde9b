/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage - a workspace with --staged: an overlay over the share, with the changes on the disk.
 *
 * How      The share of the workspace, which the host exports read-only, is the lower directory;
 *          the upper one is in STAGE_DIR on the root disk, in a directory named by a hash of the
 *          workspace's path. The overlay is mounted where only root can enter and bound at the path
 *          of the workspace. Changes of another sandbox (a template was saved from it) and changes
 *          that `sbx discard` marked are removed before the mount, by a child. A fork keeps the
 *          changes of its source (GUEST_MOUNT_KEPT).
 *          No xino: with it a directory with a hidden name cannot be listed.
 * Trust    Runs in the guest as root. The host relies on none of it: its export is read-only.
 * Owns     The mounts and the directories.
 * See      refresh.h, mounts.h, lib/wire/stage/stage_pack.h, man sbx-create
 */
#pragma once

#include "lib/base/err.h"
#include "lib/wire/guestapi/guest_ctl.h"

#define STAGE_DIR "/var/lib/sbx/stage"
#define STAGE_MOUNTS "/run/sbx/stage" /* only root enters */

/* Mounts the overlay. *ret is the place to bind, on the heap. `share` is the workspace in the
 * mounted share, `id` is the sandbox. */
int stage_mount(const char *id, const struct guest_mount *w, const char *share, char **ret,
	struct err *err) MUST_CHECK;
/* The changes of the workspace at a path, as a stream. */
int stage_send(const char *path, int out_fd, struct err *err) MUST_CHECK;
/* Lets the overlay see now what the host has replaced (refresh.h). */
int stage_refresh(const char *path, struct err *err) MUST_CHECK;
/* Marks them to be removed at the next start. */
int stage_discard(const char *path, struct err *err) MUST_CHECK;
