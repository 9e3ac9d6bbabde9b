/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autosave - automatic checkpoints of running sandboxes (checkpoint.every, checkpoint.keep).
 *
 * How      Each running sandbox has one timer while checkpoint.every is set. When it expires, the
 *          tops of the disks are compared with the last checkpoint: a checkpoint is requested only
 *          if one was written since. The result arrives as FROZEN, as for any checkpoint, and
 *          autosave_trim removes what checkpoint.keep does not permit.
 * Trust    The times of files that QEMU writes: a wrong one causes a checkpoint too many or too
 *          few. A failure is logged, and the sandbox keeps running.
 * Limits   One request per sandbox at a time; AUTOSAVE_SLACK_MS, AUTOSAVE_SMALL.
 * See      lib/rules/settings/settings.h, tests/api/test_checkpoint.py
 */
#pragma once

#include "src/sbxd/state/state.h"

/* The guest writes its superblock and journal shortly after a checkpoint: not a change. */
#define AUTOSAVE_SLACK_MS 40000
#define AUTOSAVE_SMALL (4u << 20) /* bytes */

/* The state of the sandbox has changed. */
void autosave_look(struct sbxd *d, const char *id);
/* The settings may have changed. */
void autosave_look_all(struct sbxd *d);
void autosave_on_timer(struct sbxd *d, const struct loop_event *ev);
/* Logs it. */
void autosave_failed(struct sbxd *d, const char *id, const char *why);
/* Removes the oldest automatic checkpoints from the list, and records each. */
void autosave_trim(struct sbxd *d, const char *id);
