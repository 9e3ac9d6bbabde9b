/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/guest/base/users.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
			     "broken line\n"
			     "agents:x:5:5::/a:/bin/sh\n"
			     "agent:x:1000:1000:Agent,,,:/home/agent:/bin/bash\n"
			     "bad:x:12x:1::/:/bin/sh\n"
			     "last:x:7:8::/last:/bin/dash";
static const char group[] = "root:x:0:\n"
			    "sudo:x:27:agent,other\n"
			    "docker:x:102:other,agent\n"
			    "near:x:103:agents,agen\n"
			    "agent:x:1000:\n"
			    "users:x:100:agent";

static struct guest_user find(const char *spec)
{
	struct guest_user u;
	struct err err;

	if (users_find(passwd, group, spec, &u, &err) < 0)
		fail_msg("%s: %s", spec, err.text);
	return u;
}

static void test_agent_is_the_default(void **state)
{
	struct guest_user u = find("");

	assert_int_equal(u.uid, 1000);
	assert_string_equal(u.name, "agent");
	assert_string_equal(u.home, "/home/agent");
	assert_string_equal(u.shell, "/bin/bash");
	assert_int_equal(u.n_groups, 3);
	assert_int_equal(u.groups[0], 27);
	assert_int_equal(u.groups[1], 102);
	assert_int_equal(u.groups[2], 100);
}

static void test_names_and_numbers(void **state)
{
	assert_int_equal(find("root").uid, 0);
	assert_string_equal(find("1000").name, "agent");
	assert_int_equal(find("last").gid, 8);
	/* An unused number is a valid user, as in docker. */
	assert_int_equal(find("4242").uid, 4242);
	assert_string_equal(find("4242").home, "/");
	assert_int_equal(find("4242").n_groups, 0);
}

static void test_groups(void **state)
{
	struct guest_user u = find("agent:docker");

	assert_int_equal(u.gid, 102);
	assert_int_equal(u.n_groups, 0);
	assert_int_equal(find("root:5").gid, 5);
	assert_int_equal(find(":sudo").uid, 1000);
}

static void test_unknown(void **state)
{
	struct guest_user u;
	struct err err;

	assert_int_equal(users_find(passwd, group, "nobody", &u, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nobody"));
	assert_int_equal(users_find(passwd, group, "root:nogroup", &u, &err), -ENOENT);
	assert_int_equal(users_find(passwd, group, "root:", &u, &err), -ENOENT);
	assert_int_equal(users_find(passwd, group, "bad", &u, &err), -ENOENT);
	assert_int_equal(users_find("", "", "agent", &u, &err), -ENOENT);
	assert_int_equal(users_find(passwd, group, "4294967295", &u, &err), -ENOENT);
}

static void expect_edit(char *got, const char *want)
{
	if (!got || strcmp(got, want) != 0)
		fail_msg("%s instead of %s", got, want);
	free(got);
}

static void test_edit_passwd(void **state)
{
	expect_edit(users_edit_passwd("a:x:1:1::/:/s\nagent:x:1000:1000:A:/h:/b\nz:x:2:2::/:/s\n",
			    "agent", 501, 20),
		"a:x:1:1::/:/s\nagent:x:501:20:A:/h:/b\nz:x:2:2::/:/s\n");
	expect_edit(users_edit_passwd("agent:x:1:1::/:/s", "agent", 4294967293u, 2),
		"agent:x:4294967293:2::/:/s");
	assert_null(users_edit_passwd("agents:x:1:1::/:/s\n", "agent", 5, 5));
	assert_null(users_edit_passwd("agent:x:1\n", "agent", 5, 5));
	assert_null(users_edit_passwd("agent:x:1\nb:x:2:2::/:/s\n", "agent", 5, 5));
	assert_null(users_edit_passwd("", "agent", 5, 5));
}

static void test_edit_group(void **state)
{
	expect_edit(users_edit_group("x:x:1:agent\nagent:x:1000:a,b\n", "agent", 20),
		"x:x:1:agent\nagent:x:20:a,b\n");
	expect_edit(users_edit_group("agent:x:1:", "agent", 20), "agent:x:20:");
	assert_null(users_edit_group("agent:x\n", "agent", 20));
	assert_null(users_edit_group("x:agent:1:\n", "agent", 20));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agent_is_the_default),
		cmocka_unit_test(test_names_and_numbers),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_edit_passwd),
		cmocka_unit_test(test_edit_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
