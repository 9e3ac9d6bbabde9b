/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptions of requests: which there are, and what each says. */
#include "lib/rules/head/head.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/test/policy_text.h"

static const char demo_pack[] =
	"api 1\nservice demo\nabout a demo\nhost git.example.com:443\n"
	"object repo repo/{owner}/{repo}\n"
	"op read repo.get GET /repos/{owner}/{repo} on repo\n"
	"case GET /repos/a/b = read repo.get repo/a/b\ncase GET /repos/a = unknown\n"
	"graphql /graphql\nop read all.query query * on repo show owner=arg:/o repo=arg:/r\n"
	"case POST /graphql body {\"query\": \"{a(o: 1, r: 2)}\"} = read all.query repo/1/2\n"
	"case POST /graphql body {\"query\": \"subscription {a}\"} = unknown\nend\n";

static struct pack pack;

struct row {
	const char *method, *path, *query;
	const char *effects; /* one a line */
};

static const struct row rows[] = {
	{"GET", "/v1/x", NULL, "http:GET git.example.com /v1/x\n"},
	{"GET", "/v1/x", "a=1", "http:GET git.example.com /v1/x header.x-a=2 query=a=1\n"},
	{"GET", "/v1/%78", NULL,
		"http:GET git.example.com /v1/x odd=yes\n"
		"unknown:git git.example.com/ - why=odd-path\n"},
	{"GET", "/v1;x/y", NULL,
		"http:GET git.example.com /v1;x/y odd=yes\n"
		"unknown:git git.example.com/ - why=odd-path\n"},
	{"GET", "/a/b.git/info/refs", "service=git-upload-pack",
		"http:GET git.example.com /a/b.git/info/refs query=service=git-upload-pack\n"
		"git:fetch git.example.com/a/b -\n"},
	{"POST", "/a/b.git/git-upload-pack", NULL,
		"http:POST git.example.com /a/b.git/git-upload-pack\n"
		"git:fetch git.example.com/a/b -\n"},
	{"POST", "/a/b/git-upload-pack", "x",
		"http:POST git.example.com /a/b/git-upload-pack query=x\n"
		"unknown:git git.example.com/a/b - why=body\n"},
	{"GET", "/a/b/info/refs", "service=git-receive-pack",
		"http:GET git.example.com /a/b/info/refs query=service=git-receive-pack\n"
		"unknown:git git.example.com/a/b - why=body\n"},
	{"GET", "/a/b/info/refs", "service=git-upload-pack&service=git-receive-pack",
		"http:GET git.example.com /a/b/info/refs "
		"query=service=git-upload-pack&service=git-receive-pack\n"
		"unknown:git git.example.com/a/b - why=body\n"},
	{"POST", "/a/b/git-receive-pack", NULL,
		"http:POST git.example.com /a/b/git-receive-pack\n"
		"unknown:git git.example.com/a/b - why=body\n"},
	{"POST", "/a/b/GIT-Receive-Pack", NULL,
		"http:POST git.example.com /a/b/GIT-Receive-Pack\n"
		"unknown:git git.example.com/a/b - why=body\n"},
	{"GET", "/a/b/info/refs", NULL, "http:GET git.example.com /a/b/info/refs\n"},
	{"POST", "/git-upload-pack", NULL,
		"http:POST git.example.com /git-upload-pack\n"
		"unknown:git git.example.com/ - why=body\n"},
};

static void describe(const struct row *row, const struct pack *p, char *ret, size_t size)
{
	struct http_header list[] = {{slice_from_str("accept"), slice_from_str("*/*")},
		{slice_from_str("x-a"), slice_from_str("2")}};
	const struct http_headers headers = {list, 2, 2};
	const struct head h = {.method = slice_from_str(row->method),
		.host = slice_from_str("git.example.com"),
		.port = 443,
		.path = slice_from_str(row->path),
		.query = slice_from_str(row->query ? row->query : ""),
		.has_query = row->query != NULL,
		.headers = &headers,
		.names = slice_from_str(row->query && row->query[0] == 'a' ? "x-b,x-a" : "")};
	char text[EFFECT_MAX_TEXT + 1];
	struct head_effects got;
	struct arena arena;
	size_t n = 0;

	arena_init(&arena, HTTP_ARENA_SIZE);
	assert_int_equal(head_describe(&h, p, &arena, &got), 0);
	ret[0] = '\0';
	for (size_t i = 0; i < got.n; i++) {
		(void)effect_print(&got.v[i], text);
		n += (size_t)snprintf(ret + n, size - n, "%s\n", text);
	}
	arena_done(&arena);
}

static void requests_have_their_descriptions(void **state)
{
	char text[2048];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		describe(&rows[i], NULL, text, sizeof(text));
		assert_string_equal(text, rows[i].effects);
	}
}

static void a_pack_describes_requests_to_its_host(void **state)
{
	char text[2048];

	describe(&(struct row){"GET", "/repos/a/b", NULL, NULL}, &pack, text, sizeof(text));
	assert_string_equal(text, "http:GET git.example.com /repos/a/b\n"
				  "api:repo.get demo repo/a/b risk=read\n");
	describe(&(struct row){"PUT", "/repos/a/b", NULL, NULL}, &pack, text, sizeof(text));
	assert_string_equal(text, "http:PUT git.example.com /repos/a/b\n"
				  "unknown:api demo - why=no-row\n");
}

/* Only a POST to exactly this path is one whose content is read. */
static void calls_are_known_by_their_content(void **state)
{
	static const struct row other[] = {{"GET", "/graphql"}, {"PUT", "/graphql"},
		{"POST", "/graphql/"}, {"POST", "/GraphQL"}, {"POST", "/%67raphql"},
		{"POST", "/graphql;a"}, {"POST", "/x"}};
	char text[2048];

	describe(&(struct row){"POST", "/graphql", NULL, NULL}, &pack, text, sizeof(text));
	assert_string_equal(
		text, "http:POST git.example.com /graphql\nunknown:api demo - why=body\n");
	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		describe(&other[i], &pack, text, sizeof(text));
		assert_non_null(strstr(text, "unknown:api demo - why=no-row\n"));
	}
}

/* sbx-origin: of a request whose content decides, the ticket says that the keeper has decided. */
static void calls_are_sent_with_the_word_of_the_keeper_only(void **state)
{
	static const struct {
		const char *rules;
		bool judged, not_judged;
	} rows_of_rules[] = {
		{"allow api demo do any risk read\n", true, false},
		{"deny api demo do any risk write\n", true, false},
		{"ask api demo do any\n", true, false},
		{"allow api demo do any,unknown\n", true, true},
		{"allow http git.example.com/graphql method POST\n", true, true},
		{"allow http git.example.com/** method GET\n", false, false},
		{"allow api demo do any\ndeny http git.example.com/graphql\n", false, false},
	};
	const struct http_req req = {.method = slice_from_str("POST"),
		.host = slice_from_str("git.example.com"),
		.port = 443,
		.path = slice_from_str("/graphql")};
	struct arena arena;
	struct host host;
	char why[512];

	arena_init(&arena, HTTP_ARENA_SIZE);
	assert_int_equal(host_from_wire(req.host, &host, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows_of_rules); i++) {
		AUTO_FREE char *text =
			xasprintf("policy 2\nallow network git.example.com:443\n%send\n",
				rows_of_rules[i].rules);
		struct policy *policy = policy_load(slice_from_str(text), "policy", "demo");
		const struct policy_op op = {.kind = RULE_NETWORK, .host = &host, .port = 443};
		struct head_sender s = {.policy = policy, .op = &op, .pack = &pack};

		assert_int_equal(head_may_send(&s, &req, &arena, why, sizeof(why)),
			rows_of_rules[i].not_judged);
		s.is_judged = true;
		assert_int_equal(
			head_may_send(&s, &req, &arena, why, sizeof(why)), rows_of_rules[i].judged);
		policy_free(policy);
	}
	arena_done(&arena);
}

static void what_is_not_canonical_has_none(void **state)
{
	static const char *const bad[] = {"*", "", "x", "/a b", "/%zz", "/../x", "/a\\b"};
	struct head_effects got;
	struct arena arena;

	arena_init(&arena, HTTP_ARENA_SIZE);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const struct head h = {.method = slice_from_str("GET"),
			.host = slice_from_str("a.test"),
			.port = 443,
			.path = slice_from_str(bad[i])};

		assert_int_equal(head_describe(&h, NULL, &arena, &got), -EBADMSG);
	}
	arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_have_their_descriptions),
		cmocka_unit_test(a_pack_describes_requests_to_its_host),
		cmocka_unit_test(calls_are_known_by_their_content),
		cmocka_unit_test(calls_are_sent_with_the_word_of_the_keeper_only),
		cmocka_unit_test(what_is_not_canonical_has_none),
	};
	struct err err = {0};

	if (pack_parse(slice_from_str(demo_pack), "demo.api", &pack, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
