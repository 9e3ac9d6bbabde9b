/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/sandbox/workspace.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

static char dir[PATH_MAX];

static int setup(void **state)
{
	char made[] = "/tmp/sbx-workspace.XXXXXX";

	if (!mkdtemp(made) || !realpath(made, dir) || chdir(dir) < 0)
		return -1;
	return system("mkdir a 'c:d' own own/in && ln -s a l && : > f && mkfifo p") == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	char command[PATH_MAX + 16];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

/* want "HOST GUEST ro/rw [file]" with $ for the test's directory, or "! part of the error". */
static void row(const char *arg, bool force, const char *want)
{
	CLEANUP(workspace_done) struct workspace w = {0};
	struct problem p = {0};
	char got[3 * PATH_MAX], full[3 * PATH_MAX];
	int r = workspace_parse(arg, force, &w, &p);

	if (r < 0) {
		assert_int_equal(want[0], '!');
		assert_non_null(strstr(p.err.text, want + 2));
		return;
	}
	(void)snprintf(got, sizeof(got), "%s %s %s%s", w.host, w.guest, w.ro ? "ro" : "rw",
		w.file ? " file" : "");
	full[0] = '\0';
	for (const char *c = want; *c; c++)
		if (*c == '$')
			strcat(full, dir);
		else
			strncat(full, c, 1);
	assert_string_equal(got, full);
}

static void forms(void **state)
{
	row("a", false, "$/a $/a rw");
	row("./a/", false, "$/a $/a rw");
	row("a:ro", false, "$/a $/a ro");
	row("a:rw", false, "$/a $/a rw");
	row("l", false, "$/a $/a rw");
	row("a:/work", false, "$/a /work rw");
	row("a:/work:ro", false, "$/a /work ro");
	row("c:d", false, "$/c:d $/c:d rw");
	row("c:d:ro", false, "$/c:d $/c:d ro");
	row("c:d:/w", false, "$/c:d /w rw");
	row("f:ro", false, "$/f $/f ro file");
	row("f:/etc/f:ro", false, "$/f /etc/f ro file");
}

/* A guest with a writable workspace can create any name in it: none changes the meaning of an
 * argument. */
static void a_name_that_exists_changes_nothing(void **state)
{
	static const char *const made[] = {"ln -s a 'g:ro'", "mkdir 'g:ro'", "ln -s a 'g:rw'",
		"mkdir 'g:rw'", "mkdir 'g:' && ln -s ../a 'g:/w'", "mkdir -p 'g:/w'",
		"mkdir -p 'g:/w:ro'", "mkdir 'g:' && ln -s ../a 'g:/w:ro'"};

	for (size_t i = 0; i < ARRAY_LEN(made); i++) {
		AUTO_FREE char *command = xasprintf("mkdir g && %s", made[i]);

		assert_int_equal(system(command), 0);
		row("g", false, "$/g $/g rw");
		row("g:ro", false, "$/g $/g ro");
		row("g:rw", false, "$/g $/g rw");
		row("g:/w", false, "$/g /w rw");
		row("g:/w:ro", false, "$/g /w ro");
		assert_int_equal(system("rm -rf g g:*"), 0);
	}
}

static void a_directory_named_like_a_suffix(void **state)
{
	assert_int_equal(system("mkdir 'h:ro' ':ro' && mkdir -p 'h:/w'"), 0);
	row("h:ro", false, "! to share the directory named 'h:ro', use 'h:ro:rw'");
	row("h:ro:rw", false, "$/h:ro $/h:ro rw");
	row("h:ro:ro", false, "$/h:ro $/h:ro ro");
	row("h:ro:/w", false, "$/h:ro /w rw");
	row("h:/w:/in", false, "$/h:/w /in rw");
	row("h:/w:/in:ro", false, "$/h:/w /in ro");
	row(":ro:ro", false, "$/:ro $/:ro ro");
	assert_int_equal(system("rm -rf h:* :ro"), 0);
}

static void mistakes(void **state)
{
	row("none", false, "! cannot find workspace");
	row("a:work", false, "! expected :ro, :rw or :/GUEST/PATH");
	row("a:/../x", false, "! expected an absolute path without . and ..");
	row("a://x", false, "! expected an absolute path without . and ..");
	row("a:/", false, "! expected an absolute path without . and ..");
	row("p:ro", false, "! is not a directory or a regular file");
	row("f", false, "! files can only be shared read-only");
}

static void refusals(void **state)
{
	char home[PATH_MAX + 8];

	(void)snprintf(home, sizeof(home), "%s/own", dir);
	assert_int_equal(setenv("HOME", home, 1), 0);
	row("/", false, "! refusing to share");
	row("/:ro", false, "! refusing to share");
	row("own", false, "! refusing to share");
	row(".", false, "! refusing to share");
	row("own", true, "$/own $/own rw");
	row("/", true, "/ / rw");
	row("own/in", false, "$/own/in $/own/in rw");
}

static void names(void **state)
{
	static const char *const rows[][2] = {{"/a/my_proj", "shell-my-proj"},
		{"/a/x y+z", "shell-x-y-z"}, {"/a/v1.2", "shell-v1.2"}, {"/a/.git.", "shell-.git"},
		{"/", "shell"}, {NULL, "shell"}, {"/a/___", "shell"}};
	char buf[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		workspace_default_name("shell", rows[i][0], buf, sizeof(buf));
		assert_string_equal(buf, rows[i][1]);
	}
	workspace_default_name("shell",
		"/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", buf,
		sizeof(buf));
	assert_int_equal(strlen(buf), 63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(a_name_that_exists_changes_nothing),
		cmocka_unit_test(a_directory_named_like_a_suffix),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(refusals),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
