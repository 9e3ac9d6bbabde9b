/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries of PATH are left for the scripts of sbx: none that a guest can write to. */
#include "lib/client/cli/search_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/mem.h"

static void check(const char *path, const char *want)
{
	AUTO_FREE char *made = search_path_make(path);
	AUTO_FREE char *whole = xasprintf("%s" SEARCH_PATH_DEBIAN, want);

	assert_string_equal(made, whole);
}

static void test_directories_of_root_stay_in_their_order(void **state)
{
	check("/usr/bin:/usr/lib", "/usr/bin:/usr/lib:");
	check(NULL, "");
	check("", "");
}

static void test_relative_and_missing_ones_are_left_out(void **state)
{
	check("node_modules/.bin:.::/usr/bin:/no/such/place:/etc/passwd", "/usr/bin:");
}

static void test_what_the_user_or_a_guest_can_change_is_left_out(void **state)
{
	char dir[] = "/tmp/search-path.XXXXXX";
	AUTO_FREE char *inner = NULL, *link = NULL, *all = NULL;

	assert_non_null(mkdtemp(dir));
	inner = xasprintf("%s/bin", dir);
	link = xasprintf("%s/link", dir);
	assert_int_equal(mkdir(inner, 0755), 0);
	assert_int_equal(symlink("/usr/bin", link), 0);
	/* Run by root, they are root's: then others can write there. */
	assert_int_equal(chmod(dir, 0777), 0);
	all = xasprintf("%s:%s", inner, dir);
	check(all, "");
	/* A link is replaced by where it leads now. */
	check(link, "/usr/bin:");
	(void)unlink(link);
	(void)rmdir(inner);
	(void)rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directories_of_root_stay_in_their_order),
		cmocka_unit_test(test_relative_and_missing_ones_are_left_out),
		cmocka_unit_test(test_what_the_user_or_a_guest_can_change_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
