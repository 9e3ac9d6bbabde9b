/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP engine between guest and egress: bodies, answers, back-pressure, and disconnects or
 * violations of either side. */
#include "proxy_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define LARGE (4 << 20)

static const char get[] = "GET / HTTP/1.1\r\nHost: example.test\r\n\r\n";

static const char *got(const struct proxy_rig *r)
{
	return r->got.p ? (const char *)r->got.p : "";
}

static struct proxy_rig *rig(const char *request)
{
	struct proxy_rig *r = proxy_rig_new("example.test", 80);

	proxy_rig_say(r, request);
	return r;
}

static struct slice large(void)
{
	static uint8_t bytes[LARGE];

	for (size_t i = 0; i < LARGE && !bytes[LARGE - 1]; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13 | 1);
	return slice_of(bytes, LARGE);
}

/* ---- bodies of requests ---- */

static void large_bodies_go_through_a_small_window(void **state)
{
	static const char *const rows[] = {
		"Content-Length: 4194304\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct proxy_rig *r = proxy_rig_new("example.test", 80);

		r->answer = proxy_rig_ok;
		r->deaf = true;
		proxy_rig_add(
			&r->to_say, slice_from_str("PUT / HTTP/1.1\r\nHost: example.test\r\n"));
		proxy_rig_add(&r->to_say, slice_from_str(rows[i]));
		proxy_rig_add(&r->to_say, slice_from_str(i ? "400000\r\n" : ""));
		proxy_rig_add(&r->to_say, large());
		proxy_rig_add(&r->to_say, slice_from_str(i ? "\r\n0\r\n\r\n" : ""));
		proxy_rig_turn(r);
		/* Egress does not read: only the socket's buffer and one window are held. */
		assert_true(r->to_say.n - r->to_say.at > LARGE - (1 << 20));
		assert_int_equal(bufq_space(&r->c->in), 0);
		r->deaf = false;
		proxy_rig_turn(r);
		assert_int_equal(r->n_requests, 1);
		assert_int_equal(r->n_bad, 0);
		assert_true(slice_eq(slice_of(r->body.p, r->body.n), large()));
		assert_non_null(strstr(got(r), "HTTP/1.1 200 OK\r\n"));
		assert_int_equal(r->end, RIG_OPEN);
		proxy_rig_free(r);
	}
}

static void continue_is_passed_on_and_back(void **state)
{
	struct proxy_rig *r =
		rig("POST / HTTP/1.1\r\nHost: example.test\r\nExpect: 100-continue\r\n"
		    "Content-Length: 5\r\n\r\n");

	assert_non_null(strstr((char *)r->seen.p, "expect: 100-continue\r\n"));
	proxy_rig_head(r, 100, HTTP_BODY_NONE, 0, false);
	proxy_rig_turn(r);
	assert_string_equal(got(r), "HTTP/1.1 100 Continue\r\n\r\n");
	proxy_rig_say(r, "hello");
	assert_int_equal(r->n_requests, 1);
	proxy_rig_head(r, 201, HTTP_BODY_LENGTH, 0, false);
	proxy_rig_finish(r, NULL, NULL);
	proxy_rig_turn(r);
	assert_non_null(
		strstr(got(r), "\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n"));
	assert_int_equal(r->end, RIG_OPEN);
	proxy_rig_free(r);
}

/* The answer arrives before the body: it is delivered completely, and nothing after it is a
 * request. */
static void an_early_answer_ends_the_connection(void **state)
{
	struct proxy_rig *r =
		rig("POST / HTTP/1.1\r\nHost: example.test\r\nExpect: 100-continue\r\n"
		    "Content-Length: 50\r\n\r\n");

	proxy_rig_head(r, 417, HTTP_BODY_LENGTH, 2, false);
	proxy_rig_turn(r);
	assert_int_equal(r->end, RIG_OPEN);
	proxy_rig_data(r, slice_from_str("no"));
	proxy_rig_finish(r, NULL, NULL);
	proxy_rig_turn(r);
	assert_string_equal(got(r), "HTTP/1.1 417 Expectation Failed\r\nconnection: close\r\n"
				    "content-length: 2\r\n\r\nno");
	assert_int_equal(r->end, RIG_ENDED);
	assert_int_equal(r->n_requests, 0);
	proxy_rig_free(r);
}

/* Egress has answered and closed while the guest still sends. */
static void an_answer_counts_when_egress_takes_no_more(void **state)
{
	struct proxy_rig *r = proxy_rig_new("example.test", 80);

	r->deaf = true;
	proxy_rig_say(r, "PUT / HTTP/1.1\r\nHost: example.test\r\nContent-Length: 4194304\r\n\r\n");
	proxy_rig_head(r, 413, HTTP_BODY_LENGTH, 3, false);
	proxy_rig_data(r, slice_from_str("big"));
	proxy_rig_finish(r, NULL, NULL);
	r->hang_up = true;
	proxy_rig_add(&r->to_say, large());
	proxy_rig_turn(r);
	assert_non_null(strstr(got(r), "HTTP/1.1 413 Content Too Large\r\n"));
	assert_non_null(strstr(got(r), "\r\n\r\nbig"));
	assert_int_equal(r->end, RIG_ENDED);
	proxy_rig_free(r);
}

static void a_guest_that_goes_away_leaves_half_a_request(void **state)
{
	struct proxy_rig *r =
		rig("POST / HTTP/1.1\r\nHost: example.test\r\nContent-Length: 50\r\n\r\nhello");

	assert_true(r->far >= 0);
	r->to_end = true;
	proxy_rig_turn(r);
	assert_int_equal(r->n_requests, 0);
	assert_int_equal(r->far, -1); /* egress saw end-of-file without an END */
	assert_non_null(strstr(got(r), "HTTP/1.1 400 "));
	assert_int_equal(r->n_faults, 1);
	assert_int_equal(r->end, RIG_ENDED);
	proxy_rig_free(r);
}

static void a_body_that_breaks_is_never_ended(void **state)
{
	struct proxy_rig *r = rig("POST / HTTP/1.1\r\nHost: example.test\r\n"
				  "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");

	assert_int_equal(r->body.n, 3);
	proxy_rig_head(r, 200, HTTP_BODY_LENGTH, 9, false);
	proxy_rig_turn(r);
	proxy_rig_say(r, "x\r\n");
	assert_int_equal(r->n_requests, 0);
	assert_int_equal(r->n_faults, 1);
	assert_int_equal(r->far, -1);
	assert_int_equal(r->end, RIG_RESET); /* an answer is under way: no error can be sent */
	assert_null(strstr(got(r), " 400 "));
	proxy_rig_free(r);
}

/* ---- answers ---- */

static void large_answers_wait_for_a_slow_reader(void **state)
{
	static const enum http_body_kind kinds[] = {
		HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED, HTTP_BODY_CLOSE};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct proxy_rig *r = rig(get);
		size_t before;

		r->reads = 0;
		proxy_rig_head(r, 200, kinds[i], i ? 0 : LARGE, false);
		proxy_rig_data(r, large());
		proxy_rig_finish(r, NULL, NULL);
		proxy_rig_turn(r);
		before = r->to_answer.n - r->to_answer.at;
		assert_true(before > LARGE - (1 << 20));
		for (int k = 0; k < 1000; k++) {
			r->reads = 1 + (size_t)k;
			proxy_rig_turn(r);
		}
		assert_true(r->to_answer.n - r->to_answer.at > before - (1 << 20));
		r->reads = SIZE_MAX;
		proxy_rig_turn(r);
		assert_true(r->max_out <= CONN_OUT);
		assert_int_equal(r->end, RIG_OPEN);
		if (i == 0)
			assert_true(
				slice_eq(slice_of(strstr(got(r), "\r\n\r\n") + 4, LARGE), large()));
		else
			assert_string_equal((char *)&r->got.p[r->got.n - 7], "\r\n0\r\n\r\n");
		proxy_rig_free(r);
	}
}

/* One frame is one chunk, and its data is forwarded immediately. */
static void a_slow_stream_is_forwarded_at_once(void **state)
{
	struct proxy_rig *r = rig(get);
	char text[64];

	proxy_rig_head(r, 200, HTTP_BODY_CHUNKED, 0, false);
	proxy_rig_turn(r);
	assert_string_equal(got(r), "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
	for (int i = 0; i < 10; i++) {
		(void)snprintf(text, sizeof(text), "data: %d\n\n", i);
		proxy_rig_data(r, slice_from_str(text));
		proxy_rig_turn(r);
		(void)snprintf(text, sizeof(text), "9\r\ndata: %d\n\n\r\n", i);
		assert_non_null(strstr(got(r), text));
	}
	proxy_rig_add(&r->to_answer, slice_of("\6\0\0\0\2\1\0\0ab", 10));
	proxy_rig_turn(r);
	assert_string_equal((char *)&r->got.p[r->got.n - 5], "6\r\nab");
	proxy_rig_add(&r->to_answer, slice_from_str("c"));
	proxy_rig_turn(r);
	assert_string_equal((char *)&r->got.p[r->got.n - 6], "6\r\nabc");
	proxy_rig_add(&r->to_answer, slice_from_str("def"));
	proxy_rig_finish(r, "x-sum", "7");
	proxy_rig_turn(r);
	assert_non_null(strstr(got(r), "6\r\nabcdef\r\n0\r\nx-sum: 7\r\n\r\n"));
	assert_int_equal(r->end, RIG_OPEN);
	proxy_rig_free(r);
}

static void answers_come_byte_by_byte_too(void **state)
{
	struct proxy_rig *r = rig(get);
	struct proxy_rig_bytes all = {0};

	proxy_rig_head(r, 103, HTTP_BODY_NONE, 0, false);
	proxy_rig_head(r, 200, HTTP_BODY_CLOSE, 0, false);
	proxy_rig_data(r, slice_from_str("hello"));
	proxy_rig_data(r, slice_from_str("!"));
	proxy_rig_finish(r, NULL, NULL);
	all = r->to_answer;
	r->to_answer = (struct proxy_rig_bytes){0};
	for (size_t i = 0; i < all.n; i++) {
		proxy_rig_add(&r->to_answer, slice_of(all.p + i, 1));
		proxy_rig_turn(r);
	}
	assert_string_equal(got(r), "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n"
				    "transfer-encoding: chunked\r\n\r\n"
				    "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n");
	assert_int_equal(r->end, RIG_OPEN);
	free(all.p);
	proxy_rig_free(r);
}

static void answers_without_content_keep_their_headers(void **state)
{
	struct proxy_rig *r = rig("HEAD / HTTP/1.1\r\nHost: example.test\r\n\r\n");

	proxy_rig_head(r, 200, HTTP_BODY_LENGTH, 77, true);
	proxy_rig_finish(r, NULL, NULL);
	proxy_rig_turn(r);
	proxy_rig_say(r, get);
	proxy_rig_head(r, 304, HTTP_BODY_LENGTH, 77, true);
	proxy_rig_finish(r, NULL, NULL);
	proxy_rig_turn(r);
	proxy_rig_say(r, get);
	proxy_rig_head(r, 204, HTTP_BODY_NONE, 0, false);
	proxy_rig_finish(r, NULL, NULL);
	proxy_rig_turn(r);
	assert_string_equal(got(r), "HTTP/1.1 200 OK\r\ncontent-length: 77\r\n\r\n"
				    "HTTP/1.1 304 Not Modified\r\ncontent-length: 77\r\n\r\n"
				    "HTTP/1.1 204 No Content\r\n\r\n");
	assert_int_equal(r->end, RIG_OPEN);
	proxy_rig_free(r);
}

/* A head that is larger than its room still arrives completely, and so does the rest. */
static void a_head_may_be_larger_than_the_room(void **state)
{
	struct proxy_rig *r = rig(get);
	struct http_resp resp = {.status = 200, .body = {.kind = HTTP_BODY_LENGTH, .length = 5}};
	AUTO_FREE char *value = xcalloc(1, 65500);

	memset(value, 'v', 65499);
	r->reads = 0;
	proxy_rig_head_with(r, &resp, "x-long", value);
	proxy_rig_data(r, slice_from_str("hello"));
	proxy_rig_finish(r, NULL, NULL);
	proxy_rig_turn(r);
	assert_int_equal(r->got.n, 0);
	for (int i = 0; i < 100; i++) {
		r->reads = 777;
		proxy_rig_turn(r);
	}
	assert_memory_equal(got(r), "HTTP/1.1 200 OK\r\nx-long: vvv", 28);
	assert_int_equal(r->got.n, 17 + 8 + 65499 + 2 + 21 + 5);
	assert_string_equal((char *)&r->got.p[r->got.n - 9], "\r\n\r\nhello");
	assert_true(r->max_out <= CONN_OUT);
	assert_int_equal(r->end, RIG_OPEN);
	proxy_rig_free(r);
}

/* ---- egress fails ---- */

static void failures_have_words(void **state)
{
	static const struct {
		uint16_t status;
		const char *line;
	} rows[] = {
		{403, "HTTP/1.1 403 Forbidden\r\n"},
		{502, "HTTP/1.1 502 Bad Gateway\r\n"},
		{504, "HTTP/1.1 504 Gateway Timeout\r\n"},
	};
	struct proxy_rig *r = proxy_rig_new("example.test", 80);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct http_resp resp = {.status = rows[i].status};

		proxy_rig_say(r, get);
		proxy_rig_head_with(r, &resp, "sbx-reason", "the name has no address");
		proxy_rig_finish(r, NULL, NULL);
		r->hang_up = true;
		proxy_rig_turn(r);
		assert_non_null(strstr(got(r), rows[i].line));
		assert_non_null(strstr(got(r), "the name has no address"));
		assert_null(strstr(got(r), "sbx-reason"));
		assert_int_equal(r->end, RIG_OPEN);
		assert_int_equal(r->c->fd, -1);
	}
	/* The body is incomplete, so the next request cannot be found. */
	proxy_rig_say(r, "POST / HTTP/1.1\r\nHost: example.test\r\nContent-Length: 5\r\n\r\n");
	proxy_rig_head_with(r, &(struct http_resp){.status = 502}, "sbx-reason", "x");
	proxy_rig_turn(r);
	assert_int_equal(r->end, RIG_ENDED);
	proxy_rig_free(r);
}

static void an_egress_that_dies_is_noticed(void **state)
{
	static const struct {
		enum http_body_kind kind;
		const char *request;
		enum proxy_rig_end end;
	} rows[] = {
		{HTTP_BODY_LENGTH, "GET / HTTP/1.1\r\nHost: example.test\r\n\r\n", RIG_ENDED},
		{HTTP_BODY_CHUNKED, "GET / HTTP/1.1\r\nHost: example.test\r\n\r\n", RIG_ENDED},
		{HTTP_BODY_CHUNKED, "GET / HTTP/1.0\r\nHost: example.test\r\n\r\n", RIG_RESET},
	};
	struct proxy_rig *r = rig(get);

	r->hang_up = true;
	proxy_rig_turn(r);
	assert_non_null(strstr(got(r), "HTTP/1.1 502 Bad Gateway\r\n"));
	assert_int_equal(r->end, RIG_OPEN);
	proxy_rig_free(r);
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		size_t k = i % ARRAY_LEN(rows);

		r = rig(rows[k].request);
		proxy_rig_head(
			r, 200, rows[k].kind, rows[k].kind == HTTP_BODY_LENGTH ? 99 : 0, false);
		proxy_rig_data(r, slice_from_str("hello"));
		proxy_rig_turn(r);
		if (i < ARRAY_LEN(rows))
			r->hang_up = true;
		else
			proxy_rig_add(&r->to_answer, slice_of("\1\0\0\0\4\1\0\0\1", 9));
		proxy_rig_turn(r);
		assert_non_null(strstr(got(r), "hello"));
		assert_null(strstr(got(r), "0\r\n\r\n"));
		assert_int_equal(r->end, rows[k].end);
		proxy_rig_free(r);
	}
}

static void put_head(struct proxy_rig *r, int what)
{
	static const struct {
		uint16_t status;
		struct http_body body;
	} heads[] = {
		{101, {HTTP_BODY_TUNNEL, 0, false}}, /* not requested */
		{200, {HTTP_BODY_TUNNEL, 0, false}},
		{200, {HTTP_BODY_NONE, 0, false}},  /* the guest would wait for the end */
		{200, {HTTP_BODY_LENGTH, 5, true}}, /* and here for five bytes */
	};

	proxy_rig_head(r, heads[what].status, heads[what].body.kind, heads[what].body.length,
		heads[what].body.absent);
}

static void put_other_stream(struct proxy_rig *r)
{
	size_t at = r->to_answer.n;

	proxy_rig_head(r, 200, HTTP_BODY_LENGTH, 0, false);
	r->to_answer.p[at + 5] = 2;
}

static void lies_of_egress_become_502(void **state)
{
	static const struct {
		const char *p;
		size_t n;
	} bytes[] = {
		{"\1\0\0\0\2\1\0\0x", 9},	  /* DATA before HEAD */
		{"\2\0\0\0\3\1\0\0\0\0", 10},	  /* END before HEAD */
		{"\4\0\0\0\5\1\0\0\1\0\0\0", 12}, /* WINDOW */
		{"\1\0\0\0\4\1\0\0\1", 9},	  /* RESET */
		{"\1\0\0\0\1\1\0\0\2", 9},	  /* half a HEAD */
		{"HTTP/1.1 200 OK\r\n\r\n", 19},
	};

	for (size_t i = 0; i < ARRAY_LEN(bytes) + 7; i++) {
		struct proxy_rig *r = rig(get);

		if (i < ARRAY_LEN(bytes))
			proxy_rig_add(&r->to_answer, slice_of(bytes[i].p, bytes[i].n));
		else if (i < ARRAY_LEN(bytes) + 4)
			put_head(r, (int)(i - ARRAY_LEN(bytes)));
		else if (i == ARRAY_LEN(bytes) + 4)
			put_other_stream(r);
		else if (i == ARRAY_LEN(bytes) + 5)
			proxy_rig_head_with(
				r, &(struct http_resp){.status = 404}, "sbx-reason", "x");
		else
			for (int k = 0; k < 17; k++)
				proxy_rig_head(r, 103, HTTP_BODY_NONE, 0, false);
		proxy_rig_turn(r);
		assert_non_null(strstr(got(r), "HTTP/1.1 502 Bad Gateway\r\n"));
		assert_null(strstr(got(r), " 200 OK"));
		assert_int_equal(r->end, RIG_OPEN);
		assert_int_equal(r->far, -1);
		r->answer = proxy_rig_ok; /* the next exchange is a new one */
		proxy_rig_say(r, get);
		assert_non_null(strstr(got(r), "HTTP/1.1 200 OK\r\n"));
		proxy_rig_free(r);
	}
}

/* One byte more than announced would be parsed as the next answer. */
static void lies_after_the_head_end_the_connection(void **state)
{
	for (int i = 0; i < 5; i++) {
		struct proxy_rig *r = rig(get);

		proxy_rig_head(r, 200, HTTP_BODY_LENGTH, 5, false);
		if (i == 0)
			proxy_rig_data(r, slice_from_str("hello!"));
		else if (i == 1)
			proxy_rig_finish(r, NULL, NULL); /* too short */
		else if (i == 2)
			proxy_rig_head(r, 200, HTTP_BODY_LENGTH, 5, false);
		else if (i == 3)
			proxy_rig_data(r, slice_from_str("hello"));
		else
			proxy_rig_head_with(
				r, &(struct http_resp){.status = 502}, "sbx-reason", "x");
		if (i == 3)
			proxy_rig_finish(r, "x-sum", "7"); /* trailers without chunks */
		proxy_rig_turn(r);
		assert_memory_equal(got(r), "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", 38);
		assert_true(r->got.n <= 38 + 5);
		assert_int_equal(r->end, RIG_ENDED);
		proxy_rig_free(r);
	}
	struct proxy_rig *r = rig("HEAD / HTTP/1.1\r\nHost: example.test\r\n\r\n");

	proxy_rig_head(r, 200, HTTP_BODY_LENGTH, 5, false); /* HEAD has no content */
	proxy_rig_data(r, slice_from_str("hello"));
	proxy_rig_turn(r);
	assert_non_null(strstr(got(r), "HTTP/1.1 502 "));
	assert_null(strstr(got(r), "hello"));
	proxy_rig_free(r);
}

/* ---- websockets ---- */

static const char upgrade[] = "GET /w HTTP/1.1\r\nHost: example.test\r\nConnection: Upgrade\r\n"
			      "Upgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n"
			      "Sec-WebSocket-Version: 13\r\n\r\n";

static void a_websocket_becomes_raw(void **state)
{
	struct proxy_rig *r = rig(upgrade);

	assert_int_equal(r->n_requests, 1);
	proxy_rig_say(r, "early"); /* waits for the 101 */
	assert_int_equal(r->body.n, 0);
	proxy_rig_head(r, 101, HTTP_BODY_TUNNEL, 0, false);
	proxy_rig_add(&r->to_answer, slice_from_str("at once"));
	r->raw = true;
	proxy_rig_turn(r);
	assert_string_equal(got(r), "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"
				    "connection: upgrade\r\n\r\nat once");
	assert_string_equal((char *)r->body.p, "early");
	proxy_rig_add(&r->to_say, large());
	proxy_rig_add(&r->to_answer, large());
	proxy_rig_turn(r);
	assert_int_equal(r->body.n, 5 + LARGE);
	assert_true(slice_eq(slice_of(&r->got.p[r->got.n - LARGE], LARGE), large()));
	assert_int_equal(r->n_bad, 0);
	r->to_end = true;
	proxy_rig_turn(r);
	assert_int_equal(r->far, -1); /* egress saw the half-close and closed */
	assert_int_equal(r->end, RIG_ENDED);
	proxy_rig_free(r);
}

static void a_refused_websocket_is_an_answer(void **state)
{
	struct proxy_rig *r = rig(upgrade);

	proxy_rig_head(r, 400, HTTP_BODY_LENGTH, 2, false);
	proxy_rig_data(r, slice_from_str("no"));
	proxy_rig_finish(r, NULL, NULL);
	proxy_rig_turn(r);
	assert_string_equal(got(r), "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\nno");
	r->answer = proxy_rig_ok;
	proxy_rig_say(r, get);
	assert_non_null(strstr(got(r), "HTTP/1.1 200 OK\r\n"));
	proxy_rig_free(r);
}

static void a_websocket_that_breaks_is_reset(void **state)
{
	struct proxy_rig *r = rig(upgrade);

	proxy_rig_head(r, 101, HTTP_BODY_TUNNEL, 0, false);
	r->raw = r->deaf = true;
	proxy_rig_turn(r);
	proxy_rig_say(r, "unread"); /* egress closes with bytes unread: a reset */
	r->hang_up = true;
	proxy_rig_turn(r);
	assert_int_equal(r->end, RIG_RESET);
	proxy_rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_bodies_go_through_a_small_window),
		cmocka_unit_test(continue_is_passed_on_and_back),
		cmocka_unit_test(an_early_answer_ends_the_connection),
		cmocka_unit_test(an_answer_counts_when_egress_takes_no_more),
		cmocka_unit_test(a_guest_that_goes_away_leaves_half_a_request),
		cmocka_unit_test(a_body_that_breaks_is_never_ended),
		cmocka_unit_test(large_answers_wait_for_a_slow_reader),
		cmocka_unit_test(a_slow_stream_is_forwarded_at_once),
		cmocka_unit_test(answers_come_byte_by_byte_too),
		cmocka_unit_test(answers_without_content_keep_their_headers),
		cmocka_unit_test(a_head_may_be_larger_than_the_room),
		cmocka_unit_test(failures_have_words),
		cmocka_unit_test(an_egress_that_dies_is_noticed),
		cmocka_unit_test(lies_of_egress_become_502),
		cmocka_unit_test(lies_after_the_head_end_the_connection),
		cmocka_unit_test(a_websocket_becomes_raw),
		cmocka_unit_test(a_refused_websocket_is_an_answer),
		cmocka_unit_test(a_websocket_that_breaks_is_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
