/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park_freeze - freezes and thaws all programs of the guest except PID 1 and its helpers.
 *
 * How      The freezer of cgroup v2. PID 1 and the processes it names move to PARK_GROUP, then
 *          every other group at the top (sbx: the user's programs; docker: containers) is frozen. A
 *          paused container stays paused: that is a separate switch, further down.
 * Trust    A program that guest root moved into the top group or ours is not frozen; it temporarily
 *          loses the workspaces. This affects only the guest.
 * Limits   PARK_FREEZE_MS until all are frozen.
 */
#pragma once

#include <sys/types.h>
#include "lib/base/err.h"

#define PARK_GROUP "/sys/fs/cgroup/sbx-park"
#define PARK_HOME "/sys/fs/cgroup/sbx"
#define PARK_FREEZE_MS 10000

/* Moves a process; 0 is the caller. */
int park_freeze_move(pid_t pid, const char *group) MUST_CHECK;
/* Freezes all; on failure thaws what it froze. */
int park_freeze_all(struct err *err) MUST_CHECK;
void park_thaw_all(void);
