/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "src/sbxd/policy/rulebook.h"

#define TEXT "policy 1\nallow network a.example\nend\n"

static char *policy_path(void)
{
	return paths_get(PATHS_STATE, "policy");
}

static void write_policy(const char *text)
{
	AUTO_FREE char *path = policy_path();

	assert_int_equal(file_save(path, slice_from_str(text), NULL), 0);
}

static int set_up(void **state)
{
	AUTO_FREE char *path = policy_path(), *dir = paths_get(PATHS_STATE, NULL);

	(void)unlink(path);
	return paths_make(dir, NULL);
}

static void missing_and_broken_have_no_rules(void **state)
{
	CLEANUP(rulebook_done) struct rulebook b = {0};
	struct err err = {0};

	assert_int_equal(rulebook_need(&b, &err), -ENOENT);
	assert_false(b.exists);
	write_policy("policy 1\nallow network a.example\n");
	assert_int_equal(rulebook_need(&b, &err), -EBADMSG);
	assert_true(b.exists);
	assert_int_equal(b.rules.n, 0);
	assert_non_null(strstr(b.fault.text, "line"));
	write_policy(TEXT);
	assert_int_equal(rulebook_need(&b, &err), 0);
	assert_int_equal(b.rules.n, 1);
}

static void the_file_changes_only_with_the_commit(void **state)
{
	CLEANUP(rulebook_done) struct rulebook b = {0};
	AUTO_FREE char *text = NULL;
	struct err err = {0};
	struct stat st;
	uint64_t revision;
	size_t n;

	write_policy(TEXT);
	rulebook_refresh(&b);
	revision = b.revision;
	assert_int_equal(rulebook_move_scope(&b.rules, NULL, "demo"), 1);
	assert_int_equal(rulebook_prepare(&b, &err), 0);
	assert_int_equal(stat(b.prepared, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(rulebook_text(&text, &n, &err), 0);
	assert_string_equal(text, TEXT);
	rulebook_abandon(&b);
	rulebook_refresh(&b);
	assert_null(b.rules.rule[0].sandbox);
	assert_int_equal(rulebook_move_scope(&b.rules, NULL, "demo"), 1);
	assert_int_equal(rulebook_prepare(&b, &err), 0);
	assert_int_equal(rulebook_commit(&b, &err), 0);
	assert_true(b.revision > revision);
	free(text);
	assert_int_equal(rulebook_text(&text, &n, &err), 0);
	assert_non_null(strstr(text, "for sandbox demo"));
	assert_int_equal(strlen(b.hash), 64);
}

static void what_nobody_changed_is_not_read_again(void **state)
{
	CLEANUP(rulebook_done) struct rulebook b = {0};
	const struct rule *rule;

	write_policy(TEXT);
	rulebook_refresh(&b);
	rule = b.rules.rule;
	rulebook_refresh(&b);
	assert_ptr_equal(b.rules.rule, rule);
	write_policy("policy 1\ndeny network **\nend\n");
	rulebook_refresh(&b);
	assert_int_equal(b.rules.rule[0].effect, RULE_DENY);
}

static void a_refused_import_leaves_what_is_there(void **state)
{
	CLEANUP(rulebook_done) struct rulebook b = {0};
	struct err err = {0};

	write_policy(TEXT);
	rulebook_refresh(&b);
	assert_true(
		rulebook_import(&b, slice_from_str("policy 1\nrubbish\nend\n"), "t", 1, &err) < 0);
	assert_non_null(strstr(err.text, "line 2"));
	rulebook_refresh(&b);
	assert_int_equal(b.rules.n, 1);
	assert_int_equal(rulebook_import(&b, slice_from_str("policy 1\nend\n"), "t", 1, &err), 0);
	assert_int_equal(b.rules.n, 0);
	/* not committed: the file is authoritative */
	rulebook_abandon(&b);
	rulebook_refresh(&b);
	assert_int_equal(b.rules.n, 1);
}

static void presets_come_from_the_share_folder(void **state)
{
	CLEANUP(rulebook_done) struct rulebook b = {0};
	struct err err = {0};

	for (size_t i = 0; i < RULEBOOK_N_PRESETS; i++) {
		if (rulebook_load_preset(&b, rulebook_presets[i], false, 1000, &err) < 0)
			fail_msg("%s", err.text);
		assert_string_equal(rulebook_preset(&b.rules), rulebook_presets[i]);
		assert_int_equal(rulebook_check_ids(&b.rules, &err), 0);
		assert_int_equal(rulebook_prepare(&b, &err), 0);
		assert_int_equal(rulebook_commit(&b, &err), 0);
	}
	assert_int_equal(rulebook_load_preset(&b, "nothing", false, 1000, &err), -EIO);
}

static void files_of_a_crash_are_swept_and_no_others(void **state)
{
	AUTO_FREE char *left = paths_get(PATHS_STATE, "policy.new.abc"),
		       *import = paths_get(PATHS_STATE, "policy.import.abc"),
		       *other = paths_get(PATHS_STATE, "policy.mine");

	write_policy(TEXT);
	assert_int_equal(file_save(left, slice_from_str("x"), NULL), 0);
	assert_int_equal(file_save(import, slice_from_str("x"), NULL), 0);
	assert_int_equal(file_save(other, slice_from_str("x"), NULL), 0);
	rulebook_clean();
	assert_true(access(left, F_OK) < 0 && access(import, F_OK) < 0);
	assert_int_equal(access(other, F_OK), 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(missing_and_broken_have_no_rules, set_up),
		cmocka_unit_test_setup(the_file_changes_only_with_the_commit, set_up),
		cmocka_unit_test_setup(what_nobody_changed_is_not_read_again, set_up),
		cmocka_unit_test_setup(a_refused_import_leaves_what_is_there, set_up),
		cmocka_unit_test_setup(presets_come_from_the_share_folder, set_up),
		cmocka_unit_test_setup(files_of_a_crash_are_swept_and_no_others, set_up),
	};
	char dir[] = "/tmp/rulebook_test.XXXXXX";
	AUTO_FREE char *rm = NULL;
	int r;

	if (argc != 2 || !mkdtemp(dir) || setenv("XDG_STATE_HOME", dir, 1) < 0 ||
		setenv("SBX_SHARE", argv[1], 1) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	rm = xasprintf("rm -rf %s", dir);
	return system(rm) == 0 ? r : 1;
}
