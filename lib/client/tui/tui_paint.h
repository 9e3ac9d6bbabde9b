/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_paint - a view as cells.
 *
 * How      Title, list, text, status and keys at the places of tui_layout. The first column of the
 *          text is a mark: '>' for a row that continues a line, so that a long line cannot look
 *          like several.
 * Trust    As tui.h. The time depends on the size of the screen only, and on the length of the line
 *          in which the first row is.
 * See      tui_model.h, tui_paint_test.c
 */
#pragma once

#include "tui_grid.h"
#include "tui_model.h"

/* After tui_load. */
void tui_paint(const struct tui_model *m, struct tui_grid *g);
