/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/client/tui/tui_glyph.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static struct tui_glyph first_of(const char *text)
{
	struct tui_glyph g;

	tui_glyph_next(slice_from_str(text), 0, &g);
	return g;
}

static void what_a_terminal_obeys_is_an_escape(void **state)
{
	static const char *const rows[][2] = {
		{"\033[2J", "<1B>"}, {"\r", "<0D>"}, {"\302\233", "<U+009B>"},
		{"\342\200\256", "<U+202E>"}, {"\342\200\213", "<U+200B>"},
		{"\342\200\215", "<U+200D>"}, {"\343\205\244", "<U+3164>"}, {"\377", "<FF>"},
		{"\314\201", "<U+0301>"}, /* a mark on nothing */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct tui_glyph g = first_of(rows[i][0]);

		assert_string_equal(g.escape, rows[i][1]);
		assert_int_equal(g.width, strlen(rows[i][1]));
		assert_int_equal(g.ch[0], 0);
	}
}

static void widths_are_those_of_a_terminal(void **state)
{
	struct tui_glyph g = first_of("\346\274\242"); /* a Chinese character */

	assert_int_equal(g.width, 2);
	assert_int_equal(g.n, 3);
	assert_int_equal(g.ch[0], 0x6f22);
	assert_int_equal(first_of("a").width, 1);
	assert_int_equal(tui_glyph_columns(slice_from_str("a\346\274\242\033b")), 8);
	tui_glyph_next(slice_from_str("\t"), 5, &g);
	assert_int_equal(g.width, 3);
}

static void marks_stay_on_their_character_up_to_a_limit(void **state)
{
	struct tui_glyph g = first_of("e\314\201\314\202\314\203x");

	assert_int_equal(g.width, 1);
	assert_int_equal(g.n, 5);
	assert_int_equal(g.ch[1], 0x301);
	assert_int_equal(g.ch[2], 0x302);
	assert_int_equal(g.ch[3], 0);
	assert_string_equal(first_of("\314\203x").escape, "<U+0303>");
}

static void without_utf8_everything_else_is_escaped(void **state)
{
	(void)setlocale(LC_CTYPE, "C");
	assert_string_equal(first_of("\303\274").escape, "<U+00FC>");
	assert_string_equal(first_of("u").escape, "");
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_terminal_obeys_is_an_escape),
		cmocka_unit_test(widths_are_those_of_a_terminal),
		cmocka_unit_test(marks_stay_on_their_character_up_to_a_limit),
		cmocka_unit_test(without_utf8_everything_else_is_escaped),
	};

	return setlocale(LC_CTYPE, "C.UTF-8") ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
