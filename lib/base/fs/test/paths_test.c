/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/fs/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static const char *const variables[] = {"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME",
	"XDG_CONFIG_HOME", "SBX_LIBEXEC", "SBX_SHARE"};

static void set_all(const char *value)
{
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		if (value)
			assert_int_equal(setenv(variables[i], value, 1), 0);
		else
			assert_int_equal(unsetenv(variables[i]), 0);
	}
}

static void expect_root(enum paths_root root, const char *want)
{
	AUTO_FREE char *got = paths_get(root, NULL);

	assert_string_equal(got, want);
}

static void variables_decide(void **state)
{
	AUTO_FREE char *sock = NULL;

	set_all("/t");
	expect_root(PATHS_RUNTIME, "/t/sbx");
	expect_root(PATHS_STATE, "/t/sbx");
	expect_root(PATHS_DATA, "/t/sbx");
	expect_root(PATHS_CONFIG, "/t/sbx");
	expect_root(PATHS_LIBEXEC, "/t");
	expect_root(PATHS_SHARE, "/t");
	sock = paths_get(PATHS_RUNTIME, "s/%s/keeper.sock", "0123456789ab");
	assert_string_equal(sock, "/t/sbx/s/0123456789ab/keeper.sock");
}

static void home_is_the_fallback(void **state)
{
	set_all(NULL);
	assert_int_equal(setenv("HOME", "/home/u", 1), 0);
	expect_root(PATHS_RUNTIME, "/home/u/.local/state/sbx/run");
	expect_root(PATHS_STATE, "/home/u/.local/state/sbx");
	expect_root(PATHS_DATA, "/home/u/.local/share/sbx");
	expect_root(PATHS_CONFIG, "/home/u/.config/sbx");
	expect_root(PATHS_LIBEXEC, SBX_LIBEXECDIR);
	expect_root(PATHS_SHARE, SBX_SHAREDIR);
}

/* A relative value would depend on the folder each program happens to stand in. */
static void relative_variables_do_not_count(void **state)
{
	set_all("t");
	assert_int_equal(setenv("HOME", "/home/u", 1), 0);
	expect_root(PATHS_STATE, "/home/u/.local/state/sbx");
	expect_root(PATHS_LIBEXEC, SBX_LIBEXECDIR);
	set_all("");
	expect_root(PATHS_STATE, "/home/u/.local/state/sbx");
}

struct scratch {
	char dir[64];
};

static int make_scratch(void **state)
{
	static struct scratch s;

	(void)snprintf(s.dir, sizeof(s.dir), "/tmp/paths_test.XXXXXX");
	*state = &s;
	return mkdtemp(s.dir) ? 0 : -1;
}

static int remove_scratch(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *command = xasprintf("rm -rf '%s'", s->dir);

	return system(command);
}

static void folders_are_made_private(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *deep = xasprintf("%s/a//b/c/", s->dir);
	struct err err = {0};
	struct stat st;

	(void)umask(0);
	assert_int_equal(paths_make(deep, &err), 0);
	assert_int_equal(stat(deep, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(paths_make(deep, &err), 0);
	assert_int_equal(paths_make("/", &err), 0);
}

/* mkdir says "exists" of a file, too; that was once taken for success. */
static void a_file_in_the_way_is_an_error(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *file = xasprintf("%s/file", s->dir);
	AUTO_FREE char *below = xasprintf("%s/file/x", s->dir);
	AUTO_CLOSE int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	struct err err = {0};

	assert_true(fd >= 0);
	assert_int_equal(paths_make(file, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, file));
	assert_int_equal(paths_make(below, &err), -ENOTDIR);
}

static void a_link_to_a_folder_is_a_folder(void **state)
{
	struct scratch *s = *state;
	AUTO_FREE char *at = xasprintf("%s/link", s->dir);
	AUTO_FREE char *below = xasprintf("%s/link/made", s->dir);

	assert_int_equal(symlink(s->dir, at), 0);
	assert_int_equal(paths_make(at, NULL), 0);
	assert_int_equal(paths_make(below, NULL), 0);
}

static void too_long_is_refused(void **state)
{
	static char path[PATHS_MAX + 1];
	struct err err = {0};

	memset(path, '/', PATHS_MAX);
	assert_int_equal(paths_make(path, &err), -ENAMETOOLONG);
	assert_int_equal(paths_make("", &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_decide),
		cmocka_unit_test(home_is_the_fallback),
		cmocka_unit_test(relative_variables_do_not_count),
		cmocka_unit_test_setup_teardown(
			folders_are_made_private, make_scratch, remove_scratch),
		cmocka_unit_test_setup_teardown(
			a_file_in_the_way_is_an_error, make_scratch, remove_scratch),
		cmocka_unit_test_setup_teardown(
			a_link_to_a_folder_is_a_folder, make_scratch, remove_scratch),
		cmocka_unit_test(too_long_is_refused),
	};

	return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
