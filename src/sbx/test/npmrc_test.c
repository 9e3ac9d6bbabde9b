/* SPDX-License-Identifier: Apache-2.0 */
/* npm's own configuration: which parts are used. */
#include "src/sbx/agent/npmrc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

static void lines_are_read_and_the_first_counts(void **state)
{
	AUTO_NPMRC struct npmrc n = {0};

	npmrc_take(&n,
		slice_from_str(
			"; comment\n# registry=http://no\n registry = \"https://a.example/x/\" \r\n"
			"cafile=/etc/ca.pem\nproxy=null\n"));
	npmrc_take(&n, slice_from_str("registry=https://b.example/\nhttps-proxy=http://p:1\n"));
	assert_string_equal(n.registry, "https://a.example/x/");
	assert_string_equal(n.cafile, "/etc/ca.pem");
	assert_string_equal(n.proxy, "http://p:1");
	assert_false(n.has_token);
}

static void a_token_is_seen_and_not_taken(void **state)
{
	AUTO_NPMRC struct npmrc n = {0};

	npmrc_take(
		&n, slice_from_str(
			    "//a.example/:_authToken=npm_canary\nregistry=https://a.example/\n"));
	assert_true(n.has_token);
	assert_null(strstr(n.registry, "canary"));
}

static void targets(void **state)
{
	static const struct {
		const char *registry, *target;
	} rows[] = {
		{"https://a.example/", "a.example:443"},
		{"http://a.example", "a.example:80"},
		{"https://a.example:8443/npm/", "a.example:8443"},
		{"https://me:pw@a.example/", NULL},
		{"https://", NULL},
		{"ftp://a.example/", NULL},
		{"https://a.example,b.example/", NULL},
		{"https://a b/", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct npmrc n = {.registry = (char *)rows[i].registry};
		struct err err = {0};
		AUTO_FREE char *got = npmrc_target(&n, &err);

		if (rows[i].target)
			assert_string_equal(got, rows[i].target);
		else
			assert_true(!got && err.text[0]);
	}
}

static void variables_come_before_files(void **state)
{
	char folder[] = "/tmp/sbx-npmrc-XXXXXX";
	AUTO_NPMRC struct npmrc n = {0};
	AUTO_FREE char *path = NULL;
	struct err err = {0};

	assert_non_null(mkdtemp(folder));
	path = xasprintf("%s/.npmrc", folder);
	assert_int_equal(
		file_save(
			path, slice_from_str("registry=https://file.example/\ncafile=/f\n"), NULL),
		0);
	assert_int_equal(setenv("HOME", folder, 1), 0);
	assert_int_equal(unsetenv("npm_config_userconfig"), 0);
	assert_int_equal(setenv("npm_config_registry", "https://variable.example/", 1), 0);
	assert_int_equal(npmrc_read(&n, &err), 0);
	assert_string_equal(n.registry, "https://variable.example/");
	assert_string_equal(n.cafile, "/f");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_read_and_the_first_counts),
		cmocka_unit_test(a_token_is_seen_and_not_taken),
		cmocka_unit_test(targets),
		cmocka_unit_test(variables_come_before_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
