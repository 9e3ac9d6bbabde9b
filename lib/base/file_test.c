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

/* Without O_NONBLOCK the reader waits for a writer of the FIFO, for ever. */
static void only_a_regular_file_is_read(void **state)
{
	char dir[] = "/tmp/file_test.XXXXXX";
	AUTO_FREE char *fifo = NULL, *text = NULL;
	const char *rows[] = {NULL, dir, "/dev/null", "/dev/tty"};
	size_t n;

	assert_non_null(mkdtemp(dir));
	rows[0] = fifo = xasprintf("%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	(void)alarm(10);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};

		assert_true(file_load(rows[i], 10, &text, &n, &err) < 0);
		assert_null(text);
		assert_non_null(strstr(err.text, rows[i]));
		if (i < 3)
			assert_non_null(strstr(err.text, "is not a regular file"));
	}
	(void)alarm(0);
	assert_int_equal(unlink(fifo), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_replaced_whole),
		cmocka_unit_test(only_a_regular_file_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
