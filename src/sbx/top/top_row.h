/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_row - a sandbox as one line of columns.
 *
 * How      The columns fit into 78 characters. In a wider line, name, agent and branch are wider.
 * Trust    Names of branches are hostile: a character that is not visible becomes '?', and a text
 *          that is too wide is cut, so that it never moves another column.
 * See      top_row_test.c
 */
#pragma once

#include "top_list.h"

/* On the heap. */
char *top_row_heading(unsigned width);
char *top_row_text(const struct top_box *b, unsigned width);
