/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/top/top_row.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/tui/tui_glyph.h"

static json_t *make_object(const char *name)
{
	return json_pack("{s:s,s:s,s:s,s:i}", "name", name, "status", "running", "agent", "claude",
		"guard_changed", 3);
}

static void a_line_has_its_columns(void **state)
{
	AUTO_JSON json_t *o = make_object("demo");
	struct top_box b = {.object = o,
		.cpu = 12.4,
		.net_rate = 1536,
		.disk = UINT64_C(5) << 30,
		.slow_ms = 1,
		.n_holds = 2,
		.use = {.memory = UINT64_C(300) << 20, .n_processes = 4},
		.branch = "main"};
	AUTO_FREE char *heading = top_row_heading(78), *text = top_row_text(&b, 78);

	assert_string_equal(heading,
		"SANDBOX        STATE     AGENT   BRANCH       CPU   MEM  DISK "
		"NET/s ASK  FILES");
	assert_string_equal(text, "demo           running   claude  main         12%  300M  5.0G "
				  " 1.5K   2      3");
	b = (struct top_box){.object = o, .cpu = -1, .net_rate = -1};
	free(text);
	text = top_row_text(&b, 78);
	assert_int_equal(strlen(text), 78);
	assert_string_equal(text + strspn(text, "demo runingclau"), "3");
}

/* No text moves the columns after it, however wide its characters are. */
static void hostile_texts_stay_in_their_column(void **state)
{
	static const char *const texts[] = {"a\x1b[2J\tb",
		("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2"
		 "\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97"),
		"e\xcc\x81\xcc\x81\xcc\x81\xcc\x81", "\xe2\x80\xaexyz", "\xff\xfe", "",
		"a-branch-with-a-long-name-that-does-not-fit-into-any-column-of-a-terminal-at-all"};
	static const unsigned widths[] = {0, 10, 78, 79, 100, 138, 500};

	for (size_t t = 0; t < ARRAY_LEN(texts); t++)
		for (size_t w = 0; w < ARRAY_LEN(widths); w++) {
			AUTO_JSON json_t *o = make_object("demo");
			struct top_box b = {.object = o, .cpu = 5, .net_rate = 7, .n_holds = 7};
			AUTO_FREE char *heading = top_row_heading(widths[w]), *text = NULL;

			(void)snprintf(b.branch, sizeof(b.branch), "%s", texts[t]);
			text = top_row_text(&b, widths[w]);
			assert_int_equal(tui_glyph_columns(slice_from_str(text)), strlen(heading));
			assert_null(strpbrk(text, "\x1b\t"));
			assert_null(strstr(text, "\xe2\x80\xae"));
			assert_string_equal(text + strlen(text) - 11, "   7      3");
		}
}

static void sizes_have_five_characters(void **state)
{
	static const struct {
		uint64_t n;
		const char *text;
	} rows[] = {{0, "0"}, {999, "999"}, {1000, "1.0K"}, {1024, "1.0K"}, {10239, "10K"},
		{1022976, "999K"}, {1023000, "999K"}, {1023500, "1.0M"},
		{UINT64_C(5) << 30, "5.0G"}, {UINT64_MAX, "16E"}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_JSON json_t *o = make_object("demo");
		struct top_box b = {.object = o, .disk = rows[i].n, .slow_ms = 1};
		AUTO_FREE char *text = top_row_text(&b, 78);

		text[61] = '\0';
		assert_string_equal(text + 56 + strspn(text + 56, " "), rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_its_columns),
		cmocka_unit_test(hostile_texts_stay_in_their_column),
		cmocka_unit_test(sizes_have_five_characters),
	};

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
