/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/http/h2.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/wire/http/canon/test/canon_rig.h"
#include "lib/base/mem.h"

#define F(n, v)                                                                               \
	{                                                                                     \
		{(const uint8_t *)(n), sizeof(n) - 1}, {(const uint8_t *)(v), sizeof(v) - 1}, \
	}
#define GET F(":method", "GET"), F(":scheme", "https"), F(":path", "/")
#define POST F(":method", "POST"), F(":scheme", "https"), F(":path", "/p")
#define HOST F(":authority", "a.test")
#define MAX_ROW 12

struct block {
	struct http_header fields[MAX_ROW];
	bool open; /* a body follows */
};

static uint8_t text[4 * HTTP_MAX_HEAD];
static uint8_t big[HTTP_MAX_HEAD + 1];

/* As edge does it: a.test:443 is the target, and the TLS said so. */
static int make(struct h2_block *b, bool ended, struct http_req *req, struct http_fault *fault)
{
	struct canon_where where = {.scheme = HTTP_SCHEME_HTTPS, .canonical_host = canon_rig_host};

	where.target = (struct canon_name){true, slice_from_str("a.test"), 443};
	where.sni = (struct canon_name){true, slice_from_str("a.test"), 0};
	if (h2_take_req(b, ended, req, fault) < 0)
		return -EBADMSG;
	return canon_make_req(req, &where, b->arena, fault);
}

static int read_block(
	const struct block *in, struct arena *arena, struct http_req *req, struct http_fault *fault)
{
	struct h2_block b;

	h2_begin_req(&b, arena);
	for (size_t i = 0; i < MAX_ROW && in->fields[i].name.p; i++)
		h2_add(&b, in->fields[i].name, in->fields[i].value);
	return make(&b, !in->open, req, fault);
}

static const struct {
	const char *what;
	struct block in;
	const char *out; /* the head as an origin of HTTP/1.1 would get it */
} good[] = {
	{"the least", {{GET, HOST}}, "GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"},
	{"port said", {{GET, F(":authority", "a.test:443")}},
		"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"},
	{"upper case in the name", {{GET, F(":authority", "A.Test")}},
		"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"},
	{"Host alone", {{GET, F("host", "a.test")}}, "GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"},
	{"both, the same", {{GET, HOST, F("host", "a.test")}},
		"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"},
	{"pseudo in another order",
		{{F(":authority", "a.test"), F(":path", "/x?y=1&z"), F(":scheme", "https"),
			F(":method", "DELETE"), F("accept", "*/*")}},
		"DELETE /x?y=1&z HTTP/1.1\r\nhost: a.test\r\naccept: */*\r\n\r\n"},
	{"empty query", {{F(":method", "GET"), F(":scheme", "https"), F(":path", "/?"), HOST}},
		"GET /? HTTP/1.1\r\nhost: a.test\r\n\r\n"},
	{"OPTIONS *", {{F(":method", "OPTIONS"), F(":scheme", "https"), F(":path", "*"), HOST}},
		"OPTIONS * HTTP/1.1\r\nhost: a.test\r\n\r\n"},
	{"a body of some length", {{POST, HOST, F("content-length", "5")}, true},
		"POST /p HTTP/1.1\r\nhost: a.test\r\ncontent-length: 5\r\n\r\n"},
	{"a body of no length", {{POST, HOST}, true},
		"POST /p HTTP/1.1\r\nhost: a.test\r\ntransfer-encoding: chunked\r\n\r\n"},
	{"length 0 and no body", {{POST, HOST, F("content-length", "0")}},
		"POST /p HTTP/1.1\r\nhost: a.test\r\ncontent-length: 0\r\n\r\n"},
	{"gRPC", {{POST, HOST, F("te", "trailers"), F("content-type", "application/grpc")}, true},
		"POST /p HTTP/1.1\r\nhost: a.test\r\ncontent-type: application/grpc\r\n"
		"te: trailers\r\nconnection: te\r\ntransfer-encoding: chunked\r\n\r\n"},
	{"expect", {{POST, HOST, F("expect", "100-continue"), F("content-length", "1")}, true},
		"POST /p HTTP/1.1\r\nhost: a.test\r\ncontent-length: 1\r\n"
		"expect: 100-continue\r\n\r\n"},
	{"cookie crumbs",
		{{GET, HOST, F("cookie", "a=1"), F("x", "y"), F("cookie", "b=2"), F("cookie", "c"),
			F("z", "")}},
		"GET / HTTP/1.1\r\nhost: a.test\r\ncookie: a=1; b=2; c\r\nx: y\r\nz: \r\n\r\n"},
	{"an empty crumb", {{GET, HOST, F("cookie", ""), F("cookie", "a")}},
		"GET / HTTP/1.1\r\nhost: a.test\r\ncookie: ; a\r\n\r\n"},
	{"one cookie", {{GET, HOST, F("cookie", "a=1; b")}},
		"GET / HTTP/1.1\r\nhost: a.test\r\ncookie: a=1; b\r\n\r\n"},
	{"a field of the proxy goes no further", {{GET, HOST, F("proxy-authorization", "x")}},
		"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"},
	{"a field twice", {{GET, HOST, F("x", "1"), F("x", "2")}},
		"GET / HTTP/1.1\r\nhost: a.test\r\nx: 1\r\nx: 2\r\n\r\n"},
};

static void requests_become_canonical(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct wr wr = wr_init(text, sizeof(text));
		struct http_fault fault = {0, ""};
		struct http_req req;
		struct arena arena;

		arena_init(&arena, HTTP_ARENA_SIZE);
		if (read_block(&good[i].in, &arena, &req, &fault) < 0)
			fail_msg("%s: %u %s", good[i].what, fault.status, fault.why);
		assert_int_equal(canon_check_req(&req), 0);
		assert_int_equal(canon_write_req(&wr, &req, CANON_TO_ORIGIN), 0);
		wr_u8(&wr, 0);
		assert_string_equal((char *)text, good[i].out);
		arena_done(&arena);
	}
}

static const struct {
	const char *what;
	struct block in;
	uint16_t status;
	const char *why;
} bad[] = {
	/* Pseudo-headers. */
	{"no method", {{F(":scheme", "https"), F(":path", "/"), HOST}}, 400,
		"missing or invalid :method"},
	{"no scheme", {{F(":method", "GET"), F(":path", "/"), HOST}}, 400, ":scheme"},
	{"no path", {{F(":method", "GET"), F(":scheme", "https"), HOST}}, 400, "no :path"},
	{"no name", {{GET}}, 400, "neither"},
	{"empty authority", {{GET, F(":authority", "")}}, 400, ":authority has no host"},
	{"empty authority beside a host", {{GET, F(":authority", ""), F("host", "a.test")}}, 400,
		":authority has no host"},
	{"empty host", {{GET, F("host", "")}}, 400, "not a host name"},
	{"method twice", {{GET, F(":method", "GET"), HOST}}, 400, "duplicate"},
	{"path twice", {{GET, F(":path", "/admin"), HOST}}, 400, "duplicate"},
	{"scheme twice", {{GET, F(":scheme", "https"), HOST}}, 400, "duplicate"},
	{"authority twice", {{GET, HOST, F(":authority", "b.test")}}, 400, "duplicate"},
	{"pseudo behind a field",
		{{F(":method", "GET"), F("x", "1"), F(":scheme", "https"), F(":path", "/"), HOST}},
		400, "after regular headers"},
	{"unknown pseudo", {{GET, HOST, F(":foo", "x")}}, 400, "unknown"},
	{"pseudo in upper case", {{GET, HOST, F(":Path", "/x")}}, 400, "unknown"},
	{"status in a request", {{GET, HOST, F(":status", "200")}}, 400, "unknown"},
	{"a colon alone", {{GET, HOST, F(":", "x")}}, 400, "unknown"},
	{"http", {{F(":method", "GET"), F(":scheme", "http"), F(":path", "/"), HOST}}, 400,
		":scheme"},
	{"scheme with a URL in it",
		{{F(":method", "GET"), F(":scheme", "https://b.test/?"), F(":path", "/"), HOST}},
		400, ":scheme"},
	{"HTTPS", {{F(":method", "GET"), F(":scheme", "HTTPS"), F(":path", "/"), HOST}}, 400,
		":scheme"},
	{"CONNECT", {{F(":method", "CONNECT"), F(":authority", "b.test:443")}, true}, 400,
		"CONNECT"},
	{"CONNECT with all",
		{{F(":method", "CONNECT"), F(":scheme", "https"), F(":path", "/"), HOST}, true},
		400, "CONNECT"},
	{"extended CONNECT",
		{{F(":method", "CONNECT"), F(":protocol", "websocket"), F(":scheme", "https"),
			 F(":path", "/"), HOST},
			true},
		400, "unknown"},
	{"method with a line",
		{{F(":method", "GET / HTTP/1.1\r\nhost: b.test\r\n\r\nGET"), F(":scheme", "https"),
			F(":path", "/"), HOST}},
		400, ":method"},
	{"method with a space",
		{{F(":method", "GET /admin"), F(":scheme", "https"), F(":path", "/"), HOST}}, 400,
		":method"},
	{"empty method", {{F(":method", ""), F(":scheme", "https"), F(":path", "/"), HOST}}, 400,
		":method"},
	{"long method",
		{{F(":method", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGH"), F(":scheme", "https"),
			F(":path", "/"), HOST}},
		400, ":method"},
/* Paths. */
#define PATH(p)                                                                         \
	{                                                                               \
		{                                                                       \
			F(":method", "GET"), F(":scheme", "https"), F(":path", p), HOST \
		}                                                                       \
	}
	{"empty path", PATH(""), 400, ":path is not a path"},
	{"absolute URL", PATH("https://b.test/"), 400, ":path is not a path"},
	{"no slash", PATH("x"), 400, ":path is not a path"},
	{"* of GET", PATH("*"), 400, "OPTIONS only"},
	{"query alone", PATH("?x"), 400, ":path is not a path"},
	{"space", PATH("/ HTTP/1.1"), 400, "invalid character"},
	{"line end", PATH("/ HTTP/1.1\r\nhost: b.test\r\n\r\n"), 400, "invalid character"},
	{"line end in the query", PATH("/?x\r\ny"), 400, "invalid character"},
	{"LF", PATH("/\n"), 400, "invalid character"},
	{"NUL", PATH("/\0x"), 400, "invalid character"},
	{"tab", PATH("/\t"), 400, "invalid character"},
	{"fragment", PATH("/#x"), 400, "invalid character"},
	{"fragment in the query", PATH("/?#x"), 400, "invalid character"},
	{"8 bit", PATH("/\xc3\xa4"), 400, "invalid character"},
	{"backslash", PATH("/..\\x"), 400, "invalid character"},
	{"above the root", PATH("/../x"), 400, "invalid character"},
	{"%00", PATH("/%00"), 400, "invalid character"},
	{"half an escape", PATH("/%2"), 400, "invalid character"},
	/* Names that do not agree. */
	{"coalescing", {{GET, F(":authority", "b.test")}}, 421, "not the one of the connection"},
	{"another port", {{GET, F(":authority", "a.test:8443")}}, 421, "not the one"},
	{"another Host", {{GET, HOST, F("host", "b.test")}}, 421, "Host"},
	{"another Host alone", {{GET, F("host", "b.test")}}, 421, "Host"},
	{"two Hosts", {{GET, HOST, F("host", "a.test"), F("host", "a.test")}}, 400,
		"more than one Host"},
	{"user", {{GET, F(":authority", "b.test@a.test")}}, 400, "user"},
	{"user in Host", {{GET, F("host", "x@a.test")}}, 400, "not a host name"},
	{"authority with a path", {{GET, F(":authority", "a.test/x")}}, 400, "not a host name"},
	{"authority with a line", {{GET, F(":authority", "a.test\r\nx: y")}}, 400,
		"not a host name"},
	{"authority with a NUL", {{GET, F(":authority", "a.test\0.b")}}, 400, "not a host name"},
	{"authority with a space", {{GET, F(":authority", "a.test b.test")}}, 400,
		"not a host name"},
	/* Fields. */
	{"upper case", {{GET, HOST, F("X-A", "1")}}, 400, "invalid character"},
	{"empty name", {{GET, HOST, F("", "1")}}, 400, "invalid character"},
	{"colon in a name", {{GET, HOST, F("x:y", "1")}}, 400, "invalid character"},
	{"a header as a name", {{GET, HOST, F("transfer-encoding: chunked", "x")}}, 400,
		"invalid character"},
	{"space behind a name", {{GET, HOST, F("transfer-encoding ", "chunked")}}, 400,
		"invalid character"},
	{"line end in a name", {{GET, HOST, F("x\r\ntransfer-encoding", "chunked")}}, 400,
		"invalid character"},
	{"NUL in a name", {{GET, HOST, F("x\0y", "1")}}, 400, "invalid character"},
	{"8 bit in a name", {{GET, HOST, F("x\xe9", "1")}}, 400, "invalid character"},
	{"line end in a value", {{GET, HOST, F("x", "1\r\ntransfer-encoding: chunked")}}, 400,
		"control character"},
	{"LF in a value", {{GET, HOST, F("x", "1\nhost: b.test")}}, 400, "control character"},
	{"CR in a value", {{GET, HOST, F("x", "1\rhost: b.test")}}, 400, "control character"},
	{"NUL in a value", {{GET, HOST, F("x", "1\0")}}, 400, "control character"},
	{"DEL in a value", {{GET, HOST, F("x", "1\x7f")}}, 400, "control character"},
	{"blank before a value", {{GET, HOST, F("x", " 1")}}, 400, "leading or trailing spaces"},
	{"tab behind a value", {{GET, HOST, F("x", "1\t")}}, 400, "leading or trailing spaces"},
	{"connection", {{GET, HOST, F("connection", "close")}}, 400, "not allowed in HTTP/2"},
	{"keep-alive", {{GET, HOST, F("keep-alive", "1")}}, 400, "not allowed in HTTP/2"},
	{"proxy-connection", {{GET, HOST, F("proxy-connection", "x")}}, 400,
		"not allowed in HTTP/2"},
	{"transfer-encoding", {{POST, HOST, F("transfer-encoding", "chunked")}, true}, 400,
		"not allowed in HTTP/2"},
	{"upgrade", {{GET, HOST, F("upgrade", "websocket")}}, 400, "not allowed in HTTP/2"},
	{"http2-settings", {{GET, HOST, F("http2-settings", "x")}}, 400, "not allowed in HTTP/2"},
	{"te", {{GET, HOST, F("te", "trailers, gzip")}}, 400, "TE"},
	{"te chunked", {{GET, HOST, F("te", "chunked")}}, 400, "TE"},
	{"disguised", {{GET, HOST, F("transfer_encoding", "chunked")}}, 400, "underscore"},
	{"disguised length", {{GET, HOST, F("content_length", "5")}}, 400, "underscore"},
	{"empty crumb last", {{GET, HOST, F("cookie", "a"), F("cookie", "")}}, 400, "cookie"},
	{"line end in a crumb", {{GET, HOST, F("cookie", "a"), F("cookie", "b\r\nx: y")}}, 400,
		"control character"},
	{"expect", {{POST, HOST, F("expect", "200-maybe")}, true}, 417, "Expect"},
	{"expect twice",
		{{POST, HOST, F("expect", "100-continue"), F("expect", "100-continue")}, true}, 417,
		"Expect"},
	/* Lengths. */
	{"two lengths", {{POST, HOST, F("content-length", "5"), F("content-length", "5")}, true},
		400, "more than one"},
	{"a list of lengths", {{POST, HOST, F("content-length", "5, 5")}, true}, 400, "number"},
	{"signed", {{POST, HOST, F("content-length", "+5")}, true}, 400, "number"},
	{"negative", {{POST, HOST, F("content-length", "-1")}, true}, 400, "number"},
	{"hex", {{POST, HOST, F("content-length", "0x5")}, true}, 400, "number"},
	{"empty length", {{POST, HOST, F("content-length", "")}, true}, 400, "number"},
	{"too long", {{POST, HOST, F("content-length", "9223372036854775808")}, true}, 400,
		"number"},
	{"no body came", {{POST, HOST, F("content-length", "5")}}, 400, "shorter"},
	{"TRACE with a body",
		{{F(":method", "TRACE"), F(":scheme", "https"), F(":path", "/"), HOST}, true}, 400,
		"TRACE"},
};

static void attacks_are_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct http_fault fault = {0, ""};
		struct http_req req;
		struct arena arena;

		arena_init(&arena, HTTP_ARENA_SIZE);
		if (read_block(&bad[i].in, &arena, &req, &fault) == 0 ||
			fault.status != bad[i].status || !strstr(fault.why, bad[i].why))
			fail_msg("%s: %u %s", bad[i].what, fault.status, fault.why);
		arena_done(&arena);
	}
}

static void add_str(struct h2_block *b, const char *name, const char *value)
{
	h2_add(b, slice_from_str(name), slice_from_str(value));
}

static void add_get(struct h2_block *b)
{
	add_str(b, ":method", "GET");
	add_str(b, ":scheme", "https");
	add_str(b, ":path", "/");
	add_str(b, ":authority", "a.test");
}

/* n fields of a name and a value of that size, behind a good request. */
static uint16_t status_of(size_t n, const char *name, size_t size)
{
	struct http_fault fault = {0, ""};
	struct http_req req;
	struct arena arena;
	struct h2_block b;

	arena_init(&arena, HTTP_ARENA_SIZE);
	h2_begin_req(&b, &arena);
	add_get(&b);
	for (size_t i = 0; i < n; i++)
		h2_add(&b, slice_from_str(name), slice_of(big, size));
	(void)!make(&b, true, &req, &fault);
	arena_done(&arena);
	return fault.status;
}

static void limits_hold(void **state)
{
	memset(big, 'x', sizeof(big));
	assert_int_equal(status_of(HTTP_MAX_HEADERS - 1, "x", 1), 0);
	assert_int_equal(status_of(HTTP_MAX_HEADERS, "x", 1), 0);
	assert_int_equal(status_of(HTTP_MAX_HEADERS + 1, "x", 1), 431);
	assert_int_equal(status_of(H2_MAX_FIELDS, "cookie", 1), 0);
	assert_int_equal(status_of(H2_MAX_FIELDS + 1, "cookie", 1), 431);
	assert_int_equal(status_of(1000000, "x", 0), 431);
	assert_int_equal(status_of(1, "x", 65000), 0);
	assert_int_equal(status_of(2, "cookie", 32000), 0);
	assert_int_equal(status_of(1, "x", HTTP_MAX_HEAD), 431);
	assert_int_equal(status_of(100, "x", 1000), 431);
	assert_int_equal(status_of(3, "cookie", 32000), 431);
}

static void bombs_cost_nothing(void **state)
{
	struct http_fault fault;
	struct http_req req;
	struct arena arena;
	struct h2_block b;

	arena_init(&arena, HTTP_ARENA_SIZE);
	h2_begin_req(&b, &arena);
	add_get(&b);
	for (size_t i = 0; i < 10000; i++)
		h2_add(&b, slice_from_str("x"), slice_of(big, 4000));
	assert_true(arena.n < 2 * HTTP_MAX_HEAD);
	assert_true(h2_cost(&b) > (size_t)10000 * 4000);
	assert_int_equal(h2_take_req(&b, true, &req, &fault), -EBADMSG);
	assert_int_equal(fault.status, 431);
	arena_done(&arena);
}

static int trailers_of(const char *name, const char *value, size_t n)
{
	struct http_headers trailers;
	struct http_fault fault = {0, ""};
	struct arena arena;
	struct h2_block b;
	int r;

	arena_init(&arena, HTTP_ARENA_SIZE);
	h2_begin_trailers(&b, &arena);
	for (size_t i = 0; i < n; i++)
		add_str(&b, name, value);
	r = h2_take_trailers(&b, &trailers, &fault);
	assert_true(r < 0 || (trailers.n == n && canon_check_trailers(&trailers) == 0));
	arena_done(&arena);
	return fault.status;
}

static void trailers_are_read(void **state)
{
	assert_int_equal(trailers_of("grpc-status", "0", 1), 0);
	assert_int_equal(trailers_of("x", "", HTTP_MAX_TRAILERS), 0);
	assert_int_equal(trailers_of("x", "", HTTP_MAX_TRAILERS + 1), 431);
	assert_int_equal(trailers_of("x", "y", 100000), 431);
	assert_int_equal(trailers_of(":path", "/", 1), 400);
	assert_int_equal(trailers_of(":status", "200", 1), 400);
	assert_int_equal(trailers_of("content-length", "3", 1), 400);
	assert_int_equal(trailers_of("transfer-encoding", "chunked", 1), 400);
	assert_int_equal(trailers_of("authorization", "x", 1), 400);
	assert_int_equal(trailers_of("host", "b.test", 1), 400);
	assert_int_equal(trailers_of("cookie", "b", 1), 400);
	assert_int_equal(trailers_of("X", "1", 1), 400);
	assert_int_equal(trailers_of("x", "1\r\n", 1), 400);
}

static void answers_become_fields(void **state)
{
	struct http_header list[] = {{slice_from_str("x"), slice_from_str("y")}};
	struct http_resp resp = {.status = 200,
		.body = {.kind = HTTP_BODY_LENGTH, .length = 5},
		.headers = {list, 1, 1}};
	struct h2_fields f;

	assert_int_equal(h2_put_resp(&resp, &f), 0);
	assert_int_equal(f.n, 3);
	assert_true(slice_eq_str(f.list[0].name, ":status"));
	assert_true(slice_eq_str(f.list[0].value, "200"));
	assert_true(slice_eq_str(f.list[1].name, "x"));
	assert_true(slice_eq_str(f.list[2].name, "content-length"));
	assert_true(slice_eq_str(f.list[2].value, "5"));
	resp.body = (struct http_body){.kind = HTTP_BODY_CHUNKED};
	assert_int_equal(h2_put_resp(&resp, &f), 0);
	assert_int_equal(f.n, 2);
	resp = (struct http_resp){
		.status = 101, .body = {.kind = HTTP_BODY_TUNNEL}, .websocket = true};
	assert_int_equal(h2_put_resp(&resp, &f), -EINVAL);
	resp = (struct http_resp){.status = 100, .headers = {list, 1, 1}};
	assert_int_equal(h2_put_resp(&resp, &f), 0);
	list[0].name = slice_from_str("connection");
	assert_int_equal(h2_put_resp(&resp, &f), -EINVAL);
	list[0].name = slice_from_str(":status");
	assert_int_equal(h2_put_resp(&resp, &f), -EINVAL);
	list[0].name = slice_from_str("grpc-status");
	assert_int_equal(h2_put_trailers(&resp.headers, &f), 0);
	assert_int_equal(f.n, 1);
	list[0].name = slice_from_str("set-cookie");
	assert_int_equal(h2_put_trailers(&resp.headers, &f), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_become_canonical),
		cmocka_unit_test(attacks_are_refused),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(bombs_cost_nothing),
		cmocka_unit_test(trailers_are_read),
		cmocka_unit_test(answers_become_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
