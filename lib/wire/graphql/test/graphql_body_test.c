/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that carry GraphQL: a JSON body, a batch, the query of a GET. */
#include "lib/wire/graphql/graphql_body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static struct arena arena;
static struct graphql_call calls[GRAPHQL_MAX_CALLS];
static size_t n_calls;

static int read_body(const char *text)
{
	const char *why = NULL;
	int r;

	arena_reset(&arena);
	r = graphql_read_body(slice_from_str(text), &arena, calls, &n_calls, &why);
	assert_true(r == 0 || why);
	return r;
}

static int read_query(const char *text)
{
	const char *why = NULL;
	int r;

	arena_reset(&arena);
	r = graphql_read_query(slice_from_str(text), &arena, &calls[0], &why);
	assert_true(r == 0 || why);
	return r;
}

static void a_body_has_one_call(void **state)
{
	assert_int_equal(read_body("{\"query\": \"{a(x:\\\"\\u0062\\\")}\"}"), 0);
	assert_int_equal(n_calls, 1);
	assert_true(slice_eq_str(calls[0].text, "{a(x:\"b\")}"));
	assert_null(calls[0].name.p);
	assert_int_equal(calls[0].vars.n, 0);
	assert_int_equal(read_body("{\"operationName\": \"A\", \"variables\": {\"a\": {\"b\": 1}},"
				   "\"quer\\u0079\": \"{a}\", \"extensions\": {\"x\": 1}}"),
		0);
	assert_true(slice_eq_str(calls[0].name, "A"));
	assert_true(slice_eq_str(calls[0].vars, "{\"a\": {\"b\": 1}}"));
	assert_int_equal(read_body("{\"query\": \"{a}\", \"operationName\": null, "
				   "\"variables\": null, \"extensions\": null}"),
		0);
	assert_null(calls[0].name.p);
}

static void a_batch_has_its_calls(void **state)
{
	assert_int_equal(read_body(" [ {\"query\": \"{a}\"} , {\"query\": \"{b}\"}]"), 0);
	assert_int_equal(n_calls, 2);
	assert_true(slice_eq_str(calls[1].text, "{b}"));
	assert_true(read_body("[]") < 0);
	assert_true(read_body("[{\"query\": \"{a}\"}, 1]") < 0);
	assert_true(read_body("[[{\"query\": \"{a}\"}]]") < 0);
	assert_true(read_body("[\"{a}\"]") < 0);
}

static void a_long_batch_is_an_error(void **state)
{
	char text[1024] = "[";

	for (size_t i = 0; i < GRAPHQL_MAX_CALLS; i++)
		strcat(strcat(text, i ? "," : ""), "{\"query\":\"{a}\"}");
	strcat(text, "]");
	assert_int_equal(read_body(text), 0);
	strcpy(text + strlen(text) - 1, ",{\"query\":\"{a}\"}]");
	assert_true(read_body(text) < 0);
}

static void what_a_server_may_read_otherwise_is_an_error(void **state)
{
	static const char *const texts[] = {"", "{", "null", "\"{a}\"", "{}", "{\"query\": null}",
		"{\"query\": 1}", "{\"query\": [\"{a}\"]}", "{\"query\": \"{a}\"} x",
		"{\"query\": \"{a}\", \"query\": \"{b}\"}",
		"{\"query\": \"{a}\", \"Query\": \"{b}\"}", "{\"query\": \"{a}\", \"id\": \"1\"}",
		"{\"query\": \"{a}\", \"documentId\": \"1\"}",
		"{\"query\": \"{a}\", \"variables\": \"{}\"}",
		"{\"query\": \"{a}\", \"variables\": []}",
		"{\"query\": \"{a}\", \"operationName\": 1}", "{\"query\": \"\\ud800\"}",
		"{\"query\": \"{a}\", \"extensions\": {\"persistedQuery\": {\"version\": 1}}}",
		"{\"query\": \"{a}\", \"extensions\": {\"PersistedQuery\": 1}}",
		"{\"extensions\": {\"persistedQuery\": {}}}", "\xef\xbb\xbf{\"query\": \"{a}\"}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (read_body(texts[i]) == 0)
			fail_msg("read: %s", texts[i]);
}

static void the_query_of_a_get_has_one_call(void **state)
{
	assert_int_equal(read_query("query=%7Ba%28x%3A+1)}&variables=%7B%7D&operationName=A"), 0);
	assert_true(slice_eq_str(calls[0].text, "{a(x: 1)}"));
	assert_true(slice_eq_str(calls[0].vars, "{}"));
	assert_true(slice_eq_str(calls[0].name, "A"));
	assert_true(read_query("") < 0);
	assert_true(read_query("query=a&query=b") < 0);
	assert_true(read_query("query=a&Query=b") < 0);
	assert_true(read_query("query=a&x=b") < 0);
	assert_true(read_query("query=a;x=b") < 0);
	assert_true(read_query("query=%7") < 0);
	assert_true(read_query("query[]=a") < 0);
	assert_true(read_query("query=a&extensions={}") < 0);
	assert_true(read_query("variables={}") < 0);
}

static int set_up(void **state)
{
	arena_init(&arena, 4096);
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
		cmocka_unit_test(a_body_has_one_call),
		cmocka_unit_test(a_batch_has_its_calls),
		cmocka_unit_test(a_long_batch_is_an_error),
		cmocka_unit_test(what_a_server_may_read_otherwise_is_an_error),
		cmocka_unit_test(the_query_of_a_get_has_one_call),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
