/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the home directory that are reported, and others. */
#include "src/sbx/audit/home_record.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static char base[] = "/tmp/home_record-XXXXXX";
static char *home, *dir, *key;
static char told[4096];

static void put(const char *path, const char *text)
{
	AUTO_FREE char *whole = xasprintf("%s/%s", home, path);
	AUTO_CLOSE int fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void make(const char *path)
{
	AUTO_FREE char *whole = xasprintf("%s/%s", home, path);

	assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
}

static void drop(const char *path)
{
	AUTO_FREE char *whole = xasprintf("%s/%s", home, path);

	assert_int_equal(unlink(whole), 0);
}

static void tell(
	void *arg, enum home_change what, const char *group, const char *path, const char *at)
{
	static const char marks[] = "~+-";
	size_t n = strlen(told);

	(void)snprintf(told + n, sizeof(told) - n, "%c%s:%s ", marks[what], group, path);
	assert_int_equal(at[0] != '\0', what != HOME_GONE);
}

static const char *changes(const char *group)
{
	struct err err = {0};

	told[0] = '\0';
	assert_true(home_record_compare(dir, key, home, group, tell, NULL, &err) >= 0);
	return told;
}

static void record(void)
{
	AUTO_FREE char *text = NULL;
	struct err err = {0};

	assert_int_equal(home_record_take(key, home, &text, &err), 0);
	assert_int_equal(home_record_save(dir, text, &err), 0);
}

static void test_nothing_changed(void **state)
{
	put(".bashrc", "alias ll=ls\n");
	make(".ssh");
	put(".ssh/id_ed25519", "a key\n");
	record();
	assert_string_equal(changes(NULL), "");
	/* the same content, written again */
	put(".bashrc", "alias ll=ls\n");
	assert_string_equal(changes(NULL), "");
}

static void test_changed_new_and_gone(void **state)
{
	put(".bashrc", "evil\n");
	make(".config");
	make(".config/autostart");
	put(".config/autostart/x.desktop", "Exec=evil\n");
	drop(".ssh/id_ed25519");
	assert_string_equal(changes(NULL),
		"~shell:.bashrc +start:.config/autostart/x.desktop -ssh:.ssh/id_ed25519 ");
	assert_string_equal(changes("start"), "+start:.config/autostart/x.desktop ");
	assert_string_equal(changes("git"), "");
	record();
	assert_string_equal(changes(NULL), "");
}

static void test_a_file_that_became_a_link(void **state)
{
	AUTO_FREE char *link = xasprintf("%s/.profile", home);

	put(".profile", "umask 077\n");
	put("elsewhere", "umask 077\n");
	record();
	drop(".profile");
	assert_int_equal(symlink("elsewhere", link), 0);
	assert_string_equal(changes(NULL), "~shell:.profile ");
	drop(".profile");
	record();
}

static void test_what_changes_every_day_is_left_out(void **state)
{
	put(".ssh/known_hosts", "a\n");
	put(".bash_history", "ls\n");
	assert_string_equal(changes(NULL), "");
}

static void test_a_large_file_counts_by_its_size_too(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/.netrc", home);

	put(".netrc", "x");
	assert_int_equal(truncate(path, HOME_MAX_BYTES + 4096), 0);
	record();
	assert_int_equal(truncate(path, HOME_MAX_BYTES + 4097), 0);
	assert_string_equal(changes("keys"), "~keys:.netrc ");
	drop(".netrc");
}

/* Guessed contents cannot be verified with the record alone. */
static void test_hashes_depend_on_the_key(void **state)
{
	struct err err = {0};

	record();
	put("../key", "another key of thirty-two bytes.");
	assert_int_not_equal(strlen(changes("shell")), 0);
	assert_int_equal(unlink(key), 0);
	assert_int_equal(home_record_compare(dir, key, home, NULL, tell, NULL, &err), -ENOENT);
}

static void test_no_record_and_a_damaged_one(void **state)
{
	struct err err = {0};
	AUTO_FREE char *path = xasprintf("%s/home-record", dir);

	record();
	put("../state/home-record", "sbx home record 1\nshell abc .bashrc\n");
	assert_int_equal(home_record_compare(dir, key, home, NULL, tell, NULL, &err), -EBADMSG);
	put("../state/home-record", "something else\n");
	assert_int_equal(home_record_compare(dir, key, home, NULL, tell, NULL, &err), -EBADMSG);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(home_record_compare(dir, key, home, NULL, tell, NULL, &err), -ENOENT);
	assert_true(home_record_is_group("ssh"));
	assert_false(home_record_is_group("cups"));
}

static int begin(void **state)
{
	assert_non_null(mkdtemp(base));
	home = xasprintf("%s/home", base);
	dir = xasprintf("%s/state", base);
	key = xasprintf("%s/key", base);
	return mkdir(home, 0700);
}

static int end(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", base);
	int r = system(rm); /* NOLINT: our own directory */

	free(home);
	free(dir);
	free(key);
	return r;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_changed),
		cmocka_unit_test(test_changed_new_and_gone),
		cmocka_unit_test(test_a_file_that_became_a_link),
		cmocka_unit_test(test_what_changes_every_day_is_left_out),
		cmocka_unit_test(test_a_large_file_counts_by_its_size_too),
		cmocka_unit_test(test_hashes_depend_on_the_key),
		cmocka_unit_test(test_no_record_and_a_damaged_one),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
