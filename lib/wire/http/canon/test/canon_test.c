/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/http/canon/canon.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "canon_rig.h"
#include "lib/wire/http/canon/canon_text.h"

#define NAME(h, p)                                                                        \
	{                                                                                 \
		.given = true, .host = {(const uint8_t *)(h), sizeof(h) - 1}, .port = (p) \
	}
#define NONE                   \
	{                      \
		.given = false \
	}

static const struct {
	const char *what;
	struct canon_names names;
	enum canon_verdict verdict;
} agreements[] = {
	{"transparent, Host without port",
		{NAME("a.test", 80), NONE, NAME("a.test", 0), NONE, HTTP_SCHEME_HTTP, false},
		CANON_AGREE},
	{"transparent, Host with port",
		{NAME("a.test", 8080), NONE, NAME("a.test", 8080), NONE, HTTP_SCHEME_HTTP, false},
		CANON_AGREE},
	{"transparent, another port, Host without",
		{NAME("a.test", 8080), NONE, NAME("a.test", 0), NONE, HTTP_SCHEME_HTTP, false},
		CANON_HOST_DIFFERS},
	{"transparent, other Host",
		{NAME("a.test", 80), NONE, NAME("b.test", 0), NONE, HTTP_SCHEME_HTTP, false},
		CANON_HOST_DIFFERS},
	{"Host is a prefix",
		{NAME("a.test", 80), NONE, NAME("a.tes", 0), NONE, HTTP_SCHEME_HTTP, false},
		CANON_HOST_DIFFERS},
	{"no Host (HTTP/1.0)", {NAME("a.test", 80), NONE, NONE, NONE, HTTP_SCHEME_HTTP, false},
		CANON_AGREE},
	{"absolute, agrees",
		{NAME("a.test", 80), NAME("a.test", 0), NAME("a.test", 80), NONE, HTTP_SCHEME_HTTP,
			false},
		CANON_AGREE},
	{"absolute, other target",
		{NAME("a.test", 80), NAME("b.test", 0), NAME("a.test", 0), NONE, HTTP_SCHEME_HTTP,
			false},
		CANON_AUTHORITY_DIFFERS},
	{"absolute, other port",
		{NAME("a.test", 80), NAME("a.test", 81), NAME("a.test", 0), NONE, HTTP_SCHEME_HTTP,
			false},
		CANON_AUTHORITY_DIFFERS},
	{"nothing names a target", {NONE, NONE, NAME("a.test", 0), NONE, HTTP_SCHEME_HTTP, false},
		CANON_NO_TARGET},
	{"connect, Host without port",
		{NAME("a.test", 8443), NAME("a.test", 8443), NAME("a.test", 0), NONE,
			HTTP_SCHEME_HTTP, true},
		CANON_AGREE},
	{"connect, other Host",
		{NAME("a.test", 443), NAME("a.test", 443), NAME("b.test", 443), NONE,
			HTTP_SCHEME_HTTP, true},
		CANON_HOST_DIFFERS},
	{"connect, Host with another port",
		{NAME("a.test", 443), NAME("a.test", 443), NAME("a.test", 80), NONE,
			HTTP_SCHEME_HTTP, true},
		CANON_HOST_DIFFERS},
	{"tls, all agree",
		{NAME("a.test", 443), NONE, NAME("a.test", 0), NAME("a.test", 0), HTTP_SCHEME_HTTPS,
			false},
		CANON_AGREE},
	{"tls, Host says the port",
		{NAME("a.test", 443), NONE, NAME("a.test", 443), NAME("a.test", 0),
			HTTP_SCHEME_HTTPS, false},
		CANON_AGREE},
	{"tls, Host says port 80",
		{NAME("a.test", 443), NONE, NAME("a.test", 80), NAME("a.test", 0),
			HTTP_SCHEME_HTTPS, false},
		CANON_HOST_DIFFERS},
	{"fronting: SNI of another",
		{NAME("a.test", 443), NONE, NAME("a.test", 0), NAME("b.test", 0), HTTP_SCHEME_HTTPS,
			false},
		CANON_SNI_DIFFERS},
	{"fronting: Host of another",
		{NAME("a.test", 443), NONE, NAME("b.test", 0), NAME("a.test", 0), HTTP_SCHEME_HTTPS,
			false},
		CANON_HOST_DIFFERS},
	{"fronting: target of another",
		{NAME("b.test", 443), NONE, NAME("a.test", 0), NAME("a.test", 0), HTTP_SCHEME_HTTPS,
			false},
		CANON_HOST_DIFFERS},
	{"tls without SNI",
		{NAME("a.test", 443), NONE, NAME("a.test", 0), NONE, HTTP_SCHEME_HTTPS, false},
		CANON_SNI_MISSING},
	{"tls to an address, no SNI",
		{NAME("192.0.2.1", 443), NONE, NAME("192.0.2.1", 0), NONE, HTTP_SCHEME_HTTPS,
			false},
		CANON_AGREE},
	{"tls to an address with SNI",
		{NAME("192.0.2.1", 443), NONE, NAME("192.0.2.1", 0), NAME("a.test", 0),
			HTTP_SCHEME_HTTPS, false},
		CANON_SNI_DIFFERS},
	{"tls to an address sent as SNI",
		{NAME("2001:db8::1", 443), NONE, NAME("2001:db8::1", 0), NAME("2001:db8::1", 0),
			HTTP_SCHEME_HTTPS, false},
		CANON_SNI_DIFFERS},
	{"address and name",
		{NAME("192.0.2.1", 80), NONE, NAME("a.test", 0), NONE, HTTP_SCHEME_HTTP, false},
		CANON_HOST_DIFFERS},
};

static void names_must_agree(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(agreements); i++) {
		enum canon_verdict v = canon_agree(&agreements[i].names);

		if (v != agreements[i].verdict)
			print_error("%s: %s\n", agreements[i].what, canon_verdict_text(v));
		assert_int_equal(v, agreements[i].verdict);
	}
}

static void authorities_are_cut_in_two(void **state)
{
	static const struct {
		const char *text, *host;
		int port; /* -1: refused */
	} rows[] = {
		{"a.test", "a.test", 0},
		{"a.test:1", "a.test", 1},
		{"a.test:65535", "a.test", 65535},
		{"[::1]", "::1", 0},
		{"[::1]:80", "::1", 80},
		{"", NULL, -1},
		{":80", NULL, -1},
		{"a.test:", NULL, -1},
		{"a.test:0", NULL, -1},
		{"a.test:080", NULL, -1},
		{"a.test:65536", NULL, -1},
		{"a.test:+80", NULL, -1},
		{"a.test:80:80", NULL, -1},
		{"::1", NULL, -1},
		{"[::1", NULL, -1},
		{"[]", NULL, -1},
		{"[a.test]", NULL, -1},
		{"[::1]80", NULL, -1},
		{"[::1]:", NULL, -1},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice host;
		uint16_t port;
		int r = canon_split_authority(slice_from_str(rows[i].text), &host, &port);

		if ((r < 0) != (rows[i].port < 0))
			print_error("%s\n", rows[i].text);
		assert_int_equal(r < 0, rows[i].port < 0);
		if (r == 0) {
			assert_true(slice_eq_str(host, rows[i].host));
			assert_int_equal(port, rows[i].port);
		}
	}
}

static void addresses_are_told_from_names(void **state)
{
	assert_true(canon_host_is_address(slice_from_str("192.0.2.1")));
	assert_true(canon_host_is_address(slice_from_str("::1")));
	assert_false(canon_host_is_address(slice_from_str("a1.test")));
	assert_false(canon_host_is_address(slice_from_str("host1")));
	assert_false(canon_host_is_address(slice_from_str("")));
}

static void paths_have_one_normal_form(void **state)
{
	static const struct {
		const char *path, *normal; /* NULL: refused */
		unsigned int odd;
	} rows[] = {
		{"/", "/", 0},
		{"/a/b", "/a/b", 0},
		{"/a/b/", "/a/b/", 0},
		{"/a%20b%c3%a9", "/a%20b%C3%A9", 0},
		{"/a:b@c;d=1,2!$&'()*+|{}^[]~", "/a:b@c;d=1,2!$&'()*+|{}^[]~", 0},
		{"//a///b", "/a/b", CANON_ODD_SLASHES},
		{"/a//", "/a/", CANON_ODD_SLASHES},
		{"/a/./b", "/a/b", CANON_ODD_DOTS},
		{"/a/.", "/a/", CANON_ODD_DOTS},
		{"/a/../b", "/b", CANON_ODD_DOTS},
		{"/a/b/..", "/a/", CANON_ODD_DOTS},
		{"/a/..", "/", CANON_ODD_DOTS},
		{"/a/%2e%2E/b", "/b", CANON_ODD_DOTS},
		{"/a/.%2e/b", "/b", CANON_ODD_DOTS},
		{"/a/...", "/a/...", 0},
		{"/a/.b", "/a/.b", 0},
		{"/a%2fb", "/a%2Fb", CANON_ODD_CODED_SLASH},
		{"/a%5c..%5cb", "/a%5C..%5Cb", CANON_ODD_CODED_SLASH},
		{"/%61", "/a", CANON_ODD_CODED_ASCII},
		{"/a%0d%0a", "/a%0D%0A", CANON_ODD_CODED_CTRL},
		{"/a/..;/b", "/a/..;/b", CANON_ODD_SEMICOLON},
		{"/a/%2e%2e%3bx/b", "/a/..%3Bx/b", CANON_ODD_SEMICOLON | CANON_ODD_CODED_ASCII},
		{"/a%252e", "/a%252e", 0},
		{"", NULL, 0},
		{"a", NULL, 0},
		{"/..", NULL, 0},
		{"/a/../..", NULL, 0},
		{"/a//../../b", NULL, 0},
		{"/..;/", NULL, 0},
		{"/.;x/../etc", NULL, 0}, /* "." with a parameter is no segment to go up from */
		{"/a/.;/../../b", NULL, 0},
		{"/%2e%3bx/../etc", NULL, 0},
		{"/%2e./a", NULL, 0},
		{"/a%00", NULL, 0},
		{"/a%", NULL, 0},
		{"/a%2", NULL, 0},
		{"/a%2g", NULL, 0},
		{"/a\\b", NULL, 0},
		{"/a#b", NULL, 0},
		{"/a?b", NULL, 0},
		{"/a b", NULL, 0},
		{"/a\x7f", NULL, 0},
		{"/\xc3\xa9", NULL, 0},
		{"/\"", NULL, 0},
	};
	struct arena arena;

	arena_init(&arena, 4096);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice got = {0};
		unsigned int odd = 0;
		int r;

		arena_reset(&arena);
		r = canon_normal_path(slice_from_str(rows[i].path), &arena, &got, &odd);
		if ((r == 0) != (rows[i].normal != NULL) ||
			(r == 0 && (!slice_eq_str(got, rows[i].normal) || odd != rows[i].odd)))
			print_error("%s -> %.*s %u\n", rows[i].path, (int)got.n,
				(const char *)got.p, odd);
		assert_int_equal(r == 0, rows[i].normal != NULL);
		if (r == 0) {
			assert_true(slice_eq_str(got, rows[i].normal));
			assert_int_equal(odd, rows[i].odd);
		}
	}
	arena_done(&arena);
}

static void headers_are_found_and_set_once(void **state)
{
	struct http_header list[4] = {
		{slice_from_str("accept"), slice_from_str("a")},
		{slice_from_str("x"), slice_from_str("1")},
		{slice_from_str("x"), slice_from_str("2")},
	};
	struct http_headers headers = {.list = list, .n = 3, .max = 4};
	size_t at;

	assert_int_equal(canon_find_header(&headers, "accept", &at), 0);
	assert_int_equal(at, 0);
	assert_int_equal(canon_find_header(&headers, "x", &at), -ENOTUNIQ);
	assert_int_equal(canon_find_header(&headers, "y", &at), -ENOENT);
	assert_int_equal(
		canon_set_header(&headers, slice_from_str("x"), slice_from_str("3")), -ENOTUNIQ);
	assert_int_equal(
		canon_set_header(&headers, slice_from_str("accept"), slice_from_str("b")), 0);
	assert_true(slice_eq_str(list[0].value, "b"));
	assert_int_equal(headers.n, 3);
	assert_int_equal(
		canon_set_header(&headers, slice_from_str("authorization"), slice_from_str("c")),
		0);
	assert_int_equal(headers.n, 4);
	assert_int_equal(
		canon_set_header(&headers, slice_from_str("other"), slice_from_str("c")), -ENOBUFS);
}

static void headers_that_frame_cannot_be_set(void **state)
{
	static const char *const names[] = {"host", "content-length", "transfer-encoding",
		"connection", "proxy-authorization", "te", "upgrade", "content_length", "", "X",
		"a b", "a:"};
	struct http_header list[2];
	struct http_headers headers = {.list = list, .n = 0, .max = 2};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(
			canon_set_header(&headers, slice_from_str(names[i]), slice_from_str("1")),
			-EINVAL);
	assert_int_equal(
		canon_set_header(&headers, slice_from_str("a"), slice_from_str("1\r\nb: 2")),
		-EINVAL);
	assert_int_equal(
		canon_set_header(&headers, slice_from_str("a"), slice_from_str(" 1")), -EINVAL);
	assert_int_equal(headers.n, 0);
}

static void check_written(const struct http_req *req, enum canon_to to, const char *expected)
{
	char buf[1024];
	struct wr wr = wr_init(buf, sizeof(buf) - 1);

	assert_int_equal(canon_check_req(req), 0);
	assert_int_equal(canon_write_req(&wr, req, to), 0);
	buf[wr.n] = '\0';
	assert_string_equal(buf, expected);
	wr = wr_init(buf, strlen(expected) - 1);
	assert_int_equal(canon_write_req(&wr, req, to), -EMSGSIZE);
}

static void requests_are_written(void **state)
{
	struct http_req req = {.method = slice_from_str("GET"),
		.host = slice_from_str("a.test"),
		.port = 80,
		.path = slice_from_str("/x"),
		.has_query = true};

	check_written(&req, CANON_TO_ORIGIN, "GET /x? HTTP/1.1\r\nhost: a.test\r\n\r\n");
	check_written(
		&req, CANON_TO_PROXY, "GET http://a.test/x? HTTP/1.1\r\nhost: a.test\r\n\r\n");
	req.port = 443;
	req.scheme = HTTP_SCHEME_HTTPS;
	req.te_trailers = true;
	check_written(&req, CANON_TO_ORIGIN,
		"GET /x? HTTP/1.1\r\nhost: a.test\r\nte: trailers\r\nconnection: te\r\n\r\n");
	req.body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = 1};
	check_written(&req, CANON_TO_ORIGIN,
		"GET /x? HTTP/1.1\r\nhost: a.test\r\nte: trailers\r\nconnection: te, close\r\n"
		"content-length: 1\r\n\r\n");
	req = (struct http_req){.method = slice_from_str("CONNECT"),
		.form = HTTP_FORM_AUTHORITY,
		.host = slice_from_str("::1"),
		.port = 443,
		.scheme = HTTP_SCHEME_HTTPS,
		.body = {.kind = HTTP_BODY_TUNNEL}};
	check_written(
		&req, CANON_TO_PROXY, "CONNECT [::1]:443 HTTP/1.1\r\nhost: [::1]:443\r\n\r\n");
	req = (struct http_req){.method = slice_from_str("OPTIONS"),
		.form = HTTP_FORM_ASTERISK,
		.path = slice_from_str("*"),
		.host = slice_from_str("a.test"),
		.port = 81};
	check_written(&req, CANON_TO_ORIGIN, "OPTIONS * HTTP/1.1\r\nhost: a.test:81\r\n\r\n");
	check_written(&req, CANON_TO_PROXY,
		"OPTIONS http://a.test:81 HTTP/1.1\r\nhost: a.test:81\r\n\r\n");
}

static void check_resp_written(struct http_resp resp, bool close, const char *expected)
{
	char buf[1024];
	struct wr wr = wr_init(buf, sizeof(buf) - 1);

	assert_int_equal(canon_check_resp(&resp), 0);
	assert_int_equal(canon_write_resp(&wr, &resp, close), 0);
	buf[wr.n] = '\0';
	assert_string_equal(buf, expected);
}

static void responses_are_written(void **state)
{
	struct http_resp resp = {.status = 200, .body = {.kind = HTTP_BODY_CHUNKED}};

	check_resp_written(resp, false, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
	canon_fit_http10(&resp);
	check_resp_written(resp, false, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
	resp.body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = 9, .absent = true};
	check_resp_written(
		resp, true, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 9\r\n\r\n");
	resp = (struct http_resp){.status = 101, .websocket = true, .body = {HTTP_BODY_TUNNEL}};
	check_resp_written(resp, true,
		"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: "
		"upgrade\r\n\r\n");
	resp = (struct http_resp){.status = 100};
	check_resp_written(resp, true, "HTTP/1.1 100 Continue\r\n\r\n");
	resp = (struct http_resp){.status = 200, .body = {HTTP_BODY_TUNNEL}};
	check_resp_written(resp, true, "HTTP/1.1 200 OK\r\n\r\n");
}

static void responses_lose_what_was_for_the_connection(void **state)
{
	struct http_header list[] = {
		{slice_from_str("connection"), slice_from_str("x-hop, close")},
		{slice_from_str("x-hop"), slice_from_str("1")},
		{slice_from_str("proxy-authenticate"), slice_from_str("Basic")},
		{slice_from_str("content-length"), slice_from_str("4")},
		{slice_from_str("set-cookie"), slice_from_str("a")},
		{slice_from_str("set-cookie"), slice_from_str("b")},
	};
	struct http_resp resp = {.status = 200,
		.body = {.kind = HTTP_BODY_LENGTH, .length = 4},
		.headers = {list, ARRAY_LEN(list), ARRAY_LEN(list)}};
	struct http_fault fault;

	assert_int_equal(canon_make_resp(&resp, &fault), 0);
	check_resp_written(resp, false,
		"HTTP/1.1 200 OK\r\nset-cookie: a\r\nset-cookie: b\r\ncontent-length: 4\r\n\r\n");
}

static struct http_req good_req(void)
{
	return (struct http_req){.method = slice_from_str("GET"),
		.host = slice_from_str("a.test"),
		.port = 80,
		.path = slice_from_str("/")};
}

/* Each row breaks one field of a good request. */
static void what_is_not_canonical_is_refused(void **state)
{
	struct http_header bad = {slice_from_str("host"), slice_from_str("b.test")};
	struct http_req req[32];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(req); i++)
		req[i] = good_req();
	assert_int_equal(canon_check_req(&req[0]), 0);
	req[n++].method = slice_from_str("G T");
	req[n++].method = slice_from_str("");
	req[n++].method = slice_from_str("CONNECT");
	req[n++].method = slice_from_str("A0123456789012345678901234567890123456789");
	req[n++].host = slice_from_str("");
	req[n++].host = slice_from_str("A.test");
	req[n++].host = slice_from_str("a.test\r\n");
	req[n++].host = slice_of("a\0b", 3);
	req[n++].port = 0;
	req[n++].path = slice_from_str("");
	req[n++].path = slice_from_str("*");
	req[n++].path = slice_from_str("/a HTTP/1.1");
	req[n++].path = slice_from_str("/a?b");
	req[n++].query = slice_from_str("x");
	req[n].has_query = true;
	req[n++].query = slice_from_str("a b");
	req[n++].form = HTTP_FORM_ABSOLUTE;
	req[n++].form = HTTP_FORM_AUTHORITY;
	req[n++].form = HTTP_FORM_ASTERISK;
	req[n++].scheme = (enum http_scheme)2;
	req[n++].body.kind = HTTP_BODY_CLOSE;
	req[n++].body.kind = HTTP_BODY_TUNNEL;
	req[n++].body.length = 1;
	req[n++].body.absent = true;
	req[n++].expect_continue = true;
	req[n].websocket = true;
	req[n++].method = slice_from_str("POST");
	req[n++].headers = (struct http_headers){&bad, 1, 1};
	for (size_t i = 0; i < n; i++) {
		if (canon_check_req(&req[i]) == 0)
			print_error("row %zu\n", i);
		assert_int_equal(canon_check_req(&req[i]), -EINVAL);
	}
}

static void responses_that_are_not_canonical_are_refused(void **state)
{
	static const struct http_resp rows[] = {
		{.status = 99},
		{.status = 600},
		{.status = 100, .body = {HTTP_BODY_LENGTH, 0, false}},
		{.status = 204, .body = {HTTP_BODY_CHUNKED, 0, false}},
		{.status = 304},
		{.status = 200, .body = {HTTP_BODY_NONE, 1, false}},
		{.status = 200, .body = {HTTP_BODY_CHUNKED, 0, true}},
		{.status = 200, .body = {HTTP_BODY_LENGTH, UINT64_MAX, false}},
		{.status = 200, .websocket = true},
		{.status = 101, .body = {HTTP_BODY_TUNNEL, 0, false}},
		{.status = 403, .body = {HTTP_BODY_TUNNEL, 0, false}},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(canon_check_resp(&rows[i]), -EINVAL);
}

static void lists_are_cut_at_commas(void **state)
{
	assert_true(canon_text_list_has(slice_from_str("a , B,c"), "b"));
	assert_false(canon_text_list_has(slice_from_str("ab, c"), "b"));
	assert_false(canon_text_list_has(slice_from_str(""), "b"));
	assert_true(canon_text_list_has(slice_from_str(",,b"), "b"));
}

/* RFC 9110, 5.6.2 and 5.5, byte by byte. */
static void each_byte_of_tokens_and_values(void **state)
{
	for (unsigned c = 0; c < 256; c++) {
		uint8_t text[] = {'a', (uint8_t)c, 'z'};
		bool upper = c >= 'A' && c <= 'Z';
		bool token = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			     (c && strchr("!#$%&'*+-.^_`|~", (int)c));
		bool value = c == '\t' || (c >= 0x20 && c != 0x7f);

		for (size_t n = 2; n <= 3; n++) {
			struct slice s = slice_of(text, n), last = slice_of(text + 1, 1);

			assert_int_equal(canon_text_is_token(s), token);
			assert_int_equal(canon_text_is_token(last), token);
			assert_int_equal(canon_text_is_lower_token(s), token && !upper);
			assert_int_equal(canon_text_is_value(s), value);
		}
	}
	assert_false(canon_text_is_token(slice_of(NULL, 0)));
	assert_false(canon_text_is_lower_token(slice_of(NULL, 0)));
	assert_true(canon_text_is_value(slice_of(NULL, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_byte_of_tokens_and_values),
		cmocka_unit_test(names_must_agree),
		cmocka_unit_test(authorities_are_cut_in_two),
		cmocka_unit_test(addresses_are_told_from_names),
		cmocka_unit_test(paths_have_one_normal_form),
		cmocka_unit_test(headers_are_found_and_set_once),
		cmocka_unit_test(headers_that_frame_cannot_be_set),
		cmocka_unit_test(requests_are_written),
		cmocka_unit_test(responses_are_written),
		cmocka_unit_test(responses_lose_what_was_for_the_connection),
		cmocka_unit_test(what_is_not_canonical_is_refused),
		cmocka_unit_test(responses_that_are_not_canonical_are_refused),
		cmocka_unit_test(lists_are_cut_at_commas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
