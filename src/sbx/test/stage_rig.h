/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_rig - a workspace, a guest with a real overlay on it, and the host's half, without a VM.
 *
 * How      rig_open makes a random tree as the workspace. rig_guest mounts an overlay over it in a
 *          user namespace, changes files at random there, and keeps the view of the guest and the
 *          stream of stage_pack. The rest is the code of sbx itself.
 * Trust    Test code.
 * Owns     A temporary directory, until rig_close.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "src/sbx/stage/apply.h"

struct rig {
	uint64_t seed;
	char *top;	     /* with host, upper, work, merged, bundle, undo */
	char *before, *view; /* snapshots: the workspace at first, what the guest sees */
	int root;
	struct bundle bundle;
	struct plan plan;
	struct known known;
};

uint64_t rig_random(struct rig *r, uint64_t below);
char *rig_path(const struct rig *r, const char *name);
void rig_open(struct rig *r, uint64_t seed);
/* n random operations in the guest; fills view and the bundle. */
void rig_guest(struct rig *r, unsigned n);
/* The plan against the workspace of now; everything that can be applied is selected. */
void rig_plan(struct rig *r);
/* Results of apply functions. */
int rig_apply(struct rig *r);
int rig_continue(struct rig *r);
int rig_undo(struct rig *r);
/* One line per path, sorted; temporary files of sbx apply only with `temps`. */
char *rig_snapshot(const char *dir, bool temps);
char *rig_host_snapshot(const struct rig *r, bool temps);
void rig_close(struct rig *r);
