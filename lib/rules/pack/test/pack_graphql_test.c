/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to GraphQL and their effects: one for each root field. */
#include "lib/rules/pack/pack_graphql.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/base/mem.h"

static const char text[] =
	"api 1\nservice demo\nabout a demo\nhost api.example.com:443\n"
	"object node node/{node}\nobject all all\ngraphql /graphql\n"
	"op read all.query query * on all\n"
	"op credential key.query query keys on all\n"
	"op write thing.create mutation createThing on node show node=arg:/input/parent"
	" title=arg:/input/title say \"create {title}\"\n"
	"op danger thing.delete mutation deleteThing on all\n"
	"op read all.get GET /all on all\n"
	"case GET /all = read all.get all\ncase POST /all = unknown\n"
	"case POST /graphql body {\"query\": \"{a}\"} = read all.query all\n"
	"case POST /graphql body {\"query\": \"{keys}\"} = credential key.query all\n"
	"case POST /graphql body {\"query\": \"mutation{createThing(input:{parent:1}) "
	"deleteThing}\"} = write thing.create node/1; danger thing.delete all\n";

static struct pack pack;
static struct pack_effects effects;

struct ask {
	const char *body, *type, *query, *method, *path;
	const char *header, *value;
	unsigned odd;
};

static void match(struct ask a)
{
	struct http_header list[] = {{slice_from_str("content-type"),
					     slice_from_str(a.type ? a.type : "application/json")},
		{slice_from_str(a.header ? a.header : "x"),
			slice_from_str(a.value ? a.value : "")}};
	struct http_headers headers = {.list = list, .n = ARRAY_LEN(list), .max = ARRAY_LEN(list)};
	struct pack_request req = {.method = slice_from_str(a.method ? a.method : "POST"),
		.path = slice_from_str(a.path ? a.path : "/graphql"),
		.query = slice_from_str(a.query ? a.query : ""),
		.headers = &headers,
		.odd = a.odd,
		.body = slice_from_str(a.body ? a.body : ""),
		.has_body = a.body != NULL};

	pack_match_all(&pack, &req, &effects);
	assert_true(effects.n > 0);
	for (size_t i = 0; i < effects.n; i++)
		assert_true(!effects.v[i].row == (effects.v[i].why != NULL));
}

/* Documents without quotes. */
static void has_effects(const char *document, const char *verbs)
{
	AUTO_FREE char *body =
		xasprintf("{\"query\": \"%s\", \"variables\": {\"p\": \"x y\"}}", document);
	char found[1024] = "";

	match((struct ask){body});
	for (size_t i = 0; i < effects.n; i++) {
		const struct pack_effect *e = &effects.v[i];

		(void)snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%.*s",
			i ? " " : "", e->row ? (int)e->row->verb.n : 7,
			e->row ? (const char *)e->row->verb.p : "unknown");
	}
	assert_string_equal(found, verbs);
}

static void is_unknown(struct ask a, const char *why)
{
	match(a);
	assert_int_equal(effects.n, 1);
	if (effects.v[0].row || !strstr(effects.v[0].why, why))
		fail_msg("%s: %s", a.body, effects.v[0].row ? "known" : effects.v[0].why);
}

static void each_root_field_is_an_effect(void **state)
{
	has_effects("{a b: keys}", "all.query key.query");
	has_effects(
		"mutation {a: deleteThing ...F} fragment F on M {createThing(input: {parent: $p})}",
		"thing.delete unknown");
	has_effects("mutation($p: ID) {a: deleteThing ...F} "
		    "fragment F on M {createThing(input: {parent: $p})}",
		"thing.delete thing.create");
	assert_string_equal(effects.v[1].object, "node/x y");
	assert_string_equal(effects.v[1].say, "create ?");
	has_effects("mutation {createThing}", "unknown");
	has_effects("mutation {other}", "unknown");
	has_effects("mutation {a}", "unknown");
	has_effects("subscription {a}", "unknown");
	has_effects("mutation {keys}", "unknown");
}

static void an_operation_that_is_not_named_counts_too(void **state)
{
	match((struct ask){"{\"query\": \"query A {a} mutation B {deleteThing}\", "
			   "\"operationName\": \"A\"}"});
	assert_int_equal(effects.n, 2);
	assert_true(slice_eq_str(effects.v[1].row->verb, "thing.delete"));
	is_unknown((struct ask){"{\"query\": \"query A {a}\", \"operationName\": \"B\"}"},
		"exactly one operation");
	is_unknown(
		(struct ask){"{\"query\": \"query A {a} query B {a}\"}"}, "exactly one operation");
}

static void a_batch_has_the_effects_of_all(void **state)
{
	match((struct ask){"[{\"query\": \"{a}\"}, {\"query\": \"mutation {deleteThing}\"}, "
			   "{\"query\": \"{\"}]"});
	assert_int_equal(effects.n, 3);
	assert_true(slice_eq_str(effects.v[1].row->verb, "thing.delete"));
	assert_null(effects.v[2].row);
}

static void what_a_server_may_read_otherwise_is_unknown(void **state)
{
	static const char good[] = "{\"query\": \"{a}\"}";

	is_unknown((struct ask){NULL}, "not known");
	is_unknown((struct ask){good, "text/plain"}, "plain JSON");
	is_unknown((struct ask){good, "application/json; charset=utf-16"}, "plain JSON");
	is_unknown((struct ask){good, "application/json-seq"}, "plain JSON");
	is_unknown((struct ask){good, .header = "content-encoding", .value = "gzip"}, "plain JSON");
	is_unknown(
		(struct ask){good, .header = "content_type", .value = "text/plain"}, "plain JSON");
	is_unknown((struct ask){good, .query = "query={b}"}, "without a query");
	is_unknown((struct ask){good, .query = "_method=PUT"}, "another method");
	is_unknown((struct ask){good, .method = "PUT"}, "a POST");
	is_unknown((struct ask){good, .odd = CANON_ODD_DOTS}, "different ways");
	is_unknown((struct ask){good, .path = "/graphql/"}, "no row");
	is_unknown((struct ask){good, .path = "/GraphQL"}, "no row");
	match((struct ask){good, "Application/JSON; charset=UTF-8"});
	assert_non_null(effects.v[0].row);
}

static void a_get_is_for_queries(void **state)
{
	struct ask a = {.method = "GET", .query = "query=%7Ba%7D"};

	match(a);
	assert_true(slice_eq_str(effects.v[0].row->verb, "all.query"));
	a.query = "query=mutation%7BdeleteThing%7D";
	is_unknown(a, "a GET is for queries");
}

static void more_effects_than_the_limit_are_unknown(void **state)
{
	char body[4096] = "[";

	for (size_t i = 0; i < 9; i++)
		strcat(strcat(body, i ? "," : ""), "{\"query\": \"{a b c d e f g h}\"}");
	strcat(body, "]");
	match((struct ask){body});
	assert_int_equal(effects.n, PACK_MAX_EFFECTS);
	assert_null(effects.v[PACK_MAX_EFFECTS - 1].row);
}

/* A caller that knows the head only never takes it for harmless. */
static void the_head_alone_is_unknown(void **state)
{
	struct pack_request req = {
		.method = slice_from_str("POST"), .path = slice_from_str("/graphql")};
	struct pack_effect e;

	pack_match(&pack, &req, &e);
	assert_null(e.row);
	assert_non_null(strstr(e.why, "body"));
}

static void is_refused(const char *from, const char *to, const char *why)
{
	AUTO_FREE char *whole = xasprintf("%send\n", text);
	char *at = strstr(whole, from);
	AUTO_FREE char *changed = NULL;
	struct pack p = {0};
	struct err err = {0};

	assert_non_null(at);
	*at = '\0';
	changed = xasprintf("%s%s%s", whole, to, at + strlen(from));
	assert_true(pack_parse(slice_from_str(changed), "x", &p, &err) < 0);
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
}

static void invalid_rows_are_refused(void **state)
{
	is_refused("graphql /graphql\n", "", "expected 'graphql PATH' above");
	is_refused("graphql /graphql\n", "graphql /{x}\n", "must be fixed");
	is_refused("op read all.query query *", "op write all.query query *",
		"must have the risk read");
	is_refused("op read all.query query *", "op read all.query mutation *",
		"must have the risk read");
	is_refused("mutation deleteThing", "mutation createThing", "duplicate field");
	is_refused("mutation deleteThing", "mutation delete-thing", "invalid field");
	is_refused("arg:/input/title", "json:/input/title", "has the source arg");
	is_refused("GET /all on all", "GET /all on all show x=arg:/a", "has the source arg");
	is_refused("deleteThing on all", "deleteThing on all when json /a=b", "has the source arg");
	is_refused("deleteThing}", "}", "expects");
	is_refused(" deleteThing}\"} = write thing.create node/1; danger thing.delete all",
		"}\"} = write thing.create node/1", "has no case");
}

static int set_up(void **state)
{
	AUTO_FREE char *whole = xasprintf("%send\n", text);
	struct err err = {0};

	if (pack_parse(slice_from_str(whole), "demo.api", &pack, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int tear_down(void **state)
{
	pack_done(&pack);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_root_field_is_an_effect),
		cmocka_unit_test(an_operation_that_is_not_named_counts_too),
		cmocka_unit_test(a_batch_has_the_effects_of_all),
		cmocka_unit_test(what_a_server_may_read_otherwise_is_unknown),
		cmocka_unit_test(a_get_is_for_queries),
		cmocka_unit_test(more_effects_than_the_limit_are_unknown),
		cmocka_unit_test(the_head_alone_is_unknown),
		cmocka_unit_test(invalid_rows_are_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
