/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion - scripts for bash, zsh and fish, written from verb_table.
 *
 * How      Each function prints a complete script. Names of sandboxes come from `sbx ls -q` at the
 *          time of completion, keys of settings from `sbx settings list`.
 * Trust    Our own tables. Names that sbx prints contain no shell metacharacters.
 * See      cmd_completion.c, tests/cli
 */
#pragma once

#include "src/sbx/verb/verb.h"

/* All commands, in main.c; the last row is NULL. */
extern const struct verb *const verb_table[];
extern const struct verb verb_completion;

void completion_bash(void);
void completion_zsh(void);
void completion_fish(void);
