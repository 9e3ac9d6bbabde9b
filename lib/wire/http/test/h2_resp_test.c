/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/http/h2_resp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"

/* "name: value" lines; a pseudo-header keeps its colon. */
static void add_all(struct h2_resp *r, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n"), name = 1 + strcspn(text + 1, ":");

		h2_resp_add(r, slice_of(text, name),
			slice_of(text + name + 2, n > name + 2 ? n - name - 2 : 0));
		text += n + (text[n] == '\n');
	}
}

static int take(const char *text, bool was_head, bool ended, struct arena *arena,
	struct http_resp *resp, struct http_fault *fault)
{
	struct h2_resp r;

	arena_init(arena, HTTP_ARENA_SIZE);
	h2_resp_begin(&r, arena);
	add_all(&r, text);
	return h2_resp_take(&r, was_head, ended, resp, fault);
}

static void answers_are_read(void **state)
{
	static const struct {
		const char *text;
		bool was_head, ended;
		uint16_t status;
		enum http_body_kind kind;
		uint64_t length;
		bool absent;
	} row[] = {
		{":status: 200\na: b\n", false, false, 200, HTTP_BODY_CHUNKED, 0, false},
		{":status: 200\n", false, true, 200, HTTP_BODY_LENGTH, 0, false},
		{":status: 200\ncontent-length: 7\n", false, false, 200, HTTP_BODY_LENGTH, 7,
			false},
		{":status: 200\ncontent-length: 7\n", true, true, 200, HTTP_BODY_LENGTH, 7, true},
		{":status: 200\n", true, true, 200, HTTP_BODY_NONE, 0, true},
		{":status: 304\ncontent-length: 7\n", false, true, 304, HTTP_BODY_LENGTH, 7, true},
		{":status: 204\n", false, true, 204, HTTP_BODY_NONE, 0, false},
		{":status: 204\ncontent-length: 0\n", false, true, 204, HTTP_BODY_NONE, 0, false},
		{":status: 100\n", false, false, 100, HTTP_BODY_NONE, 0, false},
		{":status: 103\nlink: x\n", false, false, 103, HTTP_BODY_NONE, 0, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct http_fault fault = {0};
		struct http_resp resp;
		struct arena arena;

		if (take(row[i].text, row[i].was_head, row[i].ended, &arena, &resp, &fault) < 0)
			fail_msg("%s: %s", row[i].text, fault.why);
		assert_int_equal(resp.status, row[i].status);
		assert_int_equal(resp.body.kind, row[i].kind);
		assert_int_equal(resp.body.length, row[i].length);
		assert_int_equal(resp.body.absent, row[i].absent);
		assert_int_equal(canon_make_resp(&resp, &fault), 0);
		assert_int_equal(canon_check_resp(&resp), 0);
		arena_done(&arena);
	}
}

static void what_is_no_answer_is_refused(void **state)
{
	static const struct {
		const char *text, *why;
		bool ended;
	} row[] = {
		{"a: b\n", "no :status", false},
		{"a: b\n:status: 200\n", "after regular headers", false},
		{":status: 200\n:status: 200\n", "duplicate", false},
		{":status: 200\n:path: /\n", "pseudo-header", false},
		{":method: GET\n:status: 200\n", "pseudo-header", false},
		{":status: 20\n", "is invalid", false},
		{":status: 600\n", "is invalid", false},
		{":status: +20\n", "is invalid", false},
		{":status: 101\n", "101", false},
		{":status: 200\nConnection: close\n", "invalid character", false},
		{":status: 200\nconnection: close\n", "not allowed in HTTP/2", false},
		{":status: 200\ntransfer-encoding: chunked\n", "not allowed in HTTP/2", false},
		{":status: 200\nupgrade: websocket\n", "not allowed in HTTP/2", false},
		{":status: 200\na: b\rc: d\n", "control", false},
		{":status: 200\na:  b\n", "leading or trailing spaces", false},
		{":status: 200\ncontent-length: 1\ncontent-length: 1\n", "more than one", false},
		{":status: 200\ncontent-length: -1\n", "not a number", false},
		{":status: 200\ncontent-length: 9223372036854775808\n", "not a number", false},
		{":status: 200\ncontent-length: 1\n", "shorter", true},
		{":status: 204\ncontent-length: 1\n", "allows none", true},
		{":status: 100\n", "ends the stream", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct http_fault fault = {0};
		struct http_resp resp;
		struct arena arena;

		if (take(row[i].text, false, row[i].ended, &arena, &resp, &fault) == 0)
			fail_msg("taken: %s", row[i].text);
		assert_int_equal(fault.status, 502);
		if (!strstr(fault.why, row[i].why))
			fail_msg("%s: %s", row[i].text, fault.why);
		arena_done(&arena);
	}
}

static void too_much_is_refused(void **state)
{
	AUTO_FREE uint8_t *big = xcalloc(1, HTTP_MAX_HEAD);
	struct http_fault fault = {0};
	struct http_resp resp;
	struct arena arena;
	struct h2_resp r;

	memset(big, 'a', HTTP_MAX_HEAD);
	arena_init(&arena, HTTP_ARENA_SIZE);
	h2_resp_begin(&r, &arena);
	h2_resp_add(&r, slice_from_str(":status"), slice_from_str("200"));
	for (size_t i = 0; i < HTTP_MAX_HEADERS; i++)
		h2_resp_add(&r, slice_from_str("a"), slice_from_str("b"));
	assert_int_equal(h2_resp_take(&r, false, false, &resp, &fault), 0);
	h2_resp_add(&r, slice_from_str("a"), slice_from_str("b"));
	assert_int_equal(h2_resp_take(&r, false, false, &resp, &fault), -EBADMSG);

	arena_reset(&arena);
	h2_resp_begin(&r, &arena);
	h2_resp_add(&r, slice_from_str(":status"), slice_from_str("200"));
	/* A bomb: little on the wire, much when it is unpacked. It costs no memory and is
	 * counted. */
	for (size_t i = 0; i < 1000; i++)
		h2_resp_add(&r, slice_from_str("a"), slice_of(big, HTTP_MAX_HEAD / 2));
	assert_int_equal(h2_resp_take(&r, false, false, &resp, &fault), -EBADMSG);
	assert_true(h2_cost(&r.block) > 1000 * (HTTP_MAX_HEAD / 2));
	assert_true(arena.n <= HTTP_ARENA_SIZE);
	arena_done(&arena);
}

static void a_request_becomes_fields(void **state)
{
	struct http_header list[] = {{slice_from_str("accept"), slice_from_str("*/*")}};
	struct http_req req = {.method = slice_from_str("POST"),
		.scheme = HTTP_SCHEME_HTTPS,
		.host = slice_from_str("2001:db8::1"),
		.port = 8443,
		.path = slice_from_str("/a"),
		.query = slice_from_str("b=c"),
		.has_query = true,
		.body = {.kind = HTTP_BODY_LENGTH, .length = 5},
		.te_trailers = true,
		.expect_continue = true,
		.headers = {.list = list, .n = 1, .max = 1}};
	static const char *const want[][2] = {{":method", "POST"}, {":scheme", "https"},
		{":authority", "[2001:db8::1]:8443"}, {":path", "/a?b=c"}, {"accept", "*/*"},
		{"te", "trailers"}, {"content-length", "5"}, {"expect", "100-continue"}};
	struct h2_req_fields f;
	struct arena arena;

	arena_init(&arena, 4096);
	assert_int_equal(h2_resp_put_req(&req, &arena, &f), 0);
	assert_int_equal(f.n, ARRAY_LEN(want));
	for (size_t i = 0; i < f.n; i++)
		assert_true(slice_eq_str(f.list[i].name, want[i][0]) &&
			    slice_eq_str(f.list[i].value, want[i][1]));
	req.host = slice_from_str("A");
	assert_int_equal(h2_resp_put_req(&req, &arena, &f), -EINVAL);
	req.host = slice_from_str("a");
	req.port = 443;
	req.has_query = false;
	req.query = slice_of(NULL, 0);
	assert_int_equal(h2_resp_put_req(&req, &arena, &f), 0);
	assert_true(slice_eq_str(f.list[2].value, "a") && slice_eq_str(f.list[3].value, "/a"));
	arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_read),
		cmocka_unit_test(what_is_no_answer_is_refused),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(a_request_becomes_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
