/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/process/keepenv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *find(char **list, const char *entry)
{
	for (; *list; list++)
		if (strcmp(*list, entry) == 0)
			return *list;
	return NULL;
}

static void test_kept_and_not(void **state)
{
	static const char *const no[] = {"ANTHROPIC_API_KEY", "GITHUB_TOKEN", "AWS_ACCESS_KEY_ID",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "HOMEX", "PATHOLOGY", "LISTEN_FDS",
		"OP_SERVICE_ACCOUNT_TOKEN", "VAULT_TOKEN", "LD_PRELOAD", "SBX_GROQ",
		"SBX_LAB_TOKEN"};
	char *list[KEEPENV_MAX + 1];

	assert_int_equal(clearenv(), 0);
	assert_int_equal(setenv("HOME", "/h", 1), 0);
	assert_int_equal(setenv("XDG_STATE_HOME", "/s", 1), 0);
	assert_int_equal(setenv("SBX_LIBEXEC", "/l", 1), 0);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		assert_int_equal(setenv(no[i], "x", 1), 0);
	assert_int_equal(keepenv_pick(list), 3);
	assert_non_null(find(list, "HOME=/h"));
	assert_non_null(find(list, "XDG_STATE_HOME=/s"));
	assert_non_null(find(list, "SBX_LIBEXEC=/l"));
	assert_null(list[3]);
}

static void test_few(void **state)
{
	static const char *const no[] = {"SBX_ACCEL", "LANG", "DBUS_SESSION_BUS_ADDRESS",
		"VAULT_ADDR", "GITHUB_TOKEN", "SBX_GROQ"};
	char *list[KEEPENV_MAX + 1];

	assert_int_equal(clearenv(), 0);
	assert_int_equal(setenv("PATH", "/bin", 1), 0);
	assert_int_equal(setenv("SBX_LOG", "debug", 1), 0);
	assert_int_equal(setenv("SBX_TRACE", "net", 1), 0);
	assert_int_equal(setenv("SBX_TIME_FACTOR", "4", 1), 0);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		assert_int_equal(setenv(no[i], "x", 1), 0);
	assert_int_equal(keepenv_pick_few(list), 4);
	assert_non_null(find(list, "PATH=/bin"));
	assert_non_null(find(list, "SBX_LOG=debug"));
	assert_non_null(find(list, "SBX_TRACE=net"));
	assert_non_null(find(list, "SBX_TIME_FACTOR=4"));
	assert_null(list[4]);
}

static void test_bound(void **state)
{
	char *list[KEEPENV_MAX + 1], name[32];

	assert_int_equal(clearenv(), 0);
	for (unsigned i = 0; i < KEEPENV_MAX + 40; i++) {
		(void)snprintf(name, sizeof(name), "XDG_%u", i);
		assert_int_equal(setenv(name, "x", 1), 0);
	}
	assert_int_equal(keepenv_pick(list), KEEPENV_MAX);
	assert_null(list[KEEPENV_MAX]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_and_not),
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
