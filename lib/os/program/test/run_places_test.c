/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/program/run_places.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"

static char dir[] = "/tmp/run_places_test.XXXXXX";

static int setup(void **state)
{
	return mkdtemp(dir) ? setenv("XDG_STATE_HOME", dir, 1) : -1;
}

static int teardown(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", dir);

	return system(rm);
}

static int check(const char *a, const char *b)
{
	struct run_ref_seen seen = {.path = {(char *)a, (char *)b}, .n = 2};

	return run_places_check(&seen, NULL);
}

static bool is_second(void *arg, const char *id)
{
	return strcmp(id, "2") == 0;
}

static void what_a_guest_can_write_is_refused(void **state)
{
	static const char *const first[] = {"/srv/a/work", "/srv/x"};
	static const char *const second[] = {"/opt"};
	AUTO_FREE char *path = paths_get(PATHS_STATE, "writable/1");
	struct stat st;

	assert_int_equal(check("/usr/bin/op", "/"), -ENOENT); /* no list: nothing is executed */
	assert_int_equal(run_places_prepare(NULL), 0);
	assert_int_equal(check("/usr/bin/op", "/opt/x"), 0);
	assert_int_equal(run_places_save("1", first, ARRAY_LEN(first), NULL), 0);
	assert_int_equal(run_places_save("2", second, ARRAY_LEN(second), NULL), 0);
	assert_int_equal(run_places_save("3", NULL, 0, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(check("/usr/bin/op", "/srv/a/worker/x"), 0);
	assert_int_equal(check("/usr/bin/op", "/srv/x/y"), -EPERM);
	assert_int_equal(check("/srv/a/work", "/usr/bin/op"), -EPERM);
	assert_int_equal(check("/usr/bin/op", "/opt/x"), -EPERM);
	run_places_remove("2");
	assert_int_equal(check("/usr/bin/op", "/opt/x"), 0);
	assert_int_equal(run_places_save("2", second, ARRAY_LEN(second), NULL), 0);
	run_places_keep(is_second, NULL);
	assert_int_equal(check("/srv/x", "/usr"), 0);
	assert_int_equal(check("/opt/x", "/usr"), -EPERM);
}

/* sbxd saves every list when it starts, and does not start without one: also not on a full disk. */
static void a_list_that_is_saved_is_not_written_again(void **state)
{
	static const char *const one[] = {"/srv/a"}, *const other[] = {"/srv/b"};
	AUTO_FREE char *path = paths_get(PATHS_STATE, "writable/5");
	struct stat was, is;

	assert_int_equal(run_places_prepare(NULL), 0);
	assert_int_equal(run_places_save("5", one, 1, NULL), 0);
	assert_int_equal(stat(path, &was), 0);
	assert_int_equal(run_places_save("5", one, 1, NULL), 0);
	assert_int_equal(stat(path, &is), 0);
	assert_int_equal(was.st_ino, is.st_ino);
	assert_int_equal(was.st_ctim.tv_nsec, is.st_ctim.tv_nsec);
	assert_int_equal(run_places_save("5", other, 1, NULL), 0);
	assert_int_equal(check("/srv/b/x", "/usr"), -EPERM);
	assert_int_equal(run_places_save("5", NULL, 0, NULL), 0);
	assert_int_equal(check("/srv/b/x", "/usr"), 0);
	run_places_remove("5");
}

/* What cannot be read could say anything. */
static void a_damaged_list_refuses_everything(void **state)
{
	AUTO_FREE char *path = paths_get(PATHS_STATE, "writable/4");

	assert_int_equal(run_places_prepare(NULL), 0);
	assert_int_equal(file_save(path, slice_from_str("/half"), NULL), 0);
	assert_int_equal(check("/usr/bin/op", "/usr"), -EIO);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(check("/usr/bin/op", "/usr") < 0);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_guest_can_write_is_refused),
		cmocka_unit_test(a_list_that_is_saved_is_not_written_again),
		cmocka_unit_test(a_damaged_list_refuses_everything),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
