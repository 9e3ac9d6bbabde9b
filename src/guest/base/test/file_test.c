/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/guest/base/file.h"
#include "lib/base/mem.h"

static char dir[] = "/tmp/sbx-file-test-XXXXXX";

static char *in_dir(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void test_replace_keeps_the_mode(void **state)
{
	AUTO_FREE char *path = in_dir("f");
	AUTO_FREE char *text = NULL;
	struct stat st;
	struct err err;

	assert_int_equal(file_replace(path, "one\n", &err), 0);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(file_replace(path, "two\n", &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(file_read(path, &text), 0);
	assert_string_equal(text, "two\n");
}

static void test_replace_does_not_follow_links(void **state)
{
	AUTO_FREE char *victim = in_dir("victim");
	AUTO_FREE char *link = in_dir("f.sbx-new");
	AUTO_FREE char *path = in_dir("f");
	AUTO_FREE char *text = NULL;
	struct err err;

	assert_int_equal(file_replace(victim, "mine", &err), 0);
	assert_int_equal(symlink(victim, link), 0);
	assert_int_equal(file_replace(path, "new", &err), 0);
	assert_int_equal(file_read(victim, &text), 0);
	assert_string_equal(text, "mine");
}

static void test_read_never_waits(void **state)
{
	AUTO_FREE char *fifo = in_dir("fifo");
	char *text = NULL;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(file_read(fifo, &text), -EINVAL);
	assert_int_equal(file_read(dir, &text), -EINVAL);
	assert_int_equal(file_read("/nonexistent", &text), -ENOENT);
	assert_null(text);
}

static void test_read_is_bounded(void **state)
{
	AUTO_FREE char *path = in_dir("big");
	char *text = NULL;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(ftruncate(fd, FILE_MAX_BYTES + 1), 0);
	(void)close(fd);
	assert_int_equal(file_read(path, &text), -EFBIG);
	assert_null(text);
}

static void test_parents(void **state)
{
	AUTO_FREE char *path = in_dir("a/b/c");
	AUTO_FREE char *above = in_dir("a/b");
	AUTO_FREE char *through = in_dir("f/x/y");
	struct stat st;
	struct err err;

	assert_int_equal(file_make_parents(path, &err), 0);
	assert_int_equal(stat(above, &st), 0);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(chmod(above, 0700), 0);
	assert_int_equal(file_make_parents(path, &err), 0);
	assert_int_equal(stat(above, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(file_make_parents(through, &err), -ENOTDIR);
}

/* An ordinary user can only chown to itself: the test checks which files are not changed. */
static void test_chown_tree_leaves_others(void **state)
{
	uid_t nobody[2] = {4000000, 4000000}, me[2] = {geteuid(), getegid()};

	assert_int_equal(file_chown_tree(dir, nobody, (uid_t[]){4000001, 4000001}), 0);
	assert_int_equal(file_chown_tree(dir, me, me), 0);
	assert_int_equal(file_chown_tree("/nonexistent", me, me), -ENOENT);
}

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
	AUTO_FREE char *cmd = xasprintf("rm -r %s", dir);

	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replace_keeps_the_mode),
		cmocka_unit_test(test_replace_does_not_follow_links),
		cmocka_unit_test(test_read_never_waits),
		cmocka_unit_test(test_read_is_bounded),
		cmocka_unit_test(test_parents),
		cmocka_unit_test(test_chown_tree_leaves_others),
	};

	return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
