/* SPDX-License-Identifier: Apache-2.0 */
/* sbx-why, run by the shell of this host on texts as the host sends them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "src/guest/net/why.h"
#include "lib/base/mem.h"

static char root[64];
static char out[8192];

#define A                                                                                      \
	"Blocked by network policy: a.example:443\n  reason:  no rule\n  allow:   sbx policy " \
	"allow network a.example:443     (run on the host)\n"
#define A22 "Blocked by network policy: a.example:22\n  reason:  no rule\n"
#define BA "Blocked by network policy: ba.example:443\n  reason:  no rule\n"
#define V6 "Blocked by network policy: [2001:db8::1]:443\n  reason:  no rule\n"
#define NAME "Blocked by network policy: name.example\n  reason:  no rule\n"

static int up(void **state)
{
	struct err err;

	(void)snprintf(root, sizeof(root), "/tmp/why_test.XXXXXX");
	assert_non_null(mkdtemp(root));
	if (why_install(root, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int down(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", root);

	return system(rm);
}

static int why(const char *args)
{
	AUTO_FREE char *line = xasprintf(
		"SBX_DENIED=%s" WHY_FILE " %s" WHY_BIN "/sbx-why %s 2>&1", root, root, args);
	FILE *f = popen(line, "r");
	size_t n;

	assert_non_null(f);
	n = fread(out, 1, sizeof(out) - 1, f);
	out[n] = '\0';
	return WEXITSTATUS(pclose(f));
}

static void say(const char *text)
{
	assert_int_equal(why_write(root, slice_from_str(text), NULL), 0);
}

static void the_texts_of_a_host_are_printed_and_no_others(void **state)
{
	say(A BA A22 V6 NAME);
	assert_int_equal(why("a.example"), 0);
	assert_string_equal(out, A A22);
	assert_int_equal(why("a.example:22"), 0);
	assert_string_equal(out, A22);
	assert_int_equal(why("https://a.example:22/path"), 0);
	assert_string_equal(out, A22);
	assert_int_equal(why("2001:db8::1"), 0);
	assert_string_equal(out, V6);
	assert_int_equal(why("name.example"), 0);
	assert_string_equal(out, NAME);
	assert_int_equal(why(""), 0);
	assert_string_equal(out, A BA A22 V6 NAME);
}

/* The guard of the workspaces adds its own texts. */
static void a_denied_write_is_no_part_of_a_host(void **state)
{
	static const char write[] = "Blocked by the guard: .envrc\n  reason:  direnv runs it\n";
	AUTO_FREE char *all = xasprintf("%s%s%s", A, write, BA);

	say(all);
	assert_int_equal(why("a.example"), 0);
	assert_string_equal(out, A);
	assert_int_equal(why(""), 0);
	assert_string_equal(out, all);
}

static void one_that_was_not_refused_is_said_to_be_none(void **state)
{
	say(A);
	/* Not a pattern. */
	assert_int_equal(why("'*'"), 1);
	assert_string_equal(out, "error: no refused connection to * is recorded\n"
				 "  try:  sbx policy check network *     (run on the host)\n");
	say("");
	assert_int_equal(why(""), 1);
	assert_string_equal(out, "nothing was refused\n");
	assert_int_equal(why("--help"), 0);
	assert_non_null(strstr(out, "usage: sbx-why [HOST[:PORT]]\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_texts_of_a_host_are_printed_and_no_others, up, down),
		cmocka_unit_test_setup_teardown(a_denied_write_is_no_part_of_a_host, up, down),
		cmocka_unit_test_setup_teardown(
			one_that_was_not_refused_is_said_to_be_none, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
