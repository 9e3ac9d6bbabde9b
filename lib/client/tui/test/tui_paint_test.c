/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/client/tui/tui_paint.h"
#include "lib/client/tui/tui_grid.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "tui_rig.h"

static const char *const names[] = {"#heading", "first", "a/very/long/path/of/a/file/Makefile"};

/* A row of the grid as text. */
static char *row_text(const struct tui_grid *g, unsigned row)
{
	char *text = xcalloc(g->cols + 1, 8), *p = text;

	for (unsigned x = 0; x < g->cols; x++) {
		const struct tui_cell *c = tui_grid_at(g, row, x);

		for (size_t i = 0; !c->is_tail && c->ch[i]; i++)
			p += wctomb(p, c->ch[i]);
	}
	return text;
}

static void check_row(const struct tui_grid *g, unsigned row, const char *want)
{
	AUTO_FREE char *text = row_text(g, row);

	if (!strstr(text, want))
		fail_msg("row %u: '%s' lacks '%s'", row, text, want);
}

static void paint_size(struct tui_model *m, struct tui_grid *g, unsigned rows, unsigned cols)
{
	tui_resize(m, rows, cols);
	tui_load(m);
	tui_paint(m, g);
}

static void a_wide_screen_has_list_and_text(void **state)
{
	struct tui_grid g = {0};
	struct tui_model m;
	struct tui_rig rig;

	rig_init(&rig, names, 3);
	rig.text = "+added\nplain\n";
	tui_model_init(&m, &rig.src);
	paint_size(&m, &g, 10, 60);
	check_row(&g, 0, "title");
	check_row(&g, 1, "heading            \342\224\202 +added");
	check_row(&g, 2, "*>first");
	check_row(&g, 2, "\342\224\202 plain");
	check_row(&g, 3, "/file/Makefile\342\224\202");
	check_row(&g, 9, "a apply  n own n  ? keys  q close");
	assert_int_equal(tui_grid_at(&g, 1, 22)->style, TUI_GREEN);
	assert_int_equal(tui_grid_at(&g, 2, 22)->style, TUI_PLAIN);
	assert_true(tui_grid_at(&g, 2, 0)->is_reverse);
	tui_grid_done(&g);
	tui_model_done(&m);
}

static void twenty_by_five_shows_one_at_a_time(void **state)
{
	struct tui_grid g = {0};
	struct tui_model m;
	struct tui_rig rig;

	rig_init(&rig, names, 3);
	tui_model_init(&m, &rig.src);
	paint_size(&m, &g, 5, 20);
	check_row(&g, 1, "#heading");
	check_row(&g, 2, "*>first");
	check_row(&g, 4, "a apply");
	assert_true(tui_press(&m, '\n'));
	paint_size(&m, &g, 5, 20);
	check_row(&g, 1, "text of 1");
	tui_grid_done(&g);
	tui_model_done(&m);
}

static void a_table_is_above_its_text(void **state)
{
	struct tui_grid g = {0};
	struct tui_model m;
	struct tui_rig rig;

	rig_init(&rig, names + 1, 2);
	rig.src.heading = rig_heading;
	rig.src.text_title = "Ti\x1btle";
	rig.text = "+added\nplain\n";
	tui_model_init(&m, &rig.src);
	paint_size(&m, &g, 16, 20);
	check_row(&g, 1, "  COLUMNS");
	check_row(&g, 2, "*>first");
	check_row(&g, 3, "* a/very/long/path/o"); /* the beginning: columns */
	check_row(&g, 5, "\342\224\200\342\224\200 Ti<1B>tle \342\224\200");
	check_row(&g, 6, "+added");
	assert_int_equal(tui_grid_at(&g, 6, 1)->style, TUI_GREEN);
	check_row(&g, 7, "plain");
	paint_size(&m, &g, 8, 20);
	check_row(&g, 1, "  COLUMNS");
	check_row(&g, 3, "* a/very/long");
	assert_true(tui_press(&m, '\t'));
	paint_size(&m, &g, 8, 20);
	check_row(&g, 1, "+added");
	tui_grid_done(&g);
	tui_model_done(&m);
}

static void a_row_that_continues_a_line_is_marked(void **state)
{
	/* Padded so that the end of the line looks like a line of its own. */
	static const char text[] = "-old                                  +new\n";
	struct tui_grid g = {0};
	struct tui_model m;
	struct tui_rig rig;

	rig_init(&rig, names, 3);
	rig.text = text;
	tui_model_init(&m, &rig.src);
	paint_size(&m, &g, 10, 60);
	check_row(&g, 1, "\342\224\202 -old");
	check_row(&g, 2, "\342\224\202>+new");
	assert_int_equal(tui_grid_at(&g, 2, 22)->style, TUI_PLAIN);
	tui_grid_done(&g);
	tui_model_done(&m);
}

/* Every cell has a character that a terminal draws, and no text leaves its part of the screen. */
static void check_cells(const struct tui_grid *g)
{
	for (unsigned y = 0; y < g->rows; y++) {
		for (unsigned x = 0; x < g->cols; x++) {
			const struct tui_cell *c = tui_grid_at(g, y, x);
			int width = wcwidth(c->ch[0]);

			assert_true(text_is_visible((uint32_t)c->ch[0]));
			assert_in_range(width, 1, 2);
			for (size_t i = 1; c->ch[i]; i++)
				assert_true(
					text_is_visible((uint32_t)c->ch[i]) && !wcwidth(c->ch[i]));
			if (width == 2)
				assert_true(x + 1 < g->cols && tui_grid_at(g, y, x + 1)->is_tail);
		}
	}
}

static void hostile_bytes_never_reach_a_cell(void **state)
{
	static const char *const parts[] = {"\033[2J", "\342\200\256", "\346\274\242", "\314\201",
		"\t", "\r", "\n", "\302\233", "\377", "x", "\342\200\213", "\343\205\244",
		"\360\237\231\202"};
	struct tui_grid g = {0};

	srand(7);
	for (int round = 0; round < 300; round++) {
		char text[512] = "", name[64] = "";
		const char *const list[] = {"#h", name};
		struct tui_model m;
		struct tui_rig rig;

		for (int i = 0; i < 60; i++)
			(void)strcat(text, parts[(size_t)rand() % ARRAY_LEN(parts)]);
		for (int i = 0; i < 8; i++)
			(void)strcat(name, parts[(size_t)rand() % ARRAY_LEN(parts)]);
		rig_init(&rig, list, 2);
		rig.text = text;
		rig.src.title = name;
		tui_model_init(&m, &rig.src);
		(void)snprintf(m.status, sizeof(m.status), "%s", name);
		paint_size(&m, &g, (unsigned)rand() % 12, (unsigned)rand() % 90);
		check_cells(&g);
		assert_true(tui_press(&m, '\t'));
		paint_size(&m, &g, 5, 20);
		check_cells(&g);
		tui_model_done(&m);
	}
	tui_grid_done(&g);
}

static void a_text_that_is_too_long_reports_it_at_the_end(void **state)
{
	AUTO_FREE char *text = xmalloc(TUI_MAX_TEXT + 2);
	struct tui_grid g = {0};
	struct tui_model m;
	struct tui_rig rig;

	memset(text, 'x', TUI_MAX_TEXT + 1);
	text[TUI_MAX_TEXT + 1] = '\0';
	rig_init(&rig, names, 3);
	rig.text = text;
	tui_model_init(&m, &rig.src);
	paint_size(&m, &g, 10, 80);
	assert_true(tui_press(&m, '\t') && tui_press(&m, 'G'));
	paint_size(&m, &g, 10, 80);
	check_row(&g, 7, "The rest of the text is too long");
	paint_size(&m, &g, 10, 90); /* wrapped again */
	assert_true(tui_press(&m, 'G'));
	paint_size(&m, &g, 10, 90);
	check_row(&g, 7, "The rest of the text is too long");
	tui_grid_done(&g);
	tui_model_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wide_screen_has_list_and_text),
		cmocka_unit_test(twenty_by_five_shows_one_at_a_time),
		cmocka_unit_test(a_table_is_above_its_text),
		cmocka_unit_test(a_row_that_continues_a_line_is_marked),
		cmocka_unit_test(hostile_bytes_never_reach_a_cell),
		cmocka_unit_test(a_text_that_is_too_long_reports_it_at_the_end),
	};

	return setlocale(LC_CTYPE, "C.UTF-8") ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
