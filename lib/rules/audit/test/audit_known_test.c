/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_fixture.h"
#include "lib/rules/audit/audit_known.h"

/* As src/sbxd/journal/keep.c writes it. */
static void note(struct audit *a, const char *action, const char *rule, uint64_t seq)
{
	struct audit_event ev = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = slice_from_str(action),
		.rule = slice_from_str(rule),
		.count = seq};

	assert_int_equal(audit_append(a, &ev, NULL, NULL), 0);
}

static void the_last_pruning_of_a_log_counts(void **state)
{
	static const char first[] = "aaa:00112233445566778899aabbccddeeff";
	AUTO_KNOWN struct audit_known k = {0};
	const struct audit_mark *mark;
	struct audit *a;
	struct fixture f;

	fixture_up(&f);
	audit_known_load(f.dir, &k); /* there is no log of sbxd */
	assert_null(audit_known_of(&k, "aaa"));
	a = fixture_open(&f, "sbxd");
	assert_int_equal(sizeof(first) - 1, 4 + 2 * AUDIT_LOG_LEN);
	note(a, "audit-pruned", first, 10);
	note(a, "audit-pruned", first, 25);
	note(a, "audit-prune", first, 90); /* wanted, and perhaps not done */
	note(a, "audit-pruned", "bbb", 90);
	note(a, "audit-pruned", "bbb:0011", 90);
	audit_close(a, NULL);
	audit_known_load(f.dir, &k);
	mark = audit_known_of(&k, "aaa");
	assert_non_null(mark);
	assert_int_equal(mark->seq, 25);
	assert_int_equal(mark->log[1], 0x11);
	assert_null(audit_known_of(&k, "bbb"));
	fixture_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_pruning_of_a_log_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
