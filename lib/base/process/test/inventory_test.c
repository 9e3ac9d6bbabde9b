/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/fs/file.h"
#include "lib/base/process/inventory.h"
#include "lib/base/mem.h"

static char dir[] = "/tmp/sbx-inventory-XXXXXX";

static char *written(void)
{
	AUTO_FREE char *path = xasprintf("%s/list", dir);
	char *text = NULL;
	struct stat st;
	size_t n;

	inventory_write(path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(file_load(path, 1 << 20, &text, &n, NULL), 0);
	return text;
}

static void each_descriptor_and_variable_is_named(void **state)
{
	AUTO_CLOSE int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	AUTO_CLOSE int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO_FREE char *text = NULL, *again = NULL, *file = xasprintf("\nfd %d /dev/null\n", null);
	AUTO_FREE char *socket = xasprintf("\nfd %d socket:[", sock);

	(void)state;
	assert_int_equal(setenv("INVENTORY_TEST", "first\nfd 0 /forged", 1), 0);
	text = written();
	assert_non_null(strstr(text, file));
	assert_non_null(strstr(text, socket));
	assert_non_null(strstr(text, "\nenv INVENTORY_TEST=first?fd 0 /forged\n"));
	fd_close(&sock);
	again = written(); /* it replaces the first */
	assert_null(strstr(again, socket));
}

static void nothing_is_left_beside_it(void **state)
{
	AUTO_FREE char *path = xasprintf("%s/list", dir);

	(void)state;
	free(written());
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	inventory_write(path); /* logged, and nothing else */
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_descriptor_and_variable_is_named),
		cmocka_unit_test(nothing_is_left_beside_it)};

	if (!mkdtemp(dir))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
