/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_grid - the cells of a screen, and text in them.
 *
 * How      tui_grid_put writes glyphs from a column on and never beyond the width that it is given.
 *          A character of two columns is a cell and a cell with `is_tail`.
 * Trust    Texts may be hostile; see tui_glyph.h.
 * Owns     The cells, until tui_grid_done.
 * Limits   TUI_GRID_MAX rows and columns.
 * See      tui_paint_test.c
 */
#pragma once

#include "tui.h"
#include "tui_glyph.h"

#define TUI_GRID_MAX 1000u

struct tui_cell {
	wchar_t ch[TUI_GLYPH_MARKS + 2];
	enum tui_style style;
	bool is_reverse, is_tail;
};

struct tui_grid {
	unsigned rows, cols;
	struct tui_cell *cell;
};

struct tui_pen {
	unsigned row, col, width; /* at most `width` columns from `col` on */
	enum tui_style style;
	bool is_reverse;
};

/* All cells blank. */
void tui_grid_set(struct tui_grid *g, unsigned rows, unsigned cols);
void tui_grid_done(struct tui_grid *g);
const struct tui_cell *tui_grid_at(const struct tui_grid *g, unsigned row, unsigned col);
/* Returns the number of columns that were written. Escapes are reversed. */
unsigned tui_grid_put(struct tui_grid *g, const struct tui_pen *pen, struct slice text);
/* The end of the text, after a mark if it does not fit. */
unsigned tui_grid_put_end(struct tui_grid *g, const struct tui_pen *pen, struct slice text);
/* One character in each column of the pen. */
void tui_grid_fill(struct tui_grid *g, const struct tui_pen *pen, wchar_t ch);
