/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_fixture.h"
#include "lib/rules/audit/audit_list.h"
#include <sys/stat.h>

static void there_may_be_nothing(void **state)
{
	AUTO_AUDIT_LIST struct audit_list l = {0};
	char name[AUDIT_MAX_NAME + 1];

	assert_int_equal(audit_list("/tmp/audit_test.is.not.there", &l, NULL), 0);
	assert_int_equal(l.n, 0);
	assert_int_equal(audit_last_name("/tmp/audit_test.is.not.there", "a1", name), -ENOENT);
}

static void logs_and_heads_without_a_log_are_listed(void **state)
{
	AUTO_AUDIT_LIST struct audit_list l = {0};
	AUTO_FREE char *odd = NULL, *rm = NULL;
	struct fixture f;

	fixture_up(&f);
	audit_close(fixture_open(&f, "bbb"), NULL);
	audit_close(fixture_open(&f, "aaa"), NULL);
	audit_close(fixture_open(&f, "gone"), NULL);
	rm = xasprintf("rm -r %s/gone", f.dir);
	assert_int_equal(system(rm), 0);
	odd = xasprintf("%s/Odd Name", f.dir);
	assert_int_equal(mkdir(odd, 0700), 0);
	assert_int_equal(audit_list(f.dir, &l, NULL), 0);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.id[0], "aaa");
	assert_string_equal(l.id[1], "bbb");
	assert_string_equal(l.id[2], "gone");
	fixture_down(&f);
}

static void the_last_name_counts(void **state)
{
	char name[AUDIT_MAX_NAME + 1] = "";
	struct audit *a;
	struct fixture f;

	fixture_up(&f);
	f.segment_bytes = 4096;
	a = fixture_open(&f, FIXTURE_ID);
	assert_int_equal(audit_last_name(f.dir, FIXTURE_ID, name), 0);
	assert_string_equal(name, "demo");
	fixture_fill(a, 100);
	assert_int_equal(audit_set_name(a, "renamed"), 0);
	fixture_fill(a, 1);
	assert_int_equal(audit_last_name(f.dir, FIXTURE_ID, name), 0);
	assert_string_equal(name, "renamed");
	audit_close(a, NULL);
	fixture_down(&f);
}

static void soil_at_the_end_is_passed_over(void **state)
{
	char name[AUDIT_MAX_NAME + 1] = "", rubbish[5000];
	struct audit *a;
	struct fixture f;

	fixture_up(&f);
	a = fixture_open(&f, FIXTURE_ID);
	fixture_fill(a, 5);
	audit_close(a, NULL);
	memset(rubbish, 'x', sizeof(rubbish));
	fixture_soil(&f, 1, "{\"seq\":7}\n{\"half", 16);
	assert_int_equal(audit_last_name(f.dir, FIXTURE_ID, name), 0);
	assert_string_equal(name, "demo");
	/* A new segment without a record, and one of nothing but rubbish. */
	fixture_soil(&f, 2, "", 0);
	assert_int_equal(audit_last_name(f.dir, FIXTURE_ID, name), 0);
	for (int i = 0; i < 10; i++)
		fixture_soil(&f, 3, rubbish, sizeof(rubbish));
	assert_int_equal(audit_last_name(f.dir, FIXTURE_ID, name), -ENOENT);
	fixture_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_may_be_nothing),
		cmocka_unit_test(logs_and_heads_without_a_log_are_listed),
		cmocka_unit_test(the_last_name_counts),
		cmocka_unit_test(soil_at_the_end_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
