/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/hex.h"
#include "lib/base/mem.h"
#include "lib/rules/effect/effect.h"

#define S(text)                                           \
	{                                                 \
		(const uint8_t *)(text), sizeof(text) - 1 \
	}

static const struct effect_header headers[] = {{S("x-b"), S("2")}, {S("accept"), S("a b")}};

static const struct {
	struct effect effect;
	const char *text;
} rows[] = {
	{{.verb = S("GET"), .host = S("api.example.com"), .port = 443, .object = S("/v1/x")},
		"http:GET api.example.com /v1/x"},
	{{.verb = S("GET"), .host = S("a.b"), .port = 80, .object = S("/"), .has_query = true},
		"http:GET a.b:80 / query="},
	{{.verb = S("PUT"),
		 .host = S("2606::1"),
		 .port = 8443,
		 .object = S("/a%2Fb"),
		 .is_odd = true},
		"http:PUT [2606::1]:8443 /a%252Fb odd=yes"},
	{{.verb = S("POST"),
		 .host = S("a.b"),
		 .port = 443,
		 .object = S("/x"),
		 .header = headers,
		 .n_headers = 2,
		 .has_query = true,
		 .query = S("a=1&b=%20\xc3")},
		"http:POST a.b /x header.accept=a%20b header.x-b=2 query=a=1&b=%2520%C3"},
	{{.kind = EFFECT_GIT,
		 .verb = S("push"),
		 .host = S("github.com"),
		 .port = 443,
		 .target = S("acme/app"),
		 .object = S("refs/heads/main"),
		 .path = S("a b/\xc3\xbc")},
		"git:push github.com/acme/app refs/heads/main path=a%20b/%C3%BC"},
	{{.kind = EFFECT_GIT, .verb = S("fetch"), .host = S("g.h"), .port = 443, .target = S("a")},
		"git:fetch g.h/a -"},
	{{.kind = EFFECT_GIT,
		 .is_unknown = true,
		 .host = S("g.h"),
		 .port = 3000,
		 .target = S("a/b"),
		 .why = S("body")},
		"unknown:git g.h:3000/a/b - why=body"},
	{{.kind = EFFECT_API,
		 .verb = S("pull-request.merge"),
		 .target = S("github"),
		 .object = S("repo/acme/app"),
		 .risk = S("danger")},
		"api:pull-request.merge github repo/acme/app risk=danger"},
	{{.kind = EFFECT_API, .is_unknown = true, .target = S("github"), .why = S("no-row")},
		"unknown:api github - why=no-row"},
	{{.kind = EFFECT_API, .verb = S("a.b"), .target = S("s"), .object = S("-")},
		"api:a.b s %2D"},
};

static void texts_are_canonical_and_read_back(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[EFFECT_MAX_TEXT + 1];
		struct effect_copy copy;
		const struct effect *e = &copy.effect, *was = &rows[i].effect;
		struct err err = {0};

		assert_int_equal(effect_print(was, text), strlen(rows[i].text));
		assert_string_equal(text, rows[i].text);
		assert_int_equal(effect_parse(slice_from_str(text), &copy, &err), 0);
		assert_true(e->kind == was->kind && e->is_unknown == was->is_unknown &&
			    e->is_odd == was->is_odd && e->port == was->port &&
			    e->has_query == was->has_query && e->n_headers == was->n_headers);
		assert_true(slice_eq(e->verb, was->verb) && slice_eq(e->host, was->host) &&
			    slice_eq(e->target, was->target) && slice_eq(e->object, was->object) &&
			    slice_eq(e->path, was->path) && slice_eq(e->query, was->query) &&
			    slice_eq(e->risk, was->risk) && slice_eq(e->why, was->why));
	}
}

static void other_spellings_are_refused(void **state)
{
	static const char *const bad[] = {"", "http", "http:", "http:GET", "http:GET a.b",
		"http:GET a.b ", "http: a.b /", "ftp:GET a.b /", "HTTP:GET a.b /",
		"http:GET  a.b /", "http:GET a.b:443 /", "http:GET a.b:0443 /",
		"http:GET a.b:70000 /", "http:GET a.b: /", "http:GET [a.b] /", "http:GET [::1]x /",
		"http:GET a.b / ", "http:GET a.b /a%2fb", "http:GET a.b /%41", "http:GET a.b /%",
		"http:GET a.b /a\tb", "http:GET a.b / odd=no", "http:GET a.b / odd",
		"http:GET a.b / other=1", "http:GET a.b / query", "http:GET a.b / query=a query=b",
		"http:GET a.b / path=", "http:GET a.b / query=1 odd=yes",
		"http:GET a.b / header.b=1 header.a=1", "http:GET a.b / cut=00",
		"http:GET a.b / cut=", "unknown:ftp a.b /", "git:push github.com -",
		"api:a.b s -x\n"};
	struct effect_copy copy;
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (effect_parse(slice_from_str(bad[i]), &copy, &err) == 0)
			fail_msg("'%s' is taken", bad[i]);
}

/* At each length around the limit, with a byte that is escaped at every place. */
static void long_texts_are_cut_and_differ(void **state)
{
	for (size_t n = 400; n < 900; n++) {
		AUTO_FREE char *path = xcalloc(1, n + 1);
		char text[EFFECT_MAX_TEXT + 1], other[EFFECT_MAX_TEXT + 1];
		struct effect e = {.verb = S("GET"), .host = S("a.b"), .port = 443};
		struct effect_copy copy;
		size_t k;

		memset(path, 'x', n);
		path[0] = '/';
		path[n % 150] = n % 150 ? ' ' : '/';
		e.object = slice_of(path, n);
		k = effect_print(&e, text);
		assert_true(k <= EFFECT_MAX_TEXT && k == strlen(text));
		assert_int_equal(effect_parse(slice_from_str(text), &copy, NULL), 0);
		assert_int_equal(
			copy.effect.cut.n > 0, n + 13 + (n % 150 ? 2 : 0) > EFFECT_MAX_TEXT);
		path[n - 1] = 'y';
		(void)effect_print(&e, other);
		assert_string_not_equal(text, other);
	}
}

static void every_fact_of_a_cut_text_counts(void **state)
{
	static uint8_t repo[700];
	struct effect a = {.kind = EFFECT_GIT,
			      .verb = S("push"),
			      .host = S("g.h"),
			      .port = 443,
			      .target = {repo, sizeof(repo)},
			      .object = S("refs/heads/main")},
		      b = a;
	char text[EFFECT_MAX_TEXT + 1], other[EFFECT_MAX_TEXT + 1];

	memset(repo, 0xff, sizeof(repo));
	(void)effect_print(&a, text);
	b.path = slice_from_str("x");
	(void)effect_print(&b, other);
	assert_string_not_equal(text, other);
	b = a;
	b.object = slice_from_str("refs/heads/mine");
	(void)effect_print(&b, other);
	assert_string_not_equal(text, other);
}

static void get_digest(const struct effect *list, size_t n, const char *body, char *hex)
{
	uint8_t sum[EFFECT_DIGEST];

	effect_digest(list, n, slice_from_str(body), sum);
	hex_print(sum, sizeof(sum), hex);
}

static void digest_has_no_order(void **state)
{
	struct effect list[] = {rows[0].effect, rows[4].effect, rows[7].effect},
		      turned[] = {list[2], list[0], list[1]};
	char a[2 * EFFECT_DIGEST + 1], b[2 * EFFECT_DIGEST + 1];

	get_digest(list, 1, "", a);
	/* printf 'http:GET api.example.com /v1/x\n' | sha256sum */
	assert_string_equal(a, "059b171af0a6db0c978137bf38ae18a0556d450ad4628e2db02e79c427eacbf6");
	get_digest(list, 3, "", a);
	get_digest(turned, 3, "", b);
	assert_string_equal(a, b);
	get_digest(list, 2, "", b);
	assert_string_not_equal(a, b);
	get_digest(list, 3, "0123456789abcdef0123456789abcdef", b);
	assert_string_not_equal(a, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_canonical_and_read_back),
		cmocka_unit_test(other_spellings_are_refused),
		cmocka_unit_test(long_texts_are_cut_and_differ),
		cmocka_unit_test(every_fact_of_a_cut_text_counts),
		cmocka_unit_test(digest_has_no_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
