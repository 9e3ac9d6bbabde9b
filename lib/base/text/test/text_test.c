/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "lib/base/attr.h"
#include "lib/base/text/text.h"

static void what_a_reader_cannot_see_is_not_plain(void **state)
{
	static const struct {
		const char *text;
		bool plain;
	} rows[] = {
		{"", true},
		{"plain ~", true},
		{"gr\303\274n \342\234\223 \360\237\231\202", true},
		{"\302\240", true},
		{"a\nb", false},
		{"a\tb", false},
		{"\033[2J", false},
		{"\177", false},
		{"\302\205", false}, /* C1 in UTF-8 */
		{"\302\237", false},
		{"\205", false},	     /* C1 alone */
		{"\342\200\256", false},     /* right-to-left override */
		{"\342\201\246", false},     /* isolate */
		{"\342\200\213", false},     /* zero width */
		{"\357\273\277", false},     /* byte order mark */
		{"\302\255", false},	     /* soft hyphen */
		{"\330\234", false},	     /* Arabic letter mark */
		{"\363\240\200\201", false}, /* tags */
		{"\300\200", false},	     /* overlong */
		{"\355\240\200", false},     /* surrogate */
		{"\303", false},	     /* cut */
		{"\364\220\200\200", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (text_is_all_plain(slice_from_str(rows[i].text)) != rows[i].plain)
			fail_msg("row %zu", i);
}

static void signs_that_are_drawn_as_nothing_are_not_visible(void **state)
{
	static const uint32_t blank[] = {
		0x34f, 0x115f, 0x2800, 0x3164, 0xfe0e, 0xffa0, 0x200b, 0x1b};
	static const uint32_t seen[] = {' ', 'a', 0xfc, 0x2713, 0xfe0f, 0x1f642};

	for (size_t i = 0; i < ARRAY_LEN(blank); i++)
		assert_false(text_is_visible(blank[i]));
	for (size_t i = 0; i < ARRAY_LEN(seen); i++)
		assert_true(text_is_visible(seen[i]));
}

static void an_escape_names_the_character_or_the_byte(void **state)
{
	static const struct {
		const char *text, *want;
		size_t n;
	} rows[] = {
		{"\033[2J", "<1B>", 1},
		{"\342\200\256x", "<U+202E>", 3},
		{"\363\240\200\201", "<U+E0001>", 4},
		{"\364\217\277\277", "<U+10FFFF>", 4},
		{"\303", "<C3>", 1},
		{"\377\377", "<FF>", 1},
	};
	char escape[TEXT_ESCAPE_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(text_escape(slice_from_str(rows[i].text), escape), rows[i].n);
		assert_string_equal(escape, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_reader_cannot_see_is_not_plain),
		cmocka_unit_test(signs_that_are_drawn_as_nothing_are_not_visible),
		cmocka_unit_test(an_escape_names_the_character_or_the_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
