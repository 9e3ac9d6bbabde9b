/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"
#include "lib/rules/airlock/autorun.h"

static const char rows[] = "# a comment\n"
			   "\n"
			   "1\tdeny\t.git/hooks/*\tgit\n"
			   "1  allow  .git/hooks/*.sample\n"
			   "2  check  .git/config  git, at each command\n"
			   "5  check  .git/modules/**/config  git\n"
			   "6  deny   .git/modules/**/hooks/*  git\n"
			   "6  allow  .git/modules/**/hooks/*.sample\n"
			   "8  report-new  .git  git\n"
			   "10 deny   HEAD  git\n"
			   "10 allow  .git/HEAD\n"
			   "10 allow  .git/modules/**/HEAD\n"
			   "36 deny   .claude/**  claude\n"
			   "36 check  .claude/settings.local.json  claude\n"
			   "36 allow  .claude/settings.local.json.tmp.*\n"
			   "42 report Makefile  make\n"
			   "42 report *.mk  make\n"
			   "43 report package.json  npm\n"
			   "45 report-tree node_modules/**  node\n"
			   "60 deny *.desktop  the desktop\n"
			   "60 deny [Aa]utorun.inf  the desktop\n";

static struct autorun_list *list_of(const char *text)
{
	struct autorun_list *l = NULL;
	struct err err = {0};

	if (autorun_parse(text, strlen(text), &l, &err) < 0)
		fail_msg("%s", err.text);
	return l;
}

static void assert_mode_at(const struct autorun_list *l, enum guard_level level, const char *path,
	enum autorun_mode want)
{
	struct autorun_match m;
	size_t tree;

	autorun_find(l, path, level, &m, &tree);
	if (m.mode != want)
		fail_msg("%s: mode %d instead of %d", path, (int)m.mode, (int)want);
	assert_int_equal(m.row != NULL, want > AUTORUN_ALLOW);
	assert_int_equal(tree > 0, strstr(path, "node_modules") != NULL);
}

static void assert_mode(const struct autorun_list *l, const char *path, enum autorun_mode want)
{
	assert_mode_at(l, GUARD_DEFAULT, path, want);
}

static void a_pattern_holds_anywhere(void **state)
{
	AUTO_AUTORUN struct autorun_list *l = list_of(rows);

	assert_mode(l, ".git/hooks/pre-commit", AUTORUN_DENY);
	assert_mode(l, "a/b/.git/hooks/pre-commit", AUTORUN_DENY);
	assert_mode(l, ".git/.git/hooks/x", AUTORUN_DENY);
	assert_mode(l, ".git/hooks/x.sample", AUTORUN_ALLOW);
	assert_mode(l, ".git/hooks/.sample", AUTORUN_ALLOW);
	assert_mode(l, ".git/hooks/sub/x", AUTORUN_NONE);
	assert_mode(l, "git/hooks/x", AUTORUN_NONE);
	assert_mode(l, ".git2/hooks/x", AUTORUN_NONE);
	assert_mode(l, ".git", AUTORUN_REPORT_NEW);
	assert_mode(l, ".gitx", AUTORUN_NONE);
	assert_mode(l, "x.git", AUTORUN_NONE);
	assert_mode(l, "a/Makefile", AUTORUN_REPORT);
	assert_mode(l, "Makefile/a", AUTORUN_NONE);
	assert_mode(l, "rules.mk", AUTORUN_REPORT);
	assert_mode(l, "mk", AUTORUN_NONE);
	assert_mode(l, "a/.desktop", AUTORUN_DENY);
	assert_mode(l, "Autorun.inf", AUTORUN_DENY);
	assert_mode(l, "AUTORUN.INF", AUTORUN_NONE);
	assert_mode(l, "", AUTORUN_NONE);
}

static void any_number_of_directories(void **state)
{
	AUTO_AUTORUN struct autorun_list *l = list_of(rows);

	assert_mode(l, ".git/modules/config", AUTORUN_CHECK);
	assert_mode(l, ".git/modules/a/config", AUTORUN_CHECK);
	assert_mode(l, ".git/modules/a/modules/b/c/config", AUTORUN_CHECK);
	assert_mode(l, ".git/modules/a/hooks/x", AUTORUN_DENY);
	assert_mode(l, ".git/modules/a/hooks/x.sample", AUTORUN_ALLOW);
	assert_mode(l, ".git/modules/a/objects/x", AUTORUN_NONE);
	assert_mode(l, ".claude/x", AUTORUN_DENY);
	assert_mode(l, ".claude/x/y/z", AUTORUN_DENY);
	assert_mode(l, ".claude", AUTORUN_NONE);
}

static void later_rows_allow_and_check(void **state)
{
	AUTO_AUTORUN struct autorun_list *l = list_of(rows);
	AUTO_AUTORUN struct autorun_list *back = list_of("1 allow a\n1 deny a x\n");

	assert_mode(l, ".claude/settings.json", AUTORUN_DENY);
	assert_mode(l, ".claude/settings.local.json", AUTORUN_CHECK);
	assert_mode(l, ".claude/settings.local.json.tmp.12.ab", AUTORUN_ALLOW);
	assert_mode(l, ".claude/x/settings.local.json", AUTORUN_DENY);
	assert_mode(l, "HEAD", AUTORUN_DENY);
	assert_mode(l, ".git/HEAD", AUTORUN_ALLOW);
	assert_mode(l, ".git/x/HEAD", AUTORUN_DENY);
	assert_mode(back, "a", AUTORUN_DENY);
}

static void levels_change_what_a_row_means(void **state)
{
	AUTO_AUTORUN struct autorun_list *l = list_of(rows);
	AUTO_AUTORUN struct autorun_list *fixed = list_of("1 fixed a x\n");

	assert_mode_at(l, GUARD_OFF, ".git/config", AUTORUN_NONE);
	assert_mode_at(l, GUARD_REPORT, ".git/config", AUTORUN_REPORT);
	assert_mode_at(l, GUARD_REPORT, "HEAD", AUTORUN_REPORT);
	assert_mode_at(l, GUARD_STRICT, ".git/config", AUTORUN_CHECK);
	assert_mode_at(fixed, GUARD_DEFAULT, "b/a", AUTORUN_FIXED);
	assert_mode_at(fixed, GUARD_STRICT, "a", AUTORUN_FIXED);
	assert_mode_at(fixed, GUARD_REPORT, "a", AUTORUN_REPORT);
	assert_mode_at(l, GUARD_STRICT, "Makefile", AUTORUN_DENY);
	assert_mode_at(l, GUARD_STRICT, "node_modules/a/b", AUTORUN_DENY);
	assert_mode_at(l, GUARD_STRICT, ".git/hooks/x.sample", AUTORUN_ALLOW);
}

static void a_tree_is_one_thing(void **state)
{
	AUTO_AUTORUN struct autorun_list *l = list_of(rows);
	struct autorun_match m;
	size_t tree;

	assert_mode(l, "a/node_modules", AUTORUN_REPORT_TREE);
	assert_mode(l, "a/node_modules/x/package.json", AUTORUN_REPORT_TREE);
	assert_mode(l, "a/node_modules/x/.git/config", AUTORUN_CHECK);
	assert_mode(l, "a/node_modules/x/y.desktop", AUTORUN_DENY);
	autorun_find(l, "a/node_modules/x/node_modules/y", GUARD_DEFAULT, &m, &tree);
	assert_int_equal(tree, strlen("a/node_modules"));
	assert_int_equal(m.row->kind, 45);
}

/* The memo of one path must not change what is said about another. */
static void a_memo_of_a_directory_changes_no_decision(void **state)
{
	static const char *const paths[] = {"", "a", "Makefile", "a/Makefile", "a/b", "a/", "a//b",
		"/a", ".git/config", "abcd/config", ".git/hooks/x", ".git/hooks/x.sample",
		".git/x/config", ".git/modules/a/config", ".claude/x", ".claude/y/z",
		"node_modules/a", "node_modules/x.desktop", "a/node_modules", "a/node_modules/b/c",
		"ab/node_modules"};
	AUTO_AUTORUN struct autorun_list *l = list_of(rows);
	struct autorun_match near, alone;
	size_t near_tree, alone_tree;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		for (size_t k = 0; k < ARRAY_LEN(paths); k++) {
			struct autorun_memo memo = {0};

			autorun_find_near(l, &memo, paths[i], GUARD_DEFAULT, &near, &near_tree);
			autorun_find_near(l, &memo, paths[k], GUARD_DEFAULT, &near, &near_tree);
			autorun_find(l, paths[k], GUARD_DEFAULT, &alone, &alone_tree);
			if (near.mode != alone.mode || near.row != alone.row ||
				near.anchor != alone.anchor || near_tree != alone_tree)
				fail_msg("'%s' after '%s'", paths[k], paths[i]);
		}
}

static void exceptions_are_relative_to_the_workspace(void **state)
{
	AUTO_AUTORUN struct autorun_list *l = list_of(rows);
	struct err err = {0};

	assert_int_equal(autorun_except(l, "vendor/*.desktop", &err), 0);
	assert_int_equal(autorun_except(l, ".claude/commands/**", &err), 0);
	assert_mode(l, "vendor/a.desktop", AUTORUN_ALLOW);
	assert_mode(l, "a/vendor/a.desktop", AUTORUN_DENY);
	assert_mode(l, ".claude/commands/x", AUTORUN_ALLOW);
	assert_mode(l, ".claude/commands/x/y", AUTORUN_ALLOW);
	assert_mode(l, "b/.claude/commands/x", AUTORUN_DENY);
	assert_mode(l, ".claude/agents/x", AUTORUN_DENY);
	assert_int_equal(autorun_except(l, "", &err), -EINVAL);
	assert_int_equal(autorun_except(l, "a/../b", &err), -EINVAL);
	assert_int_equal(autorun_except(l, "a\n", &err), -EINVAL);
}

static void place_of(const struct autorun_list *l, const char *path, struct autorun_place *ret)
{
	autorun_root(l, ret);
	for (const char *p = path; *p; p += *p == '/') {
		size_t n = strcspn(p, "/");

		autorun_enter(l, ret, p, n, ret);
		p += n;
	}
}

static bool are_same(const struct autorun_list *l, const char *a, const char *b)
{
	struct autorun_place x, y;

	place_of(l, a, &x);
	place_of(l, b, &y);
	return autorun_same(l, &x, &y, GUARD_DEFAULT);
}

static void a_place_says_where_a_directory_can_move(void **state)
{
	AUTO_AUTORUN struct autorun_list *l = list_of(rows);

	assert_true(are_same(l, "a", "b/c"));
	assert_true(are_same(l, "a", "node_modules"));
	assert_true(are_same(l, ".git/objects/a", "x"));
	assert_true(are_same(l, "a/.git", "b/.git"));
	assert_true(are_same(l, ".git/modules/a", ".git/modules/b/c"));
	assert_false(are_same(l, "a", ".git"));
	assert_false(are_same(l, "a", ".claude"));
	assert_false(are_same(l, ".git", ".git/hooks"));
	assert_false(are_same(l, "a", ".git/modules/a"));
	assert_false(are_same(l, ".git/modules/a", ".git/modules/hooks"));
	assert_int_equal(autorun_except(l, "vendor/*.desktop", NULL), 0);
	assert_false(are_same(l, "vendor", "b"));
	assert_true(are_same(l, "a/vendor", "b"));
}

static bool is_anchor(const struct autorun_list *l, const char *dir, const char *name)
{
	struct autorun_place at;
	struct autorun_match m;

	place_of(l, dir, &at);
	autorun_match(l, &at, name, strlen(name), GUARD_DEFAULT, &m);
	return m.anchor;
}

static void an_anchor_leads_to_what_is_refused(void **state)
{
	AUTO_AUTORUN struct autorun_list *l = list_of(rows);

	assert_true(is_anchor(l, "a", ".git"));
	assert_true(is_anchor(l, "", ".claude"));
	assert_true(is_anchor(l, ".git", "hooks"));
	assert_true(is_anchor(l, ".git", "modules"));
	assert_true(is_anchor(l, ".git/modules", "x"));
	assert_true(is_anchor(l, ".git/modules/x", "objects"));
	assert_false(is_anchor(l, ".git", "objects"));
	assert_false(is_anchor(l, ".git/hooks", "x"));
	assert_false(is_anchor(l, "", "hooks"));
	assert_false(is_anchor(l, "", "Makefile"));
	assert_false(is_anchor(l, "", "node_modules"));
}

static void bad_lists_are_refused(void **state)
{
	static const char *const bad[] = {"x deny a b", "0 deny a b", "1000 deny a b", "1 no a b",
		"1 deny a", "1 deny", "1 deny a//b p", "1 deny a/ p", "1 deny a/../b p",
		"1 deny a/./b p", "1 deny a** p", "1 deny ** p", "1 deny a\001 p", "1 deny **/ p"};
	struct autorun_list *l = NULL;
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (autorun_parse(bad[i], strlen(bad[i]), &l, &err) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
	assert_int_equal(autorun_parse("1 deny a b\n\0", 12, &l, &err), -EINVAL);
	assert_int_equal(autorun_parse("1 deny a p\n1 deny /", 19, &l, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 2"));
	assert_null(l);
}

static void the_number_of_rows_is_limited(void **state)
{
	AUTO_FREE char *text = xcalloc(AUTORUN_MAX_ROWS + 1, 32);
	AUTO_AUTORUN struct autorun_list *l = NULL;
	char *p = text;

	for (int i = 0; i < AUTORUN_MAX_ROWS; i++)
		p += sprintf(p, "1 deny n%d p\n", i);
	assert_int_equal(autorun_parse(text, strlen(text), &l, NULL), 0);
	assert_mode(l, "a/n767", AUTORUN_DENY);
	autorun_free(&l);
	(void)sprintf(p, "1 deny more p\n");
	assert_int_equal(autorun_parse(text, strlen(text), &l, NULL), -E2BIG);
}

/* The list of the installation: what it must refuse, whatever rows it gets. */
static void the_list_of_the_installation_is_valid(void **state)
{
	AUTO_AUTORUN struct autorun_list *l = NULL;
	struct err err = {0};

	if (autorun_load(&l, &err) < 0)
		fail_msg("%s", err.text);
	assert_mode(l, ".git/hooks/post-checkout", AUTORUN_DENY);
	assert_mode(l, ".git/config", AUTORUN_CHECK);
	assert_mode(l, ".git/worktrees/a/commondir", AUTORUN_FIXED);
	assert_mode(l, ".git/worktrees/a/b/commondir", AUTORUN_NONE);
	assert_mode(l, ".git/config.lock", AUTORUN_NONE);
	assert_mode(l, ".envrc", AUTORUN_DENY);
	assert_mode(l, ".claude/settings.json", AUTORUN_DENY);
	assert_mode(l, ".claude/settings.local.json", AUTORUN_CHECK);
	assert_mode(l, ".mcp.json", AUTORUN_DENY);
	assert_mode(l, "src/main.c", AUTORUN_NONE);
	assert_mode(l, ".git/objects/ab/cd", AUTORUN_NONE);
	assert_mode(l, ".git/index", AUTORUN_NONE);
	assert_non_null(autorun_kind(l, 1));
	assert_null(autorun_kind(l, 999));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_holds_anywhere),
		cmocka_unit_test(any_number_of_directories),
		cmocka_unit_test(later_rows_allow_and_check),
		cmocka_unit_test(levels_change_what_a_row_means),
		cmocka_unit_test(a_tree_is_one_thing),
		cmocka_unit_test(a_memo_of_a_directory_changes_no_decision),
		cmocka_unit_test(exceptions_are_relative_to_the_workspace),
		cmocka_unit_test(a_place_says_where_a_directory_can_move),
		cmocka_unit_test(an_anchor_leads_to_what_is_refused),
		cmocka_unit_test(bad_lists_are_refused),
		cmocka_unit_test(the_number_of_rows_is_limited),
		cmocka_unit_test(the_list_of_the_installation_is_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
