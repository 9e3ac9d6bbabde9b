/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/client/tui/tui_model.h"
#include "lib/client/tui/tui.h"

#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "tui_rig.h"

static const char *const few[] = {"#one", "a", "b", "#two", "#none", "c"};

struct scene {
	struct tui_rig rig;
	struct tui_model m;
};

static void open_scene(struct scene *s, const char *const *names, size_t n)
{
	rig_init(&s->rig, names, n);
	tui_model_init(&s->m, &s->rig.src);
	tui_resize(&s->m, 24, 80);
	tui_load(&s->m);
}

static void press_key(struct scene *s, uint32_t key)
{
	assert_true(tui_press(&s->m, key));
	tui_load(&s->m);
}

static void headings_are_never_selected(void **state)
{
	struct scene s;

	open_scene(&s, few, ARRAY_LEN(few));
	assert_int_equal(s.m.item, 1);
	press_key(&s, TUI_KEY_UP);
	assert_int_equal(s.m.item, 1);
	press_key(&s, TUI_KEY_DOWN);
	press_key(&s, TUI_KEY_DOWN);
	assert_int_equal(s.m.item, 5);
	press_key(&s, TUI_KEY_DOWN);
	assert_int_equal(s.m.item, 5);
	press_key(&s, 'k');
	assert_int_equal(s.m.item, 2);
	press_key(&s, 'G');
	assert_int_equal(s.m.item, 5);
	press_key(&s, 'g');
	assert_int_equal(s.m.item, 1);
	press_key(&s, 'p');
	assert_int_equal(s.m.item, 1);
	tui_model_done(&s.m);
}

static void a_list_of_headings_or_nothing_has_no_item(void **state)
{
	static const char *const names[] = {"#a", "#b"};

	for (size_t n = 0; n < 3; n++) {
		static const uint32_t keys[] = {
			TUI_KEY_UP, 'j', 'G', 'g', TUI_KEY_PAGE_DOWN, ' ', 'p'};
		struct scene s;

		open_scene(&s, names, n);
		for (size_t i = 0; i < ARRAY_LEN(keys); i++)
			press_key(&s, keys[i]);
		press_key(&s, 'a');
		assert_int_equal(s.rig.pressed_item, n);
		assert_int_equal(s.rig.n_texts, 0);
		tui_model_done(&s.m);
	}
}

static void a_hundred_thousand_items_cost_what_is_visible(void **state)
{
	struct scene s;

	open_scene(&s, NULL, 100000);
	press_key(&s, TUI_KEY_END);
	assert_int_equal(s.m.item, 99999);
	assert_int_equal(s.m.top, 100000 - 21);
	press_key(&s, TUI_KEY_PAGE_UP);
	press_key(&s, TUI_KEY_HOME);
	assert_int_equal(s.m.top, 0);
	assert_in_range(s.rig.n_rows, 1, 1000);
	assert_in_range(s.rig.n_texts, 1, 4);
	tui_model_done(&s.m);
}

static void the_text_is_scrolled_to_its_end_and_not_beyond(void **state)
{
	AUTO_FREE char *text = xmalloc(101);
	struct scene s;

	memset(text, '\n', 100);
	text[100] = '\0';
	open_scene(&s, few, ARRAY_LEN(few));
	s.rig.text = text;
	s.m.is_stale = true;
	press_key(&s, '\t');
	for (int i = 0; i < 20; i++)
		press_key(&s, ' ');
	assert_int_equal(s.m.text_top, 100 - 21);
	assert_int_equal(s.m.item, 1);
	press_key(&s, TUI_KEY_DOWN);
	assert_int_equal(s.m.text_top, 100 - 21);
	press_key(&s, TUI_KEY_UP);
	assert_int_equal(s.m.text_top, 100 - 22);
	press_key(&s, TUI_KEY_HOME);
	assert_int_equal(s.m.text_top, 0);
	press_key(&s, 'p'); /* the same item: the text stays where it is */
	press_key(&s, TUI_KEY_LEFT);
	press_key(&s, TUI_KEY_DOWN);
	assert_int_equal(s.m.item, 2);
	tui_model_done(&s.m);
}

static void another_size_shows_the_same_place_of_the_text(void **state)
{
	AUTO_FREE char *text = xmalloc(4001);
	struct scene s;

	memset(text, 'x', 4000);
	text[4000] = '\0';
	open_scene(&s, few, ARRAY_LEN(few));
	s.rig.text = text;
	s.m.is_stale = true;
	press_key(&s, '\t');
	press_key(&s, ' ');
	assert_int_equal(tui_wrap_offset(&s.m.wrap, s.m.text_top), 20 * s.m.wrap.width);
	tui_resize(&s.m, 10, 30);
	tui_load(&s.m);
	assert_int_equal(s.m.wrap.width, 29);
	assert_in_range(tui_wrap_offset(&s.m.wrap, s.m.text_top), 20 * 52 - 29, 20 * 52);
	for (unsigned rows = 0; rows < 12; rows++) {
		for (unsigned cols = 0; cols < 70; cols++) {
			tui_resize(&s.m, rows, cols);
			tui_load(&s.m);
		}
	}
	tui_model_done(&s.m);
}

static void keys_of_the_caller_come_first(void **state)
{
	struct scene s;

	open_scene(&s, few, ARRAY_LEN(few));
	press_key(&s, 'n');
	assert_int_equal(s.rig.pressed, 'n');
	assert_int_equal(s.m.item, 1);
	assert_string_equal(s.m.status, "pressed");
	press_key(&s, 'z');
	assert_int_equal(s.rig.pressed, 'z');
	s.rig.answer = TUI_NEXT;
	press_key(&s, 'a');
	assert_int_equal(s.m.item, 2);
	press_key(&s, TUI_KEY_DOWN);
	assert_string_equal(s.m.status, "");
	s.rig.answer = TUI_CLOSE;
	assert_false(tui_press(&s.m, 'a'));
	tui_model_done(&s.m);
}

static void a_question_gets_the_next_key_whatever_it_is(void **state)
{
	struct scene s;

	open_scene(&s, few, ARRAY_LEN(few));
	s.rig.answer = TUI_ASK;
	press_key(&s, 'a');
	s.rig.answer = TUI_STAY;
	press_key(&s, 'q');
	assert_int_equal(s.rig.pressed, 'q');
	assert_false(tui_press(&s.m, 'q'));
	tui_model_done(&s.m);
}

static void the_selected_item_moves_with_a_tick(void **state)
{
	struct scene s;

	open_scene(&s, NULL, 100);
	s.rig.src.tick = rig_tick;
	press_key(&s, 'G');
	tui_tick(&s.m);
	assert_int_equal(s.m.item, 100);
	assert_string_equal(s.m.status, "ticked");
	s.rig.src.n = 3;
	tui_tick(&s.m);
	assert_int_equal(s.m.item, 3);
	tui_model_done(&s.m);
}

/* Of every size: the parts are inside the screen, in their order, and fill it. */
static void a_table_and_its_text_fit_into_every_size(void **state)
{
	struct scene s;

	for (size_t n = 0; n < 60; n += 7)
		for (unsigned rows = 0; rows < 70; rows++) {
			struct tui_layout l;

			open_scene(&s, NULL, n);
			s.rig.src.heading = rig_heading;
			tui_resize(&s.m, rows, 80);
			for (int i = 0; i < 4; i++) {
				press_key(&s, i == 2 ? '?' : '\t');
				tui_layout(&s.m, &l);
				assert_in_range(l.list_y + l.list_h, 0, rows);
				assert_in_range(l.text_y + l.text_h, 0, rows);
				assert_int_equal(
					l.list_h + l.text_h + l.has_heading + l.has_divider,
					l.body_h);
				assert_true(!l.has_divider || l.text_y > l.list_y + l.list_h);
				press_key(&s, 'G');
			}
			tui_model_done(&s.m);
		}
}

static void a_list_that_became_shorter_has_a_valid_selection(void **state)
{
	struct scene s;

	open_scene(&s, NULL, 100);
	press_key(&s, TUI_KEY_END);
	s.rig.answer = TUI_RELOAD;
	s.rig.src.n = 3;
	press_key(&s, 'a');
	assert_int_equal(s.m.item, 2);
	assert_in_range(s.m.top, 0, 2);
	s.rig.src.n = 0;
	press_key(&s, 'a');
	assert_int_equal(s.m.item, 0);
	assert_int_equal(s.m.wrap.n, 0);
	tui_model_done(&s.m);
}

static void the_page_of_keys_is_closed_before_the_view(void **state)
{
	struct scene s;

	open_scene(&s, few, ARRAY_LEN(few));
	press_key(&s, '?');
	assert_non_null(memmem(s.m.wrap.text.p, s.m.wrap.text.n, "apply", 5));
	press_key(&s, 'q');
	assert_false(s.m.is_help);
	assert_non_null(memmem(s.m.wrap.text.p, s.m.wrap.text.n, "text of 1", 9));
	assert_false(tui_press(&s.m, 'q'));
	tui_model_done(&s.m);
}

static void without_a_terminal_there_is_no_view(void **state)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(dup2(null, STDIN_FILENO), STDIN_FILENO);
	assert_false(tui_is_usable());
	(void)close(null);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headings_are_never_selected),
		cmocka_unit_test(a_list_of_headings_or_nothing_has_no_item),
		cmocka_unit_test(a_hundred_thousand_items_cost_what_is_visible),
		cmocka_unit_test(the_text_is_scrolled_to_its_end_and_not_beyond),
		cmocka_unit_test(another_size_shows_the_same_place_of_the_text),
		cmocka_unit_test(keys_of_the_caller_come_first),
		cmocka_unit_test(a_question_gets_the_next_key_whatever_it_is),
		cmocka_unit_test(the_selected_item_moves_with_a_tick),
		cmocka_unit_test(a_table_and_its_text_fit_into_every_size),
		cmocka_unit_test(a_list_that_became_shorter_has_a_valid_selection),
		cmocka_unit_test(the_page_of_keys_is_closed_before_the_view),
		cmocka_unit_test(without_a_terminal_there_is_no_view),
	};

	return setlocale(LC_CTYPE, "C.UTF-8") ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
