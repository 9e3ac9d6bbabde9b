/* SPDX-License-Identifier: Apache-2.0 */
#include "tui_model.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"

#define LIST_MIN 20u
#define LIST_MAX 48u
#define LIST_MIN_ROWS 3u
#define KEYS_MIN_ROWS 8u /* below, keys and status share a row */

static const char help_text[] = "Keys\n"
				"\n"
				"  Up, Down, k, j     one line, in the list or in the text\n"
				"  Page Up, Page Down one page\n"
				"  Home, End, g, G    beginning and end\n"
				"  Tab, Left, Right   change between the list and the text\n"
				"  Enter              show the text\n"
				"  n, p               next and previous item\n"
				"  Space, b           one page of the text\n"
				"  ?                  this page\n"
				"  q                  close\n";

/* ---- list ---- */

static bool is_heading(const struct tui_model *m, size_t i)
{
	struct tui_row row = {0};

	m->src->row(m->src->arg, i, &row);
	return row.is_heading;
}

/* The next item from `from` on in a direction that can be selected; n if no item follows. */
static size_t find_item(const struct tui_model *m, size_t from, bool down)
{
	for (size_t i = from; i < m->src->n; i += down ? 1 : (size_t)-1)
		if (!is_heading(m, i))
			return i;
	return m->src->n;
}

static void select_item(struct tui_model *m, size_t i, bool down)
{
	size_t found = find_item(m, i, down);

	if (found == m->src->n)
		found = find_item(m, i, !down);
	m->is_stale |= found != m->item;
	m->item = found;
}

static void move_item(struct tui_model *m, size_t by, bool down)
{
	size_t last = m->src->n ? m->src->n - 1 : 0;
	size_t at = MIN(m->item, last);

	if (down)
		select_item(m, by > last - at ? last : at + by, true);
	else
		select_item(m, by > at ? 0 : at - by, false);
}

/* The selected item is on the screen, with the heading above it if there is room. */
static void scroll_list(struct tui_model *m, unsigned height)
{
	size_t first = m->item;

	if (m->item >= m->src->n || height == 0)
		return;
	while (first > 0 && m->item - first + 1 < height && is_heading(m, first - 1))
		first--;
	if (m->top > first)
		m->top = first;
	if (m->item - m->top >= height)
		m->top = m->item - height + 1;
}

/* ---- text ---- */

static size_t last_top(const struct tui_model *m, unsigned height)
{
	size_t n = m->wrap.n + (m->wrap.is_cut ? 1 : 0);

	return n > height ? n - height : 0;
}

static void scroll_text(struct tui_model *m, size_t by, bool down)
{
	struct tui_layout l;
	size_t last;

	tui_layout(m, &l);
	last = last_top(m, l.text_h);
	if (down)
		m->text_top = by > last - MIN(m->text_top, last) ? last : m->text_top + by;
	else
		m->text_top = by > m->text_top ? 0 : m->text_top - by;
}

static void set_text(struct tui_model *m, struct slice text, unsigned width)
{
	tui_wrap_set(&m->wrap, text, width);
	m->text_top = 0;
}

void tui_load(struct tui_model *m)
{
	struct tui_layout l;

	tui_layout(m, &l);
	if (m->is_stale && m->is_help)
		set_text(m, slice_from_str(m->help), l.text_w);
	else if (m->is_stale && m->item < m->src->n)
		set_text(m, m->src->text(m->src->arg, m->item), l.text_w);
	else if (m->is_stale)
		set_text(m, slice_of("", 0), l.text_w);
	m->is_stale = false;
	if (m->wrap.width != MAX(l.text_w, 1u)) {
		size_t at = m->wrap.n ? tui_wrap_offset(&m->wrap, m->text_top) : 0;
		bool is_cut = m->wrap.is_cut;

		tui_wrap_set(&m->wrap, m->wrap.text, l.text_w);
		m->wrap.is_cut = is_cut;
		m->text_top = tui_wrap_find(&m->wrap, at);
	}
	m->text_top = MIN(m->text_top, last_top(m, l.text_h));
	scroll_list(m, l.list_h);
}

/* ---- layout ---- */

/* The list and the text side by side, or one of them. */
static void lay_beside(const struct tui_model *m, struct tui_layout *ret)
{
	ret->list_y = ret->text_y = ret->has_title ? 1 : 0;
	ret->list_h = ret->text_h = ret->body_h;
	if (m->cols >= TUI_WIDE)
		ret->list_w = MIN(MAX(m->cols / 3, LIST_MIN), LIST_MAX);
	else if (!m->in_text && !m->is_help)
		ret->list_w = m->cols;
	ret->text_x = ret->list_w ? ret->list_w + 1 : 0;
	ret->text_w = m->cols > ret->text_x + 1 ? m->cols - ret->text_x - 1 : 0;
	/* The width of a hidden text: as if it were shown, so that it is not wrapped again. */
	if (ret->text_w == 0 && m->cols > 1)
		ret->text_w = m->cols - 1;
}

/* The list above the text, or one of them. */
static void lay_above(const struct tui_model *m, struct tui_layout *ret)
{
	bool has_both = ret->body_h >= TUI_TALL && !m->is_help, is_text = m->in_text || m->is_help;
	unsigned room, rows = (unsigned)MIN(m->src->n, TUI_MAX_LINE);

	ret->has_heading = ret->body_h >= 2 && (has_both || !is_text);
	ret->has_divider = has_both;
	room = ret->body_h - (unsigned)ret->has_heading - (unsigned)ret->has_divider;
	ret->list_y = (ret->has_title ? 1 : 0) + (ret->has_heading ? 1 : 0);
	ret->list_h = has_both ? MIN(MAX(rows, LIST_MIN_ROWS), room / 2) : is_text ? 0 : room;
	ret->text_y = ret->list_y + ret->list_h + (ret->has_divider ? 1 : 0);
	ret->text_h = room - ret->list_h;
	ret->list_w = m->cols;
	ret->text_w = m->cols > 1 ? m->cols - 1 : 0;
}

void tui_layout(const struct tui_model *m, struct tui_layout *ret)
{
	unsigned extra;

	*ret = (struct tui_layout){0};
	ret->has_title = m->rows >= 3;
	ret->has_line = m->rows >= 2;
	ret->has_keys = m->rows >= KEYS_MIN_ROWS;
	extra = (unsigned)ret->has_title + ret->has_line + ret->has_keys;
	ret->body_h = m->rows - extra;
	if (m->src->heading)
		lay_above(m, ret);
	else
		lay_beside(m, ret);
}

void tui_resize(struct tui_model *m, unsigned rows, unsigned cols)
{
	m->rows = rows;
	m->cols = cols;
}

/* ---- keys ---- */

static void open_help(struct tui_model *m, bool on)
{
	m->is_help = on;
	m->is_stale = true;
}

/* Keys of a part that is scrolled: by how much, and in which direction. */
static bool find_scroll(const struct tui_model *m, uint32_t key, size_t *ret_by, bool *ret_down)
{
	struct tui_layout l;

	tui_layout(m, &l);
	*ret_down = key == TUI_KEY_DOWN || key == 'j' || key == TUI_KEY_PAGE_DOWN ||
		    key == TUI_KEY_END || key == 'G';
	if (key == TUI_KEY_UP || key == 'k' || key == TUI_KEY_DOWN || key == 'j')
		*ret_by = 1;
	else if (key == TUI_KEY_PAGE_UP || key == TUI_KEY_PAGE_DOWN)
		*ret_by = MAX(m->in_text || m->is_help ? l.text_h : l.list_h, 2u) - 1;
	else if (key == TUI_KEY_HOME || key == 'g' || key == TUI_KEY_END || key == 'G')
		*ret_by = SIZE_MAX;
	else
		return false;
	return true;
}

static bool press_move(struct tui_model *m, uint32_t key)
{
	struct tui_layout l;
	size_t by = 0;
	bool down = false;

	tui_layout(m, &l);
	if (find_scroll(m, key, &by, &down)) {
		if (m->in_text || m->is_help)
			scroll_text(m, by, down);
		else
			move_item(m, by, down);
	} else if (key == ' ' || key == 'b') {
		scroll_text(m, MAX(l.text_h, 2u) - 1, key == ' ');
	} else if (key == 'n' || key == 'p') {
		m->is_stale |= m->is_help;
		m->is_help = false;
		move_item(m, 1, key == 'n');
	} else {
		return false;
	}
	return true;
}

static bool press_focus(struct tui_model *m, uint32_t key)
{
	if (key == '\t')
		m->in_text = !m->in_text;
	else if (key == TUI_KEY_RIGHT || key == '\n' || key == '\r')
		m->in_text = true;
	else if (key == TUI_KEY_LEFT)
		m->in_text = false;
	else if (key == '?')
		open_help(m, !m->is_help);
	else
		return false;
	return true;
}

static bool is_bound(const struct tui_model *m, uint32_t key)
{
	for (const struct tui_bind *b = m->src->binds; b->key; b++)
		if ((uint32_t)b->key == key)
			return true;
	return false;
}

static void reload_items(struct tui_model *m)
{
	m->is_stale = true;
	m->top = MIN(m->top, m->src->n);
	select_item(m, MIN(m->item, m->src->n ? m->src->n - 1 : 0), true);
}

void tui_tick(struct tui_model *m)
{
	size_t top = m->text_top, item = m->item;

	item = m->src->tick(m->src->arg, item, m->status, sizeof(m->status));
	m->item = MIN(item, m->src->n);
	reload_items(m);
	tui_load(m);
	m->text_top = MIN(top, m->wrap.n ? m->wrap.n - 1 : 0);
}

static bool press_source(struct tui_model *m, uint32_t key)
{
	enum tui_answer answer;

	m->status[0] = '\0';
	answer = m->src->press(m->src->arg, m->item, key, m->status, sizeof(m->status));
	m->is_asking = answer == TUI_ASK;
	if (answer == TUI_RELOAD)
		reload_items(m);
	else if (answer == TUI_NEXT)
		move_item(m, 1, true);
	return answer != TUI_CLOSE;
}

bool tui_press(struct tui_model *m, uint32_t key)
{
	if (m->is_asking || is_bound(m, key))
		return press_source(m, key);
	if (press_move(m, key) || press_focus(m, key)) {
		m->status[0] = '\0';
		return true;
	}
	if ((key == 'q' || key == 033) && m->is_help)
		open_help(m, false);
	else if (key == 'q')
		return false;
	else if (key == 033)
		m->in_text = false;
	else
		return press_source(m, key);
	return true;
}

/* ---- life ---- */

static char *make_help(const struct tui_source *src)
{
	char *text = xstrdup(help_text);

	for (const struct tui_bind *b = src->binds; b->key; b++) {
		AUTO_FREE char *old = text;

		text = xasprintf("%s  %-18c %s\n", old, b->key, b->label);
	}
	if (src->more_help) {
		AUTO_FREE char *old = text;

		text = xasprintf("%s%s", old, src->more_help);
	}
	return text;
}

void tui_model_init(struct tui_model *m, struct tui_source *src)
{
	*m = (struct tui_model){.src = src, .help = make_help(src)};
	m->item = src->n;
	select_item(m, 0, true);
	m->is_stale = true;
}

void tui_model_done(struct tui_model *m)
{
	tui_wrap_done(&m->wrap);
	free(m->help);
	m->help = NULL;
}
