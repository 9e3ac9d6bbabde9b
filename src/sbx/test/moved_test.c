/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "src/sbx/rewind/moved.h"

static char dir[] = "/tmp/moved_test.XXXXXX";

static void run(const char *script)
{
	AUTO_FREE char *command = xasprintf("cd %s && %s", dir, script);

	assert_int_equal(system(command), 0);
}

static void only_later_files_are_found_and_no_link_is_followed(void **state)
{
	AUTO_MOVED struct moved m = {0};
	uint64_t since;

	run("mkdir sub && echo old > old && touch -d 2001-01-01 old && sleep 0.1");
	since = clock_wall_ms();
	/* The clock of a file system is behind by up to a tick. */
	run("sleep 0.1; echo a > sub/new; ln -s / sub/root; touch -d 2001-01-01 sub/new");
	moved_find(dir, since, &m);
	assert_int_equal(m.n, 2);
	assert_int_equal(m.n_examples, 2);
	assert_true(strcmp(m.examples[0], "sub/new") == 0 || strcmp(m.examples[1], "sub/new") == 0);
	assert_false(m.is_cut);
}

static void a_missing_directory_has_no_files(void **state)
{
	AUTO_MOVED struct moved m = {0};

	moved_find("/does/not/exist", 0, &m);
	assert_int_equal(m.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_later_files_are_found_and_no_link_is_followed),
		cmocka_unit_test(a_missing_directory_has_no_files),
	};
	AUTO_FREE char *command = NULL;
	int r;

	if (!mkdtemp(dir))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	command = xasprintf("rm -rf %s", dir);
	return system(command) == 0 ? r : 1;
}
