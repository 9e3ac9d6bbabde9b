/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/audit/audit_view.h"

static void add(struct audit_view *v, const char *host, enum audit_verdict decision, uint64_t time)
{
	struct audit_record rec = {.time_ms = time,
		.sandbox = slice_from_str("0123456789ab"),
		.name = slice_from_str("demo"),
		.ev = {.kind = AUDIT_KIND_DECISION,
			.decision = decision,
			.type = slice_from_str("https"),
			.host = slice_from_str(host),
			.port = 443,
			.path = slice_from_str("forward"),
			.rule = slice_from_str(decision == AUDIT_ALLOW ? "r1" : ""),
			.reason = slice_from_str(decision == AUDIT_ALLOW ? "" : "no rule")}};

	assert_int_equal(audit_view_on_record(v, &rec, (struct slice){0}), 0);
}

struct seen {
	size_t n;
	struct audit_view_row row[8];
};

static int see(void *arg, const struct audit_view_row *row)
{
	struct seen *s = arg;

	if (s->n < ARRAY_LEN(s->row))
		s->row[s->n] = *row;
	s->n++;
	return 0;
}

static void equal_decisions_are_one_row_last_seen_first(void **state)
{
	struct audit_view *v = audit_view_new(100);
	struct seen s = {0};

	add(v, "a.example", AUDIT_ALLOW, 1000);
	add(v, "b.example", AUDIT_DENY, 2000);
	add(v, "a.example", AUDIT_DENY, 3000);
	add(v, "a.example", AUDIT_ALLOW, 4000);
	add(v, "a.example", AUDIT_ALLOW, 5000);
	assert_int_equal(audit_view_each(v, 0, see, &s), 0);
	assert_int_equal(s.n, 3);
	assert_true(slice_eq_str(s.row[0].text[AUDIT_VIEW_HOST], "a.example"));
	assert_int_equal(s.row[0].decision, AUDIT_ALLOW);
	assert_int_equal(s.row[0].count, 3);
	assert_int_equal(s.row[0].last_seen_ms, 5000);
	assert_int_equal(s.row[0].first_seen_ms, 1000);
	assert_int_equal(s.row[1].decision, AUDIT_DENY);
	assert_int_equal(s.row[1].count, 1);
	assert_true(slice_eq_str(s.row[2].text[AUDIT_VIEW_HOST], "b.example"));
	s.n = 0;
	assert_int_equal(audit_view_each(v, 2, see, &s), 0);
	assert_int_equal(s.n, 2);
	audit_view_free(v);
}

static void other_records_are_no_decisions_and_counts_add_up(void **state)
{
	struct audit_view *v = audit_view_new(100);
	struct audit_record rec = {.sandbox = slice_from_str("ab"),
		.ev = {.kind = AUDIT_KIND_LIFECYCLE, .action = slice_from_str("start")}};
	struct seen s = {0};

	assert_int_equal(audit_view_on_record(v, &rec, (struct slice){0}), 0);
	rec.ev = (struct audit_event){
		.kind = AUDIT_KIND_DECISION, .decision = AUDIT_DENY, .count = 40};
	assert_int_equal(audit_view_on_record(v, &rec, (struct slice){0}), 0);
	rec.ev.count = 2;
	assert_int_equal(audit_view_on_record(v, &rec, (struct slice){0}), 0);
	assert_int_equal(audit_view_each(v, 0, see, &s), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.row[0].count, 42);
	assert_true(slice_eq_str(s.row[0].text[AUDIT_VIEW_SANDBOX], "ab"));
	audit_view_free(v);
}

/* 100,000 random names must not make the view of a guest's doings grow. */
static void a_full_table_forgets_the_oldest(void **state)
{
	struct audit_view *v = audit_view_new(50);
	struct seen s = {0};
	char host[32];

	for (int i = 0; i < 100000; i++) {
		(void)snprintf(host, sizeof(host), "h%d.example", i);
		add(v, host, AUDIT_DENY, 1000 + (uint64_t)i);
		add(v, "often.example", AUDIT_DENY, 1000 + (uint64_t)i);
	}
	assert_int_equal(audit_view_dropped(v), 100000 - 49);
	assert_int_equal(audit_view_each(v, 0, see, &s), 0);
	assert_int_equal(s.n, 50);
	assert_int_equal(s.row[0].count, 100000);
	assert_true(slice_eq_str(s.row[1].text[AUDIT_VIEW_HOST], "h99999.example"));
	audit_view_free(v);
}

static int stop(void *arg, const struct audit_view_row *row)
{
	return -ECANCELED;
}

static void the_callback_may_end_it(void **state)
{
	struct audit_view *v = audit_view_new(0);

	add(v, "a.example", AUDIT_ALLOW, 1);
	assert_int_equal(audit_view_each(v, 0, stop, NULL), -ECANCELED);
	audit_view_free(v);
	audit_view_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_decisions_are_one_row_last_seen_first),
		cmocka_unit_test(other_records_are_no_decisions_and_counts_add_up),
		cmocka_unit_test(a_full_table_forgets_the_oldest),
		cmocka_unit_test(the_callback_may_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
