/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_screen - the changed and denied files of the guard in a full-screen view.
 *
 * How      A list by state on the left, the difference of the selected file on the right. The view
 *          changes nothing; the caller forgets the list if the user chose that.
 * Trust    As guard_diff.h; lib/client/tui escapes what a terminal would obey.
 * Owns     Nothing after the call.
 * See      lib/client/tui/tui.h, edit_copy.h, tests/cli/test_review_screen.py
 */
#pragma once

#include <jansson.h>
#include "lib/base/err.h"

/* Returns 1 if the user chose to forget the list, else 0. */
int guard_screen_run(const json_t *sandbox, const json_t *list, struct err *err) MUST_CHECK;
