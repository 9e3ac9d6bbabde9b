/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - conflicts of a plan: three-way merges, and files that the host has deleted.
 *
 * How      A review merges each text file that the host and the sandbox have both changed with `git
 *          merge-file` in a jail (src/sbx/clone/clone.h), and saves the result (saved.h).
 *          An apply uses the results of the review only: if the host's file has changed since then
 *          there is none, and the step stays a conflict. A result gets the class that its content
 *          has, `merged` instead of `plain`. A result that equals the host's file is no step.
 * Trust    The sandbox's version is untrusted: git reads it in the jail, with its limits of time
 *          and memory. The result is shown like every change.
 * Owns     Nothing: results belong to the steps.
 * Limits   PLAN_HUGE bytes a version, MERGE_MAX_FILES files and MERGE_MS a review.
 * Not      Files below .git, links and files that are not text are not merged.
 * See      base.h, src/sbx/stage/plan.h, tests/cli/test_staged.py
 */
#pragma once

#include "src/sbx/stage/area.h"

#define MERGE_MAX_FILES 500
#define MERGE_MS 120000

/* Before notes_find. `fresh`: merges anew, else the results of the last review are used. */
void merge_conflicts(const struct area *a, const struct plan_input *in, bool fresh, struct plan *p);
/* After notes_find: the class of merged text. */
void merge_name_class(struct plan *p);
