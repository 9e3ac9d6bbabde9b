/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/host/sub_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/sub_ids.XXXXXX", uids[64], gids[64];

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static uint32_t free_after(const char *uid_text, const char *gid_text)
{
	put(uids, uid_text);
	put(gids, gid_text);
	return sub_ids_free(uids, gids);
}

static void the_free_range_is_after_all_others(void **state)
{
	assert_int_equal(free_after("", ""), 100000);
	assert_int_equal(free_after("a:100000:65536\n", "a:100000:65536\n"), 165536);
	/* in any order, overlapping, and different in the two files */
	assert_int_equal(
		free_after("a:200000:65536\nb:100000:65536\nc:150000:65536\n", ""), 265536);
	assert_int_equal(free_after("a:100000:65536\n", "a:300000:65536\n"), 365536);
	assert_int_equal(free_after("a:100000:1000000\nb:200000:10\n", ""), 1100000);
	assert_int_equal(free_after("1000:165536:65536", ""), 231072);
	assert_int_equal(free_after("a:1000:10\n", ""), 100000);
}

static void no_range_is_beyond_the_last_id(void **state)
{
	assert_int_equal(free_after("a:4294836223:65536\n", ""), 4294901759u);
	assert_int_equal(free_after("a:4294836224:65536\n", ""), 0);
	assert_int_equal(free_after("a:4294967295:4294967295\n", ""), 0);
}

static void other_lines_are_ignored(void **state)
{
	assert_int_equal(free_after("\n\na\na:b:c\na:1:-1\na:900000:\n", ":::\n"), 100000);
	(void)unlink(gids);
	put(uids, "a:100000:65536\n");
	assert_int_equal(sub_ids_free(uids, gids), 165536);
}

static void a_user_has_a_range_by_name_or_uid(void **state)
{
	put(uids, "a:100000:65536\nb:200000:65535\n1007:300000:65536\nlong:400000:131072\n");
	assert_true(sub_ids_has(uids, "a", 1));
	assert_false(sub_ids_has(uids, "b", 1)); /* one too few */
	assert_true(sub_ids_has(uids, "c", 1007));
	assert_false(sub_ids_has(uids, "c", 100));
	assert_true(sub_ids_has(uids, "long", 1));
	assert_false(sub_ids_has("/nonexistent", "a", 1));
}

static int make_dir(void **state)
{
	assert_non_null(mkdtemp(dir));
	(void)snprintf(uids, sizeof(uids), "%s/uid", dir);
	(void)snprintf(gids, sizeof(gids), "%s/gid", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)unlink(uids);
	(void)unlink(gids);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_free_range_is_after_all_others),
		cmocka_unit_test(no_range_is_beyond_the_last_id),
		cmocka_unit_test(other_lines_are_ignored),
		cmocka_unit_test(a_user_has_a_range_by_name_or_uid),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
