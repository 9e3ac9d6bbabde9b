/* SPDX-License-Identifier: Apache-2.0 */
/* Documents, their operations, root fields and arguments. */
#include "lib/wire/graphql/graphql.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static struct arena arena;
static struct graphql doc;
static struct graphql_root roots[GRAPHQL_MAX_ROOTS];
static size_t n_roots;

static int parse(const char *text)
{
	const char *why = NULL;
	int r;

	arena_reset(&arena);
	r = graphql_parse(slice_from_str(text), &arena, &doc, &why);
	assert_true(r == 0 || why);
	return r;
}

static int list(const char *text)
{
	const char *why = NULL;

	n_roots = 0;
	if (parse(text) < 0)
		fail_msg("not parsed: %s", text);
	for (size_t i = 0; i < doc.n_ops; i++)
		if (graphql_list_roots(&doc, &doc.op[i], roots, &n_roots, &why) < 0) {
			assert_non_null(why);
			return -1;
		}
	return 0;
}

static void has_roots(const char *text, const char *names)
{
	char found[1024] = "";

	if (list(text) < 0)
		fail_msg("no roots: %s", text);
	for (size_t i = 0; i < n_roots; i++)
		(void)snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%.*s",
			i ? " " : "", (int)roots[i].name.n, roots[i].name.p);
	assert_string_equal(found, names);
}

static void has_no_roots(const char *text)
{
	if (list(text) == 0)
		fail_msg("has roots: %s", text);
}

static void is_value(const char *text, const char *path, const char *vars, const char *value)
{
	uint8_t buf[64];
	struct slice found;
	enum graphql_fact fact;

	assert_int_equal(list(text), 0);
	fact = graphql_find_value(&doc, &roots[0], slice_from_str(path), slice_from_str(vars), buf,
		sizeof(buf), &found);
	if (!value)
		assert_int_equal(fact, GRAPHQL_ABSENT);
	else if (strcmp(value, "?") == 0)
		assert_int_equal(fact, GRAPHQL_UNKNOWN);
	else if (fact != GRAPHQL_KNOWN || !slice_eq_str(found, value))
		fail_msg("%s of %s: %d '%.*s'", path, text, (int)fact, (int)found.n, found.p);
}

static void invalid_documents_are_errors(void **state)
{
	static const char *const texts[] = {"", " ", "#", "{", "}", "{}", "{a", "{a}}", "{a()}",
		"{a(x:)}", "{a(x:1,x:2)}", "{a(x:{y:1,y:2})}", "{a(x:1.)}", "{a(x:01)}", "{a(x:-)}",
		"{a(x:1a)}", "{a(x:.5)}", "{a(x:1.5.6)}", "{a(x:1e)}", "{a(x:\"b)}",
		"{a(x:\"b\n\")}", "{a(x:\"\\q\")}", "{a(x:\"\\u12\")}", "{a(x:\"\\u{61}\")}",
		"{a(x:\"\"\"b\"\")}", "{a(x:\"\x01\")}", "{a #\x07\n}", "{a #\xff\n}",
		"{a #\xe2\x80\xa8 b\n}", "{a #\xc2\x85 b\n}", "\xef\xbb\xbf{a}", "{a(x:[1)}]",
		"{...}", "{...on}", "{...on{a}}", "{..a}", "{a:}", "{a:b:c}", "{a@}", "{a@b()}",
		"query(){a}", "query($a){a}", "query($a:){a}", "query($a:Int=$b){a}",
		"query($a:[Int){a}", "query($a:Int,$a:Int){a}", "query", "query A", "{a}{b}",
		"{a} query B{b}", "query B{b} {a}", "query A{a} query A{b}", "fragment A on B{c}",
		"fragment on on B{c} {a}", "fragment A B{c} {a}",
		"{a} fragment A on B{c} fragment A on B{d}", "type A{b:Int}", "{a} schema{query:Q}",
		"extend type A{b:Int}", "{a & b}", "{a|b}", "Query{a}", "{a(x:$)}", "{a(x:$1)}",
		"{a\xc3\xa9}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (parse(texts[i]) == 0)
			fail_msg("parsed: %s", texts[i]);
}

static void root_fields_are_found(void **state)
{
	has_roots("{a}", "a");
	has_roots("query{a,b c}", "a b c");
	has_roots("mutation M($x:[Int!]! = [1, 2]) {x: a(b: $x) {c d} y: e}", "a e");
	has_roots("{query mutation fragment on null true}", "query mutation fragment on null true");
	has_roots("{...on Q{a} ...{b} ...F c} fragment F on Q{d ...G} fragment G on Q{e}",
		"a b d e c");
	has_roots("{...F ...F} fragment F on Q{a}", "a");
	has_roots("query A{a} mutation B{b}", "a b");
	has_roots("{a @skip(if: true) b @include(if: $x) ...F @skip(if: $y)} fragment F on Q{c}",
		"a b c");
	has_roots("{a(x: \"} b\") # } b\n {c(y: {z: [{w: \"\"\"} b\"\"\"}]}) {d}}}", "a");
	has_roots("# c\xc3\xb6mment\n{a(x:\"\xe2\x82\xac\")}", "a");
}

static void what_may_be_executed_otherwise_is_an_error(void **state)
{
	has_no_roots("{...F}");
	has_no_roots("{...F} fragment F on Q{...F}");
	has_no_roots("{...F} fragment F on Q{a ...G} fragment G on Q{...on Q{...F}}");
	has_no_roots("{a} fragment F on Q{a {...F}}");
	has_no_roots("{a @defer}");
	has_no_roots("{... @stream {a}}");
	has_no_roots("query @live {a}");
	has_no_roots("query($a:Int @x) {a}");
	has_no_roots("{...F} fragment F on Q @x {a}");
	has_roots("{a {b @custom(c: 1)}}", "a");
}

static void one_operation_is_selected(void **state)
{
	const struct graphql_op *op;

	assert_int_equal(parse("query A{a} mutation B{b}"), 0);
	assert_int_equal(graphql_select(&doc, slice_from_str("B"), &op), 0);
	assert_ptr_equal(op, &doc.op[1]);
	assert_true(graphql_select(&doc, slice_from_str("C"), &op) < 0);
	assert_true(graphql_select(&doc, slice_from_str(""), &op) < 0);
	assert_true(graphql_select(&doc, slice_of(NULL, 0), &op) < 0);
	assert_int_equal(parse("query A{a}"), 0);
	assert_int_equal(graphql_select(&doc, slice_of(NULL, 0), &op), 0);
	assert_int_equal(graphql_select(&doc, slice_from_str(""), &op), 0);
	assert_true(graphql_select(&doc, slice_from_str("a"), &op) < 0);
}

static void arguments_have_values(void **state)
{
	is_value("{a(x: 1)}", "/x", "", "1");
	is_value("{a(x: -1.5e3)}", "/x", "", "-1.5e3");
	is_value("{a(x: true)}", "/x", "", "true");
	is_value("{a(x: RED)}", "/x", "", "RED");
	is_value("{a(x: null)}", "/x", "", NULL);
	is_value("{a(x: 1)}", "/y", "", NULL);
	is_value("{a}", "/y", "", NULL);
	is_value("{a(x: \"b\\n\\u00e9\\ud83d\\ude00\\\"\")}", "/x", "",
		"b\n\xc3\xa9\xf0\x9f\x98\x80\"");
	is_value("{a(x: \"\\ud83d\")}", "/x", "", "?");
	is_value("{a(x: \"\\ud83d\\u0041\")}", "/x", "", "?");
	is_value("{a(x: \"\\ude00\")}", "/x", "", "?");
	is_value("{a(x: {y: {z: \"b\"}})}", "/x/y/z", "", "b");
	is_value("{a(x: {y: {z: \"b\"}})}", "/x/z", "", NULL);
	is_value("{a(x: {y: {z: \"b\"}})}", "/x/y", "", "?");
	is_value("{a(x: [1])}", "/x", "", "?");
	is_value("{a(x: [{y: 1}])}", "/x/y", "", "?");
	is_value("{a(x: 1)}", "/x/y", "", "?");
	is_value("{a(x: \"1234567890123456789012345678901234567890123456789012345678901234\")}",
		"/x", "", "1234567890123456789012345678901234567890123456789012345678901234");
	is_value("{a(x: \"12345678901234567890123456789012345678901234567890123456789012345\")}",
		"/x", "", "?");
}

static void block_strings_have_values(void **state)
{
	is_value("{a(x: \"\"\"b\"\"\")}", "/x", "", "b");
	is_value("{a(x: \"\"\"\"\"\")}", "/x", "", "");
	is_value("{a(x: \"\"\"\n    b\n      c\r\n\r    d\\n\n  \n\"\"\")}", "/x", "",
		"b\n  c\n\nd\\n");
	is_value("{a(x: \"\"\"  b\n   c\\\"\"\"d\"e\n\"\"\")}", "/x", "", "  b\nc\"\"\"d\"e");
	is_value("{a(x: \"\"\"\n\tb\n  c\"\"\")}", "/x", "", "b\n c");
	is_value("{a(x: \"\"\" \n \"\"\")}", "/x", "", "");
}

static void variables_have_values(void **state)
{
	static const char one[] = "query($v: T = {w: 7}) {a(x: $v, y: {z: $v})}";

	is_value(one, "/x/w", "{\"v\": {\"w\": \"b\"}}", "b");
	is_value(one, "/y/z/w", "{\"v\": {\"w\": 8}}", "8");
	is_value(one, "/x/w", "{}", "7");
	is_value(one, "/x/w", "", "7");
	is_value(one, "/x/w", "{\"v\": null}", NULL);
	is_value(one, "/x/w", "{\"v\": {}}", NULL);
	is_value(one, "/x", "{\"v\": {}}", "?");
	is_value(one, "/x/w", "{\"v\": [1]}", "?");
	is_value(one, "/x/w", "{\"v\": 1}", "?");
	is_value(one, "/x/w", "{\"v\": {\"w\": 1}, \"v\": {\"w\": 2}}", "?");
	is_value(one, "/x/w", "{\"v\": {\"w\": 1, \"w\": 2}}", "?");
	is_value(one, "/x/w", "{\"v\": {\"w\": \"\\ud800\"}}", "?");
	is_value(one, "/x/w", "[1]", "?");
	is_value("query($v: Int) {a(x: $v)}", "/x", "{}", NULL);
	is_value("query($v: Int, $u: Int = 2) {a(x: $v)}", "/x", "{}", NULL);
	is_value("query($v: Int) {a(x: $u)}", "/x", "{\"u\": 1}", "?");
	is_value("query($u: Int) {...F} fragment F on Q {a(x: $u)}", "/x", "{\"u\": 1}", "1");
}

static void limits_are_kept(void **state)
{
	AUTO_FREE char *text = xmalloc(GRAPHQL_MAX_TEXT + 64);
	size_t n = 0;

	for (size_t i = 0; i < GRAPHQL_MAX_DEPTH; i++)
		n += (size_t)sprintf(text + n, "{a");
	for (size_t i = 0; i < GRAPHQL_MAX_DEPTH; i++)
		n += (size_t)sprintf(text + n, "}");
	assert_int_equal(parse(text), 0);
	(void)memmove(text + 2, text, n + 1);
	memcpy(text, "{a", 2);
	memcpy(text + n + 2, "}", 2);
	assert_true(parse(text) < 0);
	n = (size_t)sprintf(text, "{");
	for (size_t i = 0; i <= GRAPHQL_MAX_ROOTS; i++)
		n += (size_t)sprintf(text + n, "a%zu ", i);
	(void)sprintf(text + n, "}");
	has_no_roots(text);
	memset(text, ' ', GRAPHQL_MAX_TEXT + 1);
	memcpy(text, "{a}", 3);
	text[GRAPHQL_MAX_TEXT + 1] = '\0';
	assert_true(parse(text) < 0);
	text[GRAPHQL_MAX_TEXT] = '\0';
	assert_int_equal(parse(text), 0);
	n = (size_t)sprintf(text, "{a(");
	for (size_t i = 0; i <= GRAPHQL_MAX_NAMES + 1; i++)
		n += (size_t)sprintf(text + n, "a%zu:1 ", i);
	(void)sprintf(text + n, ")}");
	assert_true(parse(text) < 0);
}

/* 128 fragments that each spread the next one twice are 2^128 paths. */
static void fragments_are_expanded_once(void **state)
{
	AUTO_FREE char *text = xmalloc(GRAPHQL_MAX_TEXT);
	size_t n = (size_t)sprintf(text, "{...F0}");

	for (size_t i = 0; i + 1 < 40; i++)
		n += (size_t)sprintf(
			text + n, "fragment F%zu on Q{...F%zu ...F%zu}", i, i + 1, i + 1);
	(void)sprintf(text + n, "fragment F39 on Q{a}");
	has_roots(text, "a");
}

static int set_up(void **state)
{
	arena_init(&arena, GRAPHQL_ARENA_SIZE(GRAPHQL_MAX_TEXT + 64));
	return 0;
}

static int tear_down(void **state)
{
	arena_done(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(invalid_documents_are_errors),
		cmocka_unit_test(root_fields_are_found),
		cmocka_unit_test(what_may_be_executed_otherwise_is_an_error),
		cmocka_unit_test(one_operation_is_selected),
		cmocka_unit_test(arguments_have_values),
		cmocka_unit_test(block_strings_have_values),
		cmocka_unit_test(variables_have_values),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(fragments_are_expanded_once),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
