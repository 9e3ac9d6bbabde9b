/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/host/issue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static void names_of_the_user_and_the_host_are_replaced(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"", ""},
		{"cannot use '/home/user/x': no", "cannot use '~/x': no"},
		{"/home/user and /home/user/y", "~ and ~/y"},
		{"/home/user-2/x", "/home/user-2/x"},
		{"user has no range", "USER has no range"},
		{"users, auser, user_x, user-x", "users, auser, user_x, user-x"},
		{"at laptop: user@laptop.", "at HOST: USER@HOST."},
		{"user", "USER"},
	};
	const struct issue_names names = {"/home/user", "user", "laptop"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *got = issue_clean(rows[i].text, &names);

		assert_string_equal(got, rows[i].want);
	}
}

static void missing_names_replace_nothing(void **state)
{
	static const struct issue_names rows[] = {{0}, {"/", "", ""}, {"", NULL, ""}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *got = issue_clean("/a b-c", &rows[i]);

		assert_string_equal(got, "/a b-c");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_user_and_the_host_are_replaced),
		cmocka_unit_test(missing_names_replace_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
