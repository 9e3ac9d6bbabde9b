/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/client/cli/ui.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/client/cli/table.h"

static void escape_sequences_become_harmless(void **state)
{
	static const char *const rows[][2] = {
		{"plain", "plain"},
		{"\033]0;title\007x", "?]0;title?x"},
		{"a\r\nb\tc", "a??b?c"},
		{"\x7f", "?"},
		{"\xc2\x9b"
		 "2J",
			"??2J"},
		{"\x9b"
		 "2J",
			"?2J"},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
		{"\xe2\x9c\x93", "\xe2\x9c\x93"},
		{"a\xe2\x80\xae"
		 "b",
			"a???b"}, /* right-to-left override */
		{"a\xe2\x80\x8b", "a???"},
		{"cut \xe2\x9c", "cut ??"},
	};
	char buf[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(buf, sizeof(buf), "%s", rows[i][0]);
		ui_clean(buf);
		assert_string_equal(buf, rows[i][1]);
	}
}

/* stdout into a file and back. */
static void table_columns(void **state)
{
	static const char *const head[] = {"SANDBOX", "STATUS", "WORKSPACE"};
	static const char *const a[] = {"a-long-name", "running", "/w"};
	static const char *const b[] = {"gr\xc3\xbc", "stopped", "/x\033[2J"};
	CLEANUP(table_done) struct table t;
	char got[256] = "";
	FILE *f = tmpfile();
	int saved = dup(STDOUT_FILENO);

	table_init(&t, 3, head);
	table_add(&t, a);
	table_add(&t, b);
	(void)fflush(stdout);
	assert_true(dup2(fileno(f), STDOUT_FILENO) >= 0);
	table_print(&t);
	(void)fflush(stdout);
	assert_true(dup2(saved, STDOUT_FILENO) >= 0);
	rewind(f);
	assert_true(fread(got, 1, sizeof(got) - 1, f) > 0);
	fclose(f);
	assert_string_equal(got, "SANDBOX      STATUS   WORKSPACE\n"
				 "a-long-name  running  /w\n"
				 "gr\xc3\xbc          stopped  /x?[2J\n");
}

static const char reason[] = "f\xc3\xbcr \xc3\xb6l unten";

/* Of UTF-8. */
static size_t n_characters(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void must_fit(size_t width, size_t least, const char *is)
{
	const char *const head[] = {"HOST", "REASON", "COUNT"};
	const char *const row[] = {"a.example", reason, "7"};
	CLEANUP(table_done) struct table t;

	table_init(&t, 3, head);
	table_add(&t, row);
	table_fit(&t, 1, width, least);
	assert_string_equal(t.cells[4], is);
	assert_true(n_characters(t.cells[4]) <= t.width[1]);
	assert_string_equal(t.cells[3], "a.example");
}

static void a_table_fits_its_terminal(void **state)
{
	/* 9 and 5 for the others, 4 between them, 12 for this. */
	must_fit(30, 3, reason);
	must_fit(29, 3, "f\xc3\xbcr \xc3\xb6l unt\xe2\x80\xa6");
	must_fit(24, 3, "f\xc3\xbcr \xc3\xb6\xe2\x80\xa6");
	must_fit(23, 3, "f\xc3\xbcr \xe2\x80\xa6");
	must_fit(0, 4, "f\xc3\xbcr\xe2\x80\xa6");
	must_fit(0, 12, reason);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escape_sequences_become_harmless),
		cmocka_unit_test(table_columns),
		cmocka_unit_test(a_table_fits_its_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
