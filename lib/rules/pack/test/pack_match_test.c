/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and their effects: which row counts, and what makes a request unknown. */
#include "lib/rules/pack/pack_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/pack/pack_describe.h"
#include "lib/rules/pack/pack_fact.h"

static const char text[] =
	"api 1\nservice demo\nabout a demo\nhost api.example.com:443\noverride form\n"
	"object repo repo/{owner}/{repo} fold\nobject project project/{project}\n"
	"object image image/{name}\nobject file file/{path}\nobject model model/{model}\n"
	"object all all\n"
	"op read repo.get GET /repos/{owner}/{repo} on repo\n"
	"op read repo.read GET /repos/{owner}/{repo}/** on repo\n"
	"op credential key.list GET /repos/{owner}/{repo}/keys on repo\n"
	"op danger pull.merge PUT /repos/{owner}/{repo}/pulls/{n#}/merge on repo"
	" show how=json:/merge/method who=query:who say \"merge #{n} of {repo} by {how} for {who}\"\n"
	"op write issue.create POST /projects/{project/}/issues on project\n"
	"op write image.push PUT /v2/{name**}/manifests/{ref} on image\n"
	"op read image.check GET /v2/ on all\n"
	"op write file.put PUT /files/{path**} on file\n"
	"op money model.run POST /run on model show model=json:/model\n"
	"op danger all.delete POST /all on all when json /mode=del*\n"
	"op write all.update POST /all on all\n"
	"op read all.list GET /list on all when query deep=1 header x-mode=full\n"
	"case GET /repos/a/b = read repo.get repo/a/b\n"
	"case GET /repos/a/b/c = read repo.read repo/a/b\n"
	"case GET /repos/a/b/keys = credential key.list repo/a/b\n"
	"case PUT /repos/a/b/keys = unknown\ncase PUT /repos/a/b = unknown\n"
	"case PUT /repos/a/b/pulls/1/merge = danger pull.merge repo/a/b\n"
	"case PUT /repos/a/b/pulls/1/merged = unknown\n"
	"case POST /projects/1/issues = write issue.create project/1\n"
	"case POST /projects/1/issue = unknown\n"
	"case PUT /v2/x/manifests/1 = write image.push image/x\n"
	"case DELETE /v2/x/manifests/1 = unknown\n"
	"case GET /v2/ = read image.check all\ncase GET /v2 = unknown\n"
	"case PUT /files/x = write file.put file/x\ncase GET /files/x = unknown\n"
	"case POST /run body {\"model\":\"m\"} = money model.run model/m\ncase GET /run = unknown\n"
	"case POST /all body {\"mode\":\"delete\"} = danger all.delete all\n"
	"case POST /all body {} = write all.update all\ncase GET /all = unknown\n"
	"case GET /list?deep=1 header x-mode=full = read all.list all\n"
	"case GET /list?deep=1 = unknown\ncase GET /lists = unknown\n";

static struct pack pack;

struct ask {
	const char *method, *target, *header, *value, *body;
	bool no_body;
};

static void match(const struct ask *a, struct pack_effect *ret)
{
	const char *mark = strchr(a->target, '?');
	size_t n = mark ? (size_t)(mark - a->target) : strlen(a->target);
	struct http_header list[] = {{slice_from_str(a->header ? a->header : "content-type"),
		slice_from_str(a->header ? a->value : "application/json")}};
	struct http_headers headers = {.list = list, .n = 1, .max = 1};
	struct pack_request req = {.method = slice_from_str(a->method), .headers = &headers};
	struct arena arena;

	arena_init(&arena, 65536);
	assert_int_equal(canon_normal_path(slice_of(a->target, n), &arena, &req.path, &req.odd), 0);
	if (mark)
		req.query = slice_from_str(mark + 1);
	req.no_body = a->no_body;
	if (a->body) {
		req.body = slice_from_str(a->body);
		req.has_body = true;
	}
	pack_match(&pack, &req, ret);
	arena_done(&arena);
}

static void is_effect(struct ask a, const char *verb, const char *object)
{
	struct pack_effect e;

	match(&a, &e);
	if (!e.row)
		fail_msg("%s %s: unknown: %s", a.method, a.target, e.why);
	assert_true(slice_eq_str(e.row->verb, verb));
	assert_string_equal(e.object, object);
}

static void is_unknown(struct ask a, const char *why)
{
	struct pack_effect e;

	match(&a, &e);
	if (e.row)
		fail_msg("%s %s: %.*s %s", a.method, a.target, (int)e.row->verb.n, e.row->verb.p,
			e.object);
	if (!strstr(e.why, why))
		fail_msg("%s %s: %s", a.method, a.target, e.why);
}

static void the_most_precise_row_counts(void **state)
{
	is_effect((struct ask){"GET", "/repos/a/b/keys"}, "key.list", "repo/a/b");
	is_effect((struct ask){"HEAD", "/repos/a/b/keys"}, "key.list", "repo/a/b");
	is_effect((struct ask){"GET", "/repos/a/b/keys/1"}, "repo.read", "repo/a/b");
	is_effect((struct ask){"GET", "/repos/a/b/x/y/z"}, "repo.read", "repo/a/b");
	is_effect((struct ask){"GET", "/repos/a/b"}, "repo.get", "repo/a/b");
	is_unknown((struct ask){"DELETE", "/repos/a/b"}, "no row");
	is_unknown((struct ask){"get", "/repos/a/b"}, "no row");
	is_unknown((struct ask){"GET", "/repos/a"}, "no row");
	is_effect((struct ask){"PUT", "/repos/a/b/pulls/12/merge"}, "pull.merge", "repo/a/b");
	is_unknown((struct ask){"PUT", "/repos/a/b/pulls/1x/merge"}, "no row");
	is_unknown((struct ask){"GET", "/repos/a/b/"}, "no row");
}

static void objects_have_one_spelling(void **state)
{
	is_effect((struct ask){"GET", "/repos/Acme/App"}, "repo.get", "repo/acme/app");
	is_unknown((struct ask){"GET", "/Repos/a/b"}, "another case");
	is_unknown((struct ask){"GET", "/repos/a/b/KEYS"}, "another case");
	is_effect((struct ask){"GET", "/repos/a%20b/c"}, "repo.get", "repo/a%20b/c");
}

static void odd_paths_are_unknown(void **state)
{
	is_unknown((struct ask){"GET", "/repos/a/b/../c"}, "different ways");
	is_unknown((struct ask){"GET", "/repos//a/b"}, "different ways");
	is_unknown((struct ask){"GET", "/repos/%61/b"}, "different ways");
	is_unknown((struct ask){"GET", "/repos/a/%0ab"}, "different ways");
	is_unknown((struct ask){"GET", "/repos/a%2fb/c"}, "no row");
	is_unknown((struct ask){"GET", "/repos/a/b/c%2fd"}, "no row");
	is_unknown((struct ask){"GET", "/repos/a/b/c%5cd"}, "no row");
}

static void an_escaped_slash_is_part_of_a_value(void **state)
{
	is_effect((struct ask){"POST", "/projects/a%2fb/issues"}, "issue.create", "project/a/b");
	is_effect((struct ask){"POST", "/projects/a%2Fb%2Fc/issues"}, "issue.create",
		"project/a/b/c");
	is_unknown((struct ask){"POST", "/projects/a%2F%2Fc/issues"}, "no row");
	is_unknown((struct ask){"POST", "/projects/a%2F../issues"}, "no row");
	is_unknown((struct ask){"POST", "/projects/%2Fa/issues"}, "no row");
	is_unknown((struct ask){"POST", "/projects/a%5Cb/issues"}, "no row");
	is_unknown((struct ask){"POST", "/projects/a%2Fb/issues%2F1"}, "no row");
}

static void several_segments_are_one_value(void **state)
{
	is_effect((struct ask){"PUT", "/v2/a/b/c/manifests/latest"}, "image.push", "image/a/b/c");
	is_effect((struct ask){"PUT", "/v2/a/manifests/b/manifests/c"}, "image.push",
		"image/a/manifests/b");
	is_unknown((struct ask){"PUT", "/v2/manifests/latest"}, "no row");
	is_effect((struct ask){"PUT", "/files/a/b"}, "file.put", "file/a/b");
	is_unknown((struct ask){"PUT", "/files/"}, "no row");
	is_effect((struct ask){"GET", "/v2/"}, "image.check", "all");
	is_unknown((struct ask){"GET", "/v2"}, "no row");
}

static void another_method_is_unknown(void **state)
{
	static const char form[] = "application/x-www-form-urlencoded; charset=utf-8";

	is_unknown((struct ask){"GET", "/repos/a/b", "x-http-method-override", "DELETE"},
		"another method");
	is_unknown(
		(struct ask){"POST", "/projects/1/issues", "content-type", form}, "another method");
	is_effect((struct ask){"POST", "/projects/1/issues", "content-type", "application/json"},
		"issue.create", "project/1");
	is_effect((struct ask){"PUT", "/files/x", "content-type", form}, "file.put", "file/x");
	is_unknown((struct ask){"GET", "/repos/a/b", "x_http_method-override", "DELETE"},
		"another method");
	is_unknown((struct ask){"GET", "/repos/a/b", "x-original-url", "/x"}, "another method");
	is_unknown((struct ask){"PUT", "/files/x?a=1&_method=DELETE"}, "another method");
	is_unknown((struct ask){"PUT", "/files/x?a=1;%5fMethod=DELETE"}, "another method");
	is_unknown((struct ask){"PUT", "/files/x?_method[]=DELETE"}, "another method");
	is_effect((struct ask){"PUT", "/files/x?a=_method&method=y"}, "file.put", "file/x");
}

static void a_body_without_a_type_may_be_a_form(void **state)
{
	struct ask a = {"POST", "/projects/1/issues", "a", "b"};

	is_unknown(a, "another method");
	a.body = "_method=DELETE";
	is_unknown(a, "another method");
	a.header = "content-type";
	a.value = "multipart/related";
	is_unknown(a, "another method");
	a = (struct ask){"POST", "/projects/1/issues", .no_body = true};
	a.header = a.value = "a";
	is_effect(a, "issue.create", "project/1");
}

/* "tokens.json" is "tokens" for Rails, and everything behind a semicolon is gone for Java. */
static void a_suffix_does_not_hide_a_row(void **state)
{
	is_unknown((struct ask){"GET", "/repos/a/b/keys.json"}, "without its suffix");
	is_unknown((struct ask){"GET", "/repos/a/b/KEYS.xml"}, "without its suffix");
	is_unknown(
		(struct ask){"GET", "/list.json?deep=1;", "x-mode", "full"}, "without its suffix");
	is_effect((struct ask){"GET", "/repos/a/b/x.json"}, "repo.read", "repo/a/b");
	is_effect((struct ask){"GET", "/repos/a/b/.keys"}, "repo.read", "repo/a/b");
	is_effect((struct ask){"GET", "/repos/a/b.js"}, "repo.get", "repo/a/b.js");
	is_unknown((struct ask){"GET", "/repos/a/b/keys;x=1"}, "semicolon");
	is_unknown((struct ask){"GET", "/repos/a;b/c"}, "semicolon");
}

static void bodies_decide(void **state)
{
	is_effect((struct ask){"POST", "/all", .body = "{\"mode\": \"del\"}"}, "all.delete", "all");
	is_effect((struct ask){"POST", "/all", .body = "{\"m\\u006fde\": \"\\u0064elta\"}"},
		"all.delete", "all");
	is_effect((struct ask){"POST", "/all", .body = "{\"a\": {\"mode\": \"del\"}}"},
		"all.update", "all");
	is_effect((struct ask){"POST", "/all", .body = "{\"mode\": 7}"}, "all.update", "all");
	is_unknown((struct ask){"POST", "/all"}, "cannot be decided");
	is_unknown((struct ask){"POST", "/all", .body = "{\"mode\": 1, \"mode\": 2}"},
		"cannot be decided");
	is_unknown((struct ask){"POST", "/all", .body = "{\"mode\": 1"}, "cannot be decided");
	is_unknown((struct ask){"POST", "/all", .body = "[]"}, "cannot be decided");
	is_unknown((struct ask){"POST", "/all", .body = "{\"mode\": [1]}"}, "cannot be decided");
	is_unknown((struct ask){"POST", "/all", .body = "{\"mode\": 1, \"Mode\": \"del\"}"},
		"cannot be decided");
	is_unknown((struct ask){"POST", "/all", .body = "{\"a\": 1, \"\u212a\": \"del\"}"},
		"cannot be decided");
}

static void queries_and_headers_decide(void **state)
{
	is_effect((struct ask){"GET", "/list?a=b&deep=1", "x-mode", "full"}, "all.list", "all");
	is_effect((struct ask){"GET", "/list?deep=%31", "x-mode", "full"}, "all.list", "all");
	is_unknown((struct ask){"GET", "/list?deep=2", "x-mode", "full"}, "no row");
	is_unknown((struct ask){"GET", "/list?deep=1"}, "no row");
	is_unknown((struct ask){"GET", "/list?deep=1&deep=1", "x-mode", "full"}, "decided");
	is_unknown((struct ask){"GET", "/list?a=1;deep=1", "x-mode", "full"}, "decided");
	is_unknown((struct ask){"GET", "/list?d%65ep=1", "x-mode", "full"}, "decided");
	is_unknown((struct ask){"GET", "/list?deep[]=1", "x-mode", "full"}, "decided");
	is_unknown((struct ask){"GET", "/list?Deep=2&deep=1", "x-mode", "full"}, "decided");
}

static void objects_of_bodies_must_be_known(void **state)
{
	is_effect((struct ask){"POST", "/run", .body = "{\"model\":\"a b\\n\"}"}, "model.run",
		"model/a b%0A");
	is_unknown((struct ask){"POST", "/run", .body = "{}"}, "the object is not known");
	is_unknown((struct ask){"POST", "/run"}, "the object is not known");
}

static void a_sentence_has_values(void **state)
{
	struct ask a = {"PUT", "/repos/a/b/pulls/7/merge?who=me%20%26%01",
		.body = "{\"merge\": {\"method\": \"squash\"}}"};
	struct pack_effect e;

	match(&a, &e);
	assert_string_equal(e.say, "merge #7 of b by squash for me &%01");
	a.body = NULL;
	match(&a, &e);
	assert_string_equal(e.say, "merge #7 of b by ? for me &%01");
}

static void long_values_are_not_cut_silently(void **state)
{
	char target[4096] = "/files/";
	struct ask a = {"PUT", target};

	memset(target + 7, 'x', PACK_MAX_OBJECT);
	is_unknown(a, "too long");
	for (size_t i = 0; i < PACK_MAX_PATH; i++)
		memcpy(target + 7 + 2 * i, "x/", 3);
	is_unknown(a, "too many segments");
}

static void a_long_value_is_unknown(void **state)
{
	char query[PACK_MAX_VALUE + 8] = "a=";
	uint8_t buf[PACK_MAX_VALUE];
	struct pack_request req = {0};
	struct slice value, at = slice_from_str("a");

	memset(query + 2, 'x', PACK_MAX_VALUE);
	req.query = slice_from_str(query);
	assert_int_equal(pack_fact_find(&req, PACK_FROM_QUERY, at, buf, &value), PACK_KNOWN);
	assert_int_equal(value.n, PACK_MAX_VALUE);
	query[2 + PACK_MAX_VALUE] = 'x';
	req.query = slice_from_str(query);
	assert_int_equal(pack_fact_find(&req, PACK_FROM_QUERY, at, buf, &value), PACK_UNKNOWN);
	req.query = slice_from_str("b=1");
	assert_int_equal(pack_fact_find(&req, PACK_FROM_QUERY, at, buf, &value), PACK_ABSENT);
}

static int set_up(void **state)
{
	AUTO_FREE char *rest = xasprintf("%send\n", text);
	struct err err = {0};

	if (pack_parse(slice_from_str(rest), "demo.api", &pack, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_most_precise_row_counts),
		cmocka_unit_test(objects_have_one_spelling),
		cmocka_unit_test(odd_paths_are_unknown),
		cmocka_unit_test(an_escaped_slash_is_part_of_a_value),
		cmocka_unit_test(several_segments_are_one_value),
		cmocka_unit_test(another_method_is_unknown),
		cmocka_unit_test(a_body_without_a_type_may_be_a_form),
		cmocka_unit_test(a_suffix_does_not_hide_a_row),
		cmocka_unit_test(bodies_decide),
		cmocka_unit_test(queries_and_headers_decide),
		cmocka_unit_test(objects_of_bodies_must_be_known),
		cmocka_unit_test(a_sentence_has_values),
		cmocka_unit_test(a_long_value_is_unknown),
		cmocka_unit_test(long_values_are_not_cut_silently),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
