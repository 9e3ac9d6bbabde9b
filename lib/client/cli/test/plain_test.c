/* SPDX-License-Identifier: Apache-2.0 */
/* The output of terminal programs as text: in one piece, and byte by byte. */
#include "lib/client/cli/plain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char *through(const char *in, size_t n, size_t step)
{
	static struct plain p;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	p = (struct plain){0};
	for (size_t i = 0; i < n; i += step)
		plain_feed(&p, slice_of((const uint8_t *)in + i, i + step > n ? n - i : step), f);
	plain_flush(&p, f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void expect(const char *in, size_t n, const char *want)
{
	for (size_t step = 1; step <= n; step += n > 1 ? n - 1 : 1) {
		char *got = through(in, n, step);

		assert_string_equal(got, want);
		free(got);
	}
}

#define EXPECT(in, want) expect(in, sizeof(in) - 1, want)

static void sequences_are_left_out(void **state)
{
	EXPECT("\033[1;31mred\033[0m\r\nnext\r\n", "red\nnext\n");
	EXPECT("\033]0;title\007a\033]52;c;c2VjcmV0\033\\b\n", "ab\n");
	EXPECT("\033(Ba\033Mb\033Pq\033x\033\\c\n", "abc\n");
	EXPECT("\033[?1049h\033[2Jx", "x");
}

static void a_line_that_is_drawn_again_is_another_line(void **state)
{
	EXPECT("10%\r20%\r\r\ndone\n", "10%\n20%\ndone\n");
	EXPECT("\rx\n", "x\n");
}

static void nothing_is_left_that_a_terminal_obeys(void **state)
{
	EXPECT("a\bb\0c\tt\x7f\n", "abc t\n");
	EXPECT("\xe2\x80\xae"
	       "evil\n",
		"???evil\n");
	EXPECT("\xc2\x9b"
	       "31m\n",
		"??31m\n");
	EXPECT("gr\xc3\xbcn\n", "gr\xc3\xbcn\n");
}

static void a_long_line_is_printed_in_parts(void **state)
{
	static char in[3 * PLAIN_MAX_LINE + 5];
	char *got;

	memset(in, 'x', sizeof(in) - 1);
	got = through(in, sizeof(in) - 1, 1000);
	assert_string_equal(got, in);
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequences_are_left_out),
		cmocka_unit_test(a_line_that_is_drawn_again_is_another_line),
		cmocka_unit_test(nothing_is_left_that_a_terminal_obeys),
		cmocka_unit_test(a_long_line_is_printed_in_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
