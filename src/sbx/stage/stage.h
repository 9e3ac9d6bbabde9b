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

#include "src/sbx/verb/verb.h"
#include "stage_view.h"

extern const struct verb verb_review, verb_apply, verb_undo, verb_discard;
