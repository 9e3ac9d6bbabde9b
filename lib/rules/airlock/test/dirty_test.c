/* SPDX-License-Identifier: Apache-2.0 */
/* The list of changed files: every name survives it, and no line can name a file elsewhere. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/airlock/dirty.h"

static char text[DIRTY_MAX_LINE];

static const char *encode(const struct dirty_row *row)
{
	struct wr wr = wr_init(text, sizeof(text) - 1);

	assert_int_equal(dirty_encode(&wr, row), 0);
	text[wr.n] = '\0';
	return text;
}

static void a_row_is_one_line(void **state)
{
	struct dirty_row row = {.time_ms = 1700000000123,
		.kind = 42,
		.op = DIRTY_WRITE,
		.state = DIRTY_CHANGED,
		.copy = 3,
		.mount = "/home/me/p",
		.path = "sub/Makefile"};

	assert_string_equal(
		encode(&row), "1700000000123 42 write changed 3 /home/me/p sub/Makefile -\n");
}

/* A guest chooses names: with line ends, spaces, percent signs, dashes, any byte. */
static void every_name_survives(void **state)
{
	static const char *const names[] = {"a\n1 2 write new 0 /etc passwd -\n", "a b", "%41", "-",
		"-x", "\xff\xfe", "\xc3\xa4", "\x7f\x01", "a%", "..a", "a..", "...", " "};
	struct dirty_row row = {.kind = 1, .op = DIRTY_RENAME, .mount = "/w"}, back;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct slice rest;

		(void)snprintf(row.path, sizeof(row.path), "%s", names[i]);
		(void)snprintf(row.detail, sizeof(row.detail), "%s", names[i]);
		rest = slice_from_str(encode(&row));
		assert_ptr_equal(memchr(rest.p, '\n', rest.n), rest.p + rest.n - 1);
		assert_int_equal(dirty_next(&rest, &back), 1);
		assert_string_equal(back.path, names[i]);
		assert_string_equal(back.detail, names[i]);
		assert_int_equal(back.op, DIRTY_RENAME);
		assert_int_equal(dirty_next(&rest, &back), 0);
	}
}

static void no_row_leads_out_of_its_workspace(void **state)
{
	static const char *const paths[] = {
		"", "/etc/passwd", "..", "a/../../b", "./a", "a/.", "a//b", "a/"};
	struct dirty_row row = {.kind = 1, .mount = "/w"}, back;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		char line[128];
		struct slice rest;
		struct wr wr = wr_init(text, sizeof(text));

		(void)snprintf(row.path, sizeof(row.path), "%s", paths[i]);
		assert_int_equal(dirty_encode(&wr, &row), -EINVAL);
		(void)snprintf(line, sizeof(line), "1 1 write new 0 /w %s -\n", paths[i]);
		rest = slice_from_str(line);
		assert_int_equal(dirty_next(&rest, &back), 0);
	}
}

/* The writer was killed in the middle of a line, and another one continued. */
static void a_broken_line_is_skipped(void **state)
{
	static const char *const broken[] = {"1 1 write ne", "1 1 write new 0 /w a",
		"1 1 write new 0 /w a - x", "x 1 write new 0 /w a -", "1 1000 write new 0 /w a -",
		"1 1 eat new 0 /w a -", "1 1 write odd 0 /w a -", "1 1 write new 0 w a -",
		"1 1 write new 0 /w a%0 -", "1 1 write new 0 /w a%00 -",
		"1 1 write new 99999999999 /w a -", "1  1 write new 0 /w a -", ""};

	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		AUTO_FREE char *all = xasprintf("%s\n2 7 remove new 0 /w b -\n", broken[i]);
		struct slice rest = slice_from_str(all);
		struct dirty_row row;

		assert_int_equal(dirty_next(&rest, &row), 1);
		assert_string_equal(row.path, "b");
		assert_int_equal(row.kind, 7);
		assert_int_equal(row.op, DIRTY_REMOVE);
		assert_int_equal(dirty_next(&rest, &row), 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_is_one_line),
		cmocka_unit_test(every_name_survives),
		cmocka_unit_test(no_row_leads_out_of_its_workspace),
		cmocka_unit_test(a_broken_line_is_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
