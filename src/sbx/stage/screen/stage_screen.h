/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_screen - staged changes in a full-screen view.
 *
 * How      The changes by class on the left, the difference of the selected one on the right. Keys
 *          select changes, one by one or a class, or hold them back. Nothing is applied in the
 *          view: the caller applies what is wanted if the user chose that.
 * Trust    As stage_view.h; lib/client/tui escapes what a terminal would obey.
 * Owns     Nothing after the call.
 * See      lib/client/tui/tui.h, src/sbx/review/review.h, tests/cli/test_review_screen.py
 */
#pragma once

#include "src/sbx/stage/stage_view.h"

/* Returns 1 if the user chose to apply the wanted items, else 0. */
int stage_screen_run(struct stage_view *v, struct err *err) MUST_CHECK;
