/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "lib/base/attr.h"
#include "lib/base/text/star.h"

static void a_star_is_any_bytes_and_folding_is_of_ascii(void **state)
{
	static const struct {
		const char *glob, *text;
		bool matches, folded;
	} rows[] = {
		{"", "", true, true},
		{"", "a", false, false},
		{"*", "", true, true},
		{"a*c", "ac", true, true},
		{"a*c", "abcbc", true, true},
		{"a*c", "abcb", false, false},
		{"**", "a/b", true, true},
		{"*b*b", "abab", true, true},
		{"aB*", "Abc", false, true},
		{"\303\251", "\303\211", false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice glob = slice_from_str(rows[i].glob),
			     text = slice_from_str(rows[i].text);

		assert_int_equal(star_match(glob, text, false), rows[i].matches);
		assert_int_equal(star_match(glob, text, true), rows[i].folded);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_star_is_any_bytes_and_folding_is_of_ascii),
	};

	return cmocka_run_group_tests_name("star", tests, NULL, NULL);
}
