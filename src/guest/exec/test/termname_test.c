/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/guest/exec/termname.h"
#include "lib/base/mem.h"

static char root[64];

static void sh(const char *what)
{
	AUTO_FREE char *line = xasprintf("cd %s && %s", root, what);

	assert_int_equal(system(line), 0);
}

static int up(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/termname_test.XXXXXX");
	assert_non_null(mkdtemp(root));
	return 0;
}

static int down(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", root);

	return system(rm);
}

static void a_terminal_without_a_description_is_the_usual_one(void **state)
{
	sh("mkdir -p lib/terminfo/x usr/share/terminfo/t && touch lib/terminfo/x/xterm-256color "
	   "lib/terminfo/x/xterm usr/share/terminfo/t/tmux");
	assert_string_equal(termname_for(root, "xterm"), "xterm");
	assert_string_equal(termname_for(root, "tmux"), "tmux");
	assert_string_equal(termname_for(root, "xterm-kitty"), TERMNAME_USUAL);
	assert_string_equal(termname_for(root, "alacritty"), TERMNAME_USUAL);
	assert_string_equal(termname_for(root, NULL), TERMNAME_USUAL);
	assert_string_equal(termname_for(root, ""), TERMNAME_USUAL);
	assert_string_equal(termname_for(root, "../x/xterm"), TERMNAME_USUAL);
}

static void an_image_without_descriptions_keeps_the_name(void **state)
{
	assert_string_equal(termname_for(root, "xterm-kitty"), "xterm-kitty");
	assert_string_equal(termname_for(root, NULL), TERMNAME_USUAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_terminal_without_a_description_is_the_usual_one, up, down),
		cmocka_unit_test_setup_teardown(
			an_image_without_descriptions_keeps_the_name, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
