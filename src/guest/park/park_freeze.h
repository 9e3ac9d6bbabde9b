/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park_freeze - all programs of the guest but PID 1 and its own stand still, and go on.
 *
 * How      The freezer of cgroup v2. PID 1 and what it names leave their group for PARK_GROUP, then
 *          every other group at the top (sbx: what the user runs; docker: containers) is frozen. A
 *          container that was paused stays so: that is a switch of its own, further down.
 * Trust    A program that root moved into the top group or ours is not frozen; it finds the
 *          workspaces gone for a while. That is its own matter.
 * Limits   PARK_FREEZE_MS for all to stand still.
 */
#pragma once

#include <sys/types.h>
#include "lib/base/err.h"

#define PARK_GROUP "/sys/fs/cgroup/sbx-park"
#define PARK_HOME "/sys/fs/cgroup/sbx"
#define PARK_FREEZE_MS 10000

/* Moves a process; 0 is the caller. */
int park_freeze_move(pid_t pid, const char *group) MUST_CHECK;
/* Freezes; thaws again what it froze when it fails. */
int park_freeze_all(struct err *err) MUST_CHECK;
void park_thaw_all(void);
