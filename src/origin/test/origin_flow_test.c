/* SPDX-License-Identifier: Apache-2.0 */
/* Data transfer: streamed, limited, on reused connections, and cut where the server cuts. */
#include "origin_rig.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define OK "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
#define MIB (UINT64_C(1) << 20)
#define LARGE (64 * MIB)
#define MAX_GROWTH (3 * MIB)

static char head[8192];

static uint8_t pattern(uint64_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 17 + (i >> 16));
}

static void fill(uint8_t *p, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		p[i] = pattern(at + i);
}

/* A rig with one connection and the value, which have served one request. */
static struct rig *warm(SSL **ret)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){0});
	struct rig_answer a;

	*ret = rig_serve(r);
	rig_give_value(r, RIG_VALUE);
	assert_true(rig_read_http(*ret, head, sizeof(head)));
	rig_write(*ret, OK);
	rig_read_answer(edge, &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	(void)close(edge);
	rig_until_closed(r, 1);
	return r;
}

static void answered(struct rig *r, int edge, uint16_t status)
{
	struct rig_answer a;

	rig_read_answer(edge, &a);
	assert_int_equal(a.status, status);
	assert_true(a.ended);
	rig_answer_done(&a);
	(void)close(edge);
	rig_until_closed(r, r->n_ids);
}

static void test_one_handshake_for_100_requests(void **state)
{
	SSL *ssl;
	struct rig *r = warm(&ssl);

	for (int i = 0; i < 99; i++) {
		int edge = rig_ask(r, &(struct rig_req){0});

		assert_true(rig_read_http(ssl, head, sizeof(head)));
		assert_int_equal(rig_count(head, RIG_VALUE), 1);
		rig_write(ssl, OK);
		answered(r, edge, 200);
	}
	assert_int_equal(r->n_wants, 1);
	assert_int_equal(r->n_needs, 1);
	rig_hang_up(ssl);
	rig_free(r);
}

/* ---- large ones ---- */

static void send_large(int edge)
{
	static uint8_t buf[32768];

	for (uint64_t at = 0; at < LARGE; at += sizeof(buf)) {
		fill(buf, sizeof(buf), at);
		rig_send_data(edge, buf, sizeof(buf));
	}
	rig_send_end(edge, NULL);
}

static pid_t in_child(void (*run)(int edge), int edge)
{
	pid_t pid = fork();

	if (pid == 0) {
		run(edge);
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void test_a_large_upload(void **state)
{
	SSL *ssl;
	struct rig *r = warm(&ssl);
	static uint8_t buf[16384];
	uint64_t before = rig_memory(r), most = 0, at = 0;
	int edge = rig_ask(
		r, &(struct rig_req){.method = "PUT", .body = HTTP_BODY_LENGTH, .length = LARGE});
	pid_t pid = in_child(send_large, edge);

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_non_null(strstr(head, "\r\ncontent-length: 67108864\r\n"));
	(void)usleep(300000); /* unlimited buffering would show now */
	while (at < LARGE) {
		int n = SSL_read(ssl, buf, sizeof(buf));

		assert_true(n > 0);
		for (int i = 0; i < n; i++)
			assert_int_equal(buf[i], pattern(at + (uint64_t)i));
		at += (uint64_t)n;
		if (at % MIB < 16384)
			most = MAX(most, rig_memory(r));
	}
	rig_write(ssl, OK);
	answered(r, edge, 200);
	assert_true(r->seen[2].up > LARGE);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	print_message("upload: %llu KiB before, %llu KiB at most\n",
		(unsigned long long)before / 1024, (unsigned long long)most / 1024);
	assert_true(most < before + MAX_GROWTH);
	rig_hang_up(ssl);
	rig_free(r);
}

static SSL *large_ssl;

static void serve_large(int unused)
{
	static uint8_t buf[16384];

	rig_write(large_ssl, "HTTP/1.1 200 OK\r\ncontent-length: 67108864\r\n\r\n");
	for (uint64_t at = 0; at < LARGE; at += sizeof(buf)) {
		fill(buf, sizeof(buf), at);
		assert_int_equal(SSL_write(large_ssl, buf, sizeof(buf)), (int)sizeof(buf));
	}
	rig_hang_up(large_ssl); /* both processes have it: the parent's copy is not used again */
}

static void test_a_large_download(void **state)
{
	SSL *ssl;
	struct rig *r = warm(&ssl);
	struct rig_answer a = {0};
	uint64_t before = rig_memory(r), most = 0, at = 0;
	int edge = rig_ask(r, &(struct rig_req){0});
	pid_t pid;

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	large_ssl = ssl;
	pid = in_child(serve_large, 0);
	(void)usleep(300000); /* edge does not read */
	most = rig_memory(r);
	while (!a.ended) {
		uint64_t n = a.n_body;

		assert_true(rig_read_frame(edge, &a));
		assert_false(a.reset);
		for (uint64_t i = n; i < a.n_body; i++)
			assert_int_equal(a.body[i], pattern(at + i - n));
		at += a.n_body - n;
		a.n_body = 0;
		if (at % MIB < 32768)
			most = MAX(most, rig_memory(r));
	}
	assert_int_equal(at, LARGE);
	(void)close(edge);
	rig_until_closed(r, 2);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	print_message("download: %llu KiB before, %llu KiB at most\n",
		(unsigned long long)before / 1024, (unsigned long long)most / 1024);
	assert_true(most < before + MAX_GROWTH);
	rig_answer_done(&a);
	(void)close(SSL_get_fd(ssl));
	rig_free(r);
}

/* ---- shapes ---- */

static void test_each_byte_of_a_stream_passes_at_once(void **state)
{
	SSL *ssl;
	struct rig *r = warm(&ssl);
	struct rig_answer a = {0};
	int edge = rig_ask(r, &(struct rig_req){.headers = "accept: text/event-stream\n"});
	uint64_t worst = 0;

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	rig_write(ssl, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
		       "transfer-encoding: chunked\r\n\r\n");
	assert_true(rig_read_frame(edge, &a));
	for (size_t i = 0; i < 100; i++) {
		uint64_t at = clock_mono_ms();

		rig_write(ssl, "1\r\nx\r\n");
		assert_true(rig_read_frame(edge, &a));
		assert_int_equal(a.n_body, i + 1);
		worst = MAX(worst, clock_mono_ms() - at);
	}
	assert_true(worst < 1000);
	rig_write(ssl, "0\r\n\r\n");
	while (!a.ended)
		assert_true(rig_read_frame(edge, &a));
	rig_answer_done(&a);
	(void)close(edge);
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_websocket(void **state)
{
	SSL *ssl;
	struct rig *r = warm(&ssl);
	struct rig_answer a = {0};
	char buf[64] = "";
	int edge = rig_ask(r, &(struct rig_req){.websocket = true,
				      .headers = "sec-websocket-version: 13\nsec-websocket-key: "
						 "dGhlIHNhbXBsZSBub25jZQ==\n"});

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_non_null(strstr(head, "\r\nconnection: upgrade\r\nupgrade: websocket\r\n"));
	assert_int_equal(rig_count(head, RIG_VALUE), 1);
	/* the first data arrives with the head */
	rig_write(ssl,
		"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: "
		"websocket\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n\x81\x05"
		"first");
	assert_true(rig_read_frame(edge, &a));
	assert_int_equal(a.status, 101);
	assert_int_equal(recv(edge, buf, 7, MSG_WAITALL), 7);
	assert_memory_equal(buf + 2, "first", 5);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(write(edge, "ping", 4), 4);
		assert_int_equal(SSL_read(ssl, buf, 4), 4);
		assert_memory_equal(buf, "ping", 4);
		rig_write(ssl, "\x81\x05pong!");
		assert_int_equal(recv(edge, buf, 7, MSG_WAITALL), 7);
		assert_memory_equal(buf, "\x81\x05pong!", 7);
	}
	assert_int_equal(rig_result(r, 2)->status, 101);
	/* edge's last data arrives, then its end; then the server's own end */
	assert_int_equal(write(edge, "bye", 3), 3);
	assert_int_equal(shutdown(edge, SHUT_WR), 0);
	assert_int_equal(SSL_read(ssl, buf, 3), 3);
	assert_int_equal(SSL_read(ssl, buf, 1), 0);
	rig_write(ssl, "\x81\x04last");
	rig_hang_up(ssl);
	assert_int_equal(recv(edge, buf, 6, MSG_WAITALL), 6);
	assert_int_equal(recv(edge, buf, 1, 0), 0);
	(void)close(edge);
	rig_until_closed(r, 2);
	rig_free(r);
}

static void test_a_websocket_that_is_refused_is_an_answer(void **state)
{
	SSL *ssl;
	struct rig *r = warm(&ssl);
	int edge = rig_ask(r, &(struct rig_req){.websocket = true,
				      .headers = "sec-websocket-version: 13\nsec-websocket-key: "
						 "dGhlIHNhbXBsZSBub25jZQ==\n"});

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	rig_write(ssl, OK);
	answered(r, edge, 200);
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_100_continue(void **state)
{
	SSL *ssl;
	struct rig *r = warm(&ssl);
	struct rig_answer a = {0};
	char body[8] = "";
	int edge = rig_ask(r,
		&(struct rig_req){
			.method = "POST", .expect = true, .body = HTTP_BODY_LENGTH, .length = 5});

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_non_null(strstr(head, "\r\nexpect: 100-continue\r\n"));
	rig_write(ssl, "HTTP/1.1 100 Continue\r\n\r\n");
	assert_true(rig_read_frame(edge, &a));
	assert_int_equal(a.status, 100);
	rig_send_data(edge, "12345", 5);
	rig_send_end(edge, NULL);
	assert_int_equal(SSL_read(ssl, body, 5), 5);
	assert_string_equal(body, "12345");
	rig_write(ssl, OK);
	answered(r, edge, 200);
	/* and it can be used again */
	edge = rig_ask(r, &(struct rig_req){0});
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	rig_write(ssl, OK);
	answered(r, edge, 200);
	assert_int_equal(r->n_wants, 1);
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_trailers(void **state)
{
	SSL *ssl;
	struct rig *r = warm(&ssl);
	struct rig_answer a;
	char body[64] = "";
	int edge = rig_ask(
		r, &(struct rig_req){.method = "POST", .te = true, .body = HTTP_BODY_CHUNKED});

	rig_send_data(edge, "abc", 3);
	rig_send_end(edge, "x-sum: 42\nx-api-key: " RIG_SENTINEL "\n");
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_non_null(strstr(head, "te: trailers"));
	assert_true(rig_read_http(ssl, body, sizeof(body)));
	assert_string_equal(body, "3\r\nabc\r\n0\r\nx-sum: 42\r\n\r\n");
	rig_write(ssl, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
		       "grpc-status: 0\r\nsbx-reason: x\r\n\r\n");
	rig_read_answer(edge, &a);
	assert_string_equal(a.trailers, "grpc-status: 0\n");
	rig_answer_done(&a);
	(void)close(edge);
	/* a foreign key in a trailer: the request is not completed */
	edge = rig_ask(r, &(struct rig_req){.method = "POST", .body = HTTP_BODY_CHUNKED});
	rig_send_data(edge, "abc", 3);
	rig_send_end(edge, "x-api-key: sk-of-somebody\n");
	rig_read_answer(edge, &a);
	assert_int_equal(a.status, 403);
	assert_int_equal(rig_result(r, 3)->outcome, ORIGIN_DENIED_FOREIGN);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_false(rig_read_http(ssl, body, sizeof(body)));
	assert_null(strstr(body, "sk-of-somebody"));
	assert_null(strstr(body, "\r\n0\r\n"));
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_answers_without_content(void **state)
{
	static const struct {
		const char *method, *answer;
		uint16_t status;
	} rows[] = {
		{"HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", 200},
		{"GET", "HTTP/1.1 204 No Content\r\n\r\n", 204},
		{"GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", 304},
		{"GET",
			"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 204 No "
			"Content\r\n\r\n",
			204},
	};
	SSL *ssl;
	struct rig *r = warm(&ssl);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int edge = rig_ask(r, &(struct rig_req){.method = rows[i].method});

		assert_true(rig_read_http(ssl, head, sizeof(head)));
		rig_write(ssl, rows[i].answer);
		answered(r, edge, rows[i].status);
	}
	assert_int_equal(r->n_wants, 1);
	rig_hang_up(ssl);
	rig_free(r);
}

/* ---- lines that are not used again ---- */

static void test_lines_that_are_not_kept(void **state)
{
	static const struct {
		struct rig_req req;
		const char *answer;
	} rows[] = {
		{{0}, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi"},
		{{0}, "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi"},
		/* an unrequested second answer */
		{{0}, OK "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"},
		/* a body where servers expect none */
		{{.body = HTTP_BODY_LENGTH, .length = 1}, OK},
		/* answered before the request was complete */
		{{.method = "POST", .body = HTTP_BODY_LENGTH, .length = 100}, OK},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		SSL *ssl;
		struct rig *r = warm(&ssl);
		char c;
		int edge = rig_ask(r, &rows[i].req);

		if (rows[i].req.length) {
			rig_send_data(edge, "x", 1);
			if (rows[i].req.length == 1)
				rig_send_end(edge, NULL);
		}
		assert_true(rig_read_http(ssl, head, sizeof(head)));
		if (rows[i].req.length)
			assert_int_equal(SSL_read(ssl, &c, 1), 1);
		rig_write(ssl, rows[i].answer);
		answered(r, edge, 200);
		assert_false(rig_read_http(ssl, head, sizeof(head))); /* it disconnects */
		assert_int_equal(strlen(head), 0);
		rig_hang_up(ssl);
		edge = rig_ask(r, &(struct rig_req){0});
		ssl = rig_serve(r);
		assert_true(rig_read_http(ssl, head, sizeof(head)));
		rig_write(ssl, OK);
		answered(r, edge, 200);
		assert_int_equal(r->n_needs, 1);
		rig_hang_up(ssl);
		rig_free(r);
	}
}

/* Closed while idle: a request that must not be repeated is not sent on it. */
static void test_a_line_that_was_closed_meanwhile(void **state)
{
	SSL *ssl;
	struct rig *r = warm(&ssl);
	int edge;

	rig_hang_up(ssl);
	edge = rig_ask(
		r, &(struct rig_req){.method = "POST", .body = HTTP_BODY_LENGTH, .length = 1});
	rig_send_data(edge, "x", 1);
	rig_send_end(edge, NULL);
	ssl = rig_serve(r);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	rig_write(ssl, OK);
	answered(r, edge, 200);
	rig_hang_up(ssl);
	rig_free(r);
}

/* Only a safe request, only on a used connection, and only once. */
static void test_what_is_sent_a_second_time(void **state)
{
	static const struct {
		const char *method;
		enum http_body_kind body;
		bool again;
	} rows[] = {
		{"GET", HTTP_BODY_NONE, true},
		{"HEAD", HTTP_BODY_NONE, true},
		{"DELETE", HTTP_BODY_NONE, false},
		{"POST", HTTP_BODY_NONE, false},
		{"PUT", HTTP_BODY_CHUNKED, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		SSL *ssl;
		struct rig *r = warm(&ssl);
		int edge = rig_ask(
			r, &(struct rig_req){.method = rows[i].method, .body = rows[i].body});

		if (rows[i].body)
			rig_send_end(edge, NULL);
		assert_true(rig_read_http(ssl, head, sizeof(head)));
		rig_hang_up(ssl);
		if (rows[i].again) {
			ssl = rig_serve(r);
			assert_true(rig_read_http(ssl, head, sizeof(head)));
			assert_int_equal(rig_count(head, RIG_VALUE), 1);
			rig_hang_up(ssl); /* a new one: this was the last attempt */
		}
		answered(r, edge, 502);
		assert_int_equal(rig_result(r, 2)->outcome, ORIGIN_BAD_ANSWER);
		assert_true(rig_result(r, 2)->used);
		assert_int_equal(r->n_wants, rows[i].again ? 2 : 1);
		rig_free(r);
	}
}

/* A new connection that accepts a request and closes may have processed it. */
static void test_nothing_is_sent_again_from_a_new_line(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){0});
	SSL *ssl = rig_serve(r);

	rig_give_value(r, RIG_VALUE);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	rig_hang_up(ssl);
	answered(r, edge, 502);
	assert_int_equal(r->n_wants, 1);
	rig_free(r);
}

/* ---- the server cuts ---- */

static void test_the_server_closes_at_every_stage(void **state)
{
	static const struct {
		const char *answer;
		bool properly;
		uint16_t status; /* of the answer to edge */
		bool ended;	 /* as if it were complete */
	} rows[] = {
		{"H", true, 502, true},
		{"H", false, 502, true},
		{"HTTP/1.1 200 OK\r\ncontent-le", true, 502, true},
		{"HTTP/1.1 100 Continue\r\n\r\n", true, 502, true},
		{"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", true, 200, false},
		{"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc", true, 200, false},
		{"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", true, 200, false},
		{"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n", true, 200,
			false},
		{"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", true, 200,
			false},
		/* until close: complete with a proper end, cut without */
		{"HTTP/1.1 200 OK\r\n\r\nabc", true, 200, true},
		{"HTTP/1.1 200 OK\r\n\r\nabc", false, 200, false},
		{"not http at all\r\n\r\n", true, 502, true},
		{"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n", true, 502,
			true},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		SSL *ssl;
		struct rig *r = warm(&ssl);
		struct rig_answer a;
		int edge = rig_ask(r, &(struct rig_req){0});

		assert_true(rig_read_http(ssl, head, sizeof(head)));
		rig_write(ssl, rows[i].answer);
		if (!rows[i].properly)
			SSL_set_quiet_shutdown(ssl, 1);
		rig_hang_up(ssl);
		rig_read_answer(edge, &a);
		if (a.status != rows[i].status || a.ended != rows[i].ended)
			fail_msg("row %zu: status %u, ended %d", i, a.status, a.ended);
		assert_true(rows[i].ended != a.reset);
		assert_int_equal(r->n_wants, 1); /* never again */
		rig_answer_done(&a);
		(void)close(edge);
		rig_until_closed(r, 2);
		rig_free(r);
	}
}

static void test_the_server_closes_before_the_request(void **state)
{
	struct rig *r = rig_new();

	for (int i = 0; i < 2; i++) {
		int edge = rig_ask(r, &(struct rig_req){0}), fd;
		char byte;

		fd = rig_give_socket(r, rig_expect(r, ORIGIN_WANT));
		if (i)
			assert_int_equal(recv(fd, &byte, 1, 0), 1); /* into its hello */
		(void)close(fd);
		answered(r, edge, 502);
		assert_int_equal(rig_result(r, r->n_ids)->outcome, ORIGIN_NO_TLS);
	}
	assert_int_equal(r->n_needs, 0);
	rig_free(r);
}

/* New connections that are closed immediately are not retried forever. */
static void test_a_server_that_closes_every_connection(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){0});

	for (int i = 0; i < 2; i++) {
		SSL *ssl = rig_serve(r);

		if (i == 0)
			(void)rig_expect(r, ORIGIN_NEED);
		rig_hang_up(ssl);
	}
	answered(r, edge, 502);
	assert_int_equal(rig_result(r, 1)->outcome, ORIGIN_BAD_ANSWER);
	assert_false(rig_result(r, 1)->used);
	assert_int_equal(r->n_wants, 2);
	rig_free(r);
}

/* ---- many ---- */

static bool is_readable(SSL *ssl)
{
	struct pollfd p = {.fd = SSL_get_fd(ssl), .events = POLLIN};

	return SSL_pending(ssl) > 0 || poll(&p, 1, 0) > 0;
}

static void test_256_at_once_and_one_too_many(void **state)
{
	struct rig *r = rig_new();
	SSL *lines[ORIGIN_MAX_CONNS];
	int edges[ORIGIN_MAX_OPEN + 1];
	unsigned n_lines = 0, n_open = 0, n_served = 0;
	uint64_t end = clock_mono_ms() + 60000;

	for (unsigned i = 0; i <= ORIGIN_MAX_OPEN; i++)
		edges[i] = rig_ask(r, &(struct rig_req){.path = i % 2 ? "/a" : "/b"});
	while (n_served < ORIGIN_MAX_OPEN && clock_mono_ms() < end) {
		/* all of them: sbx-origin reads nothing while it cannot send a result */
		for (unsigned i = 0; i < 2 * ORIGIN_MAX_OPEN; i++) {
			if (!rig_next(r, 0))
				continue;
			if (r->msg.type == ORIGIN_NEED)
				rig_send_value(r, r->msg.id, RIG_VALUE, 0);
			if (r->msg.type != ORIGIN_WANT)
				continue;
			assert_true(n_open < ORIGIN_MAX_CONNS);
			n_lines++;
			lines[n_open++] =
				rig_accept(rig_give_socket(r, r->msg.id), &rig_good, NULL);
		}
		/* an answer would make room for the one too many */
		for (unsigned i = 0; r->seen[ORIGIN_MAX_OPEN + 1].closed && i < n_open; i++) {
			if (!is_readable(lines[i]))
				continue;
			if (!rig_read_http(lines[i], head, sizeof(head))) {
				/* no exchange waits, and not all are kept */
				rig_hang_up(lines[i]);
				lines[i] = lines[--n_open];
				continue;
			}
			assert_int_equal(rig_count(head, RIG_VALUE), 1);
			rig_write(lines[i], OK);
			n_served++;
		}
	}
	assert_int_equal(n_served, ORIGIN_MAX_OPEN);
	assert_int_equal(r->n_needs, 1);
	for (unsigned i = 0; i <= ORIGIN_MAX_OPEN; i++) {
		struct rig_answer a;

		rig_read_answer(edges[i], &a);
		assert_int_equal(a.status, i < ORIGIN_MAX_OPEN ? 200 : 502);
		rig_answer_done(&a);
		(void)close(edges[i]);
		rig_until_closed(r, i + 1);
	}
	assert_int_equal(rig_result(r, ORIGIN_MAX_OPEN + 1)->outcome, ORIGIN_BUSY);
	print_message("256 exchanges on %u connections\n", n_lines);
	for (unsigned i = 0; i < n_open; i++)
		rig_hang_up(lines[i]);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_handshake_for_100_requests),
		cmocka_unit_test(test_a_large_upload),
		cmocka_unit_test(test_a_large_download),
		cmocka_unit_test(test_each_byte_of_a_stream_passes_at_once),
		cmocka_unit_test(test_websocket),
		cmocka_unit_test(test_a_websocket_that_is_refused_is_an_answer),
		cmocka_unit_test(test_100_continue),
		cmocka_unit_test(test_trailers),
		cmocka_unit_test(test_answers_without_content),
		cmocka_unit_test(test_lines_that_are_not_kept),
		cmocka_unit_test(test_a_line_that_was_closed_meanwhile),
		cmocka_unit_test(test_what_is_sent_a_second_time),
		cmocka_unit_test(test_nothing_is_sent_again_from_a_new_line),
		cmocka_unit_test(test_the_server_closes_at_every_stage),
		cmocka_unit_test(test_the_server_closes_before_the_request),
		cmocka_unit_test(test_a_server_that_closes_every_connection),
		cmocka_unit_test(test_256_at_once_and_one_too_many),
	};

	rig_make_pki();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
