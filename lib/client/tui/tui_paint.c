/* SPDX-License-Identifier: Apache-2.0 */
#include "tui_paint.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"

static struct slice clip_line(struct slice s)
{
	return slice_of(s.p, MIN(s.n, (size_t)TUI_MAX_LINE));
}

/* ---- title, status, keys ---- */

static void paint_title(const struct tui_model *m, struct tui_grid *g)
{
	struct tui_pen pen = {.width = g->cols, .style = TUI_BOLD, .is_reverse = true};

	tui_grid_fill(g, &pen, L' ');
	(void)tui_grid_put(g, &pen, clip_line(slice_from_str(m->src->title)));
}

static void paint_keys(const struct tui_model *m, struct tui_grid *g, unsigned row)
{
	AUTO_FREE char *text = xstrdup("");
	const char *rest = "? keys  q close";

	for (const struct tui_bind *b = m->src->binds; b->key; b++) {
		AUTO_FREE char *old = text;

		text = xasprintf("%s%c %s  ", old, b->key, b->label);
		if (b->key == 'q')
			rest = "? keys";
	}
	tui_grid_put(g, &(struct tui_pen){.row = row, .width = g->cols, .style = TUI_DIM},
		slice_from_str(text));
	if (strlen(text) < g->cols)
		tui_grid_put(g,
			&(struct tui_pen){.row = row,
				.col = (unsigned)strlen(text),
				.width = g->cols - (unsigned)strlen(text),
				.style = TUI_DIM},
			slice_from_str(rest));
}

static void paint_status(
	const struct tui_model *m, struct tui_grid *g, unsigned row, unsigned height)
{
	struct tui_pen pen = {.row = row, .width = g->cols};
	char place[96];

	if (m->status[0]) {
		pen.style = TUI_BOLD;
		(void)tui_grid_put(g, &pen, clip_line(slice_from_str(m->status)));
	} else if (m->wrap.n > height) {
		pen.style = TUI_DIM;
		(void)snprintf(place, sizeof(place), "lines %zu to %zu of %zu", m->text_top + 1,
			MIN(m->text_top + height, m->wrap.n), m->wrap.n);
		(void)tui_grid_put(g, &pen, slice_from_str(place));
	}
}

/* ---- list ---- */

static void paint_row(
	const struct tui_model *m, struct tui_grid *g, size_t i, unsigned row, unsigned width)
{
	struct tui_row item = {0};
	struct tui_pen pen = {.row = row, .width = width};
	char mark[3] = "  ";

	m->src->row(m->src->arg, i, &item);
	pen.style = item.is_heading ? TUI_BOLD : item.style;
	pen.is_reverse = i == m->item && !m->in_text;
	tui_grid_fill(g, &pen, L' ');
	if (!item.is_heading) {
		mark[0] = item.mark ? item.mark : ' ';
		mark[1] = i == m->item ? '>' : ' ';
		pen.col = MIN(tui_grid_put(g, &pen, slice_from_str(mark)), width);
		pen.width = width - pen.col;
	}
	(void)tui_grid_put_end(g, &pen, clip_line(item.text));
}

static void paint_list(
	const struct tui_model *m, struct tui_grid *g, const struct tui_layout *l, unsigned top)
{
	unsigned width = MIN(l->list_w, g->cols);

	for (unsigned y = 0; y < l->body_h && m->top + y < m->src->n; y++)
		paint_row(m, g, m->top + y, top + y, width);
	if (l->list_w >= m->cols)
		return;
	for (unsigned y = 0; y < l->body_h; y++)
		tui_grid_fill(g,
			&(struct tui_pen){
				.row = top + y, .col = width, .width = 1, .style = TUI_DIM},
			wcwidth(0x2502) == 1 ? 0x2502 : L'|');
}

/* ---- text ---- */

/* The line in which a row is, from its first byte on. */
static struct slice line_of(const struct tui_wrap *w, size_t i)
{
	size_t from;

	while (i > 0 && tui_wrap_continues(w, i))
		i--;
	from = tui_wrap_offset(w, i);
	return clip_line(slice_of(w->text.p + from, w->text.n - from));
}

static void paint_text(
	const struct tui_model *m, struct tui_grid *g, const struct tui_layout *l, unsigned top)
{
	enum tui_style style = TUI_PLAIN;
	struct tui_pen pen = {.col = l->text_x + 1, .width = l->text_w};

	for (unsigned y = 0; y < l->body_h && m->text_top + y < m->wrap.n; y++) {
		size_t i = m->text_top + y;

		if (y == 0 || !tui_wrap_continues(&m->wrap, i))
			style = m->is_help ? TUI_PLAIN
					   : m->src->line_style(m->src->arg, line_of(&m->wrap, i));
		pen.row = top + y;
		pen.style = style;
		(void)tui_grid_put(g, &pen, tui_wrap_row(&m->wrap, i));
		if (tui_wrap_continues(&m->wrap, i))
			tui_grid_fill(g,
				&(struct tui_pen){.row = top + y,
					.col = l->text_x,
					.width = 1,
					.style = TUI_DIM},
				L'>');
	}
}

/* The last row of a text that is longer than TUI_MAX_TEXT. */
static void paint_cut(
	const struct tui_model *m, struct tui_grid *g, const struct tui_layout *l, unsigned top)
{
	struct tui_pen pen = {.col = l->text_x + 1, .width = l->text_w, .style = TUI_YELLOW};

	if (!m->wrap.is_cut || m->text_top + l->body_h <= m->wrap.n)
		return;
	pen.row = top + (unsigned)(m->wrap.n - m->text_top);
	(void)tui_grid_put(
		g, &pen, slice_from_str("The rest of the text is too long for this view"));
}

void tui_paint(const struct tui_model *m, struct tui_grid *g)
{
	struct tui_layout l;
	unsigned top;

	tui_grid_set(g, m->rows, m->cols);
	tui_layout(m, &l);
	top = l.has_title ? 1 : 0;
	if (l.has_title)
		paint_title(m, g);
	if (l.list_w)
		paint_list(m, g, &l, top);
	if (l.list_w < m->cols) {
		paint_text(m, g, &l, top);
		paint_cut(m, g, &l, top);
	}
	if (l.has_keys || (l.has_line && m->status[0]))
		paint_status(m, g, top + l.body_h, l.body_h);
	if (l.has_keys || (l.has_line && !m->status[0]))
		paint_keys(m, g, top + l.body_h + (l.has_keys ? 1 : 0));
}
