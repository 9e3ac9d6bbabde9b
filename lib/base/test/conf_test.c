/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "lib/base/conf.h"

static const struct conf_form form = {
	.what = "a thing", .first = "thing 1", .max_bytes = 80, .max_line = 20};

/* The lines as "N:LINE#COMMENT|", or the error. */
static const char *read_all(const struct conf_form *f, struct slice text)
{
	static char out[1024];
	struct err err = {0};
	struct conf c;
	struct slice line;
	size_t n = 0;
	int r = conf_init(&c, f, text, "file", &err);

	if (r < 0)
		return snprintf(out, sizeof(out), "%d %s", r, err.text), out;
	out[0] = '\0';
	while ((r = conf_next(&c, &line, &err)) > 0)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%u:%.*s#%.*s|", c.line,
			(int)line.n, (const char *)line.p, (int)c.comment.n,
			(const char *)c.comment.p);
	if (r < 0) {
		assert_int_equal(conf_fail(&c, r, &err), r);
		(void)snprintf(out, sizeof(out), "%d %s", r, err.text);
	}
	return out;
}

static void check(const char *text, const char *want)
{
	assert_string_equal(read_all(&form, slice_from_str(text)), want);
}

static void lines_come_trimmed_and_numbered(void **state)
{
	check("thing 1\nend\n", "");
	check("\n# c\n thing 1 # d\n\n a  b \nc\t# why\n\tend", "5:a  b#|6:c#why|");
	check("thing 1\na#b\n#x\nend\n#y\n\n", "2:a#b#|");
}

static void a_hash_inside_a_line_can_belong_to_it(void **state)
{
	struct conf_form inner = form;

	inner.has_inner_hash = true;
	assert_string_equal(
		read_all(&inner, slice_from_str("thing 1\na #b\n #c\nend")), "2:a #b#|");
}

static void broken_files_are_refused_with_file_and_line(void **state)
{
	check("", "-22 file: line 0: the line 'end' is missing: the file may be truncated");
	check("thing 1\na\n",
		"-22 file: line 2: the line 'end' is missing: the file may be truncated");
	check("thing 2\nend\n", "-22 file: line 1: a thing must begin with the line 'thing 1'");
	check("end\n", "-22 file: line 1: a thing must begin with the line 'thing 1'");
	check("thing 1\nend\na\n", "-22 file: line 3: unexpected text after 'end'");
	check("thing 1\na\x1b\nend", "-22 file: line 2: contains the control character 0x1b");
	check("thing 1\na\x7f\nend", "-22 file: line 2: contains the control character 0x7f");
	check("thing 1\n#\r\nend", "-22 file: line 2: contains the control character 0x0d");
	assert_string_equal(read_all(&form, slice_of("thing 1\n\0\nend", 13)),
		"-22 file: line 2: contains the control character 0x00");
}

static void long_lines_and_files_are_refused(void **state)
{
	char text[82] = "thing 1\n                   \n                   \n                   "
			"\n         end";

	assert_string_equal(read_all(&form, slice_of(text, 80)), "");
	text[80] = '\n';
	assert_string_equal(read_all(&form, slice_of(text, 81)), "-7 file: larger than 80 bytes");
	check("thing 1\n0123456789012345678\nend", "2:0123456789012345678#|");
	check("thing 1\n01234567890123456789\nend", "-7 file: line 2: longer than 19 bytes");
}

static void a_line_is_cut_into_words(void **state)
{
	struct slice s = slice_from_str("  a\t bc  d ");

	assert_true(slice_eq_str(conf_word(&s), "a"));
	assert_true(slice_eq_str(s, "bc  d"));
	assert_true(slice_eq_str(conf_word(&s), "bc"));
	assert_true(slice_eq_str(conf_word(&s), "d"));
	assert_int_equal(conf_word(&s).n, 0);
	assert_int_equal(s.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_trimmed_and_numbered),
		cmocka_unit_test(a_hash_inside_a_line_can_belong_to_it),
		cmocka_unit_test(broken_files_are_refused_with_file_and_line),
		cmocka_unit_test(long_lines_and_files_are_refused),
		cmocka_unit_test(a_line_is_cut_into_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
