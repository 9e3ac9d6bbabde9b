/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "lib/base/mem.h"
#include "src/prove/prove_clean.h"

static void test_what_stays_and_what_goes(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"plain\ntext\n", "plain\ntext"},
		{"\n\n a \n\n", " a"},
		{"", ""},
		{"\n", ""},
		{"tab\there", "tab here"},
		{"\033[2Jx\r\a\177", "?[2Jx???"},
		{"gr\303\274n \342\234\223 \360\237\231\202",
			"gr\303\274n \342\234\223 \360\237\231\202"},
		{"\302\233m", "?m"},				      /* C1 in UTF-8 */
		{"\233m", "?m"},				      /* C1 alone */
		{"a\342\200\256b", "a?b"},			      /* right-to-left override */
		{"a\342\200\213b\357\273\277", "a?b?"},		      /* zero width */
		{"\300\200 \340\200\200 \355\240\200", "?? ??? ???"}, /* overlong, surrogate */
		{"\364\220\200\200 \377 \303", "???? ? ?"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *got = prove_clean(slice_from_str(rows[i].in), 100);

		assert_string_equal(got, rows[i].out);
	}
}

static void test_bounds(void **state)
{
	char in[200];

	(void)state;
	memset(in, 'x', sizeof(in));
	for (size_t max = 4; max < 200; max++) {
		AUTO_FREE char *got = prove_clean(slice_of(in, sizeof(in)), max);

		assert_true(strlen(got) <= max + 3);
		assert_string_equal(got + strlen(got) - 3, "...");
	}
}

static void test_nul(void **state)
{
	AUTO_FREE char *got = prove_clean(slice_of("a\0b", 3), 100);

	(void)state;
	assert_string_equal(got, "a?b");
}

static void test_last_line(void **state)
{
	AUTO_FREE char *a = prove_last_line("one\ntwo"), *b = prove_last_line("one"),
		       *c = prove_last_line("");

	(void)state;
	assert_string_equal(a, "two");
	assert_string_equal(b, "one");
	assert_string_equal(c, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_stays_and_what_goes),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_last_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
