/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_screen - the full-screen list of all sandboxes, with keys for the common commands.
 *
 * How      The list is read every TOP_TICK_MS; the selected sandbox stays selected by its id. A key
 *          runs the command of sbx: in the background (stop, start), or on the terminal (attach,
 *          review). A command that stops or removes something is confirmed by `y`, for the sandbox
 *          of the question, whatever the list shows meanwhile.
 * Trust    As top_list.h. Arguments of commands are names of sandboxes; a typed port follows an
 *          option and is one argument.
 * See      lib/client/tui/tui.h, job.h, tests/cli/top/test_top.py
 */
#pragma once

#include "lib/base/err.h"

#define TOP_TICK_MS 2000
#define TOP_MAX_TYPED 64

int top_screen_run(struct err *err) MUST_CHECK;
