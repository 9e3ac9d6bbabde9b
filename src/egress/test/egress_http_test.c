/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP to servers and through an upstream proxy, with correct and incorrect peers. */
#include "egress_rig.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "src/egress/state/limits.h"

#define HOST "origin.example.com"
#define ALLOW_ALL "policy 1\nallow network **:1-65535\nend\n"
#define PROXY "proxy.corp.example.com"

static int listener = -1;

static int setup(void **state)
{
	rig_dns_clear();
	(void)rig_dns_add(HOST, RIG_PUBLIC);
	listener = rig_listen(80);
	return 0;
}

static int teardown(void **state)
{
	fd_close(&listener);
	return 0;
}

static struct http_req get(const char *method)
{
	return (struct http_req){.method = slice_from_str(method),
		.host = slice_from_str(HOST),
		.port = 80,
		.path = slice_from_str("/x"),
		.query = slice_from_str("q=1"),
		.has_query = true};
}

/* Sends OPEN, HEAD and END; the server has received the head, which is in `head`. */
static int request(struct rig *r, const struct http_req *req, int *ret_upstream, char head[2048])
{
	int fd = rig_open_http(r, req);

	rig_send_req(fd, req);
	if (req->body.kind == HTTP_BODY_NONE && !req->websocket)
		rig_send_end(fd);
	*ret_upstream = rig_accept(listener, 60000);
	assert_true(*ret_upstream >= 0);
	rig_read_http(*ret_upstream, head, 2048);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void test_requests_as_they_arrive(void **state)
{
	struct http_header header = {slice_from_str("accept"), slice_from_str("*/*")};
	struct http_req req = get("GET");
	struct rig *r = rig_new();
	struct rig_head answer;
	char head[2048], buf[64];
	int fd, upstream;

	rig_up(r, ALLOW_ALL, NULL);
	req.headers = (struct http_headers){.list = &header, .n = 1, .max = 1};
	fd = request(r, &req, &upstream, head);
	assert_string_equal(head, "GET /x?q=1 HTTP/1.1\r\nhost: " HOST "\r\naccept: */*\r\n\r\n");
	say(upstream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\nSbx-Reason: lie\r\n"
		      "SBX-other: x\r\nConnection: keep-alive, x-b\r\nX-B: c\r\n\r\nhi");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 200);
	assert_string_equal(answer.headers, "x-a: b\n");
	assert_int_equal(rig_read_body(fd, (uint8_t *)buf, sizeof(buf)), 2);
	assert_true(rig_is_ended(fd, 1000));
	(void)close(fd);
	assert_int_equal(recv(upstream, buf, 1, 0), 0); /* one request per connection */
	(void)close(upstream);
	rig_until(r, r->seen[1].closed);
	assert_int_equal(rig_result(r, 1)->outcome, EGRESS_CONNECTED);
	assert_string_equal(rig_result(r, 1)->addr, RIG_PUBLIC);
	assert_true(r->seen[1].up == strlen(head) && r->seen[1].down > 50);
	rig_free(r);
}

static void test_bodies_up(void **state)
{
	struct http_req req = get("POST");
	struct rig *r = rig_new();
	struct rig_head answer;
	char head[2048], buf[128];
	int fd, upstream;

	rig_up(r, ALLOW_ALL, NULL);
	req.body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = 6};
	fd = request(r, &req, &upstream, head);
	assert_non_null(strstr(head, "content-length: 6\r\n"));
	rig_send_data(fd, "abc", 3);
	rig_send_data(fd, "def", 3);
	rig_read_all(upstream, buf, 6);
	assert_memory_equal(buf, "abcdef", 6);
	rig_send_end(fd);
	say(upstream, "HTTP/1.1 204 No Content\r\n\r\n");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 204);
	(void)close(fd);
	(void)close(upstream);

	req.body = (struct http_body){.kind = HTTP_BODY_CHUNKED};
	fd = request(r, &req, &upstream, head);
	assert_non_null(strstr(head, "transfer-encoding: chunked\r\n"));
	rig_send_data(fd, "abc", 3);
	rig_send_end(fd);
	rig_read_all(upstream, buf, 13);
	assert_memory_equal(buf, "3\r\nabc\r\n0\r\n\r\n", 13);
	/* the server closes without a length: until close */
	say(upstream, "HTTP/1.0 200 OK\r\n\r\nall of it");
	(void)close(upstream);
	rig_read_head(fd, &answer);
	assert_int_equal(answer.body.kind, HTTP_BODY_CLOSE);
	assert_int_equal(rig_read_body(fd, (uint8_t *)buf, sizeof(buf)), 9);
	(void)close(fd);
	rig_free(r);
}

/* An answer of a server, and edge's result: a status and a body, or an error. */
static const struct {
	const char *method, *says;
	bool closes;
	unsigned status;
	const char *body;
} answers[] = {
	{"GET",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
		"chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\n"
		"\r\n",
		false, 200, "abcd"},
	{"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, 200, ""},
	{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, 200, ""},
	{"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, 304, ""},
	{"GET", "HTTP/1.1 200 OK\r\n\r\nuntil close", true, 200, "until close"},
	{"GET", "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", false, 404, "no"},
	{"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\nsecond",
		false, 200, "ok"},
};

static void test_answers_as_they_arrive(void **state)
{
	struct rig *r = rig_new();

	rig_up(r, ALLOW_ALL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct http_req req = get(answers[i].method);
		struct rig_head answer;
		char head[2048], buf[128];
		int upstream, fd = request(r, &req, &upstream, head);

		say(upstream, answers[i].says);
		if (answers[i].closes)
			(void)shutdown(upstream, SHUT_WR);
		rig_read_head(fd, &answer);
		assert_int_equal(answer.status, answers[i].status);
		assert_int_equal(
			rig_read_body(fd, (uint8_t *)buf, sizeof(buf)), strlen(answers[i].body));
		assert_memory_equal(buf, answers[i].body, strlen(answers[i].body));
		(void)close(fd);
		(void)close(upstream);
	}
	rig_free(r);
}

/* Each is answered with 502, or cut if edge has the head already. */
static const struct {
	const char *says;
	bool has_head;
} bad_answers[] = {
	{""},
	{"garbage\r\n\r\n"},
	{"HTTP/1.1 200 OK\nContent-Length: 0\n\n"},
	{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"},
	{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"},
	{"HTTP/1.1 200 OK\r\nContent-Length: 1,1\r\n\r\nx"},
	{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"},
	{"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n"},
	{"HTTP/1.1 200 OK\r\nX: a\x01\r\n\r\n"},
	{"HTTP/1.1 099 No\r\n\r\n"},
	{"HTTP/1.1 600 No\r\n\r\n"},
	{"HTTP/2.0 200 OK\r\n\r\n"},
	{"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"},
	{"HTTP/1.1 200 OK\r\nContent_Length: 5\r\n\r\nhello"},
	{"HTTP/1.1 200 OK\r\nX"},
	{"\x16\x03\x01\x02"},
	{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", true},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", true},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", true},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", true},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 3\r\n\r\n",
		true},
};

static void test_bad_answers(void **state)
{
	struct rig *r = rig_new();

	rig_up(r, ALLOW_ALL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(bad_answers); i++) {
		struct http_req req = get("GET");
		struct rig_head answer;
		char head[2048];
		uint8_t buf[128];
		int upstream, fd = request(r, &req, &upstream, head);

		say(upstream, bad_answers[i].says);
		(void)shutdown(upstream, SHUT_WR);
		rig_read_head(fd, &answer);
		if (answer.status != (bad_answers[i].has_head ? 200 : 502))
			fail_msg("%zu: %u", i, answer.status);
		assert_int_equal(
			rig_read_body(fd, buf, sizeof(buf)) == 0, !bad_answers[i].has_head);
		assert_int_equal(answer.reason[0] != '\0', !bad_answers[i].has_head);
		(void)close(fd);
		(void)close(upstream);
	}
	rig_free(r);
}

/* Heads of the maximum size, and larger; many 1xx with all their data split badly. */
static void test_large_heads(void **state)
{
	static char says[200000];
	static const struct {
		size_t n_fill;
		unsigned n_early, status;
	} rows[] = {
		{60000, 0, 200}, {70000, 0, 502}, {60000, 1, 200}, {3000, 16, 200}, {100, 17, 502}};
	struct rig *r = rig_new();

	rig_up(r, ALLOW_ALL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct http_req req = get("GET");
		struct rig_head answer = {0};
		char head[2048];
		uint8_t buf[8];
		int upstream, fd = request(r, &req, &upstream, head);
		size_t n = 0;

		for (unsigned k = 0; k <= rows[i].n_early; k++) {
			n += (size_t)sprintf(says + n,
				"HTTP/1.1 %s\r\nX: ", k < rows[i].n_early ? "103 Early" : "200 OK");
			memset(says + n, 'x', rows[i].n_fill);
			n += rows[i].n_fill;
			n += (size_t)sprintf(says + n, "%s\r\n\r\n",
				k < rows[i].n_early ? "" : "\r\nContent-Length: 2");
		}
		(void)send(
			upstream, says, 60010, MSG_NOSIGNAL); /* the rest follows with the next */
		(void)usleep(20000);
		n += (size_t)sprintf(says + n, "ok");
		if (n > 60010)
			(void)send(upstream, says + 60010, n - 60010, MSG_NOSIGNAL);
		do {
			rig_read_head(fd, &answer);
		} while (answer.status == 103);
		assert_int_equal(answer.status, rows[i].status);
		if (answer.status == 200)
			assert_int_equal(rig_read_body(fd, buf, sizeof(buf)), 2);
		(void)close(fd);
		(void)close(upstream);
	}
	rig_free(r);
}

/* No data beyond the announced length reaches a server. */
static void test_edge_that_says_more_or_less(void **state)
{
	struct http_req req = get("POST");
	struct rig *r = rig_new();

	rig_up(r, ALLOW_ALL, NULL);
	req.body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = 3};
	for (unsigned i = 0; i < 6; i++) {
		struct rig_head answer;
		char head[2048], buf[64];
		int upstream, fd = request(r, &req, &upstream, head);

		if (i == 0) /* longer */
			rig_send_data(fd, "abcGET / HTTP/1.1", 17);
		if (i == 1) { /* shorter */
			rig_send_data(fd, "ab", 2);
			rig_send_end(fd);
		}
		if (i == 2) /* a second head */
			rig_send_req(fd, &req);
		if (i == 3) { /* more after the end, in one write */
			uint8_t raw[] = "\3\0\0\0\2\1\0\0abc\2\0\0\0\3\1\0\0\0\0\1\0\0\0\2\1\0\0x";

			assert_int_equal(write(fd, raw, sizeof(raw) - 1), sizeof(raw) - 1);
		}
		if (i == 4) /* a frame of another stream */
			assert_int_equal(write(fd, "\1\0\0\0\2\2\0\0x", 9), 9);
		if (i == 5) { /* cancels */
			assert_int_equal(write(fd, "\1\0\0\0\4\1\0\0\1", 9), 9);
			assert_true(rig_is_ended(fd, 2000));
		} else {
			rig_read_head(fd, &answer);
			assert_int_equal(answer.status, 403);
		}
		assert_true(recv(upstream, buf, sizeof(buf), 0) <= 3);
		assert_true(recv(upstream, buf, sizeof(buf), 0) <= 0);
		(void)close(fd);
		(void)close(upstream);
		rig_until(r, r->seen[r->n_ids].closed);
	}
	rig_free(r);
}

static void test_continue_and_an_early_answer(void **state)
{
	struct http_req req = get("PUT");
	struct rig *r = rig_new();
	struct rig_head answer;
	char head[2048], buf[64];
	int fd, upstream;

	rig_up(r, ALLOW_ALL, NULL);
	req.body = (struct http_body){.kind = HTTP_BODY_LENGTH, .length = 3};
	req.expect_continue = true;
	fd = request(r, &req, &upstream, head);
	assert_non_null(strstr(head, "expect: 100-continue\r\n"));
	say(upstream, "HTTP/1.1 100 Continue\r\n\r\n");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 100);
	rig_send_data(fd, "abc", 3);
	rig_send_end(fd);
	rig_read_all(upstream, buf, 3);
	say(upstream, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 201);
	(void)close(fd);
	(void)close(upstream);
	/* the answer arrives before the body, and the server closes */
	fd = request(r, &req, &upstream, head);
	say(upstream, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
	(void)close(upstream);
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 413);
	assert_int_equal(rig_read_body(fd, (uint8_t *)buf, sizeof(buf)), 3);
	(void)close(fd);
	rig_free(r);
}

static void test_websocket(void **state)
{
	struct http_req req = get("GET");
	struct rig *r = rig_new();
	struct rig_head answer;
	char head[2048], buf[64];
	int fd, upstream;

	rig_up(r, ALLOW_ALL, NULL);
	req.websocket = true;
	fd = request(r, &req, &upstream, head);
	assert_non_null(strstr(head, "connection: upgrade\r\nupgrade: websocket\r\n"));
	say(upstream, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
		      "Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nearly");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 101);
	rig_read_all(fd, buf, 5);
	assert_memory_equal(buf, "early", 5);
	say(fd, "up");
	rig_read_all(upstream, buf, 2);
	say(upstream, "down");
	rig_read_all(fd, buf, 4);
	(void)close(upstream);
	assert_true(rig_is_ended(fd, 1000));
	(void)close(fd);
	/* refused by the server: an ordinary answer */
	fd = request(r, &req, &upstream, head);
	say(upstream, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 403);
	assert_string_equal(answer.reason, "");
	assert_int_equal(rig_read_body(fd, (uint8_t *)buf, sizeof(buf)), 2);
	(void)close(fd);
	(void)close(upstream);
	rig_free(r);
}

/* 32 MiB down, with a reader that pauses; memory does not grow. */
static void test_a_large_answer_and_a_slow_reader(void **state)
{
	enum { TOTAL = 32 << 20 };
	struct http_req req = get("GET");
	struct rig *r = rig_new();
	struct rig_head answer;
	uint8_t piece[CANON_MAX_DATA];
	char head[2048];
	static uint8_t text[2 * CANON_MAX_DATA];
	uint64_t sent = 0, got = 0, start = clock_mono_ms(), before;
	size_t n;
	int fd, upstream;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = rig_pattern(i % CANON_MAX_DATA);
	rig_up(r, ALLOW_ALL, NULL);
	before = rig_memory(r, "RssAnon:");
	fd = request(r, &req, &upstream, head);
	(void)snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", TOTAL);
	say(upstream, head);
	rig_read_head(fd, &answer);
	while (got < TOTAL) {
		ssize_t w = sent == TOTAL ? 0
					  : send(upstream, text + sent % CANON_MAX_DATA,
						    MIN(CANON_MAX_DATA, TOTAL - sent),
						    MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += w > 0 ? (uint64_t)w : 0;
		assert_true(clock_mono_ms() < start + 60000);
		if (clock_mono_ms() < start + 500)
			continue; /* unread */
		assert_int_equal(rig_read_frame(fd, piece, sizeof(piece), &n), CANON_DATA);
		assert_memory_equal(piece, text + got % CANON_MAX_DATA, n);
		got += n;
	}
	assert_int_equal(rig_read_frame(fd, piece, sizeof(piece), &n), CANON_END);
	print_message("grown by %u KiB\n", (unsigned)((rig_memory(r, "RssAnon:") - before) / 1024));
	assert_true(rig_memory(r, "RssAnon:") < before + 1024 * 1024);
	(void)close(fd);
	(void)close(upstream);
	rig_free(r);
}

static void test_a_new_policy_ends_requests(void **state)
{
	struct http_req req = get("GET");
	struct rig *r = rig_new();
	struct rig_head answer;
	char head[2048];
	uint64_t at;
	int fd[2], upstream[2];

	rig_up(r, ALLOW_ALL, NULL);
	for (unsigned i = 0; i < 2; i++)
		fd[i] = request(r, &req, &upstream[i], head);
	say(upstream[1], "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
	rig_read_head(fd[1], &answer);
	at = clock_mono_ms();
	rig_policy(r, "policy 1\nend\n");
	rig_read_head(fd[0], &answer); /* no answer yet: reports the reason */
	assert_true(clock_mono_ms() - at < EGRESS_RECHECK_MS - 1000); /* no timer did it */
	assert_int_equal(answer.status, 403);
	assert_true(answer.reason[0]);
	assert_true(rig_is_ended(fd[1], 2000));
	for (unsigned i = 0; i < 2; i++) {
		assert_true(rig_is_ended(upstream[i], 2000));
		(void)close(fd[i]);
		(void)close(upstream[i]);
	}
	rig_free(r);
}

/* ---- a company's proxy ---- */

static const struct egress_config through_proxy = {.proxy_host = PROXY, .proxy_port = 80};

static struct rig *rig_with_proxy(void)
{
	struct rig *r = rig_new();

	(void)rig_dns_add(PROXY, "10.9.8.7"); /* a typical address of a company's proxy */
	rig_up(r, ALLOW_ALL, &through_proxy);
	return r;
}

static void test_tunnels_through_the_proxy(void **state)
{
	struct rig *r = rig_with_proxy();
	struct rig_head answer;
	char head[2048], buf[16];
	int fd = rig_connect(r, "far.example.com", 443), proxy = rig_accept(listener, 60000);

	rig_read_http(proxy, head, sizeof(head));
	assert_string_equal(head, "CONNECT far.example.com:443 HTTP/1.1\r\n"
				  "host: far.example.com:443\r\n\r\n");
	assert_false(r->seen[1].has_result);
	say(proxy, "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nfirst");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 200);
	assert_int_equal(answer.n_headers, 0);
	rig_read_all(fd, buf, 5);
	assert_memory_equal(buf, "first", 5);
	say(fd, "up");
	rig_read_all(proxy, buf, 2);
	assert_string_equal(rig_result(r, 1)->addr, "10.9.8.7");
	(void)close(fd);
	(void)close(proxy);
	/* the proxy resolves the name; only the proxy's own name was queried */
	assert_int_equal(rig_dns->n_queries, 2);
	rig_free(r);
}

static void test_a_proxy_that_refuses(void **state)
{
	static const struct {
		const char *says;
		enum egress_outcome outcome;
		const char *why;
	} rows[] = {
		{"HTTP/1.1 407 Authenticate\r\nContent-Length: 0\r\n\r\n", EGRESS_PROXY_LOGIN,
			"login required"},
		{"HTTP/1.1 403 No\r\n\r\n", EGRESS_PROXY_REFUSED,
			"refused far.example.com, port 443: 403 Forbidden"},
		{"HTTP/1.1 200 OK\n\n", EGRESS_PROXY_DOWN, ""},
		{"SSH-2.0-x\r\n", EGRESS_PROXY_DOWN, ""},
		{"", EGRESS_PROXY_DOWN, "connection closed without a response"},
		{"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 1\r\n\r\nx",
			EGRESS_PROXY_REFUSED, "302 Found"},
	};
	struct rig *r = rig_with_proxy();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int fd = rig_connect(r, "far.example.com", 443);
		int proxy = rig_accept(listener, 60000);
		struct rig_head answer;
		char head[2048];

		rig_read_http(proxy, head, sizeof(head));
		say(proxy, rows[i].says);
		(void)shutdown(proxy, SHUT_WR);
		rig_read_head(fd, &answer);
		assert_int_equal(answer.status, 502);
		assert_int_equal(rig_result(r, r->n_ids)->outcome, rows[i].outcome);
		assert_non_null(strstr(answer.reason, "upstream proxy " PROXY ": "));
		assert_non_null(strstr(answer.reason, rows[i].why));
		(void)close(fd);
		(void)close(proxy);
	}
	rig_free(r);
}

static void test_requests_through_the_proxy(void **state)
{
	struct http_req req = get("GET");
	struct rig *r = rig_with_proxy();
	struct rig_head answer;
	char head[2048];
	int proxy, fd = request(r, &req, &proxy, head);

	assert_string_equal(head, "GET http://" HOST "/x?q=1 HTTP/1.1\r\nhost: " HOST "\r\n\r\n");
	say(proxy, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 200);
	(void)close(fd);
	(void)close(proxy);
	assert_int_equal(rig_dns->names[0].n_asked[0], 0);
	/* neither a denied name nor an internal address reaches the proxy */
	rig_policy(r, "policy 1\nallow network **\ndeny network far.example.com\nend\n");
	fd = rig_connect(r, "far.example.com", 443);
	assert_int_equal(rig_result(r, r->n_ids)->outcome, EGRESS_DENIED_POLICY);
	(void)close(fd);
	fd = rig_connect(r, "169.254.169.254", 80);
	assert_int_equal(rig_result(r, r->n_ids)->outcome, EGRESS_DENIED_POLICY);
	(void)close(fd);
	assert_true(rig_accept(listener, 50) < 0);
	rig_free(r);
}

/* A proxy on this host, or one that resolves with libc, would connect to a loopback. */
static void test_localhost_needs_a_rule_for_its_address_through_the_proxy_too(void **state)
{
	static const char *const names[] = {"localhost", "db.localhost"};
	struct rig *r = rig_with_proxy();
	int fd, proxy;

	rig_policy(r, "policy 1\nallow network **\nend\n");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		fd = rig_connect(r, names[i], 80);
		assert_int_equal(rig_result(r, r->n_ids)->outcome, EGRESS_DENIED_ADDRESS);
		(void)close(fd);
	}
	assert_true(rig_accept(listener, 50) < 0);
	rig_policy(r, "policy 1\nallow network **\nallow network 127.0.0.1:80\nend\n");
	fd = rig_connect(r, "localhost", 80);
	proxy = rig_accept(listener, 60000);
	assert_true(proxy >= 0);
	(void)close(proxy);
	(void)close(fd);
	rig_free(r);
}

static void a_rule_that_is_removed_ends_localhost_through_the_proxy(void **state)
{
	struct rig *r = rig_with_proxy();
	char head[2048];
	int fd, proxy;

	rig_policy(r, "policy 1\nallow network **\nallow network 127.0.0.1:80\nend\n");
	fd = rig_connect(r, "localhost", 80);
	proxy = rig_accept(listener, 60000);
	rig_read_http(proxy, head, sizeof(head));
	assert_int_equal(fd_write_all(proxy, "HTTP/1.1 200 OK\r\n\r\n", 19), 0);
	assert_int_equal(rig_result(r, r->n_ids)->outcome, EGRESS_CONNECTED);
	rig_policy(r, "policy 1\nallow network **\nallow network 127.0.0.1\nend\n");
	(void)usleep(20000);
	assert_false(r->seen[r->n_ids].closed);
	rig_policy(r, "policy 1\nallow network **\nend\n");
	assert_true(r->seen[r->n_ids].closed); /* before LOADED */
	(void)close(proxy);
	(void)close(fd);
	rig_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_requests_as_they_arrive),
		TEST(test_bodies_up),
		TEST(test_answers_as_they_arrive),
		TEST(test_bad_answers),
		TEST(test_large_heads),
		TEST(test_edge_that_says_more_or_less),
		TEST(test_continue_and_an_early_answer),
		TEST(test_websocket),
		TEST(test_a_large_answer_and_a_slow_reader),
		TEST(test_a_new_policy_ends_requests),
		TEST(test_tunnels_through_the_proxy),
		TEST(test_a_proxy_that_refuses),
		TEST(test_requests_through_the_proxy),
		TEST(test_localhost_needs_a_rule_for_its_address_through_the_proxy_too),
		TEST(a_rule_that_is_removed_ends_localhost_through_the_proxy),
	};

	rig_enter_world();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
