/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/effect/effect_terms.h"

#define S(text) slice_of((text), sizeof(text) - 1)

/* "do a,b ref c" and so on, as at the end of a rule. */
static int get(enum effect_kind kind, const char *text, bool must_do, struct effect_terms *ret)
{
	AUTO_FREE char *copy = xstrdup(text);
	char *save = NULL;
	struct err err = {0};
	int r = 0;

	for (char *word = strtok_r(copy, " ", &save); r == 0 && word;
		word = strtok_r(NULL, " ", &save)) {
		const char *value = strtok_r(NULL, " ", &save);
		enum effect_term_kind which;

		r = effect_terms_find(kind, slice_from_str(word), &which, &err);
		if (r == 0)
			r = effect_terms_add(
				ret, kind, which, slice_from_str(value ? value : ""), &err);
	}
	return r == 0 ? effect_terms_finish(ret, kind, must_do, &err) : r;
}

static void terms_have_one_text(void **state)
{
	static const struct {
		enum effect_kind kind;
		const char *in, *out;
	} rows[] = {
		{EFFECT_HTTP, "", ""},
		{EFFECT_HTTP, "header X-A=1 query b=* method GET,HEAD query a=1,2",
			" method GET,HEAD query b=* query a=1,2 header x-a=1"},
		{EFFECT_GIT, "path docs/**,**/.husky/** ref refs/heads/* do push,unknown",
			" do push,unknown ref refs/heads/* path docs/**,**/.husky/**"},
		{EFFECT_API, "risk read,send on repo/acme/** do issue.*",
			" do issue.* on repo/acme/** risk read,send"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct effect_terms terms = {0}, again = {0};
		AUTO_FREE char *text = NULL, *same = NULL;

		assert_int_equal(get(rows[i].kind, rows[i].in, true, &terms), 0);
		text = effect_terms_print(&terms, rows[i].kind);
		assert_string_equal(text, rows[i].out);
		assert_int_equal(get(rows[i].kind, text, true, &again), 0);
		same = effect_terms_print(&again, rows[i].kind);
		assert_string_equal(text, same);
		effect_terms_done(&terms);
		effect_terms_done(&again);
	}
}

static void wrong_terms_are_refused(void **state)
{
	static const struct {
		enum effect_kind kind;
		const char *text;
		int r;
	} rows[] = {
		{EFFECT_HTTP, "method get", -EINVAL},
		{EFFECT_HTTP, "method any", -EINVAL},
		{EFFECT_HTTP, "method GET,", -EINVAL},
		{EFFECT_HTTP, "method GET,GET", -EINVAL},
		{EFFECT_HTTP, "method GET method PUT", -EINVAL},
		{EFFECT_HTTP, "do GET", -ENOENT},
		{EFFECT_HTTP, "query a", -EINVAL},
		{EFFECT_HTTP, "query a%20=1", -EINVAL},
		{EFFECT_HTTP, "query a[]=1", -EINVAL},
		{EFFECT_HTTP, "header a:b=1", -EINVAL},
		{EFFECT_HTTP, "query a=*********", -E2BIG},
		{EFFECT_HTTP, "json /a=1", -ENOTSUP},
		{EFFECT_HTTP, "size <=1K", -ENOTSUP},
		{EFFECT_HTTP, "ref x", -ENOENT},
		{EFFECT_GIT, "do clone", -EINVAL},
		{EFFECT_GIT, "do any,push", -EINVAL},
		{EFFECT_GIT, "ref refs/heads/main", -EINVAL},
		{EFFECT_GIT, "", -EINVAL},
		{EFFECT_GIT, "do push path a//b", -EINVAL},
		{EFFECT_GIT, "do push path /a", -EINVAL},
		{EFFECT_GIT, "do push path a/", -EINVAL},
		{EFFECT_GIT, "do push ref a/../b", -EINVAL},
		{EFFECT_GIT, "do push ref a**", -EINVAL},
		{EFFECT_GIT, "do push ref a?", -EINVAL},
		{EFFECT_API, "do Issue.create", -EINVAL},
		{EFFECT_API, "do issue", -EINVAL},
		{EFFECT_API, "do any risk high", -EINVAL},
		{EFFECT_API, "risk read", -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct effect_terms terms = {0};

		if (get(rows[i].kind, rows[i].text, true, &terms) != rows[i].r)
			fail_msg("'%s' is not refused as it should be", rows[i].text);
		effect_terms_done(&terms);
	}
}

static void patterns_are_normal(void **state)
{
	static const struct {
		enum effect_kind kind;
		const char *text;
		bool good;
	} rows[] = {{EFFECT_HTTP, "/", true}, {EFFECT_HTTP, "/**", true},
		{EFFECT_HTTP, "/v1/*/x-*.json", true}, {EFFECT_HTTP, "/a%20b", true},
		{EFFECT_HTTP, "/v1/", true}, {EFFECT_HTTP, "/**/x", true}, {EFFECT_HTTP, "", false},
		{EFFECT_HTTP, "v1", false}, {EFFECT_HTTP, "/a?b", false},
		{EFFECT_HTTP, "/a//b", false}, {EFFECT_HTTP, "/a/../b", false},
		{EFFECT_HTTP, "/%41", false}, {EFFECT_HTTP, "/%2f", false},
		{EFFECT_HTTP, "/%2F", false}, {EFFECT_HTTP, "/%", false},
		{EFFECT_HTTP, "/a,b", false}, {EFFECT_HTTP, "/a b", false},
		{EFFECT_HTTP, "/a**", false}, {EFFECT_HTTP, "/[a]", false},
		{EFFECT_HTTP, "/a#b", false}, {EFFECT_GIT, "acme/*", true},
		{EFFECT_GIT, "**", true}, {EFFECT_GIT, "/acme", false},
		{EFFECT_GIT, "acme/", false}};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if ((effect_pattern_check(rows[i].kind, slice_from_str(rows[i].text), &err) == 0) !=
			rows[i].good)
			fail_msg("'%s'", rows[i].text);
}

static void stars_stay_in_their_segments(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} rows[] = {{"/**", "/", true}, {"/**", "/a/b", true}, {"/v1/**", "/v1", false},
		{"/v1/**", "/v1/", true}, {"/v1/**", "/v1/a/b", true}, {"/v1/**", "/v10/a", false},
		{"/v1/*", "/v1/a", true}, {"/v1/*", "/v1/a/b", false}, {"/v1/*", "/v1/", true},
		{"/*/x", "/a/x", true}, {"/*/x", "/a/b/x", false}, {"/**/x", "/x", true},
		{"/**/x", "/a/b/x", true}, {"/**/x", "/a/x/b", false},
		{"/a/**/b/*", "/a/b/b/c", true}, {"/a/**/b/*", "/a/b/c/b/d", true},
		{"/a/**/b/*", "/a/c/d", false}, {"**/.husky/**", ".husky/x", true},
		{"**/.husky/**", "a/b/.husky/x/y", true}, {"**/.husky/**", ".husky", false},
		{"refs/heads/agent/**", "refs/heads/agent", false},
		{"refs/heads/agent/**", "refs/heads/agent/x", true}, {"**", "a", true},
		{"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXbYbZ", false}, {"a", "A", false},
		{"**/a/**/a/**", "a/b/a/c", true}, {"**/a/**/a/**", "a/b/a", false}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (effect_pattern_match(slice_from_str(rows[i].pattern),
			    slice_from_str(rows[i].text), false) != rows[i].matches)
			fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].text);
	assert_true(effect_pattern_match(S("/V1/**"), S("/v1/a"), true));
	assert_int_equal(effect_pattern_literal(S("/v1/a*/b")), 4);
	assert_int_equal(effect_pattern_literal(S("/v1/a")), 5);
	assert_int_equal(effect_pattern_literal(S("**")), 0);
}

static enum effect_match match(
	enum effect_kind kind, const char *pattern, const char *text, const struct effect *e)
{
	struct effect_terms terms = {0};
	uint8_t packed[EFFECT_MAX_PACKED];
	struct effect copy = *e;
	enum effect_match m;
	bool bad = false;
	size_t n;

	copy.kind = kind;
	assert_int_equal(get(kind, text, false, &terms), 0);
	n = effect_terms_pack(&terms, packed);
	m = effect_terms_match(&copy, slice_from_str(pattern), slice_of(packed, n), &bad);
	assert_false(bad);
	effect_terms_done(&terms);
	return m;
}

static enum effect_match match_http(const char *pattern, const char *text, const char *query)
{
	static const struct effect_header header[] = {
		{{(const uint8_t *)"accept", 6}, {(const uint8_t *)"json", 4}},
		{{(const uint8_t *)"x-two", 5}, {(const uint8_t *)"1", 1}},
		{{(const uint8_t *)"x-two", 5}, {(const uint8_t *)"1", 1}}};
	struct effect e = {.verb = S("POST"),
		.object = S("/v1/x"),
		.has_query = query != NULL,
		.query = query ? slice_from_str(query) : slice_of(NULL, 0),
		.header = header,
		.n_headers = ARRAY_LEN(header),
		.has_headers = true};

	return match(EFFECT_HTTP, pattern, text, &e);
}

static void facts_of_a_head(void **state)
{
	assert_int_equal(match_http("/v1/*", "", NULL), EFFECT_MATCHES);
	assert_int_equal(match_http("/v2/*", "", NULL), EFFECT_DIFFERS);
	assert_int_equal(match_http("/V1/*", "", NULL), EFFECT_MAY_MATCH);
	assert_int_equal(match_http("/v1/*", "method GET,POST", NULL), EFFECT_MATCHES);
	assert_int_equal(match_http("/v1/*", "method GET", NULL), EFFECT_DIFFERS);
	assert_int_equal(match_http("/v1/*", "query a=1", "b=2&a=1"), EFFECT_MATCHES);
	assert_int_equal(match_http("/v1/*", "query a=1", NULL), EFFECT_DIFFERS);
	assert_int_equal(match_http("/v1/*", "query a=1", "b=1"), EFFECT_DIFFERS);
	assert_int_equal(match_http("/v1/*", "query a=1", "a=2"), EFFECT_DIFFERS);
	assert_int_equal(match_http("/v1/*", "query a=1", "a=1&a=1"), EFFECT_MAY_MATCH);
	assert_int_equal(match_http("/v1/*", "query a=1", "a=1;b=2"), EFFECT_MAY_MATCH);
	assert_int_equal(match_http("/v1/*", "query a=1", "%61=1"), EFFECT_MAY_MATCH);
	assert_int_equal(match_http("/v1/*", "query a=1", "A=1"), EFFECT_MAY_MATCH);
	assert_int_equal(match_http("/v1/*", "query a=x*y", "a=x%20y"), EFFECT_MATCHES);
	assert_int_equal(match_http("/v1/*", "query a=1 query b=2", "a=1&b=2"), EFFECT_MATCHES);
	assert_int_equal(match_http("/v1/*", "query a=1 query b=2", "a=1&b=3"), EFFECT_DIFFERS);
	assert_int_equal(match_http("/v1/*", "header accept=js*", NULL), EFFECT_MATCHES);
	assert_int_equal(match_http("/v1/*", "header accept=xml", NULL), EFFECT_DIFFERS);
	assert_int_equal(match_http("/v1/*", "header x-two=1", NULL), EFFECT_MAY_MATCH);
	assert_int_equal(match_http("/v1/*", "header x-none=1", NULL), EFFECT_DIFFERS);
}

static void what_is_not_known_may_match(void **state)
{
	struct effect odd = {.verb = S("GET"), .object = S("/v1/x"), .is_odd = true},
		      push = {.verb = S("push"),
			      .target = S("Acme/app"),
			      .object = S("refs/heads/a")},
		      unknown = {.is_unknown = true, .target = S("acme/app")},
		      api = {.verb = S("issue.create"),
			      .target = S("github"),
			      .object = S("repo/a/b"),
			      .risk = S("write")};

	assert_int_equal(match(EFFECT_HTTP, "/v1/*", "", &odd), EFFECT_MAY_MATCH);
	assert_int_equal(match(EFFECT_HTTP, "/v9/*", "", &odd), EFFECT_MAY_MATCH);
	assert_int_equal(match(EFFECT_HTTP, "/**", "", &odd), EFFECT_MATCHES);
	assert_int_equal(match(EFFECT_HTTP, "/**", "header a=1", &odd), EFFECT_MAY_MATCH);
	assert_int_equal(match(EFFECT_GIT, "acme/app", "do push", &push), EFFECT_MAY_MATCH);
	assert_int_equal(match(EFFECT_GIT, "*/app", "do push", &push), EFFECT_MATCHES);
	assert_int_equal(match(EFFECT_GIT, "*/app", "do force", &push), EFFECT_DIFFERS);
	assert_int_equal(
		match(EFFECT_GIT, "*/app", "do push ref refs/heads/**", &push), EFFECT_MATCHES);
	assert_int_equal(match(EFFECT_GIT, "*/app", "do push path a", &push), EFFECT_MAY_MATCH);
	assert_int_equal(match(EFFECT_GIT, "**", "do any", &unknown), EFFECT_MAY_MATCH);
	assert_int_equal(match(EFFECT_GIT, "**", "", &unknown), EFFECT_MAY_MATCH);
	assert_int_equal(match(EFFECT_GIT, "**", "do any,unknown", &unknown), EFFECT_MATCHES);
	assert_int_equal(match(EFFECT_GIT, "a/b", "do unknown", &unknown), EFFECT_DIFFERS);
	assert_int_equal(match(EFFECT_GIT, "**", "do unknown", &push), EFFECT_DIFFERS);
	assert_int_equal(
		match(EFFECT_API, "github", "do issue.* risk write,send", &api), EFFECT_MATCHES);
	assert_int_equal(match(EFFECT_API, "github", "do any risk read", &api), EFFECT_DIFFERS);
	assert_int_equal(match(EFFECT_API, "github", "do any on repo/a/*", &api), EFFECT_MATCHES);
	assert_int_equal(match(EFFECT_API, "github", "do any on repo/a/c", &api), EFFECT_DIFFERS);
	assert_int_equal(match(EFFECT_API, "gitlab", "do any", &api), EFFECT_DIFFERS);
	api.risk = slice_of(NULL, 0);
	assert_int_equal(match(EFFECT_API, "github", "do any risk read", &api), EFFECT_MAY_MATCH);
}

static void damaged_terms_are_noticed(void **state)
{
	static const struct effect e = {0};
	static const uint8_t bytes[][6] = {
		{9, 0, 0, 0}, {0, 0, 3, 0}, {0, 3, 0, 0}, {0, 0, 0, 0, 1}};
	static const size_t n[] = {4, 6, 6, 6};

	for (size_t i = 0; i < ARRAY_LEN(n); i++) {
		bool bad = false;

		(void)effect_terms_match(&e, S("/**"), slice_of(bytes[i], n[i]), &bad);
		assert_true(bad);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terms_have_one_text),
		cmocka_unit_test(wrong_terms_are_refused),
		cmocka_unit_test(patterns_are_normal),
		cmocka_unit_test(stars_stay_in_their_segments),
		cmocka_unit_test(facts_of_a_head),
		cmocka_unit_test(what_is_not_known_may_match),
		cmocka_unit_test(damaged_terms_are_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
