/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/wire/http/api_http.h"
#include "lib/base/mem.h"

/* A playbook row: the bytes, then what must come out: "status why..." or the request as text, and
 * how many bytes are left over. Each is replayed whole, byte by byte and split at every offset. */
struct play {
	const char *in;
	const char *out;
	size_t left;
};

static const struct play plays[] = {
	{"GET /v1/version HTTP/1.1\r\n\r\n", "GET [v1][version] keep", 0},
	{"GET /v1/version HTTP/1.1\r\nHost: sbx\r\nConnection: close\r\n\r\n",
		"GET [v1][version] close", 0},
	{"GET /a%20b/c%C3%A4 HTTP/1.1\r\n\r\n", "GET [a b][c\xc3\xa4] keep", 0},
	{"GET /a?wait=10&x=%41%3d HTTP/1.1\r\n\r\n", "GET [a] wait=10 x=A= keep", 0},
	{"GET /a?r=10.0.0.0%2f8&s=x/y HTTP/1.1\r\n\r\n", "GET [a] r=10.0.0.0/8 s=x/y keep", 0},
	{"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "POST [a] keep body=hello", 0},
	{"POST /a HTTP/1.1\r\ncontent-length:5 \t\r\n\r\nhelloGET", "POST [a] keep body=hello", 3},
	{"POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "POST [a] keep", 0},
	{"POST /a HTTP/1.1\r\nConnection: Upgrade, keep-alive\r\nUpgrade: sbx-stream\r\n\r\nX",
		"POST [a] keep upgrade", 1},
	{"PATCH /a HTTP/1.1\r\nX: a:b\tc\r\n\r\n", "PATCH [a] keep", 0},
	{"DELETE /a/b/c/d/e/f/g/h HTTP/1.1\r\n\r\n", "DELETE [a][b][c][d][e][f][g][h] keep", 0},
	{"\r\n\r\n", "400", 0},
	{"GET /a HTTP/1.1\n", "400", 1},
	{"GET /a HTTP/1.1\r\nA: b\n", "400", 1},
	{"GET /a\rb HTTP/1.1\r\n", "400", 12},
	{"GET /a HTTP/1.0\r\n\r\n", "505", 0},
	{"GET /a HTTP/2.0\r\n\r\n", "505", 0},
	{"GET /a\r\n\r\n", "400", 0},
	{"GET  /a HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a HTTP/1.1 \r\n\r\n", "505", 0},
	{"GET /a b HTTP/1.1\r\n\r\n", "400", 0},
	{"get /a HTTP/1.1\r\n\r\n", "501", 0},
	{"PUT /a HTTP/1.1\r\n\r\n", "PUT [a] keep", 0},
	{"TRACE /a HTTP/1.1\r\n\r\n", "501", 0},
	{"GET a HTTP/1.1\r\n\r\n", "400", 0},
	{"GET http://x/a HTTP/1.1\r\n\r\n", "400", 0},
	{"GET / HTTP/1.1\r\n\r\n", "400", 0},
	{"GET //a HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a/ HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a#b HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a%2fb HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a%00b HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a%0ab HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a%4 HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a% HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a%zz HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /\xc3\xa4 HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a? HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a?x HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a?=x HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a?x=1&x=2 HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a/b/c/d/e/f/g/h/i HTTP/1.1\r\n\r\n", "400", 0},
	{"GET /a HTTP/1.1\r\nA: b\r\n c\r\n\r\n", "400", 0},
	{"GET /a HTTP/1.1\r\nA b\r\n\r\n", "400", 0},
	{"GET /a HTTP/1.1\r\n: b\r\n\r\n", "400", 0},
	{"GET /a HTTP/1.1\r\nA : b\r\n\r\n", "400", 0},
	{"GET /a HTTP/1.1\r\nA: \x01\r\n\r\n", "400", 0},
	{"GET /a HTTP/1.1\r\nA: \xff\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nContent-Length: +1\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nContent-Length: 0x1\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nContent-Length:\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n", "413", 0},
	{"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "411", 0},
	{"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nExpect: 100-continue\r\n\r\n", "417", 0},
	{"POST /a HTTP/1.1\r\nUpgrade: sbx-stream\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nConnection: upgrade\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nConnection: te\r\n\r\n", "400", 0},
	{"POST /a HTTP/1.1\r\nContent-Len", "wait", 0},
	{"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", "wait", 0},
};

static void describe(const struct api_http *h, char *buf, size_t size)
{
	size_t n = 0;

#define ADD(...) n += (size_t)snprintf(buf + n, size - n, __VA_ARGS__)
	if (h->state == API_HTTP_BAD)
		ADD("%d", h->status);
	else if (h->state != API_HTTP_READY)
		ADD("wait");
	if (h->state != API_HTTP_READY)
		return;
	ADD("%s ", api_http_method_name(h->method));
	for (size_t i = 0; i < h->n_parts; i++)
		ADD("[%s]", h->part[i]);
	for (size_t i = 0; i < h->n_query; i++)
		ADD(" %s=%s", h->query[i].key, h->query[i].value);
	ADD(h->keep ? " keep" : " close");
	if (h->upgrade)
		ADD(" upgrade");
	if (h->body.n)
		ADD(" body=%.*s", (int)h->body.n, (const char *)h->body.p);
#undef ADD
}

/* Feeds `in` cut at `cut` (0: whole, SIZE_MAX: byte by byte). */
static size_t feed_cut(struct api_http *h, struct slice in, size_t cut)
{
	size_t at = 0;

	while (at < in.n) {
		size_t k = cut == SIZE_MAX ? 1 : cut > at ? cut - at : in.n - at;
		/* A heap copy of the exact size, so that a read too far is seen. */
		AUTO_FREE uint8_t *copy = xmalloc(k);
		size_t eaten;

		memcpy(copy, in.p + at, k);
		eaten = api_http_feed(h, slice_of(copy, k));
		at += eaten;
		if (eaten < k)
			break;
	}
	return in.n - at;
}

static void check_play(const struct play *p, size_t cut)
{
	struct api_http h = {0};
	char got[512];
	size_t left = feed_cut(&h, slice_from_str(p->in), cut);

	describe(&h, got, sizeof(got));
	if (strcmp(got, p->out) != 0 || left != p->left)
		fail_msg("'%s' cut at %zd: got '%s' left %zu (%s), not '%s' left %zu", p->in,
			(ssize_t)cut, got, left, h.why ? h.why : "-", p->out, p->left);
	assert_true(h.state != API_HTTP_BAD || (h.why && !h.keep));
	api_http_done(&h);
}

static void playbooks(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
		check_play(&plays[i], 0);
		check_play(&plays[i], SIZE_MAX);
		for (size_t cut = 1; cut < strlen(plays[i].in); cut++)
			check_play(&plays[i], cut);
	}
}

static void a_nul_is_refused_at_once(void **state)
{
	struct api_http h = {0};

	assert_int_equal(api_http_feed(&h, slice_of("GET /\0", 6)), 5);
	assert_int_equal(h.state, API_HTTP_BAD);
	assert_int_equal(api_http_feed(&h, slice_of("x", 1)), 0);
	api_http_done(&h);
}

static void heads_have_limits(void **state)
{
	struct api_http h = {0};
	char line[64];
	size_t n;

	assert_int_equal(api_http_feed(&h, slice_from_str("GET /")), 5);
	for (n = 5; h.state == API_HTTP_IN_HEAD; n++)
		assert_int_equal(api_http_feed(&h, slice_from_str("a")), 1);
	assert_int_equal(n, API_HTTP_MAX_HEAD);
	assert_int_equal(h.status, 431);
	api_http_reset(&h);
	(void)!api_http_feed(&h, slice_from_str("GET /a HTTP/1.1\r\n"));
	for (n = 0; n < API_HTTP_MAX_HEADERS + 1; n++) {
		snprintf(line, sizeof(line), "H%zu: v\r\n", n);
		(void)!api_http_feed(&h, slice_from_str(line));
	}
	(void)!api_http_feed(&h, slice_from_str("\r\n"));
	assert_int_equal(h.status, 431);
	api_http_done(&h);
}

static void requests_follow_each_other(void **state)
{
	static const char two[] = "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
	struct slice in = slice_from_str(two);
	struct api_http h = {0};
	size_t n = api_http_feed(&h, in);

	assert_int_equal(h.state, API_HTTP_READY);
	assert_int_equal(n, in.n / 2);
	assert_int_equal(api_http_feed(&h, slice_of(in.p + n, in.n - n)), 0);
	api_http_reset(&h);
	assert_int_equal(api_http_feed(&h, slice_of(in.p + n, in.n - n)), n);
	assert_string_equal(h.part[0], "b");
	api_http_done(&h);
}

static void heads_of_responses(void **state)
{
	char buf[API_HTTP_HEAD_ROOM];

	size_t n = api_http_put_head(buf, 200, NULL, 5, true);

	assert_int_equal(n, strlen(buf));
	assert_string_equal(buf, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
				 "Content-Length: 5\r\nConnection: keep-alive\r\n\r\n");
	api_http_put_head(buf, 204, NULL, 0, false);
	assert_string_equal(buf, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
	assert_true(api_http_put_head(buf, 431, NULL, SIZE_MAX, true) < sizeof(buf));
	assert_int_equal(api_http_put_chunk_size(buf, 26), 4);
	assert_string_equal(buf, "1a\r\n");
	assert_true(api_http_put_chunked_head(buf) < sizeof(buf));
	assert_true(api_http_put_upgrade(buf) < sizeof(buf));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(playbooks),
		cmocka_unit_test(a_nul_is_refused_at_once),
		cmocka_unit_test(heads_have_limits),
		cmocka_unit_test(requests_follow_each_other),
		cmocka_unit_test(heads_of_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
