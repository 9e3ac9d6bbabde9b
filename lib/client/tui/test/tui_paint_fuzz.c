/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes 1 and 2: the size of the screen; up to the next newline the name of an item, then its text.
 * Every cell has a character that a terminal draws. */
#include <locale.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/client/tui/tui_paint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct item {
	struct slice name, text;
};

static void get_row(void *arg, size_t i, struct tui_row *ret)
{
	ret->is_heading = i == 0;
	ret->text = ((struct item *)arg)->name;
}

/* The list above the text. */
static void get_heading(void *arg, struct tui_row *ret)
{
	ret->text = ((struct item *)arg)->name;
}

static struct slice get_text(void *arg, size_t i)
{
	(void)i;
	return ((struct item *)arg)->text;
}

static enum tui_style get_style(void *arg, struct slice line)
{
	(void)arg;
	return line.n % 2 ? TUI_RED : TUI_PLAIN;
}

static enum tui_answer on_key(void *arg, size_t i, uint32_t key, char *status, size_t n)
{
	(void)arg, (void)i, (void)key, (void)status, (void)n;
	return TUI_STAY;
}

static void check_cells(const struct tui_grid *g)
{
	for (size_t i = 0; i < (size_t)g->rows * g->cols; i++) {
		const struct tui_cell *c = &g->cell[i];

		if (!text_is_visible((uint32_t)c->ch[0]) || wcwidth(c->ch[0]) < 1)
			abort();
		for (size_t k = 1; c->ch[k]; k++)
			if (!text_is_visible((uint32_t)c->ch[k]) || wcwidth(c->ch[k]) != 0)
				abort();
	}
}

static void press_all(struct tui_model *m, struct tui_grid *g)
{
	static const uint32_t keys[] = {'\t', ' ', 'G', 'b', TUI_KEY_UP, '?', 'q', 'n', 'p'};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (!tui_press(m, keys[i]))
			abort();
		tui_load(m);
		tui_paint(m, g);
		check_cells(g);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct tui_bind binds[] = {{'a', "apply"}, {0, NULL}};
	struct slice rest = slice_of(data + 2, size > 2 ? size - 2 : 0);
	struct item item = {.name = slice_next_line(&rest)};
	struct tui_source src = {.title = "title",
		.n = 2,
		.binds = binds,
		.row = get_row,
		.text = get_text,
		.line_style = get_style,
		.press = on_key,
		.arg = &item};
	struct tui_grid g = {0};
	struct tui_model m;

	if (size < 2 || !setlocale(LC_CTYPE, "C.UTF-8"))
		return 0;
	item.text = rest;
	if (data[0] >= 128)
		src.heading = get_heading;
	tui_model_init(&m, &src);
	tui_resize(&m, data[0] % 40, data[1]);
	tui_load(&m);
	press_all(&m, &g);
	tui_grid_done(&g);
	tui_model_done(&m);
	return 0;
}
