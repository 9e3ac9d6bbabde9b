/* SPDX-License-Identifier: Apache-2.0 */
#include "src/notify/notify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static struct notify_show show;
static char text[TEXT_MAX];

static int setup(void **state)
{
	show = (struct notify_show){.sandbox = "demo",
		.hold = "K7QD",
		.effect = "git:push github.com/acme/app refs/heads/main"};
	return 0;
}

static void test_what_a_person_reads(void **state)
{
	text_title(&show, text);
	assert_string_equal(text, "sbx: demo waits for approval");
	text_body(&show, text);
	assert_string_equal(text, "| git:push github.com/acme/app refs/heads/main\n"
				  "To decide, type: sbx approve K7QD");
	show.more = 2;
	text_body(&show, text);
	assert_string_equal(text, "| git:push github.com/acme/app refs/heads/main\nand 2 more\n"
				  "To decide, type: sbx approve K7QD");
}

static void test_markup_is_escaped(void **state)
{
	strcpy(show.effect, "http:GET a.test /<a href=\"x\">&amp;'");
	text_body(&show, text);
	assert_non_null(strstr(text, "/&lt;a href=\"x\"&gt;&amp;amp;'\n"));
	assert_null(strpbrk(text, "<>"));
}

static void test_a_long_effect_is_cut_with_its_length(void **state)
{
	memset(show.effect, '&', sizeof(show.effect) - 1);
	show.effect[sizeof(show.effect) - 1] = '\0';
	show.more = UINT32_MAX;
	text_body(&show, text);
	assert_non_null(strstr(text, "&amp;... (212 more characters)\nand 4294967295 more\n"));
	assert_non_null(strstr(text, "\nTo decide, type: sbx approve K7QD"));
	for (size_t i = 0; text[i]; i++)
		if (text[i] == '&')
			assert_memory_equal(text + i, "&amp;", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_what_a_person_reads, setup),
		cmocka_unit_test_setup(test_markup_is_escaped, setup),
		cmocka_unit_test_setup(test_a_long_effect_is_cut_with_its_length, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
