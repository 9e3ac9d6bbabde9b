/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/rule.h"

static void get(const char *line, struct rule *ret)
{
	struct err err;

	if (rule_parse(slice_from_str(line), ret, &err) < 0)
		fail_msg("%s: %s", line, err.text);
}

static void a_line_holds_everything(void **state)
{
	static const char line[] = "allow network *.example.com:443,10.0.0.0/8 for sandbox demo "
				   "until 2026-12-31T23:59:59Z id 0123456789ab from kit:x "
				   "created 2026-01-02T03:04:05.678Z";
	AUTO_RULE struct rule rule = {0};
	AUTO_FREE char *text = NULL, *plain = NULL;

	get(line, &rule);
	assert_int_equal(rule.effect, RULE_ALLOW);
	assert_int_equal(rule.n_net, 2);
	assert_string_equal(rule.sandbox, "demo");
	assert_string_equal(rule.id, "0123456789ab");
	assert_string_equal(rule.origin, "kit:x");
	assert_int_equal(rule.until_ms, 1798761599000ull);
	assert_int_equal(rule.created_ms % 1000, 678);
	text = rule_print(&rule, RULE_PRINT_ALL);
	assert_string_equal(text, line);
	plain = rule_print(&rule, RULE_PRINT_PLAIN);
	assert_string_equal(plain, "allow network *.example.com:443,10.0.0.0/8 for sandbox demo "
				   "until 2026-12-31T23:59:59Z");
}

static void options_come_in_any_order_and_once(void **state)
{
	AUTO_RULE struct rule rule = {0};
	AUTO_FREE char *text = NULL;
	static const char *const bad[] = {"", "allow", "allow network", "permit network a.com",
		"allow http a.com", "Allow network a.com", "allow network a.com b.com",
		"allow network a.com, b.com", "allow network a.com,", "allow network ,a.com",
		"allow network a.com for demo", "allow network a.com for sandbox",
		"allow network a.com for sandbox a/b", "allow network a.com until tomorrow",
		"allow network a.com until", "allow network a.com id",
		"allow network a.com id a id b",
		"allow network a.com until 2026-12-31T23:59:59Z until 2026-12-31T23:59:59Z",
		"allow network a.com:80,443", "deny network *"};

	get("deny  network\ta.com   id x\tuntil 2030-01-01T00:00:00Z", &rule);
	text = rule_print(&rule, RULE_PRINT_ALL);
	assert_string_equal(text, "deny network a.com until 2030-01-01T00:00:00Z id x");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct rule r = {0};

		if (rule_parse(slice_from_str(bad[i]), &r, NULL) == 0)
			fail_msg("'%s' is taken", bad[i]);
		assert_null(r.net);
	}
}

static void times_are_strict(void **state)
{
	static const char *const bad[] = {"", "2026-12-31", "2026-12-31 23:59:59Z",
		"2026-12-31T23:59:59", "2026-12-31T23:59:59+01:00", "2026-02-30T00:00:00Z",
		"2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:60Z",
		"1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "2026-12-31T23:59:59.1Z",
		"12026-12-31T23:59:59Z", "2026-12-31t23:59:59z", "2026-1-1T00:00:00Z"};
	uint64_t ms;
	char text[32];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (rule_parse_time(slice_from_str(bad[i]), &ms) == 0)
			fail_msg("'%s' is taken", bad[i]);
	assert_int_equal(rule_parse_time(slice_from_str("2024-02-29T12:00:00.001Z"), &ms), 0);
	assert_int_equal(ms, 1709208000001ull);
	rule_print_time(ms, text);
	assert_string_equal(text, "2024-02-29T12:00:00.001Z");
	assert_int_equal(rule_parse_time(slice_from_str("9999-12-31T23:59:59Z"), &ms), 0);
}

static void limits_hold(void **state)
{
	AUTO_FREE char *list = xcalloc(1, 40000);
	struct rule rule = {0};
	struct err err;

	for (int i = 0; i < RULE_MAX_RESOURCES; i++)
		strcat(list, i ? ",a.com" : "a.com");
	assert_int_equal(rule_make(RULE_DENY, RULE_NETWORK, slice_from_str(list), &rule, &err), 0);
	rule_done(&rule);
	strcat(list, ",a.com");
	assert_int_equal(
		rule_make(RULE_DENY, RULE_NETWORK, slice_from_str(list), &rule, &err), -E2BIG);
	list[0] = '\0';
	for (int i = 0; i < 200; i++) /* short as it is typed, long when it is canonical */
		strcat(list, i ? ",\xc3\xbc.\xc3\xbc.\xc3\xbc.\xc3\xbc.\xc3\xbc.\xc3\xbc.\xc3\xbc."
				 "\xc3\xbc.\xc3\xbc.\xc3\xbc.com"
			       : "x.com");
	assert_int_equal(
		rule_make(RULE_DENY, RULE_NETWORK, slice_from_str(list), &rule, &err), -E2BIG);
	assert_null(rule.net);
}

static bool meet(const char *a, const char *b)
{
	AUTO_RULE struct rule x = {0}, y = {0};

	get(a, &x);
	get(b, &y);
	return rule_may_meet(&x, &y);
}

static void rules_meet_where_scope_ports_and_hosts_do(void **state)
{
	assert_true(meet("allow network a.com", "deny network a.com:443"));
	assert_false(meet("allow network a.com", "deny network a.com:22"));
	assert_true(meet("allow network a.com:22", "deny network a.com"));
	assert_true(meet("allow network a.com:1-100", "deny network b.com,*.com:100-200"));
	assert_false(meet("allow network a.com:1-99", "deny network *.com:100-200"));
	assert_true(meet("allow network a.com for sandbox x", "deny network a.com"));
	assert_false(meet("allow network a.com for sandbox x", "deny network a.com for sandbox y"));
	assert_true(meet("allow network a.com:22 for sandbox x", "deny network **"));
}

static void scope_and_time_of_a_rule(void **state)
{
	AUTO_RULE struct rule all = {0}, one = {0};

	get("allow network a.com", &all);
	get("allow network a.com for sandbox x until 2026-01-01T00:00:00Z", &one);
	assert_true(rule_is_for(&all, NULL) && rule_is_for(&all, "x"));
	assert_true(rule_is_for(&one, "x"));
	assert_false(rule_is_for(&one, "xy") || rule_is_for(&one, NULL) || rule_is_for(&one, ""));
	assert_false(rule_is_over(&all, UINT64_MAX));
	assert_false(rule_is_over(&one, one.until_ms - 1));
	assert_true(rule_is_over(&one, one.until_ms));
	assert_true(rule_is_word(slice_from_str("a:b-c_d.e")));
	assert_false(rule_is_word(slice_from_str("a b")));
	assert_false(rule_is_comment(slice_from_str("a\nb")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_holds_everything),
		cmocka_unit_test(options_come_in_any_order_and_once),
		cmocka_unit_test(times_are_strict),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(rules_meet_where_scope_ports_and_hosts_do),
		cmocka_unit_test(scope_and_time_of_a_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
