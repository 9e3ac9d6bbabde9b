/* SPDX-License-Identifier: Apache-2.0 */
#include "tui_grid.h"

#include <string.h>

#include "lib/base/mem.h"

void tui_grid_set(struct tui_grid *g, unsigned rows, unsigned cols)
{
	tui_grid_done(g);
	g->rows = MIN(rows, TUI_GRID_MAX);
	g->cols = MIN(cols, TUI_GRID_MAX);
	g->cell = xcalloc((size_t)g->rows * g->cols + 1, sizeof(*g->cell));
	for (size_t i = 0; i < (size_t)g->rows * g->cols; i++)
		g->cell[i].ch[0] = L' ';
}

void tui_grid_done(struct tui_grid *g)
{
	free(g->cell);
	*g = (struct tui_grid){0};
}

const struct tui_cell *tui_grid_at(const struct tui_grid *g, unsigned row, unsigned col)
{
	return &g->cell[(size_t)row * g->cols + col];
}

static void set_cell(struct tui_grid *g, const struct tui_pen *pen, unsigned col, const wchar_t *ch,
	bool is_reverse)
{
	struct tui_cell *c;

	if (pen->row >= g->rows || col >= g->cols)
		return;
	c = &g->cell[(size_t)pen->row * g->cols + col];
	*c = (struct tui_cell){.style = pen->style, .is_reverse = is_reverse};
	for (size_t i = 0; i < ARRAY_LEN(c->ch) - 1 && ch[i]; i++)
		c->ch[i] = ch[i];
}

/* The part of an escape that has room; a reader takes it for text of the file otherwise. */
static void put_escape(struct tui_grid *g, const struct tui_pen *pen, unsigned at, const char *text)
{
	for (unsigned i = 0; text[i] && at + i < pen->width; i++) {
		wchar_t ch[2] = {(wchar_t)text[i], 0};

		set_cell(g, pen, pen->col + at + i, ch, !pen->is_reverse);
	}
}

static void put_glyph(
	struct tui_grid *g, const struct tui_pen *pen, unsigned at, const struct tui_glyph *glyph)
{
	static const wchar_t blank[] = {L' ', 0};
	bool is_tab = glyph->ch[0] == L' ';

	for (unsigned i = 0; i < glyph->width && at + i < pen->width; i++) {
		bool is_tail = i > 0 && !is_tab;

		set_cell(g, pen, pen->col + at + i, is_tail ? blank : glyph->ch, pen->is_reverse);
		if (is_tail && pen->row < g->rows && pen->col + at + i < g->cols)
			g->cell[(size_t)pen->row * g->cols + pen->col + at + i].is_tail = true;
	}
}

unsigned tui_grid_put(struct tui_grid *g, const struct tui_pen *pen, struct slice text)
{
	unsigned at = 0;

	while (text.n && at < pen->width) {
		struct tui_glyph glyph;

		tui_glyph_next(text, at, &glyph);
		if (glyph.escape[0])
			put_escape(g, pen, at, glyph.escape);
		else if (glyph.ch[0] == L' ' || at + glyph.width <= pen->width)
			put_glyph(g, pen, at, &glyph);
		at += glyph.width;
		(void)slice_take(&text, glyph.n);
	}
	return MIN(at, pen->width);
}

unsigned tui_grid_put_end(struct tui_grid *g, const struct tui_pen *pen, struct slice text)
{
	size_t columns = tui_glyph_columns(text);
	struct tui_pen rest = *pen;

	if (columns <= pen->width || pen->width == 0)
		return tui_grid_put(g, pen, text);
	while (text.n && columns > pen->width - 1) {
		struct tui_glyph glyph;

		tui_glyph_next(text, 0, &glyph);
		columns -= MIN(columns, glyph.width);
		(void)slice_take(&text, glyph.n);
	}
	rest.width = 1;
	tui_grid_fill(g, &rest, wcwidth(0x2026) == 1 ? 0x2026 : L'~');
	rest.col++;
	rest.width = pen->width - 1;
	return 1 + tui_grid_put(g, &rest, text);
}

void tui_grid_fill(struct tui_grid *g, const struct tui_pen *pen, wchar_t ch)
{
	wchar_t text[2] = {ch, 0};

	for (unsigned i = 0; i < pen->width; i++)
		set_cell(g, pen, pen->col + i, text, pen->is_reverse);
}
