/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top - commands that show all sandboxes with their use of the host.
 *
 * How      cmd_stats.c prints a table or JSON. cmd_top.c shows a full-screen view (top_screen.h).
 *          usage.h measures.
 * Trust    Objects of sbxd, which have words of guests; /proc of the host.
 */
#pragma once

#include "src/sbx/verb/verb.h"

extern const struct verb verb_stats, verb_top;

/* Whether sbx without arguments shows the view: on a terminal, if there is a sandbox. */
bool top_is_wanted(void);
int top_run(void);
