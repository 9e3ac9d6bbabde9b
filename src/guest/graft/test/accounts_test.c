/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/guest/graft/accounts.h"
#include "lib/base/mem.h"

#define AGENT "agent:x:1000:1000:agent:/home/agent:/bin/sh\n"
#define ROOT "root:x:0:0:root:/root:/bin/sh\n"

static void check_passwd(const char *old, const char *want)
{
	AUTO_FREE char *got = NULL;
	struct err err;

	assert_int_equal(accounts_passwd(old, "/bin/sh", &got, &err), 0);
	assert_string_equal(got, want);
}

static void test_passwd_gets_what_is_missing(void **state)
{
	check_passwd("", ROOT AGENT);
	check_passwd(ROOT, ROOT AGENT);
	/* no newline at the end of the file */
	check_passwd("root:x:0:0:root:/root:/bin/sh", ROOT AGENT);
}

static void test_passwd_number_has_the_agents_name(void **state)
{
	check_passwd(ROOT "node:x:1000:1000::/srv/node:/bin/bash\nz:x:2:2::/:/x\n",
		ROOT AGENT "node:x:1000:1000::/srv/node:/bin/bash\nz:x:2:2::/:/x\n");
}

static void test_passwd_keeps_the_images_agent(void **state)
{
	static const char own[] = ROOT "agent:x:1234:1::/srv/agent:/bin/zsh\n";

	check_passwd(own, own);
}

static void test_passwd_broken_lines_mean_nothing(void **state)
{
	check_passwd(
		ROOT "agent:x:0\n::::::::\nagent\n", ROOT "agent:x:0\n::::::::\nagent\n" AGENT);
}

static void test_passwd_refuses_an_agent_that_is_root(void **state)
{
	AUTO_FREE char *got = NULL;
	struct err err;

	assert_int_equal(
		accounts_passwd("agent:x:0:0::/root:/bin/sh\n", "/bin/sh", &got, &err), -EPERM);
	assert_non_null(strstr(err.text, "root"));
	assert_int_equal(
		accounts_passwd("agent:x:5:0::rel:/bin/sh\n", "/bin/sh", &got, &err), -EPERM);
	assert_null(got);
}

static void check_group(const char *old, const char *want)
{
	AUTO_FREE char *got = accounts_group(old);

	assert_string_equal(got, want);
}

static void test_group(void **state)
{
	check_group("", "root:x:0:\nagent:x:1000:\n");
	check_group("root:x:0:\nsudo:x:27:\nwheel:x:10:root\ndocker:x:9:a,agent\nadm:x:4:\n",
		"root:x:0:\nsudo:x:27:agent\nwheel:x:10:root,agent\ndocker:x:9:a,agent\nadm:x:4:\n"
		"agent:x:1000:\n");
	check_group("root:x:0:\nnode:x:1000:\n", "root:x:0:\nagent:x:1000:\nnode:x:1000:\n");
	check_group("root:x:0:\nagent:x:7:\nsudo:x:1:agents", /* agents is a different name */
		"root:x:0:\nagent:x:7:\nsudo:x:1:agents,agent\n");
}

static void test_shadow(void **state)
{
	AUTO_FREE char *got = accounts_shadow("root:*:1:0:99999:7:::\nagents:!::::::\n");
	AUTO_FREE char *again = accounts_shadow(got);

	assert_string_equal(got, "root:*:1:0:99999:7:::\nagents:!::::::\nagent:!::0:99999:7:::\n");
	assert_string_equal(again, got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_passwd_gets_what_is_missing),
		cmocka_unit_test(test_passwd_number_has_the_agents_name),
		cmocka_unit_test(test_passwd_keeps_the_images_agent),
		cmocka_unit_test(test_passwd_broken_lines_mean_nothing),
		cmocka_unit_test(test_passwd_refuses_an_agent_that_is_root),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_shadow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
