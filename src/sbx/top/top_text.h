/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_text - one sandbox as text for the lower half of the view.
 *
 * How      Facts that are not in the list, and what to do about them.
 * Trust    As top_list.h: texts are printed as they are, and the view escapes them. A line break in
 *          a text of sbxd becomes a blank.
 */
#pragma once

#include <stdio.h>
#include "top_list.h"

void top_text_print(FILE *f, const struct top_box *b);
