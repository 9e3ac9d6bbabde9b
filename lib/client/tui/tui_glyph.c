/* SPDX-License-Identifier: Apache-2.0 */
#include "tui_glyph.h"

#include <string.h>

/* The marks on a character: visible characters without a width of their own. */
static void take_marks(struct slice s, struct tui_glyph *g)
{
	for (size_t i = 1; i <= TUI_GLYPH_MARKS && g->n < s.n; i++) {
		struct slice rest = slice_of(s.p + g->n, s.n - g->n);
		uint32_t v = 0;
		size_t n = rest.p[0] < 0x80 ? 0 : text_character(rest, &v);

		if (n == 0 || !text_is_visible(v) || wcwidth((wchar_t)v) != 0)
			return;
		g->ch[i] = (wchar_t)v;
		g->n += n;
	}
}

static void set_escape(struct slice s, struct tui_glyph *g)
{
	g->n = text_escape(s, g->escape);
	g->width = (unsigned)strlen(g->escape);
}

void tui_glyph_next(struct slice s, unsigned column, struct tui_glyph *ret)
{
	uint32_t v = 0;
	size_t n = text_character(s, &v);
	int width = n && text_is_visible(v) ? wcwidth((wchar_t)v) : -1;

	*ret = (struct tui_glyph){.n = n};
	if (v == '\t' && n) {
		ret->width = TUI_GLYPH_TAB - column % TUI_GLYPH_TAB;
		ret->ch[0] = L' ';
	} else if (width > 0) {
		ret->width = (unsigned)width;
		ret->ch[0] = (wchar_t)v;
		take_marks(s, ret);
	} else {
		set_escape(s, ret);
	}
}

size_t tui_glyph_columns(struct slice s)
{
	size_t columns = 0;

	while (s.n) {
		struct tui_glyph g;

		tui_glyph_next(s, (unsigned)(columns % TUI_GLYPH_TAB), &g);
		columns += g.width;
		(void)slice_take(&s, g.n);
	}
	return columns;
}
