/* SPDX-License-Identifier: Apache-2.0 */
#include "src/prove/html.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"

static char *put(struct slice text)
{
	char *got = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&got, &n);

	assert_non_null(f);
	html_put(f, text);
	fclose(f);
	return got;
}

#define BAD "\xef\xbf\xbd"

static void text_stays_text(void **state)
{
	static const char *const rows[][2] = {
		{"plain text, gr\xc3\xbc\xc3\x9f \xe2\x9c\x93",
			"plain text, gr\xc3\xbc\xc3\x9f \xe2\x9c\x93"},
		{"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
		{"\" onload='x' &lt;", "&quot; onload=&#39;x&#39; &amp;lt;"},
		{"</pre><!-- ]]>", "&lt;/pre&gt;&lt;!-- ]]&gt;"},
		{"a\nb\tc", "a\nb\tc"},
		{"a\rb\033[31mc\007\x7f", "a" BAD "b" BAD "[31mc" BAD BAD},
		{"\xc2\x9b"
		 "2J",
			BAD "2J"},
		{"ad\xe2\x80\xae"
		 "nim",
			"ad" BAD "nim"},
		{"\xe2\x81\xa6x\xe2\x80\x8b\xef\xbb\xbf", BAD "x" BAD BAD},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_FREE char *got = put(slice_from_str(rows[i][0]));

		assert_string_equal(got, rows[i][1]);
	}
}

static void what_is_not_utf8_is_replaced(void **state)
{
	static const char *const rows[][2] = {
		{"\x80", BAD},
		{"\xff\xfe", BAD BAD},
		{"x\xc3", "x" BAD},
		{"\xc3<", BAD "&lt;"},
		{"\xe2\x9c<b>", BAD BAD "&lt;b&gt;"},
		{"\xc0\xbc", BAD BAD},		       /* "<", too long */
		{"\xe0\x80\xbc", BAD BAD BAD},	       /* the same, longer */
		{"\xf0\x80\x80\xbc", BAD BAD BAD BAD}, /* and longer */
		{"\xed\xa0\x80", BAD BAD BAD},	       /* half of a pair */
		{"\xf4\x90\x80\x80", BAD BAD BAD BAD}, /* after the last */
		{"\xef\xbf\xbe", BAD},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_FREE char *got = put(slice_from_str(rows[i][0]));

		assert_string_equal(got, rows[i][1]);
	}
}

static void a_nul_is_a_byte_like_others(void **state)
{
	AUTO_FREE char *got = put(slice_of("a\0<", 3));

	assert_string_equal(got, "a" BAD "&lt;");
}

static void a_long_text_is_cut_and_says_so(void **state)
{
	size_t n = 4 * HTML_MAX_TEXT;
	AUTO_FREE char *text = xmalloc(n);
	AUTO_FREE char *got = NULL;

	memset(text, '<', n);
	got = put(slice_of(text, n));
	assert_int_equal(strlen(got), 4 * HTML_MAX_TEXT + strlen(" \xe2\x80\xa6 (cut here)"));
	assert_non_null(strstr(got, "(cut here)"));
}

static void the_hash_is_the_one_of_browsers(void **state)
{
	char *got = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&got, &n);

	html_put_hash(f, slice_from_str("abc"));
	fclose(f);
	assert_string_equal(got, "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_stays_text),
		cmocka_unit_test(what_is_not_utf8_is_replaced),
		cmocka_unit_test(a_nul_is_a_byte_like_others),
		cmocka_unit_test(a_long_text_is_cut_and_says_so),
		cmocka_unit_test(the_hash_is_the_one_of_browsers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
