/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/top/branch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/client/api/api.h"

static char root[] = "/tmp/sbx-branch.XXXXXX", git[64], head[64], other[64];

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_return_code(close(fd), 0);
}

static void check_branch(const char *want)
{
	AUTO_JSON json_t *s = json_pack("{s:[{s:s}]}", "workspaces", "host", root);
	char got[BRANCH_MAX] = "before";

	branch_of(s, got);
	assert_string_equal(got, want);
}

static void a_head_gives_its_branch(void **state)
{
	static const char *const none[] = {"", "ref: refs/heads/", "ref: refs/tags/v1\n",
		"0123456789012345678901234567890123456789\n", "ref: refs/heads/a\x1b[2Jb\n"};
	AUTO_FREE char *text = xasprintf("ref: refs/heads/%0*d\n", BRANCH_MAX, 7);

	write_text(head, "ref: refs/heads/fix/gr\xc3\xb6\xc3\x9f"
			 "e\n");
	check_branch("fix/gr\xc3\xb6\xc3\x9f"
		     "e");
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		write_text(head, none[i]);
		check_branch("");
	}
	write_text(head, text);
	check_branch("");
}

static void links_fifos_and_files_are_not_followed(void **state)
{
	char moved[80];

	write_text(other, "ref: refs/heads/secret\n");
	assert_return_code(unlink(head), 0);
	check_branch("");
	assert_return_code(symlink(other, head), 0);
	check_branch("");
	assert_return_code(unlink(head), 0);
	assert_return_code(mkfifo(head, 0600), 0);
	check_branch(""); /* and does not wait for a writer */
	assert_return_code(unlink(head), 0);
	write_text(head, "ref: refs/heads/main\n");
	(void)snprintf(moved, sizeof(moved), "%s.moved", git);
	assert_return_code(rename(git, moved), 0);
	assert_return_code(symlink(moved, git), 0);
	check_branch("");
	assert_return_code(unlink(git), 0);
	assert_return_code(rename(moved, git), 0);
	check_branch("main");
}

static void a_clone_names_its_branch(void **state)
{
	AUTO_JSON json_t *clone = json_pack("{s:{s:s}}", "clone", "branch", "topic"),
			 *none = json_object();
	char got[BRANCH_MAX];

	branch_of(clone, got);
	assert_string_equal(got, "topic");
	branch_of(none, got);
	assert_string_equal(got, "");
}

static int set_up(void **state)
{
	assert_non_null(mkdtemp(root));
	(void)snprintf(git, sizeof(git), "%s/.git", root);
	(void)snprintf(head, sizeof(head), "%s/.git/HEAD", root);
	(void)snprintf(other, sizeof(other), "%s/other", root);
	return mkdir(git, 0700);
}

static int clear_up(void **state)
{
	return unlink(head) || unlink(other) || rmdir(git) || rmdir(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_gives_its_branch),
		cmocka_unit_test(links_fifos_and_files_are_not_followed),
		cmocka_unit_test(a_clone_names_its_branch),
	};

	return cmocka_run_group_tests(tests, set_up, clear_up);
}
