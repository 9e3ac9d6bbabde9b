/* SPDX-License-Identifier: Apache-2.0 */
/*
 * termname - the name of a terminal that programs of the guest have a description of.
 *
 * How      Looks for the description in the directories of ncurses. A terminal without one is taken
 *          for the usual one, which nearly all understand; an image without any keeps the name.
 * Trust    The name is the host user's; one with a '/' is never looked for.
 * See      termname_test.c
 */
#pragma once

#define TERMNAME_USUAL "xterm-256color"

/* root is "" in the guest. wanted may be NULL. */
const char *termname_for(const char *root, const char *wanted);
