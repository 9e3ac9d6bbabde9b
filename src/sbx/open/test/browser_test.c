/* SPDX-License-Identifier: Apache-2.0 */
/* Which program opens a link, and with which arguments; the link is one argument, whatever it
 * contains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "src/sbx/open/browser.h"

#define URL "https://a.example/?x=$(id)&y=;z"

static void must_be(const char *value, bool has_display, const char *const *expected)
{
	struct browser b;
	size_t i = 0;

	assert_true(browser_choose(&b, value, has_display, URL));
	for (; expected[i]; i++)
		assert_string_equal(b.argv[i], expected[i]);
	assert_null(b.argv[i]);
	browser_done(&b);
}

static void the_link_is_one_argument(void **state)
{
	struct browser b;

	must_be(NULL, true, (const char *const[]){"xdg-open", URL, NULL});
	must_be("", true, (const char *const[]){"xdg-open", URL, NULL});
	must_be("firefox", false, (const char *const[]){"firefox", URL, NULL});
	must_be("firefox --new-window", false,
		(const char *const[]){"firefox", "--new-window", URL, NULL});
	must_be("w3m %s -T text:links", false,
		(const char *const[]){"w3m", URL, "-T", "text", NULL});
	assert_false(browser_choose(&b, NULL, false, URL));
	browser_done(&b);
	assert_false(browser_choose(&b, ":", true, URL));
	browser_done(&b);
	assert_false(browser_choose(&b, "a b c d e f g h i j k l m n o p q", true, URL));
	browser_done(&b);
}

static int start(const char *value)
{
	struct err err = {0};
	struct browser b;
	int r;

	assert_true(browser_choose(&b, value, false, URL));
	r = browser_start(&b, &err);
	assert_true(r == 0 || err.text[0]);
	browser_done(&b);
	return r;
}

static void a_browser_that_fails_is_noticed(void **state)
{
	assert_int_equal(start("true"), 0);
	assert_int_not_equal(start("false"), 0);
	assert_int_not_equal(start("/nonexistent/browser"), 0);
}

/* A directory that the user can write may have a program of a guest. */
static void only_directories_of_root_are_searched(void **state)
{
	char dir[] = "/tmp/browser_test.XXXXXX", path[64];
	FILE *f;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/sbx-test-browser", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs("#!/bin/sh\n", f);
	(void)fclose(f);
	assert_int_equal(setenv("PATH", dir, 1), 0);
	assert_int_not_equal(start("sbx-test-browser"), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_link_is_one_argument),
		cmocka_unit_test(a_browser_that_fails_is_noticed),
		cmocka_unit_test(only_directories_of_root_are_searched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
