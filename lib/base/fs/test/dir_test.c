/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/dir.h"

static void entries_come_without_the_directory_and_its_parent(void **state)
{
	char top[] = "/tmp/dir-test-XXXXXX";
	const struct dirent *e;
	int top_fd, n = 0;
	AUTO_DIR DIR *d = NULL;

	assert_non_null(mkdtemp(top));
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(top_fd, ".hidden", 0700), 0);
	assert_int_equal(mkdirat(top_fd, "..x", 0700), 0);
	d = dir_of(top_fd);
	assert_non_null(d);
	while ((e = dir_next(d)))
		n += strcmp(e->d_name, ".hidden") == 0 || strcmp(e->d_name, "..x") == 0 ? 1 : 100;
	assert_int_equal(n, 2);
	assert_int_equal(errno, 0);
	assert_int_equal(unlinkat(top_fd, ".hidden", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(top_fd, "..x", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(top), 0);
}

static void what_is_no_directory_has_no_entries(void **state)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_null(dir_next(NULL));
	assert_null(dir_of(-1));
	assert_null(dir_of(null));
	assert_int_equal(errno, ENOTDIR);
	assert_int_equal(fcntl(null, F_GETFD), -1); /* it is closed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_come_without_the_directory_and_its_parent),
		cmocka_unit_test(what_is_no_directory_has_no_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
