#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "file.h"
#include "mem.h"

static void a_file_is_replaced_whole(void **state)
{
	char dir[] = "/tmp/file_test.XXXXXX";
	AUTO_FREE char *path = NULL, *text = NULL, *again = NULL;
	struct err err = {0};
	struct stat st;
	size_t n;

	assert_non_null(mkdtemp(dir));
	path = xasprintf("%s/f", dir);
	assert_int_equal(file_load(path, 10, &text, &n, &err), -ENOENT);
	assert_int_equal(file_save(path, slice_from_str("old content"), &err), 0);
	assert_int_equal(file_save(path, slice_of("a\0b", 3), &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(file_load(path, 3, &text, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(text, "a\0b", 4);
	assert_int_equal(file_load(path, 2, &again, &n, &err), -EFBIG);
	assert_null(again);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	/* It cannot go over a folder: the error names it, and no temporary file stays. */
	assert_true(file_save(path, slice_from_str("x"), &err) < 0);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_true(file_save(path, slice_from_str("x"), &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_file_is_replaced_whole)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
