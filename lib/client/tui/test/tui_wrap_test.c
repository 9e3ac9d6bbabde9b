/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/client/tui/tui_wrap.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"

/* The rows, with '|' before each and '>' before one that continues a line. */
static void check_rows(const char *text, unsigned width, const char *want)
{
	CLEANUP(tui_wrap_done) struct tui_wrap w = {0};
	AUTO_FREE char *all = xstrdup("");

	tui_wrap_set(&w, slice_from_str(text), width);
	for (size_t i = 0; i < w.n; i++) {
		struct slice row = tui_wrap_row(&w, i);
		AUTO_FREE char *old = all;

		all = xasprintf("%s%c%.*s", old, tui_wrap_continues(&w, i) ? '>' : '|', (int)row.n,
			(const char *)row.p);
	}
	assert_string_equal(all, want);
}

static void lines_are_wrapped_and_never_cut(void **state)
{
	check_rows("", 4, "");
	check_rows("\n", 4, "|");
	check_rows("abcd\n", 4, "|abcd");
	check_rows("abcde", 4, "|abcd>e");
	check_rows("a\n\nbcdefghi\nj", 4, "|a||bcde>fghi|j");
	check_rows("abc\346\274\242x", 4, "|abc>\346\274\242x"); /* two columns do not fit */
	check_rows("a\033b", 4, "|a>\033>b");			 /* <1B> is not divided */
	check_rows("\342\200\256b", 4, "|\342\200\256>b");	 /* wider than a row */
	check_rows("ab", 0, "|a>b");
	check_rows("\tx", 8, "|\t>x");
}

static void a_row_is_found_by_an_offset_in_it(void **state)
{
	CLEANUP(tui_wrap_done) struct tui_wrap w = {0};

	tui_wrap_set(&w, slice_from_str("abcdefgh\nij\n"), 4);
	assert_int_equal(tui_wrap_find(&w, 0), 0);
	assert_int_equal(tui_wrap_find(&w, 5), 1);
	assert_int_equal(tui_wrap_find(&w, 9), 2);
	assert_int_equal(tui_wrap_find(&w, 1000), 2);
}

static void a_line_of_ten_megabytes_is_rows_like_any_other(void **state)
{
	CLEANUP(tui_wrap_done) struct tui_wrap w = {0};
	size_t n = 10u << 20;
	AUTO_FREE char *text = xmalloc(n);

	memset(text, 'x', n);
	tui_wrap_set(&w, slice_of(text, n), 64);
	assert_int_equal(w.n, n / 64);
	assert_false(w.is_cut);
	assert_int_equal(tui_wrap_row(&w, w.n - 1).n, 64);
}

static void a_longer_text_is_cut_and_reports_it(void **state)
{
	CLEANUP(tui_wrap_done) struct tui_wrap w = {0};
	size_t n = TUI_MAX_TEXT + 100;
	AUTO_FREE char *text = xmalloc(n);

	memset(text, '\n', n);
	tui_wrap_set(&w, slice_of(text, n), 64);
	assert_true(w.is_cut);
	assert_int_equal(w.n, TUI_MAX_TEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_wrapped_and_never_cut),
		cmocka_unit_test(a_row_is_found_by_an_offset_in_it),
		cmocka_unit_test(a_line_of_ten_megabytes_is_rows_like_any_other),
		cmocka_unit_test(a_longer_text_is_cut_and_reports_it),
	};

	return setlocale(LC_CTYPE, "C.UTF-8") ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
