/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/http/http1.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/wire/http/canon/test/canon_rig.h"
#include "lib/base/mem.h"

#define H "Host: example.test\r\n"
#define GET "GET / HTTP/1.1\r\n" H

/*
 * A playbook is what one side sends and the transcript of the events, DATA joined. "HEAD ..." says
 * what was understood, "END" has the trailers, "ERROR" the status, "|" stands for http1_next, "~"
 * for a tunnel, whose bytes the caller reads.
 */
struct play {
	const char *name, *in;
	size_t n; /* 0: strlen */
	const char *out;
	const char *request; /* responses: "METHOD" or "websocket" */
};

struct stage {
	struct http1 h;
	struct arena arena;
	char text[8192];
	bool in_data, over;
};

static void note(struct stage *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void note(struct stage *s, const char *fmt, ...)
{
	size_t n = strlen(s->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->text + n, sizeof(s->text) - n, fmt, ap);
	va_end(ap);
}

static void note_headers(struct stage *s, const struct http_headers *headers)
{
	for (size_t i = 0; i < headers->n; i++)
		note(s, " %.*s=%.*s", (int)headers->list[i].name.n,
			(const char *)headers->list[i].name.p, (int)headers->list[i].value.n,
			(const char *)headers->list[i].value.p);
}

static void note_body(struct stage *s, const struct http_body *body)
{
	static const char *const kinds[] = {"none", "length", "chunked", "close", "tunnel"};

	note(s, " %s", kinds[body->kind]);
	if (body->kind == HTTP_BODY_LENGTH)
		note(s, ":%llu", (unsigned long long)body->length);
	if (body->absent)
		note(s, ":absent");
}

static void note_req(struct stage *s, const struct http_req *req)
{
	note(s, "HEAD %.*s %.*s", (int)req->method.n, (const char *)req->method.p, (int)req->path.n,
		(const char *)req->path.p);
	if (req->has_query)
		note(s, "?%.*s", (int)req->query.n, (const char *)req->query.p);
	if (req->authority.n)
		note(s, " @%.*s", (int)req->authority.n, (const char *)req->authority.p);
	note_body(s, &req->body);
	note(s, "%s%s%s%s%s", req->http10 ? " 1.0" : "", req->keep_alive ? "" : " closes",
		req->expect_continue ? " expects" : "", req->te_trailers ? " te" : "",
		req->websocket ? " websocket" : "");
	note_headers(s, &req->headers);
	note(s, "\n");
}

static void note_resp(struct stage *s, const struct http_resp *resp)
{
	note(s, "HEAD %u", resp->status);
	note_body(s, &resp->body);
	note(s, "%s%s%s", resp->http10 ? " 1.0" : "", resp->keep_alive ? "" : " closes",
		resp->websocket ? " websocket" : "");
	note_headers(s, &resp->headers);
	note(s, "\n");
}

static void note_event(struct stage *s, const struct http1_event *ev)
{
	if (s->in_data && ev->kind != HTTP1_EV_DATA) {
		note(s, "\n");
		s->in_data = false;
	}
	if (ev->kind == HTTP1_EV_DATA) {
		note(s, "%s%.*s", s->in_data ? "" : "DATA ", (int)ev->data.n,
			(const char *)ev->data.p);
		s->in_data = true;
	} else if (ev->kind == HTTP1_EV_HEAD && ev->req) {
		note_req(s, ev->req);
	} else if (ev->kind == HTTP1_EV_HEAD) {
		note_resp(s, ev->resp);
	} else if (ev->kind == HTTP1_EV_END) {
		note(s, "END");
		note_headers(s, ev->trailers);
		note(s, "\n");
	} else {
		assert_non_null(ev->fault.why);
		note(s, "ERROR %u\n", ev->fault.status);
		s->over = true;
	}
}

static void go_on(struct stage *s)
{
	if (s->h.state != HTTP1_DONE || s->h.side != HTTP1_REQUESTS || s->over)
		return;
	if (s->h.req.body.kind == HTTP_BODY_TUNNEL || s->h.req.websocket) {
		note(s, "~\n");
		s->over = true;
	} else {
		note(s, "|\n");
		arena_reset(&s->arena);
		http1_next(&s->h, &s->arena);
	}
}

static void feed(struct stage *s, struct slice piece)
{
	uint8_t *copy = xmalloc(piece.n);
	struct slice in = slice_of(copy, piece.n);
	struct http1_event ev;

	if (piece.n)
		memcpy(copy, piece.p, piece.n);
	while (!s->over && http1_read(&s->h, &in, &ev)) {
		note_event(s, &ev);
		go_on(s);
	}
	free(copy);
}

static void play_cut(const struct play *p, size_t first, size_t step)
{
	struct stage s = {0};
	struct slice in = slice_of(p->in, p->n ? p->n : strlen(p->in));
	struct http_req req = {0};
	struct http1_event ev;

	arena_init(&s.arena, HTTP_ARENA_SIZE);
	http1_init_requests(&s.h, &s.arena);
	if (p->request) {
		req.websocket = strcmp(p->request, "websocket") == 0;
		req.method = slice_from_str(req.websocket ? "GET" : p->request);
		http1_init_response(&s.h, &s.arena, &req);
	}
	for (size_t n = first; in.n > 0; n = step) {
		feed(&s, canon_text_cut(in, 0, n));
		in = canon_text_cut(in, n, in.n);
	}
	if (!s.over && http1_eof(&s.h, &ev))
		note_event(&s, &ev);
	if (strcmp(s.text, p->out) != 0)
		print_error("%s, cut at %zu then %zu:\n", p->name, first, step);
	assert_string_equal(s.text, p->out);
	arena_done(&s.arena);
}

static void play_all(const struct play *plays, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = plays[i].n ? plays[i].n : strlen(plays[i].in);

		play_cut(&plays[i], len, len);
		play_cut(&plays[i], 1, 1);
		for (size_t at = 1; at < len; at++)
			play_cut(&plays[i], at, len);
	}
}

static void requests_are_read(void **state)
{
	static const struct play plays[] = {
		{"plain", GET "\r\n", 0, "HEAD GET / none host=example.test\nEND\n|\n"},
		{"query", "GET /a//b?x=1&y= HTTP/1.1\r\n" H "\r\n", 0,
			"HEAD GET /a//b?x=1&y= none host=example.test\nEND\n|\n"},
		{"empty query", "GET /? HTTP/1.1\r\n" H "\r\n", 0,
			"HEAD GET /? none host=example.test\nEND\n|\n"},
		{"length", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello", 0,
			"HEAD POST / length:5 host=example.test content-length=5\nDATA "
			"hello\nEND\n|\n"},
		{"length of 0", "POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", 0,
			"HEAD POST / length:0 host=example.test content-length=0\nEND\n|\n"},
		{"chunks",
			"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
			"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nX-A: 1\r\nX-B: \r\n\r\n",
			0,
			"HEAD POST / chunked host=example.test transfer-encoding=chunked\n"
			"DATA abc0123456789\nEND x-a=1 x-b=\n|\n"},
		{"absolute",
			"GET http://Example.test:81/x HTTP/1.1\r\nHost: example.test:81\r\n\r\n", 0,
			"HEAD GET /x @Example.test:81 none host=example.test:81\nEND\n|\n"},
		{"absolute without a path", "GET http://host?q HTTP/1.1\r\nHost: host\r\n\r\n", 0,
			"HEAD GET /?q @host none host=host\nEND\n|\n"},
		{"asterisk", "OPTIONS * HTTP/1.1\r\n" H "\r\n", 0,
			"HEAD OPTIONS * none host=example.test\nEND\n|\n"},
		{"connect, then bytes",
			"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n\x16\x03", 0,
			"HEAD CONNECT  @a.test:443 tunnel host=a.test:443\nEND\n~\n"},
		{"websocket, then bytes",
			GET "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
			    "Sec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n\x81",
			0,
			"HEAD GET / none websocket host=example.test connection=keep-alive, "
			"Upgrade "
			"upgrade=WebSocket sec-websocket-key=eA== sec-websocket-version=13\n"
			"END\n~\n"},
		{"expect",
			"PUT / HTTP/1.1\r\n" H "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
			0,
			"HEAD PUT / length:1 expects host=example.test expect=100-Continue "
			"content-length=1\nDATA x\nEND\n|\n"},
		{"te", GET "TE: trailers\r\n\r\n", 0,
			"HEAD GET / none te host=example.test te=trailers\nEND\n|\n"},
		{"1.0 closes, needs no Host", "GET / HTTP/1.0\r\n\r\n", 0,
			"HEAD GET / none 1.0 closes\nEND\n|\n"},
		{"1.0 may stay", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 0,
			"HEAD GET / none 1.0 connection=Keep-Alive\nEND\n|\n"},
		{"close", GET "Connection: foo, CLOSE\r\n\r\n", 0,
			"HEAD GET / none closes host=example.test connection=foo, CLOSE\nEND\n|\n"},
		{"pipelined", GET "\r\nHEAD /b HTTP/1.1\r\n" H "\r\n", 0,
			"HEAD GET / none host=example.test\nEND\n|\n"
			"HEAD HEAD /b none host=example.test\nEND\n|\n"},
		{"nothing", "", 0, ""},
	};

	play_all(plays, ARRAY_LEN(plays));
}

static void broken_requests_are_refused(void **state)
{
	static const struct play plays[] = {
		{"NUL", GET "X: a\0b\r\n\r\n", sizeof(GET "X: a\0b\r\n\r\n") - 1, "ERROR 400\n"},
		{"bare LF", "GET / HTTP/1.1\n", 0, "ERROR 400\n"},
		{"bare CR", GET "X: a\rb\r\n\r\n", 0, "ERROR 400\n"},
		{"folded", GET "X: a\r\n b\r\n\r\n", 0, "ERROR 400\n"},
		{"0.9 is seen at its first line", "GET /\r\n", 0, "ERROR 400\n"},
		{"unknown method", "FROB / HTTP/1.1\r\n" H "\r\n", 0, "ERROR 501\n"},
		{"chunk too long",
			"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", 0,
			"HEAD POST / chunked host=example.test transfer-encoding=chunked\n"
			"DATA ab\nERROR 400\n"},
		{"ends in the head", GET, 0, "ERROR 400\n"},
		{"ends in the body", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhel", 0,
			"HEAD POST / length:5 host=example.test content-length=5\nDATA "
			"hel\nERROR 400\n"},
		{"ends in the trailers",
			"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n",
			0,
			"HEAD POST / chunked host=example.test transfer-encoding=chunked\n"
			"ERROR 400\n"},
		{"forbidden trailer",
			"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\nTE: "
			"y\r\n\r\n",
			0,
			"HEAD POST / chunked host=example.test transfer-encoding=chunked\n"
			"ERROR 400\n"},
		{"expectation", GET "Expect: sunshine\r\n\r\n", 0, "ERROR 417\n"},
	};

	play_all(plays, ARRAY_LEN(plays));
}

static void responses_are_read(void **state)
{
	static const struct play plays[] = {
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 0,
			"HEAD 200 length:2 content-length=2\nDATA hi\nEND\n", "GET"},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 0,
			"HEAD 200 length:0 content-length=0\nEND\n", "GET"},
		{"empty reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", 0,
			"HEAD 200 length:0 content-length=0\nEND\n", "GET"},
		{"chunks",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
			0, "HEAD 200 chunked transfer-encoding=chunked\nDATA a\nEND\n", "POST"},
		{"until close", "HTTP/1.1 200 OK\r\n\r\nall of it", 0,
			"HEAD 200 close closes\nDATA all of it\nEND\n", "GET"},
		{"1.0", "HTTP/1.0 404 Not Found\r\nContent-Length: 1\r\n\r\nx", 0,
			"HEAD 404 length:1 1.0 closes content-length=1\nDATA x\nEND\n", "GET"},
		{"head", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", 0,
			"HEAD 200 length:99:absent content-length=99\nEND\n", "HEAD"},
		{"head in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0,
			"HEAD 200 none:absent transfer-encoding=chunked\nEND\n", "HEAD"},
		{"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 0,
			"HEAD 304 length:9:absent content-length=9\nEND\n", "GET"},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", 0, "HEAD 204 none\nEND\n", "GET"},
		{"100, 103, then 200",
			"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
			"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
			0,
			"HEAD 100 none\nHEAD 103 none link=x\n"
			"HEAD 200 length:1 content-length=1\nDATA x\nEND\n",
			"POST"},
		{"websocket",
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
			"Upgrade: websocket\r\n\r\n\x81\x00",
			0,
			"HEAD 101 tunnel closes websocket connection=Upgrade upgrade=websocket\n"
			"DATA \x81\nEND\n",
			"websocket"},
		{"connect", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", 0,
			"HEAD 200 tunnel closes content-length=5\nDATA abc\nEND\n", "CONNECT"},
		{"connect refused", "HTTP/1.1 403 No\r\nContent-Length: 1\r\n\r\nx", 0,
			"HEAD 403 length:1 content-length=1\nDATA x\nEND\n", "CONNECT"},
		{"bytes above ASCII", "HTTP/1.1 204 N\xc3\xa9\r\nX: \xc3\xa9\r\n\r\n", 0,
			"HEAD 204 none x=\xc3\xa9\nEND\n", "GET"},
	};

	play_all(plays, ARRAY_LEN(plays));
}

static void broken_responses_are_refused(void **state)
{
	static const struct play plays[] = {
		{"both",
			"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: "
			"chunked\r\n\r\n",
			0, "ERROR 502\n", "GET"},
		{"two lengths",
			"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 0,
			"ERROR 502\n", "GET"},
		{"other encoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", 0,
			"ERROR 502\n", "GET"},
		{"101 nobody asked for",
			"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
			"Upgrade: websocket\r\n\r\n",
			0, "ERROR 502\n", "GET"},
		{"101 to h2c",
			"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: "
			"h2c\r\n\r\n",
			0, "ERROR 502\n", "websocket"},
		{"204 with a body", "HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\nabc", 0,
			"ERROR 502\n", "GET"},
		{"status of two digits", "HTTP/1.1 20 OK\r\n\r\n", 0, "ERROR 502\n", "GET"},
		{"status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", 0, "ERROR 502\n", "GET"},
		{"status 600", "HTTP/1.1 600 OK\r\n\r\n", 0, "ERROR 502\n", "GET"},
		{"0.9", "<html>\r\n", 0, "ERROR 502\n", "GET"},
		{"folded", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", 0, "ERROR 502\n", "GET"},
		{"cut", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", 0,
			"HEAD 200 length:3 content-length=3\nDATA ab\nERROR 502\n", "GET"},
		{"nothing", "", 0, "ERROR 502\n", "GET"},
	};

	play_all(plays, ARRAY_LEN(plays));
}

/* Refusals that must be ours, whatever llhttp of this or another version thinks of the same
 * bytes. */
static void the_gate_needs_no_second_opinion(void **state)
{
#define CHUNKED "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
	static const struct {
		const char *in, *why;
	} rows[] = {
		{GET "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
			"both Content-Length and Transfer-Encoding"},
		{GET "Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
			"more than one Content-Length"},
		{GET "Content-Length: +1\r\n\r\n", "Content-Length is not a number"},
		{GET "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n",
			"more than one Transfer-Encoding"},
		{GET "Transfer-Encoding: chunked, chunked\r\n\r\n",
			"Transfer-Encoding is not chunked"},
		{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
			"Transfer-Encoding in HTTP/1.0"},
		{GET H "\r\n", "more than one Host header"},
		{"GET / HTTP/1.1\r\n\r\n", "no Host header"},
		{GET "X: y\n\r\n", "a line that ends with LF without CR"},
		{GET "X: y\r\r\n\r\n", "a CR that is not followed by LF"},
		{GET "X: \x01\r\n\r\n", "a control character in the head"},
		{GET " X: y\r\n\r\n", "a folded header line"},
		{GET "X : y\r\n\r\n", "a header name with an invalid character"},
		{"\r\n" GET "\r\n", "an empty line before the message"},
		{CHUNKED "3;a b\r\nabc\r\n", "a chunk extension that is invalid or too long"},
		{CHUNKED "3 \r\nabc\r\n", "a chunk size that is invalid or too large"},
		{CHUNKED "0000000000000003\r\nabc\r\n",
			"a chunk size that is invalid or too large"},
		{CHUNKED "3\nabc\r\n", "a chunk size that is invalid or too large"},
		{CHUNKED "3\r\nabc\n", "a chunk that is longer than its size"},
	};
#undef CHUNKED

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice in = slice_from_str(rows[i].in);
		struct http1_event ev = {0};
		struct arena arena;
		struct http1 h;

		arena_init(&arena, HTTP_ARENA_SIZE);
		http1_init_requests(&h, &arena);
		while (ev.kind != HTTP1_EV_ERROR)
			assert_true(http1_read(&h, &in, &ev));
		assert_string_equal(ev.fault.why, rows[i].why);
		arena_done(&arena);
	}
}

static uint16_t status_of(struct slice in)
{
	struct canon_where where = {.canonical_host = canon_rig_host};
	struct canon_rig rig;
	uint16_t status;

	where.target = (struct canon_name){true, slice_from_str("example.test"), 80};
	canon_rig_run(&rig, in, &where, 4093, 4093);
	status = rig.status;
	canon_rig_done(&rig);
	return status;
}

/* A request whose head has exactly n bytes and is padded in one header. */
static uint16_t head_of(size_t n)
{
	static const char start[] = GET "X: ";
	char *buf = xmalloc(n);
	uint16_t status;

	memset(buf, 'a', n);
	memcpy(buf, start, sizeof(start) - 1);
	memcpy(buf + n - 4, "\r\n\r\n", 4);
	status = status_of(slice_of(buf, n));
	free(buf);
	return status;
}

static void heads_are_bounded(void **state)
{
	assert_int_equal(head_of(HTTP_MAX_HEAD), 0);
	assert_int_equal(head_of(HTTP_MAX_HEAD + 1), 431);
	assert_int_equal(head_of(4 * HTTP_MAX_HEAD), 431);
}

static uint16_t repeated(const char *before, const char *line, size_t n, const char *after)
{
	size_t room = strlen(before) + n * strlen(line) + strlen(after) + 1;
	char *buf = xmalloc(room), *at = stpcpy(buf, before);
	uint16_t status;

	for (size_t i = 0; i < n; i++)
		at = stpcpy(at, line);
	at = stpcpy(at, after);
	status = status_of(slice_of(buf, (size_t)(at - buf)));
	free(buf);
	return status;
}

static void header_lines_are_bounded(void **state)
{
	assert_int_equal(repeated(GET, "X: y\r\n", HTTP_MAX_HEADERS - 1, "\r\n"), 0);
	assert_int_equal(repeated(GET, "X: y\r\n", HTTP_MAX_HEADERS, "\r\n"), 431);
}

static void trailers_and_extensions_are_bounded(void **state)
{
	static const char head[] = "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n";
	static const char last[] =
		"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n";

	assert_int_equal(repeated(last, "X: y\r\n", HTTP_MAX_TRAILERS, "\r\n"), 0);
	assert_int_equal(repeated(last, "X: y\r\n", HTTP_MAX_TRAILERS + 1, "\r\n"), 431);
	assert_int_equal(repeated(last, "X-Long: 0123456789", 900, "\r\n\r\n"), 431);
	assert_int_equal(repeated(head, "1;e=0123456789\r\na\r\n", 300, "0\r\n\r\n"), 0);
	assert_int_equal(repeated(head, "1;e=0123456789\r\na\r\n", 400, "0\r\n\r\n"), 400);
	assert_int_equal(repeated("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1;",
				 "e", HTTP1_MAX_CHUNK_LINE, "\r\na\r\n0\r\n\r\n"),
		400);
}

static void informational_answers_are_bounded(void **state)
{
	struct http_req req = {.method = slice_from_str("GET")};
	struct arena arena;
	struct http1 h;
	struct http1_event ev;
	size_t n = 0;

	arena_init(&arena, HTTP_ARENA_SIZE);
	http1_init_response(&h, &arena, &req);
	for (size_t i = 0; i < HTTP1_MAX_INFORMATIONAL + 1; i++) {
		struct slice in = slice_from_str("HTTP/1.1 102 Processing\r\n\r\n");

		assert_true(http1_read(&h, &in, &ev));
		n += ev.kind == HTTP1_EV_HEAD;
	}
	assert_int_equal(n, HTTP1_MAX_INFORMATIONAL);
	assert_int_equal(ev.kind, HTTP1_EV_ERROR);
	arena_done(&arena);
}

static void a_small_arena_refuses_politely(void **state)
{
	struct slice in;
	struct arena arena;
	struct http1 h;
	struct http1_event ev;

	for (size_t size = 0; size < 8192; size += 64) {
		arena_init(&arena, size);
		http1_init_requests(&h, &arena);
		in = slice_from_str(GET "X: y\r\n\r\n");
		assert_true(http1_read(&h, &in, &ev));
		if (ev.kind != HTTP1_EV_HEAD)
			assert_int_equal(ev.fault.status, 431);
		arena_done(&arena);
	}
	assert_int_equal(ev.kind, HTTP1_EV_HEAD);
}

static void bytes_behind_the_request_stay_unread(void **state)
{
	struct slice in = slice_from_str(GET "\r\nGET /b");
	struct arena arena;
	struct http1 h;
	struct http1_event ev;

	arena_init(&arena, HTTP_ARENA_SIZE);
	http1_init_requests(&h, &arena);
	assert_true(http1_is_idle(&h));
	assert_true(http1_read(&h, &in, &ev));
	assert_false(http1_is_idle(&h));
	assert_true(http1_read(&h, &in, &ev));
	assert_int_equal(ev.kind, HTTP1_EV_END);
	assert_false(http1_read(&h, &in, &ev));
	assert_true(slice_eq_str(in, "GET /b"));
	assert_false(http1_eof(&h, &ev));
	arena_done(&arena);
}

static void next_before_the_end_is_a_fault(void **state)
{
	struct slice in = slice_from_str("POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nab");
	struct arena arena;
	struct http1 h;
	struct http1_event ev;

	arena_init(&arena, HTTP_ARENA_SIZE);
	http1_init_requests(&h, &arena);
	assert_true(http1_read(&h, &in, &ev));
	http1_next(&h, &arena);
	assert_true(http1_read(&h, &in, &ev));
	assert_int_equal(ev.kind, HTTP1_EV_ERROR);
	assert_true(http1_read(&h, &in, &ev));
	assert_int_equal(ev.kind, HTTP1_EV_ERROR);
	arena_done(&arena);
}

/* Each byte value in each place of a request: never two requests, never a changed meaning. */
static void every_byte_in_every_place(void **state)
{
	static const char text[] = "POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\nX: y\r\n\r\nabc";
	struct canon_where where = {.canonical_host = canon_rig_host};
	struct canon_rig rig, again;
	char buf[sizeof(text)];

	where.target = (struct canon_name){true, slice_from_str("example.test"), 80};
	for (size_t at = 0; at < sizeof(text) - 1; at++) {
		for (int c = 0; c < 256; c++) {
			memcpy(buf, text, sizeof(text));
			buf[at] = (char)c;
			canon_rig_run(&rig, slice_of(buf, sizeof(text) - 1), &where, 0, 0);
			assert_true(rig.n_requests <= 1);
			/* What was forwarded is read again as the same single request. */
			if (rig.n_requests == 1) {
				canon_rig_run(&again, slice_of(rig.out, rig.n_out), &where, 0, 0);
				assert_int_equal(again.n_requests, 1);
				assert_true(slice_eq(slice_of(rig.out, rig.n_out),
					slice_of(again.out, again.n_out)));
				canon_rig_done(&again);
			}
			canon_rig_done(&rig);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_read),
		cmocka_unit_test(broken_requests_are_refused),
		cmocka_unit_test(responses_are_read),
		cmocka_unit_test(broken_responses_are_refused),
		cmocka_unit_test(the_gate_needs_no_second_opinion),
		cmocka_unit_test(heads_are_bounded),
		cmocka_unit_test(header_lines_are_bounded),
		cmocka_unit_test(trailers_and_extensions_are_bounded),
		cmocka_unit_test(informational_answers_are_bounded),
		cmocka_unit_test(a_small_arena_refuses_politely),
		cmocka_unit_test(bytes_behind_the_request_stay_unread),
		cmocka_unit_test(next_before_the_end_is_a_fault),
		cmocka_unit_test(every_byte_in_every_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
