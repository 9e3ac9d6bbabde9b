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
		"allow network a.com:80,443", "deny network *", "ask network a.com",
		"allow network a.com method GET", "allow http a.com method GET", "allow http /v1",
		"allow http a.com/v1?x", "allow http a.com/v1 do GET",
		"allow http [2001:db8::/32]/v1", "allow http a.com/v1 method GET method PUT",
		"allow http a.com/v1 json /a=1", "allow git a.com/b", "ask git a.com/b",
		"allow git a.com do any", "deny git a.com/b.git", "allow api github",
		"allow api api.github.com do any", "allow api github/x do any",
		"allow aws s3 do any", "draft api github do any", "allow http a.com/a,b"};

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

static void rules_about_requests_have_terms(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"allow http API.example.com:8443/v1/** header X-A=b method GET,HEAD",
			"allow http api.example.com:8443/v1/** method GET,HEAD header x-a=b"},
		{"deny http ** method DELETE", "deny http **/** method DELETE"},
		{"ask http [2001:db8::1]/a,*.b.com/c* query x=1",
			"ask http [2001:db8::1]/a,*.b.com/c* query x=1"},
		{"ask git github.com/acme/app id a ref refs/heads/main do push",
			"ask git github.com/acme/app do push ref refs/heads/main id a"},
		{"deny git **", "deny git **/**"},
		{"allow api github do any risk read for sandbox demo",
			"allow api github do any risk read for sandbox demo"},
		{"deny api ** risk credential", "deny api ** risk credential"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_RULE struct rule rule = {0}, again = {0};
		AUTO_FREE char *text = NULL, *same = NULL;

		get(rows[i].in, &rule);
		text = rule_print(&rule, RULE_PRINT_ALL);
		assert_string_equal(text, rows[i].out);
		get(text, &again);
		same = rule_print(&again, RULE_PRINT_ALL);
		assert_string_equal(text, same);
	}
}

static void later_kinds_and_ask_network_say_so(void **state)
{
	struct rule rule = {0};
	struct err err = {0};

	assert_int_equal(
		rule_parse(slice_from_str("allow sql appdb do read"), &rule, &err), -EINVAL);
	assert_string_equal(err.text, "rules of kind 'sql' are not supported yet");
	assert_int_equal(rule_parse(slice_from_str("ask network a.com"), &rule, &err), -EINVAL);
	assert_string_equal(err.text, "ask rules are for http, git and api, not for network");
	assert_int_equal(
		rule_parse(slice_from_str("allow http a.com/x size <=1K"), &rule, &err), -ENOTSUP);
	assert_string_equal(err.text, "the option 'size' is not supported yet");
}

/* A rule that is taken fits a line of the file. */
static void every_rule_fits_a_line(void **state)
{
	AUTO_FREE char *list = xcalloc(1, 40000), *terms = xcalloc(1, 40000);
	struct rule rule = {0};

	for (int i = 0; i < 29; i++) {
		strcat(list, i ? ",a.com/" : "a.com/");
		memset(list + strlen(list), 'x', 400);
		strcat(terms, i ? ",refs/" : "do push ref refs/");
		memset(terms + strlen(terms), 'y', 250);
		snprintf(terms + strlen(terms), 4, "%d", i);
	}
	assert_int_equal(rule_make_terms(RULE_ASK, RULE_GIT, slice_from_str(list),
				 slice_from_str(terms), &rule, NULL),
		-E2BIG);
	list[5000] = '\0';
	assert_int_equal(rule_make_terms(RULE_ASK, RULE_GIT, slice_from_str(list),
				 slice_from_str(terms), &rule, NULL),
		0);
	rule_done(&rule);
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
	assert_true(meet("allow http a.com/v1/** method GET", "deny http *.com/v1/x"));
	assert_false(meet("allow http a.com/v1/**", "deny http *.com/v2/x"));
	assert_false(meet("allow http a.com/v1/**", "deny network a.com"));
	assert_true(meet("allow api github do any", "deny api ** risk money"));
	assert_false(meet("allow api github do any", "deny api gitlab"));
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
		cmocka_unit_test(rules_about_requests_have_terms),
		cmocka_unit_test(later_kinds_and_ask_network_say_so),
		cmocka_unit_test(every_rule_fits_a_line),
		cmocka_unit_test(times_are_strict),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(rules_meet_where_scope_ports_and_hosts_do),
		cmocka_unit_test(scope_and_time_of_a_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
