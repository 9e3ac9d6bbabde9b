/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage - changes of a sandbox with --staged: `review`, `apply`, `discard` and `undo`.
 *
 * How      A review gets the changes into a frozen bundle (pull.h, bundle.h) and compares them with
 *          the workspace (plan.h, stage_view.h). An apply does the selected steps (apply.h).
 * Trust    Everything that a sandbox sends is untrusted. The workspace is written by apply and undo
 *          only.
 * See      lib/wire/stage, src/guest/stage/stage.h, docs/decisions
 */
#pragma once

#include <jansson.h>
#include "src/sbx/verb/verb.h"
#include "stage_view.h"

/* Before a sandbox is removed: asks the user about changes that were not applied; `ask` false, or
 * without a terminal, they are an error. 0 without such changes. */
int stage_may_remove(const json_t *sandbox, bool ask, struct problem *p) MUST_CHECK;
/* Before a rewind: removes the bundle of the last review, whose changes the sandbox will not have.
 * -EBUSY if an apply was not finished. *ret_lock: no review or apply starts until the caller closes
 * it; -1 if the sandbox is not staged. */
int stage_begin_rewind(const json_t *sandbox, int *ret_lock, struct problem *p) MUST_CHECK;
/* Before a fork. -EBUSY if an apply was not finished. *ret_lock: as above, so that what the host
 * knows is of the time of the disks. */
int stage_begin_fork(const json_t *sandbox, int *ret_lock, struct problem *p) MUST_CHECK;
/* A fork exists: it knows which contents the applies of its source have left in the workspace. */
void stage_fork(const json_t *sandbox, const json_t *fork);
/* A line at the end of a session; on a terminal also without changes. */
void stage_note(const json_t *sandbox);

extern const struct verb verb_review, verb_apply, verb_undo, verb_discard;
