/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/client/api/policy_api.h"
#include "lib/client/api/policy_file.h"

static void decode(const char *rules, struct rules *ret)
{
	AUTO_FREE char *text = xasprintf("policy 1\n%s\nend\n", rules);

	assert_int_equal(rules_decode(slice_from_str(text), "t", ret, NULL), 0);
}

static void a_difference_is_what_rules_say(void **state)
{
	CLEANUP(policy_diff_done) struct policy_diff d = {0};
	AUTO_RULES struct rules old = {0}, new = {0};

	decode("allow network a.example id aaaa from local\nallow network b.example\n"
	       "deny network c.example",
		&old);
	decode("deny network c.example  # why\nallow network a.example id bbbb\n"
	       "allow network d.example\nallow network d.example",
		&new);
	policy_diff_make(&old, &new, &d);
	assert_int_equal(d.n_added, 3);
	assert_int_equal(d.n_removed, 2);
	assert_string_equal(d.removed[0], "allow network b.example");
	assert_string_equal(d.added[2], "deny network c.example  # why");
}

static void of_many_differences_some_are_shown(void **state)
{
	CLEANUP(policy_diff_done) struct policy_diff d = {0};
	AUTO_RULES struct rules old = {0}, new = {0};
	AUTO_FREE char *text = xstrdup("");

	for (int i = 0; i < 100; i++) {
		char *more = xasprintf("%sallow network h%d.example\n", text, i);

		free(text);
		text = more;
	}
	decode(text, &new);
	policy_diff_make(&old, &new, &d);
	assert_int_equal(d.n_added, 100);
	assert_int_equal(d.n_shown_added, POLICY_DIFF_LINES);
	policy_diff_done(&d);
	policy_diff_make(&new, &new, &d);
	assert_int_equal(d.n_added + d.n_removed, 0);
}

static bool has_wide(const struct policy_diff *d, const char *line)
{
	for (size_t i = 0; i < d->n_wide; i++)
		if (strcmp(d->wide[i], line) == 0)
			return true;
	return false;
}

/* 41 harmless lines hid `allow network localhost:1-65535` behind "and 34 more". */
static void what_is_wide_is_never_hidden(void **state)
{
	static const char *const wide[] = {"**", "*.z.example", "**.z.example", "10.0.0.0/8",
		"192.0.2.1", "[::1]:80", "localhost", "localhost:1-65535", "printer", "x.internal",
		"z.example:22", "z.example:1-65535", "z.example:80-443"};
	static const char *const usual[] = {"z.example", "z.example:80", "z.example:443"};
	CLEANUP(policy_diff_done) struct policy_diff d = {0};
	AUTO_RULES struct rules old = {0}, new = {0};
	AUTO_FREE char *text = xstrdup("");

	for (size_t i = 0; i < 400 + ARRAY_LEN(wide); i++) {
		AUTO_FREE char *was = text;

		text = i < 400 ? xasprintf("%sallow network a%zu.example\n", was, i)
			       : xasprintf("%sallow network b.example,%s for sandbox x\n", was,
					 wide[i - 400]);
	}
	decode("deny network evil.example\ndeny network *.evil.example,b.example\n"
	       "allow network old.example:22",
		&old);
	decode(text, &new);
	policy_diff_make(&old, &new, &d);
	for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
		AUTO_FREE char *line = xasprintf("+ allow network %s for sandbox x", wide[i]);

		if (!has_wide(&d, line))
			fail_msg("%s is not shown", line);
	}
	assert_true(has_wide(&d, "- deny network evil.example"));
	assert_true(has_wide(&d, "- deny network b.example"));
	assert_int_equal(d.n_wide, ARRAY_LEN(wide) + 3);
	for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
		AUTO_FREE char *line = xasprintf("allow network %s", usual[i]);
		AUTO_RULES struct rules one = {0}, none = {0};

		policy_diff_done(&d);
		decode(line, &one);
		policy_diff_make(&none, &one, &d);
		assert_int_equal(d.n_wide, 0);
	}
}

static void a_missing_and_a_broken_policy_say_what_to_type(void **state)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, NULL),
		       *path = paths_get(PATHS_STATE, "policy");
	AUTO_RULES struct rules rules = {0};
	struct problem p = {0};

	assert_int_equal(paths_make(dir, NULL), 0);
	assert_false(policy_is_there());
	assert_int_equal(policy_file_load(&rules, &p), -ENOENT);
	assert_non_null(strstr(p.hint, "set-default"));
	assert_int_equal(
		file_save(path, slice_from_str("policy 1\nallow network *\nend\n"), NULL), 0);
	assert_true(policy_is_there());
	assert_true(policy_file_load(&rules, &p) < 0);
	assert_non_null(strstr(p.err.text, "line 2"));
	assert_int_equal(file_save(path, slice_from_str("policy 1\nend\n"), NULL), 0);
	assert_int_equal(policy_file_load(&rules, &p), 0);
	assert_int_equal(rules.n, 0);
	assert_int_equal(unlink(path), 0);
}

static void words_for_a_shell(void **state)
{
	static const char *const rows[][2] = {{"a.example:443", "a.example:443"},
		{"*.example", "'*.example'"}, {"10.0.0.0/8", "10.0.0.0/8"}, {"", "''"},
		{"[::1]:80", "'[::1]:80'"}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *word = policy_shell_word(rows[i][0]);

		assert_string_equal(word, rows[i][1]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_difference_is_what_rules_say),
		cmocka_unit_test(of_many_differences_some_are_shown),
		cmocka_unit_test(what_is_wide_is_never_hidden),
		cmocka_unit_test(a_missing_and_a_broken_policy_say_what_to_type),
		cmocka_unit_test(words_for_a_shell),
	};
	char dir[] = "/tmp/policy_file_test.XXXXXX";
	AUTO_FREE char *rm = NULL;
	int r;

	if (!mkdtemp(dir) || setenv("XDG_STATE_HOME", dir, 1) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	rm = xasprintf("rm -rf %s", dir);
	return system(rm) == 0 ? r : 1;
}
