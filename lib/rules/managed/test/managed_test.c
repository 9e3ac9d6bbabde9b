/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/rules/managed/managed.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

#define GOOD "policy 1\nallow network **:1-65535\ndeny network evil.example\nend\n"

static char root[64];
static char *dir, *path;
static struct managed m;

static void put(const char *text)
{
	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
	assert_int_equal(chmod(path, 0644), 0);
}

static int up(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/managed_test.XXXXXX");
	assert_non_null(mkdtemp(root));
	dir = xasprintf("%s/sbx", root);
	path = xasprintf("%s/policy", dir);
	assert_int_equal(mkdir(dir, 0755), 0);
	m = (struct managed){.dir = dir, .owner = geteuid()};
	put(GOOD);
	return 0;
}

static int down(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", root);

	managed_done(&m);
	free(dir);
	free(path);
	return system(rm);
}

static void must_be_faulty(const char *says)
{
	(void)managed_refresh(&m);
	assert_true(m.exists);
	assert_int_equal(m.rules.n, 0);
	if (!strstr(m.fault.text, says))
		fail_msg("says: %s", m.fault.text);
}

static void must_be_good(void)
{
	assert_true(managed_refresh(&m));
	assert_string_equal(m.fault.text, "");
	assert_true(m.exists);
	assert_int_equal(m.rules.n, 2);
	assert_int_equal(m.rules.rule[1].line, 3);
}

static void it_is_read_once_and_again_when_it_changes(void **state)
{
	must_be_good();
	assert_false(managed_refresh(&m));
	put("policy 1\nallow network a.example\nend\n");
	assert_true(managed_refresh(&m));
	assert_int_equal(m.rules.n, 1);
	assert_int_equal(chmod(path, 0664), 0);
	must_be_faulty("writable for others than root");
	assert_int_equal(chmod(path, 0644), 0);
	assert_true(managed_refresh(&m));
	assert_string_equal(m.fault.text, "");
}

static void without_a_file_there_is_no_managed_policy(void **state)
{
	assert_int_equal(unlink(path), 0);
	assert_true(managed_refresh(&m));
	assert_false(m.exists);
	assert_string_equal(m.fault.text, "");
	assert_int_equal(rmdir(dir), 0);
	assert_true(managed_refresh(&m));
	assert_false(m.exists);
	assert_false(managed_refresh(&m));
}

static void another_owner_or_mode_is_a_fault(void **state)
{
	static const mode_t bad[] = {0666, 0646, 0664, 0622};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(chmod(path, bad[i]), 0);
		must_be_faulty("writable for others than root");
	}
	assert_int_equal(chmod(path, 0644), 0);
	must_be_good();
	assert_int_equal(chmod(dir, 0775), 0);
	must_be_faulty("writable for others than root");
	assert_int_equal(chmod(dir, 0755), 0);
	must_be_good();
	m.fresh = false;
	m.owner = geteuid() + 1;
	must_be_faulty("not to root");
}

static void what_is_not_a_file_is_a_fault(void **state)
{
	AUTO_FREE char *other = xasprintf("%s/other", root);

	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	must_be_faulty("cannot open");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/nowhere/at/all", path), 0);
	must_be_faulty("cannot open");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
	must_be_faulty("not a regular file");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	must_be_faulty("not a regular file");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(symlink(root, dir), 0);
	must_be_faulty("cannot open");
	assert_int_equal(unlink(dir), 0);
	assert_int_equal(close(open(dir, O_CREAT | O_WRONLY, 0644)), 0);
	must_be_faulty("cannot open");
}

static void a_file_that_the_user_cannot_read_is_a_fault(void **state)
{
	if (geteuid() == 0)
		return; /* root reads everything */
	assert_int_equal(chmod(path, 0), 0);
	must_be_faulty("cannot open");
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(chmod(dir, 0), 0);
	must_be_faulty("cannot open");
	assert_int_equal(chmod(dir, 0755), 0);
}

static void rules_that_are_no_ceiling_are_a_fault(void **state)
{
	static const char *const bad[][2] = {
		{"", "policy"},
		{"policy 1\nallow network a.example\n", "end"},
		{"policy 1\nallow netwrk a.example\nend\n", "policy: line 2"},
		{"policy 1\nallow network a.example for sandbox demo\nend\n",
			"policy: line 2: a managed rule applies to all sandboxes"},
		{"policy 1\nend\n", "allow network **:1-65535"},
		{"policy 1\ndeny network evil.example\nend\n", "allow network **:1-65535"},
		{"policy 2\nallow http a.example/**\nend\n", "allow network **:1-65535"},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		put(bad[i][0]);
		must_be_faulty(bad[i][1]);
	}
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, up, down)
	const struct CMUnitTest tests[] = {
		TEST(it_is_read_once_and_again_when_it_changes),
		TEST(without_a_file_there_is_no_managed_policy),
		TEST(another_owner_or_mode_is_a_fault),
		TEST(what_is_not_a_file_is_a_fault),
		TEST(a_file_that_the_user_cannot_read_is_a_fault),
		TEST(rules_that_are_no_ceiling_are_a_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
