/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit_copy - shows a file of a guest in the user's editor.
 *
 * How      The content is written to a file `copy.EXT` in a new directory that has nothing else and
 *          is the editor's current directory. Editors take settings from files with certain names
 *          in these places, so no name of the guest is used; the extension is one of a list. The
 *          program is $VISUAL, $EDITOR or vi, by sh, in the directories of search_path.h. The
 *          directory is removed afterwards, with what was changed in it.
 * Trust    Path and content are a guest's. The editor parses the content with the user's rights.
 * See      lib/client/tui/tui.h, tests/cli/test_review_screen.py
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/slice.h"

/* In a view of tui_run. -ECHILD if the editor failed. */
int edit_copy_show(const char *path, struct slice content, struct err *err) MUST_CHECK;
