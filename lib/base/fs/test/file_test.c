/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

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
	AUTO_FREE char *fifo = NULL, *link = NULL, *text = NULL;
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
	link = xasprintf("%s/link", dir);
	assert_int_equal(symlink("/etc/passwd", link), 0);
	assert_int_equal(file_load_no_link(link, 1 << 20, &text, &n, NULL), -ELOOP);
	assert_null(text);
	assert_int_equal(file_load_no_link("/etc/passwd", 1 << 20, &text, &n, NULL), 0);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(unlink(fifo), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* `sbx prove --html proof.html` wrote through a link that a guest had planted. */
static void a_planted_link_is_replaced_and_not_followed(void **state)
{
	char dir[] = "/tmp/file_test.XXXXXX";
	AUTO_FREE char *path = NULL, *target = NULL, *text = NULL;
	AUTO_FILE_NEW struct file_new f = {0}, never = {0};
	struct err err = {0};
	struct stat st;
	size_t n;

	assert_non_null(mkdtemp(dir));
	path = xasprintf("%s/proof.html", dir);
	target = xasprintf("%s/precious", dir);
	assert_int_equal(file_save(target, slice_from_str("precious"), &err), 0);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(file_new_open(&f, path, &err), 0);
	assert_int_equal(write(f.fd, "page", 4), 4);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(file_new_keep(&f, 0644, &err), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(file_load(target, 100, &text, &n, &err), 0);
	assert_string_equal(text, "precious");
	/* What is not kept is gone, and what was there stays. */
	assert_int_equal(file_new_open(&never, target, &err), 0);
	file_new_done(&never);
	file_new_done(&f);
	assert_int_equal(unlink(path) + unlink(target) + rmdir(dir), 0);
}

static void a_device_is_written_in_place(void **state)
{
	AUTO_FILE_NEW struct file_new f = {0};
	struct err err = {0};

	assert_int_equal(file_new_open(&f, "/dev/full", &err), 0);
	assert_int_equal(write(f.fd, "x", 1), -1);
	assert_int_equal(file_new_keep(&f, 0644, &err), 0);
}

static void one_process_at_a_time_holds_a_lock(void **state)
{
	char dir[] = "/tmp/file-test-XXXXXX";
	AUTO_FREE char *path = NULL;
	struct err err = {0};
	struct stat st;
	uint64_t start;
	int fd;

	assert_non_null(mkdtemp(dir));
	path = xasprintf("%s/lock", dir);
	assert_false(file_is_locked(path));
	fd = file_lock(path, 0, &err);
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(file_is_locked(path));
	/* asking does not take it away */
	assert_true(file_is_locked(path));
	start = clock_mono_ms();
	assert_int_equal(file_lock(path, 60, &err), -EBUSY);
	assert_in_range(clock_mono_ms() - start, 60, 60000);
	assert_string_equal(err.text, "");
	fd_close(&fd);
	assert_false(file_is_locked(path));
	fd = file_lock(path, 0, &err);
	assert_true(fd >= 0);
	fd_close(&fd);
	assert_int_equal(unlink(path) + rmdir(dir), 0);
}

static void a_planted_link_is_not_locked(void **state)
{
	char dir[] = "/tmp/file-test-XXXXXX";
	AUTO_FREE char *path = NULL, *target = NULL;
	struct err err = {0};

	assert_non_null(mkdtemp(dir));
	path = xasprintf("%s/lock", dir);
	target = xasprintf("%s/target", dir);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(file_lock(path, 0, &err), -ELOOP);
	assert_int_equal(access(target, F_OK), -1);
	assert_int_equal(unlink(path) + rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_replaced_whole),
		cmocka_unit_test(only_a_regular_file_is_read),
		cmocka_unit_test(a_planted_link_is_replaced_and_not_followed),
		cmocka_unit_test(a_device_is_written_in_place),
		cmocka_unit_test(one_process_at_a_time_holds_a_lock),
		cmocka_unit_test(a_planted_link_is_not_locked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
