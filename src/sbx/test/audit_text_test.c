/* SPDX-License-Identifier: Apache-2.0 */
#include "src/sbx/audit/audit_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/client/cli/when.h"

static struct audit_record decision(const char *host, uint64_t time_ms, uint64_t seq)
{
	return (struct audit_record){.seq = seq,
		.time_ms = time_ms,
		.sandbox = slice_from_str("0123456789ab"),
		.name = slice_from_str("demo"),
		.ev = {.kind = AUDIT_KIND_DECISION,
			.decision = AUDIT_DENY,
			.type = slice_from_str("https"),
			.host = slice_from_str(host),
			.port = 443,
			.path = slice_from_str("transparent"),
			.reason = slice_from_str("no rule\033[2J")}};
}

static void expect_line(const struct audit_record *rec, const char *want)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	audit_text_line(rec, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, want);
	free(text);
}

static void one_line_without_control_bytes(void **state)
{
	struct audit_record rec = decision("evil\n\x9b.example", 1700000000123u, 1);

	expect_line(&rec,
		"2023-11-14T22:13:20.123Z demo deny https evil??.example:443 transparent: "
		"no rule?[2J\n");
	rec.ev.host = slice_from_str("::1");
	rec.ev.rule = slice_from_str("r1");
	rec.ev.reason = (struct slice){0};
	rec.ev.count = 3;
	expect_line(&rec, "2023-11-14T22:13:20.123Z demo deny https [::1]:443 transparent rule r1 "
			  "(3 times)\n");
	rec = (struct audit_record){.seq = 9,
		.time_ms = 1,
		.sandbox = slice_from_str("ab"),
		.ev = {.kind = AUDIT_KIND_HEAD}};
	expect_line(&rec, "1970-01-01T00:00:00.001Z ab head signs the records up to 8\n");
}

static void each_byte_is_a_character_in_json(void **state)
{
	json_t *j = audit_text_json(slice_of("a\0\xff\x80\n", 5));

	assert_int_equal(json_string_length(j), 7);
	assert_memory_equal(json_string_value(j), "a\0\xc3\xbf\xc2\x80\n", 7);
	json_decref(j);
}

static void add(struct audit_tail *t, const char *log, uint64_t time_ms, const char *line)
{
	struct audit_record rec = decision("x", time_ms, 1);

	rec.sandbox = slice_from_str(log);
	audit_tail_add(t, &rec, slice_from_str(line));
}

static void expect_tail(struct audit_tail *t, const char *want)
{
	char got[64] = "";

	audit_tail_sort(t);
	for (size_t i = 0; i < t->n; i++)
		strncat(got, t->v[i].text, t->v[i].n);
	assert_string_equal(got, want);
	audit_tail_done(t);
}

static void the_newest_of_all_logs_are_kept_in_order(void **state)
{
	struct audit_tail t;

	audit_tail_init(&t, 4);
	add(&t, "a", 10, "a");
	add(&t, "a", 30, "b");
	add(&t, "a", 50, "c");
	add(&t, "b", 20, "d");
	add(&t, "b", 40, "e");
	add(&t, "b", 60, "f");
	expect_tail(&t, "becf");
	/* A clock that was set back does not reverse a log. */
	audit_tail_init(&t, 3);
	add(&t, "a", 50, "a");
	add(&t, "a", 20, "b");
	add(&t, "a", 20, "c");
	add(&t, "b", 40, "d");
	expect_tail(&t, "abc");
	audit_tail_init(&t, 0);
	add(&t, "a", 50, "a");
	expect_tail(&t, "");
}

static void many_lines_come_out_sorted(void **state)
{
	struct audit_tail t;
	uint64_t x = 12345;

	audit_tail_init(&t, 500);
	for (unsigned i = 0; i < 5000; i++) {
		char log[16];

		x = x * 6364136223846793005u + 1442695040888963407u;
		(void)snprintf(log, sizeof(log), "l%u", i);
		add(&t, log, 1 + (x >> 40), "z");
	}
	audit_tail_sort(&t);
	assert_int_equal(t.n, 500);
	for (size_t i = 1; i < t.n; i++)
		assert_true(t.v[i - 1].time_ms <= t.v[i].time_ms);
	audit_tail_done(&t);
}

static void moments(void **state)
{
	char text[WHEN_TEXT];

	when_print(0, true, text);
	assert_string_equal(text, "-");
	when_print(UINT64_MAX, false, text);
	assert_string_equal(text, "-");
	when_print(86401000, false, text);
	assert_string_equal(text, "1970-01-02T00:00:01Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_line_without_control_bytes),
		cmocka_unit_test(each_byte_is_a_character_in_json),
		cmocka_unit_test(the_newest_of_all_logs_are_kept_in_order),
		cmocka_unit_test(many_lines_come_out_sorted),
		cmocka_unit_test(moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
