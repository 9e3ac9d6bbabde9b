/* SPDX-License-Identifier: Apache-2.0 */
/* What a broker keeps: directories, and what links in them lead to. */
#include "lib/os/jail/dirs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

static char dir[] = "/tmp/sbx-dirs-XXXXXX";

static char *at(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static const struct jail_root *find(const struct jail_dirs *d, const char *name)
{
	AUTO_FREE char *path = at(name);

	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->list[i].path, path) == 0)
			return &d->list[i];
	return NULL;
}

static void links_of_a_directory_are_followed_once(void **state)
{
	CLEANUP(jail_dirs_done) struct jail_dirs d = {0};
	AUTO_FREE char *own = at("link-to-own");

	jail_dirs_add_links(&d, own, true);
	/* the directory itself, the directory and the file that its links lead to; what leads
	 * nowhere is left out */
	assert_int_equal(d.n, 3);
	assert_true(find(&d, "own")->rw && find(&d, "away")->rw && find(&d, "file")->rw);
}

/* Names of templates are links to what is below the same directory: one rule is enough for all. */
static void links_into_the_list_take_no_place(void **state)
{
	CLEANUP(jail_dirs_done) struct jail_dirs d = {0};
	AUTO_FREE char *own = at("own"), *away = realpath(dir, NULL);

	jail_dirs_add(&d, TAKE(away), false);
	jail_dirs_add_links(&d, own, false);
	assert_int_equal(d.n, 2); /* the second is the directory itself */
	jail_dirs_add_links(&d, own, true);
	assert_int_equal(d.n, 5); /* to write is more than to read */
	assert_true(find(&d, "away")->rw);
}

static void a_file_stands_for_its_real_directory(void **state)
{
	CLEANUP(jail_dirs_done) struct jail_dirs d = {0};
	AUTO_FREE char *file = at("own/to-file"), *none = at("none");

	jail_dirs_add_of(&d, file);
	jail_dirs_add_of(&d, none);
	jail_dirs_add_links(&d, none, false);
	jail_dirs_add(&d, NULL, false);
	assert_int_equal(d.n, 1);
	assert_string_equal(d.list[0].path, dir);
	assert_false(d.list[0].rw);
}

static void what_is_too_much_stays_closed(void **state)
{
	CLEANUP(jail_dirs_done) struct jail_dirs d = {0};

	for (size_t i = 0; i < JAIL_MAX_DIRS + 3; i++)
		jail_dirs_add(&d, xstrdup("/"), false);
	assert_int_equal(d.n, JAIL_MAX_DIRS);
}

static void point(const char *name, const char *target)
{
	AUTO_FREE char *path = at(name), *to = at(target);

	assert_int_equal(symlink(to, path), 0);
}

static int set_up(void **state)
{
	AUTO_FREE char *own = NULL, *away = NULL, *file = NULL;
	AUTO_CLOSE int fd = -1;

	assert_non_null(mkdtemp(dir));
	own = at("own");
	away = at("away");
	file = at("file");
	assert_int_equal(mkdir(own, 0700) | mkdir(away, 0700), 0);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	point("link-to-own", "own");
	point("own/to-away", "away");
	point("own/to-file", "file");
	point("own/nowhere", "none");
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {
		"own/to-away", "own/to-file", "own/nowhere", "own", "away", "file", "link-to-own"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_FREE char *path = at(names[i]);

		(void)remove(path);
	}
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_of_a_directory_are_followed_once),
		cmocka_unit_test(links_into_the_list_take_no_place),
		cmocka_unit_test(a_file_stands_for_its_real_directory),
		cmocka_unit_test(what_is_too_much_stays_closed),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
