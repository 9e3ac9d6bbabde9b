/* SPDX-License-Identifier: Apache-2.0 */
/* Values read from the host's git configuration, with a home of the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/sbx/sandbox/git_identity.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"

static char home[64];

static void sh(const char *what)
{
	AUTO_FREE char *line = xasprintf("cd %s && %s", home, what);

	assert_int_equal(system(line), 0);
}

static int up(void **state)
{
	(void)snprintf(home, sizeof(home), "/tmp/git_identity_test.XXXXXX");
	assert_non_null(mkdtemp(home));
	assert_int_equal(setenv("HOME", home, 1), 0);
	assert_int_equal(setenv("XDG_CONFIG_HOME", home, 1), 0);
	assert_int_equal(unsetenv("GIT_CONFIG_GLOBAL"), 0);
	sh("mkdir sbx");
	return 0;
}

static int down(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", home);

	return system(rm);
}

static void a_file_has_the_two_values_and_nothing_else(void **state)
{
	struct git_identity g = {.name = (char *)"Ada \"A\" L\\", .email = (char *)"a@b.example"};
	AUTO_FREE char *text = git_identity_file(&g);

	assert_string_equal(
		text, "[user]\n\tname = \"Ada \\\"A\\\" L\\\\\"\n\temail = \"a@b.example\"\n");
}

static void odd_values_are_not_taken(void **state)
{
	static const char *const odd[] = {"", "a\nb", "a\x1b[2J", "a\x7f", "<a>", NULL};
	char longer[GIT_MAX_VALUE + 2];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		struct git_identity g = {.name = (char *)odd[i], .email = (char *)"a@b"};

		assert_null(git_identity_file(&g));
		g = (struct git_identity){.name = (char *)"a", .email = (char *)odd[i]};
		assert_null(git_identity_file(&g));
	}
	assert_null(
		git_identity_file(&(struct git_identity){.name = longer, .email = (char *)"a"}));
	assert_null(git_identity_file(
		&(struct git_identity){.name = (char *)"a", .email = (char *)"a b"}));
}

/* Neither a repository nor an alias of the current directory is used. */
static void the_host_s_own_identity_is_read(void **state)
{
	AUTO_GIT_IDENTITY struct git_identity g = {0};

	sh("printf '[user]\\n name = Ada\\n email = ada@host.example\\n' >.gitconfig");
	sh("printf 'git.identity = yes\\n' >sbx/settings.conf");
	sh("git init -q repo && cd repo && git config user.name Mallory && "
	   "git config core.fsmonitor 'touch /tmp/never'");
	assert_int_equal(chdir(home), 0);
	assert_int_equal(chdir("repo"), 0);
	git_identity_get(&g);
	assert_string_equal(g.name, "Ada");
	assert_string_equal(g.email, "ada@host.example");
}

static void without_a_yes_nothing_is_read(void **state)
{
	static const char *const settings[] = {"no", "ask"}; /* and there is no terminal here */

	sh("printf '[user]\\n name = Ada\\n email = ada@host.example\\n' >.gitconfig");
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		AUTO_GIT_IDENTITY struct git_identity g = {0};
		AUTO_FREE char *say =
			xasprintf("echo git.identity = %s >sbx/settings.conf", settings[i]);

		sh(say);
		git_identity_get(&g);
		assert_null(g.name);
		assert_null(g.email);
	}
}

static void half_an_identity_is_none(void **state)
{
	AUTO_GIT_IDENTITY struct git_identity g = {0};

	sh("printf '[user]\\n name = Ada\\n' >.gitconfig");
	sh("printf 'git.identity = yes\\n' >sbx/settings.conf");
	git_identity_get(&g);
	assert_null(g.name);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)
	const struct CMUnitTest tests[] = {
		TEST(a_file_has_the_two_values_and_nothing_else),
		TEST(odd_values_are_not_taken),
		TEST(the_host_s_own_identity_is_read),
		TEST(without_a_yes_nothing_is_read),
		TEST(half_an_identity_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
