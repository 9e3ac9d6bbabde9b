/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/mem.h"
#include "src/sbx/clone/refs.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static int parse(const char *text, struct refs *r)
{
	struct err err = {0};

	return refs_parse(slice_from_str(text), 40, r, &err);
}

static void test_heads_tags_and_head_are_kept_in_order(void **state)
{
	AUTO_REFS struct refs r = {0};

	assert_int_equal(parse("ref: refs/heads/main\tHEAD\n" A "\tHEAD\n" B "\trefs/tags/v1\n" A
			       "\trefs/tags/v1^{}\n" A "\trefs/heads/main\n" A "\trefs/notes/x\n",
				 &r),
		0);
	assert_int_equal(r.n, 3);
	assert_string_equal(r.head, "refs/heads/main");
	assert_string_equal(r.v[0].name, "HEAD");
	assert_string_equal(r.v[1].name, "refs/heads/main");
	assert_string_equal(r.v[2].name, "refs/tags/v1");
	assert_string_equal(r.v[2].oid, B);
}

static void test_an_empty_clone_has_no_refs(void **state)
{
	AUTO_REFS struct refs r = {0};

	assert_int_equal(parse("", &r), 0);
	assert_int_equal(r.n, 0);
	assert_null(r.head);
}

static void test_names_that_git_or_a_terminal_would_misread_are_refused(void **state)
{
	static const char *const bad[] = {"refs/heads/", "refs/heads/a..b", "refs/heads/-x",
		"refs/heads/a/-x", "refs/heads/x.lock", "refs/heads/x.lock/y", "refs/heads/.x",
		"refs/heads/a/.b", "refs/heads/a//b", "refs/heads/a/", "refs/heads/a.",
		"refs/heads/a b", "refs/heads/a~1", "refs/heads/a^", "refs/heads/a:b",
		"refs/heads/a?", "refs/heads/a*", "refs/heads/a[", "refs/heads/a\\b",
		"refs/heads/a@{1}", "refs/heads/@", "refs/heads/HEAD", "refs/heads/a\033[31m",
		"refs/heads/a\x7f", "refs/heads/a\x01", "refs/heads/a\xe2\x80\xae",
		"refs/heads/\xff", "refs/tags/../heads/x", "refs/tags/-d"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_FREE char *text = xasprintf(A "\t%s\n", bad[i]);
		AUTO_REFS struct refs r = {0};

		assert_false(refs_is_name(bad[i]));
		assert_int_equal(parse(text, &r), -EBADMSG);
		assert_int_equal(r.n, 0);
	}
	assert_true(refs_is_name("refs/heads/fix/issue-16"));
	assert_true(refs_is_name("refs/heads/\xc3\xa9t\xc3\xa9"));
	assert_false(refs_is_name("refs/remotes/x/y"));
	assert_false(refs_is_name("main"));
}

static void test_lines_that_are_no_refs_are_refused(void **state)
{
	static const char *const bad[] = {"x\n", A "\n", A " refs/heads/a\n",
		"AAAA\trefs/heads/a\n", A A "\trefs/heads/a\n",
		"ref: refs/heads/a\tHEAD\nref: refs/heads/b\tHEAD\n", "ref: ../x\tHEAD\n",
		A "\trefs/heads/a\n" B "\trefs/heads/a\n", "\n"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_REFS struct refs r = {0};

		assert_int_equal(parse(bad[i], &r), -EBADMSG);
	}
}

static void test_the_number_of_refs_is_limited(void **state)
{
	AUTO_REFS struct refs r = {0};
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	for (int i = 0; i <= REFS_MAX; i++)
		fprintf(f, A "\trefs/heads/b%d\n", i);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(parse(text, &r), -E2BIG);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heads_tags_and_head_are_kept_in_order),
		cmocka_unit_test(test_an_empty_clone_has_no_refs),
		cmocka_unit_test(test_names_that_git_or_a_terminal_would_misread_are_refused),
		cmocka_unit_test(test_lines_that_are_no_refs_are_refused),
		cmocka_unit_test(test_the_number_of_refs_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
