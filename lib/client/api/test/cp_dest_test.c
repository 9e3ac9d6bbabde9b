/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/client/api/cp_dest.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static char *top;

static char *below(const char *path)
{
	return xasprintf("%s%s%s", top, path[0] ? "/" : "", path);
}

static int make_tree(void **state)
{
	char dir[] = "/tmp/sbx-cp-dest.XXXXXX";
	AUTO_FREE char *real = mkdtemp(dir) ? realpath(dir, NULL) : NULL;

	top = xstrdup(real);
	return chdir(top) == 0 &&
			       system("mkdir -p w/sub w/inner out && touch out/file single && ln "
				      "-s w "
				      "short"
				      " && ln -s ../out w/planted && ln -s w/planted there"
				      " && ln -s out/file last && ln -s none dangling && ln -s a b"
				      " && ln -s b a && ln -s $PWD/out whole") == 0
		       ? 0
		       : -1;
}

static int remove_tree(void **state)
{
	AUTO_FREE char *command = xasprintf("rm -rf %s", top);
	int r = chdir("/") == 0 ? system(command) : -1;

	free(top);
	return r;
}

/* `typed` from the directory `cwd`; root NULL: outside, and path is below the top */
static void row(const char *cwd, const char *typed, const char *root, const char *path)
{
	AUTO_FREE char *w = below("w"), *inner = below("w/inner"), *from = below(cwd);
	AUTO_FREE char *single = below("single");
	AUTO_FREE char *want_root = root ? below(root) : NULL;
	AUTO_FREE char *want = root ? xstrdup(path) : below(path);
	const char *roots[] = {inner, w, single};
	struct cp_dest d = {0};
	struct err err = {0};

	assert_int_equal(chdir(from), 0);
	assert_int_equal(cp_dest_find(typed, roots, ARRAY_LEN(roots), &d, &err), 0);
	if (root)
		assert_string_equal(d.root, want_root);
	else
		assert_null(d.root);
	assert_string_equal(d.path, want);
	cp_dest_done(&d);
}

static void in_a_workspace_no_link_is_followed(void **state)
{
	row("", "w/planted", "w", "planted");
	row("", "w/planted/x", "w", "planted/x");
	row("w", "planted/", "w", "planted/");
	row("w", "planted/.", "w", "planted/.");
	row("w/sub", "../planted/x", "w", "planted/x");
	row("", "w", "w", ".");
	row("w", ".", "w", ".");
	/* the outermost workspace decides: a guest of that one replaces what is in it */
	row("", "w/inner/x", "w", "inner/x");
}

static void a_link_outside_can_lead_into_one(void **state)
{
	row("", "short/planted/x", "w", "planted/x");
	row("", "there", "w", "planted");
	row("", "there/x", "w", "planted/x");
	row("", "short", "w", ".");
}

/* The guest can change what is in the file, and not what is beside it. */
static void a_workspace_of_one_file_is_replaced(void **state)
{
	row("", "single", NULL, "single");
	row("w", "../single", NULL, "single");
}

static void outside_links_are_followed(void **state)
{
	row("", "whole", NULL, "out");
	row("", "whole/new", NULL, "out/new");
	row("", "whole/", NULL, "out/");
	row("", "out//./new/.", NULL, "out/new/.");
	row("w", "../out/new", NULL, "out/new");
	/* up from where a link leads, not from where it is */
	row("", "whole/../out", NULL, "out");
	row("w/sub", "../planted/../../out", NULL, "out");
}

static void a_link_in_the_place_of_a_file_stays(void **state)
{
	row("", "last", NULL, "last");
	row("", "dangling", NULL, "dangling");
	row("", "dangling/", NULL, "none/");
}

static void source(const char *typed, const char *root, const char *path)
{
	AUTO_FREE char *w = below("w"), *want = root ? xstrdup(path) : below(path);
	const char *roots[] = {w};
	struct cp_dest d = {0};

	assert_int_equal(chdir(top), 0);
	assert_int_equal(cp_dest_find_source(typed, roots, 1, &d, NULL), 0);
	assert_int_equal(!d.root, !root);
	assert_string_equal(d.path, want);
	cp_dest_done(&d);
}

static void a_link_to_a_file_that_is_read_is_followed_outside(void **state)
{
	struct cp_dest d = {0};

	source("last", NULL, "out/file");
	source("whole/file", NULL, "out/file");
	source("there/file", "w", "planted/file");
	source("w/planted", "w", "planted");
	source("w/planted/../../last", NULL, "out/file");
	/* a descriptor: what its link says is not always a path */
	assert_int_equal(dup2(STDERR_FILENO, 99), 99);
	assert_int_equal(cp_dest_find_source("/dev/fd/99", NULL, 0, &d, NULL), 0);
	assert_int_equal(access(d.path, F_OK), 0);
	assert_non_null(strstr(d.path, "/fd/99"));
	cp_dest_done(&d);
	(void)close(99);
}

static void what_cannot_be_resolved_is_refused(void **state)
{
	char longest[5000];
	struct cp_dest d = {0};
	struct err err = {0};

	assert_int_equal(chdir(top), 0);
	assert_int_equal(cp_dest_find("a/x", NULL, 0, &d, &err), -ELOOP);
	assert_int_equal(cp_dest_find("", NULL, 0, &d, &err), -EINVAL);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(cp_dest_find(longest, NULL, 0, &d, &err), -EINVAL);
	assert_int_equal(cp_dest_find("/", NULL, 0, &d, &err), 0);
	assert_string_equal(d.path, "/");
	cp_dest_done(&d);
}

static void the_whole_host_can_be_a_workspace(void **state)
{
	const char *roots[] = {"/"};
	struct cp_dest d = {0};

	assert_int_equal(cp_dest_find("/etc/x", roots, 1, &d, NULL), 0);
	assert_string_equal(d.root, "/");
	assert_string_equal(d.path, "etc/x");
	cp_dest_done(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_a_workspace_no_link_is_followed),
		cmocka_unit_test(a_link_outside_can_lead_into_one),
		cmocka_unit_test(a_workspace_of_one_file_is_replaced),
		cmocka_unit_test(outside_links_are_followed),
		cmocka_unit_test(a_link_in_the_place_of_a_file_stays),
		cmocka_unit_test(a_link_to_a_file_that_is_read_is_followed_outside),
		cmocka_unit_test(what_cannot_be_resolved_is_refused),
		cmocka_unit_test(the_whole_host_can_be_a_workspace),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
