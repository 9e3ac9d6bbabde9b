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

	item.width = width > 2 ? width - 2 : 0;
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
	if (m->src->heading)
		(void)tui_grid_put(g, &pen, clip_line(item.text));
	else
		(void)tui_grid_put_end(g, &pen, clip_line(item.text));
}

static void paint_heading(const struct tui_model *m, struct tui_grid *g, unsigned row)
{
	struct tui_row item = {.width = g->cols > 2 ? g->cols - 2 : 0};

	m->src->heading(m->src->arg, &item);
	(void)tui_grid_put(g,
		&(struct tui_pen){
			.row = row, .col = MIN(2, g->cols), .width = item.width, .style = TUI_BOLD},
		clip_line(item.text));
}

/* "── Policy log ────" */
static void paint_divider(const struct tui_model *m, struct tui_grid *g, unsigned row)
{
	struct tui_pen pen = {.row = row, .width = g->cols, .style = TUI_DIM};
	const char *title = m->src->text_title ? m->src->text_title : "";

	tui_grid_fill(g, &pen, wcwidth(0x2500) == 1 ? 0x2500 : L'-');
	if (!title[0] || g->cols < 5)
		return;
	tui_grid_fill(g, &(struct tui_pen){.row = row, .col = 2, .width = 1}, L' ');
	pen = (struct tui_pen){.row = row,
		.col = 3,
		.width = g->cols - 4,
		.style = TUI_BOLD,
		.is_reverse = m->in_text && !m->is_help};
	pen.col += tui_grid_put(g, &pen, clip_line(slice_from_str(title)));
	tui_grid_fill(g, &(struct tui_pen){.row = row, .col = pen.col, .width = 1}, L' ');
}

static void paint_list(const struct tui_model *m, struct tui_grid *g, const struct tui_layout *l)
{
	unsigned width = MIN(l->list_w, g->cols);

	if (l->has_heading)
		paint_heading(m, g, l->list_y - 1);
	for (unsigned y = 0; y < l->list_h && m->top + y < m->src->n; y++)
		paint_row(m, g, m->top + y, l->list_y + y, width);
	if (l->list_w >= m->cols)
		return;
	for (unsigned y = 0; y < l->body_h; y++)
		tui_grid_fill(g,
			&(struct tui_pen){
				.row = l->list_y + y, .col = width, .width = 1, .style = TUI_DIM},
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

static void paint_text(const struct tui_model *m, struct tui_grid *g, const struct tui_layout *l)
{
	enum tui_style style = TUI_PLAIN;
	struct tui_pen pen = {.col = l->text_x + 1, .width = l->text_w};

	for (unsigned y = 0; y < l->text_h && m->text_top + y < m->wrap.n; y++) {
		size_t i = m->text_top + y;

		if (y == 0 || !tui_wrap_continues(&m->wrap, i))
			style = m->is_help ? TUI_PLAIN
					   : m->src->line_style(m->src->arg, line_of(&m->wrap, i));
		pen.row = l->text_y + y;
		pen.style = style;
		(void)tui_grid_put(g, &pen, tui_wrap_row(&m->wrap, i));
		if (tui_wrap_continues(&m->wrap, i))
			tui_grid_fill(g,
				&(struct tui_pen){.row = l->text_y + y,
					.col = l->text_x,
					.width = 1,
					.style = TUI_DIM},
				L'>');
	}
}

/* The last row of a text that is longer than TUI_MAX_TEXT. */
static void paint_cut(const struct tui_model *m, struct tui_grid *g, const struct tui_layout *l)
{
	struct tui_pen pen = {.col = l->text_x + 1, .width = l->text_w, .style = TUI_YELLOW};

	if (!m->wrap.is_cut || m->text_top + l->text_h <= m->wrap.n)
		return;
	pen.row = l->text_y + (unsigned)(m->wrap.n - m->text_top);
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
	if (l.list_w && l.list_h)
		paint_list(m, g, &l);
	if (l.has_divider)
		paint_divider(m, g, l.text_y - 1);
	if (m->src->heading ? l.text_h > 0 : l.list_w < m->cols) {
		paint_text(m, g, &l);
		paint_cut(m, g, &l);
	}
	if (l.has_keys || (l.has_line && m->status[0]))
		paint_status(m, g, top + l.body_h, l.text_h);
	if (l.has_keys || (l.has_line && !m->status[0]))
		paint_keys(m, g, top + l.body_h + (l.has_keys ? 1 : 0));
}
