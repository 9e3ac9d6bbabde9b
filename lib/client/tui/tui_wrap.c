/* SPDX-License-Identifier: Apache-2.0 */
#include "tui_wrap.h"

#include "lib/base/mem.h"
#include "tui_glyph.h"

static void add_row(struct tui_wrap *w, size_t offset, bool continues)
{
	if (w->n == w->room) {
		w->room = w->room ? 2 * w->room : 64;
		w->row = xrealloc(w->row, w->room * sizeof(*w->row));
	}
	w->row[w->n++] = (uint32_t)offset | (continues ? TUI_WRAP_MORE : 0);
}

/* Adds the rows of one line; gives the offset after it. */
static size_t wrap_line(struct tui_wrap *w, size_t at)
{
	unsigned column = 0;

	add_row(w, at, false);
	while (at < w->text.n && w->text.p[at] != '\n') {
		struct slice rest = slice_of(w->text.p + at, w->text.n - at);
		struct tui_glyph g;

		tui_glyph_next(rest, column, &g);
		if (column && column + g.width > w->width) {
			add_row(w, at, true);
			column = 0;
			tui_glyph_next(rest, column, &g);
		}
		column += g.width;
		at += g.n;
	}
	return at;
}

void tui_wrap_set(struct tui_wrap *w, struct slice text, unsigned width)
{
	size_t at = 0;

	w->is_cut = text.n > TUI_MAX_TEXT;
	w->text = slice_of(text.p, MIN(text.n, (size_t)TUI_MAX_TEXT));
	w->width = MAX(width, 1u);
	w->n = 0;
	while (at < w->text.n)
		at = wrap_line(w, at) + 1;
}

void tui_wrap_done(struct tui_wrap *w)
{
	free(w->row);
	*w = (struct tui_wrap){0};
}

size_t tui_wrap_offset(const struct tui_wrap *w, size_t i)
{
	return w->row[i] & ~TUI_WRAP_MORE;
}

bool tui_wrap_continues(const struct tui_wrap *w, size_t i)
{
	return w->row[i] & TUI_WRAP_MORE;
}

struct slice tui_wrap_row(const struct tui_wrap *w, size_t i)
{
	size_t from = tui_wrap_offset(w, i);
	size_t to = i + 1 < w->n ? tui_wrap_offset(w, i + 1) : w->text.n;

	if (to > from && w->text.p[to - 1] == '\n')
		to--;
	return slice_of(w->text.p + from, to - from);
}

size_t tui_wrap_find(const struct tui_wrap *w, size_t offset)
{
	size_t low = 0, high = w->n;

	while (low + 1 < high) {
		size_t middle = low + (high - low) / 2;

		if (tui_wrap_offset(w, middle) <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}
