/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include "lib/base/mem.h"
#include "lib/rules/airlock/textdiff.h"

struct text_sink {
	char *p;
	size_t n;
};

static void put_into(void *arg, const char *text, size_t n)
{
	struct text_sink *sink = arg;

	sink->p = xrealloc(sink->p, sink->n + n + 1);
	memcpy(sink->p + sink->n, text, n);
	sink->n += n;
	sink->p[sink->n] = '\0';
}

static enum textdiff_result diff_of(struct slice old, struct slice new, char **ret)
{
	struct textdiff_side a = {"a/f", old}, b = {"b/f", new};
	struct text_sink sink = {xstrdup(""), 0};
	enum textdiff_result r = textdiff_write(&a, &b, put_into, &sink);

	*ret = sink.p;
	return r;
}

static void expect_diff(const char *old, const char *new, const char *hunks)
{
	AUTO_FREE char *text = NULL, *expected = xasprintf("--- a/f\n+++ b/f\n%s", hunks);

	assert_int_equal(
		diff_of(slice_from_str(old), slice_from_str(new), &text), TEXTDIFF_WRITTEN);
	assert_string_equal(text, expected);
}

static void equal_texts_give_nothing(void **state)
{
	AUTO_FREE char *text = NULL;

	(void)state;
	assert_int_equal(
		diff_of(slice_from_str("a\n"), slice_from_str("a\n"), &text), TEXTDIFF_SAME);
	assert_string_equal(text, "");
}

static void a_changed_line_is_shown_with_three_lines_around_it(void **state)
{
	(void)state;
	expect_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
		"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
	expect_diff("a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n");
}

static void changes_with_six_lines_between_them_are_one_hunk(void **state)
{
	(void)state;
	expect_diff("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
		"@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
	expect_diff("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
		"@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
}

static void a_new_and_an_emptied_file_have_ranges_of_zero(void **state)
{
	(void)state;
	expect_diff("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n");
	expect_diff("a\n", "", "@@ -1 +0,0 @@\n-a\n");
	expect_diff("a\nb\n", "a\nx\nb\n", "@@ -1,2 +1,3 @@\n a\n+x\n b\n");
}

static void a_missing_newline_at_the_end_is_a_change(void **state)
{
	(void)state;
	expect_diff(
		"a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
	expect_diff("a\nb", "x\nb", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n\\ No newline at end of file\n");
}

static void what_could_fool_a_terminal_or_a_reader_is_escaped(void **state)
{
	(void)state;
	expect_diff("", "\x1b]0;t\x07\r\n", "@@ -0,0 +1 @@\n+<1B>]0;t<07><0D>\n");
	expect_diff("",
		"\xc2\x9b"
		"2J\x7f\b\n",
		"@@ -0,0 +1 @@\n+<U+009B>2J<7F><08>\n");
	expect_diff("",
		"a\xe2\x80\xae"
		"b\xe2\x80\x8b"
		"c\xef\xb8\x80"
		"d\n",
		"@@ -0,0 +1 @@\n+a<U+202E>b<U+200B>c<U+FE00>d\n");
	expect_diff("", "\xff\xc3(\xf3\xa0\x80\xa0\n", "@@ -0,0 +1 @@\n+<FF><C3>(<U+E0020>\n");
	expect_diff("", "\ta \xc3\xa4\xe2\x9c\x94\n", "@@ -0,0 +1 @@\n+\ta \xc3\xa4\xe2\x9c\x94\n");
}

static void names_are_escaped_too(void **state)
{
	struct textdiff_side a = {"/dev/null", {0}}, b = {"b/\x1b[2J\nx\t", slice_from_str("a\n")};
	struct text_sink sink = {0};

	(void)state;
	assert_int_equal(textdiff_write(&a, &b, put_into, &sink), TEXTDIFF_WRITTEN);
	assert_string_equal(sink.p, "--- /dev/null\n+++ b/<1B>[2J<0A>x<09>\n@@ -0,0 +1 @@\n+a\n");
	free(sink.p);
}

static void files_with_a_nul_are_binary(void **state)
{
	AUTO_FREE char *text = NULL;

	(void)state;
	assert_int_equal(
		diff_of(slice_of("a\0b\n", 4), slice_from_str("a\n"), &text), TEXTDIFF_BINARY);
	assert_string_equal(text, "binary files a/f and b/f differ\n");
}

static void files_above_the_limits_are_only_named(void **state)
{
	AUTO_FREE char *big = xmalloc(TEXTDIFF_MAX_BYTES + 1), *one = NULL, *two = NULL;

	(void)state;
	memset(big, 'a', TEXTDIFF_MAX_BYTES + 1);
	assert_int_equal(
		diff_of(slice_of(big, TEXTDIFF_MAX_BYTES + 1), slice_from_str("a\n"), &one),
		TEXTDIFF_TOO_LARGE);
	assert_string_equal(one, "files a/f and b/f differ: too large for a diff\n");
	memset(big, '\n', TEXTDIFF_MAX_LINES + 1);
	assert_int_equal(
		diff_of(slice_from_str("a\n"), slice_of(big, TEXTDIFF_MAX_LINES + 1), &two),
		TEXTDIFF_TOO_LARGE);
}

/* Nothing in common, so the shortest script is beyond the bound: one hunk replaces everything
 * between the common ends. */
static void many_changes_become_one_replacement(void **state)
{
	struct text_sink a = {0}, b = {0};
	AUTO_FREE char *text = NULL;
	char line[32];

	(void)state;
	for (int i = 0; i < TEXTDIFF_MAX_EDITS; i++) {
		put_into(&a, line, (size_t)snprintf(line, sizeof(line), "a%d\nsame\n", i));
		put_into(&b, line, (size_t)snprintf(line, sizeof(line), "b%d\nsame\n", i));
	}
	assert_int_equal(diff_of(slice_of(a.p, a.n), slice_of(b.p, b.n), &text), TEXTDIFF_WRITTEN);
	assert_non_null(strstr(text, "@@ -1,2048 +1,2048 @@\n-a0\n-same\n-a1\n"));
	assert_non_null(strstr(text, "\n+b1023\n same\n"));
	free(a.p);
	free(b.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_texts_give_nothing),
		cmocka_unit_test(a_changed_line_is_shown_with_three_lines_around_it),
		cmocka_unit_test(changes_with_six_lines_between_them_are_one_hunk),
		cmocka_unit_test(a_new_and_an_emptied_file_have_ranges_of_zero),
		cmocka_unit_test(a_missing_newline_at_the_end_is_a_change),
		cmocka_unit_test(what_could_fool_a_terminal_or_a_reader_is_escaped),
		cmocka_unit_test(names_are_escaped_too),
		cmocka_unit_test(files_with_a_nul_are_binary),
		cmocka_unit_test(files_above_the_limits_are_only_named),
		cmocka_unit_test(many_changes_become_one_replacement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
