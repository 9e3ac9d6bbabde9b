/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include "src/guest/docker/jedit.h"
#include "lib/base/json/jtext.h"
#include "lib/base/mem.h"

static int check(const char *text)
{
	struct jedit top;

	return jedit_check(slice_from_str(text), &top);
}

static void test_strict(void **state)
{
	static const char *const good[] = {"{}", " {\n} ", "{\"a\":1}", "{\"a\":[]}", "{\"a\":{}}",
		"{\"a\":[1,-2.5e+3,0,true,false,null,\"x\\u0041\\\"\"]}",
		"{\"a\":{\"b\":[{}]},\"c\":[[]]}", "{\"a\":18446744073709551615}",
		"{ \"a\" : [ 1 , 2 ] , \"b\" : { } }"};
	static const char *const bad[] = {"", "[]", "1", "null", "{", "}", "{]", "{\"a\"}",
		"{\"a\":}", "{\"a\":1,}", "{\"a\":[1,]}", "{\"a\":[,1]}", "{\"a\":01}",
		"{\"a\":1.}", "{\"a\":.5}", "{\"a\":+1}", "{\"a\":1e}", "{\"a\":tru}",
		"{\"a\":\"\n\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":\"}",
		"{\"a\":1}}", "{\"a\":1} x", "{a:1}", "{1:1}", "{\"a\":[1}", "{\"a\":{\"b\":1]}",
		"{\"a\" 1}", "{\"a\":1 \"b\":2}", "{,}", "{\"a\":-}", "{\v}", "{\"a\":\"\\"};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (check(good[i]) < 0)
			fail_msg("was refused: %s", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (check(bad[i]) != -EBADMSG)
			fail_msg("was taken: %s", bad[i]);
}

static void test_depth(void **state)
{
	char text[4 * JTEXT_MAX_DEPTH] = "{\"a\":";
	size_t n = strlen(text);

	memset(text + n, '[', JTEXT_MAX_DEPTH - 1);
	memset(text + n + JTEXT_MAX_DEPTH - 1, ']', JTEXT_MAX_DEPTH - 1);
	text[n + 2 * (JTEXT_MAX_DEPTH - 1)] = '}';
	assert_int_equal(check(text), 0);
	memset(text + n, '[', JTEXT_MAX_DEPTH);
	memset(text + n + JTEXT_MAX_DEPTH, ']', JTEXT_MAX_DEPTH);
	text[n + (size_t)2 * JTEXT_MAX_DEPTH] = '}';
	assert_int_equal(check(text), -EBADMSG);
}

static void must_say(struct slice t, struct jedit v, const char *want)
{
	char buf[64];

	assert_int_equal(jedit_string(t, v, buf, sizeof(buf)), 0);
	assert_string_equal(buf, want);
}

static void test_places(void **state)
{
	struct slice t = slice_from_str("{ \"a\" : { \"b\" : [ \"x\" , {\"c\":[]}, 3 ] } ,"
					"\"d\":\"one\",\"d\":\"two\", \"e\":[], \"f\":\"\"}");
	struct jedit top, v, list, item = {0};

	assert_int_equal(jedit_check(t, &top), 0);
	assert_true(jedit_member(t, top, "a", &v));
	assert_true(jedit_member(t, v, "b", &list));
	assert_true(jedit_next(t, list, &item));
	must_say(t, item, "x");
	assert_true(jedit_next(t, list, &item));
	assert_true(jedit_member(t, item, "c", &v));
	assert_true(jedit_is(t, v, '['));
	assert_true(jedit_next(t, list, &item));
	assert_true(slice_eq_str(slice_of(t.p + item.at, item.end - item.at), "3"));
	assert_false(jedit_next(t, list, &item));
	/* The last one applies, as in runc. */
	assert_true(jedit_member(t, top, "d", &v));
	must_say(t, v, "two");
	assert_true(jedit_member(t, top, "f", &v));
	must_say(t, v, "");
	assert_true(jedit_member(t, top, "e", &v));
	item = (struct jedit){0};
	assert_false(jedit_next(t, v, &item));
	assert_false(jedit_member(t, v, "a", &item));
	assert_false(jedit_member(t, top, "b", &v));
	assert_false(jedit_next(t, top, &item));
}

static void test_strings(void **state)
{
	static const char *const bad[] = {"{\"s\":\"\\u0000\"}", "{\"s\":\"\\ud83d\"}", "{\"s\":7}",
		"{\"s\":\"0123456789012345\"}"};
	char buf[16];
	struct jedit v;
	struct slice t = slice_from_str("{\"s\":\"\\/a\\u0026\\u00e9\\u20ac\\n\\\\\\\"\"}");

	assert_int_equal(jedit_check(t, &v), 0);
	assert_true(jedit_member(t, v, "s", &v));
	must_say(t, v, "/a&\xc3\xa9\xe2\x82\xac\n\\\"");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		t = slice_from_str(bad[i]);
		assert_int_equal(jedit_check(t, &v), 0);
		assert_true(jedit_member(t, v, "s", &v));
		assert_true(jedit_string(t, v, buf, sizeof(buf)) < 0);
	}
}

static void test_quote(void **state)
{
	AUTO_FREE char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	jedit_quote(out, "a\"b\\c\n\x01\xc3\xa9");
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "\"a\\\"b\\\\c\\u000a\\u0001\xc3\xa9\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_quote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
