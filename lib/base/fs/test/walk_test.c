/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/fs/walk.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static char *top;
static char seen[4096];

static int make_tree(void **state)
{
	char dir[] = "/tmp/sbx-walk.XXXXXX";

	top = mkdtemp(dir) ? realpath(dir, NULL) : NULL;
	return top && chdir(top) == 0 ? system("mkdir -p a/b c && touch a/b/f && ln -s ../c a/up"
					       " && ln -s a/b b && ln -s b/f f && ln -s l2 l1"
					       " && ln -s l1 l2 && ln -s $PWD/a/b/f c/whole"
					       " && ln -s none dangling")
				      : -1;
}

static int remove_tree(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -rf %s", top);
	int r = chdir("/") == 0 ? system(command) : -1;

	free(top);
	return r;
}

/* Notes what is visited below the top, and follows every link. */
static int visit(
	void *arg, const struct walk *w, const char *next, const char *after, struct err *err)
{
	size_t n = strlen(top), at = strlen(seen);
	struct stat st;

	if (strncmp(next, top, n) == 0 && next[n])
		(void)snprintf(seen + at, sizeof(seen) - at, " %s", next + n + 1);
	return lstat(next, &st) == 0 && S_ISLNK(st.st_mode);
}

static void every_link_on_the_way_is_seen(void **state)
{
	static const char *const rows[][2] = {
		{"a/b/f", " a a/b a/b/f"},
		{"./a//b/../b/f", " a a/b a/b a/b/f"},
		{"b/f", " b a a/b a/b/f"},
		{"f", " f b a a/b a/b/f"},
		{"a/up/whole", " a a/up c c/whole a a/b a/b/f"},
		{"a/up/../b", " a a/up c b a a/b"},
		{"c/", " c"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *real = realpath(rows[i][0], NULL);
		AUTO_WALK struct walk w = {0};
		struct err err = {0};

		seen[0] = '\0';
		assert_int_equal(walk_path(rows[i][0], visit, NULL, &w, &err), 0);
		assert_string_equal(w.at, real);
		assert_string_equal(seen, rows[i][1]);
	}
}

static void the_directory_that_the_shell_names_is_walked(void **state)
{
	AUTO_FREE char *shell = xasprintf("%s/b", top), *stale = xasprintf("%s/c", top);
	const char *const rows[][2] = {{shell, " b a a/b a/b/f"}, {stale, " a a/b a/b/f"},
		{"b", " a a/b a/b/f"}, {"/none", " a a/b a/b/f"}, {"", " a a/b a/b/f"}};
	struct err err = {0};

	assert_int_equal(chdir("b"), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_WALK struct walk w = {0};

		assert_int_equal(setenv("PWD", rows[i][0], 1), 0);
		seen[0] = '\0';
		assert_int_equal(walk_path("f", visit, NULL, &w, &err), 0);
		assert_string_equal(seen, rows[i][1]);
	}
	(void)unsetenv("PWD");
	assert_int_equal(chdir(top), 0);
}

static int refuse_links(
	void *arg, const struct walk *w, const char *next, const char *after, struct err *err)
{
	struct stat st;

	return lstat(next, &st) == 0 && S_ISLNK(st.st_mode) ? err_set(err, -EPERM, "a link") : 0;
}

static void a_walk_ends_when_it_is_told(void **state)
{
	AUTO_WALK struct walk w = {0}, good = {0}, kept = {0};
	struct err err = {0};

	assert_int_equal(walk_path("f", refuse_links, NULL, &w, &err), -EPERM);
	assert_string_equal(err.text, "a link");
	assert_int_equal(walk_path("a/b", refuse_links, NULL, &good, &err), 0);
	seen[0] = '\0';
	assert_int_equal(walk_path("dangling/x", visit, NULL, &kept, &err), 0);
	assert_string_equal(seen, " dangling none none/x");
}

static void what_has_no_end_is_refused(void **state)
{
	char name[PATH_MAX + 2];
	AUTO_WALK struct walk loop = {0}, empty = {0}, large = {0};

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(walk_path("l1", visit, NULL, &loop, NULL), -ELOOP);
	assert_int_equal(walk_path("", visit, NULL, &empty, NULL), -EINVAL);
	assert_int_equal(walk_path(name, visit, NULL, &large, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_link_on_the_way_is_seen),
		cmocka_unit_test(the_directory_that_the_shell_names_is_walked),
		cmocka_unit_test(a_walk_ends_when_it_is_told),
		cmocka_unit_test(what_has_no_end_is_refused),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
