/* SPDX-License-Identifier: Apache-2.0 */
/*
 * termname - the name of a terminal for which the guest has a description.
 *
 * How      Searches the description in the directories of ncurses. A terminal without one is
 *          replaced by the usual one, which nearly all understand. Without any, the name is kept.
 * Trust    Input: a name from the host user; a name with '/' is never searched.
 * See      termname_test.c
 */
#pragma once

#define TERMNAME_USUAL "xterm-256color"

/* root is "" in the guest. wanted may be NULL. */
const char *termname_for(const char *root, const char *wanted);
