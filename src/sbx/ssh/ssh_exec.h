/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_exec - becomes a program of the user: ssh, or an editor.
 *
 * How      The program is searched in the directories of search_path.h: a program that a sandbox
 *          can plant in a directory of PATH is not found.
 * Trust    The program is the user's.
 */
#pragma once

#include "lib/client/cli/ui.h"

/* Whether ssh_exec would find the program. */
bool ssh_exec_has(const char *name);
/* Returns only if it fails; -ENOENT without a hint if there is no such program. */
int ssh_exec(const char *const *argv, struct problem *p) MUST_CHECK;
