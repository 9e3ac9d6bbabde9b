/* SPDX-License-Identifier: Apache-2.0 */
/* A server's echo does not contain the value when edge gets it. */
#include "origin_rig.h"

#include <brotli/encode.h>
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define STARS "*************************"
static_assert(sizeof(STARS) == sizeof(RIG_VALUE), "as long as the value");
#define MIB (UINT64_C(1) << 20)
#define MAX_GROWTH (4 * MIB)

static char head[8192];

static int ask(struct rig **ret, SSL **ret_ssl, const struct rig_req *req)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, req);

	*ret_ssl = rig_serve(r);
	rig_give_value(r, RIG_VALUE);
	assert_true(rig_read_http(*ret_ssl, head, sizeof(head)));
	*ret = r;
	return edge;
}

static void done(struct rig *r, SSL *ssl, int edge, struct rig_answer *a)
{
	rig_answer_done(a);
	(void)close(edge);
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_identity_is_asked_for(void **state)
{
	struct rig *r;
	SSL *ssl;
	int edge = ask(&r, &ssl, &(struct rig_req){.headers = "accept-encoding: gzip, br\n"});
	struct rig_answer a = {0};

	assert_non_null(strstr(head, "\r\naccept-encoding: identity\r\n"));
	assert_int_equal(rig_count(head, "gzip"), 0);
	done(r, ssl, edge, &a);
}

static void test_heads_and_trailers(void **state)
{
	struct rig *r;
	SSL *ssl;
	int edge = ask(&r, &ssl, &(struct rig_req){.te = true});
	struct rig_answer a;

	rig_write(ssl,
		"HTTP/1.1 103 Early Hints\r\nlink: </" RIG_VALUE ">\r\n\r\n"
		"HTTP/1.1 200 OK\r\nx-echo: Bearer " RIG_VALUE "\r\n"
		"x-hex: 736b2d6c6976652d43414e4152592d376633613962353163322e\r\n"
		"location: /?k=sk-live-CANARY%2D7f3a9b51c2\r\ntrailer: x-last\r\n"
		"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx-last: " RIG_VALUE "\r\n\r\n");
	rig_read_answer(edge, &a);
	assert_true(a.ended);
	assert_int_equal(rig_count(a.headers, "CANARY"), 0);
	assert_int_equal(rig_count(a.headers, "736b2d"), 0);
	assert_non_null(strstr(a.headers, "x-echo: Bearer " STARS));
	assert_non_null(strstr(a.headers, "location: /?k=" STARS "**"));
	assert_non_null(strstr(a.trailers, STARS));
	assert_int_equal(rig_count(a.trailers, "CANARY"), 0);
	assert_int_equal(rig_result(r, 1)->n_removed, 5);
	done(r, ssl, edge, &a);
}

/* Each byte in its own record, and in its own chunk. */
static void test_content_in_pieces(void **state)
{
	struct rig *r;
	SSL *ssl;
	int edge = ask(&r, &ssl, &(struct rig_req){0});
	struct rig_answer a;
	const char *text = "{\"you\":\"" RIG_VALUE "\"}";

	rig_write(ssl, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
	for (size_t i = 0; text[i]; i++) {
		char chunk[16];

		(void)snprintf(chunk, sizeof(chunk), "1\r\n%c\r\n", text[i]);
		rig_write(ssl, chunk);
	}
	rig_write(ssl, "0\r\n\r\n");
	rig_read_answer(edge, &a);
	assert_int_equal(a.n_body, strlen(text));
	assert_memory_equal(a.body, "{\"you\":\"" STARS "\"}", a.n_body);
	assert_int_equal(rig_result(r, 1)->n_removed, 1);
	done(r, ssl, edge, &a);
}

/* A length stays true, and an incomplete value is not a match. */
static void test_a_length_stays_true(void **state)
{
	struct rig *r;
	SSL *ssl;
	int edge = ask(&r, &ssl, &(struct rig_req){0});
	struct rig_answer a;
	char text[128];

	(void)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\ncontent-length: %zu\r\n\r\n%s%.10s",
		strlen(RIG_VALUE) + 10, RIG_VALUE, RIG_VALUE);
	rig_write(ssl, text);
	rig_read_answer(edge, &a);
	assert_true(a.ended);
	assert_int_equal(a.n_body, strlen(RIG_VALUE) + 10);
	assert_memory_equal(a.body, STARS "sk-live-CA", a.n_body);
	done(r, ssl, edge, &a);
}

/* Its parts are too short to be searched for, the password is not. */
static void test_a_password_with_a_colon(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){0});
	SSL *ssl = rig_serve(r);
	struct rig_answer a;

	rig_give_value(r, "me:abcdefg:hijklmn");
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	rig_write(ssl, "HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n[abcdefg:hijklmn]");
	rig_read_answer(edge, &a);
	assert_int_equal(a.n_body, 17);
	assert_memory_equal(a.body, "[***************]", a.n_body);
	done(r, ssl, edge, &a);
}

/* ---- codings ---- */

struct packed {
	uint8_t p[1U << 18];
	size_t n;
};

static void pack(struct packed *to, const char *coding, const void *p, size_t n)
{
	to->n = sizeof(to->p);
	if (strcmp(coding, "br") == 0) {
		assert_true(BrotliEncoderCompress(5, 22, BROTLI_MODE_GENERIC, n, p, &to->n, to->p));
	} else if (strcmp(coding, "zstd") == 0) {
		to->n = ZSTD_compress(to->p, to->n, p, n, 3);
		assert_false(ZSTD_isError(to->n));
	} else {
		z_stream z = {.next_in = (Bytef *)p,
			.avail_in = (uInt)n,
			.next_out = to->p,
			.avail_out = (uInt)to->n};

		assert_int_equal(
			deflateInit2(&z, 9, Z_DEFLATED, coding[0] == 'g' ? 31 : 15, 8, 0), Z_OK);
		assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
		to->n -= z.avail_out;
		deflateEnd(&z);
	}
}

static void write_coded(
	SSL *ssl, const char *coding, const char *more, const struct packed *packed, size_t n_sent)
{
	AUTO_FREE char *all = NULL;
	char text[512];
	size_t n;

	(void)snprintf(text, sizeof(text),
		"HTTP/1.1 200 OK\r\ncontent-encoding: %s\r\netag: \"x\"\r\n%scontent-length: "
		"%zu\r\n\r\n",
		coding, more, packed->n);
	/* in one piece: origin may have closed after the head before a second one */
	n = strlen(text);
	all = xmalloc(n + n_sent);
	memcpy(all, text, n);
	memcpy(all + n, packed->p, n_sent);
	assert_int_equal(SSL_write(ssl, all, (int)(n + n_sent)), (int)(n + n_sent));
}

static const char *const codings[] = {"gzip", "deflate", "br", "zstd"};

static void test_codings_are_undone(void **state)
{
	AUTO_FREE struct packed *packed = xcalloc(1, sizeof(*packed));
	const char *text = "a " RIG_VALUE " and again " RIG_VALUE;

	for (size_t i = 0; i < ARRAY_LEN(codings); i++) {
		struct rig *r;
		SSL *ssl;
		int edge = ask(&r, &ssl, &(struct rig_req){0});
		struct rig_answer a;

		pack(packed, codings[i], text, strlen(text));
		write_coded(ssl, codings[i], "", packed, packed->n);
		rig_read_answer(edge, &a);
		assert_true(a.ended);
		assert_int_equal(rig_count(a.headers, "content-encoding"), 0);
		assert_int_equal(rig_count(a.headers, "etag"), 0);
		assert_int_equal(a.n_body, strlen(text));
		assert_memory_equal(a.body, "a " STARS " and again " STARS, a.n_body);
		assert_int_equal(rig_result(r, 1)->n_removed, 2);
		done(r, ssl, edge, &a);
	}
}

static void check_refused(
	const char *coding, const char *more, const struct packed *packed, size_t n_sent)
{
	struct rig *r;
	SSL *ssl;
	int edge = ask(&r, &ssl, &(struct rig_req){0});
	struct rig_answer a;

	write_coded(ssl, coding, more, packed, n_sent);
	rig_read_answer(edge, &a);
	assert_true(a.status == 502 || a.reset);
	assert_int_equal(rig_result(r, 1)->outcome, ORIGIN_BAD_ANSWER);
	for (size_t i = 0; i + 6 <= a.n_body; i++)
		assert_memory_not_equal(a.body + i, "CANARY", 6);
	done(r, ssl, edge, &a);
}

static void test_what_cannot_be_decoded_is_refused(void **state)
{
	AUTO_FREE struct packed *packed = xcalloc(1, sizeof(*packed));

	pack(packed, "gzip", RIG_VALUE, strlen(RIG_VALUE));
	check_refused("compress", "", packed, packed->n);
	check_refused("gzip, gzip", "", packed, packed->n);
	check_refused("gzip", "content-encoding: br\r\n", packed, packed->n);
	check_refused("br", "", packed, packed->n); /* this is gzip */
	packed->n -= 4;				    /* truncated */
	check_refused("gzip", "", packed, packed->n);
}

static SSL *bomb_ssl;
static struct packed *bomb;

static pid_t send_bomb(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		write_coded(bomb_ssl, "gzip", "", bomb, bomb->n);
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

/* 64 MiB from 64 KiB: an edge that does not read costs no memory, and then gets all of it. */
static void test_a_bomb_waits_for_edge(void **state)
{
	const size_t n_zeros = 64 * MIB;
	AUTO_FREE uint8_t *zeros = xcalloc(1, n_zeros);
	struct rig *r;
	SSL *ssl;
	int edge = ask(&r, &ssl, &(struct rig_req){0});
	struct rig_answer a = {0};
	uint64_t before = rig_memory(r), most, at = 0;

	bomb = xcalloc(1, sizeof(*bomb));
	memcpy(zeros + n_zeros - strlen(RIG_VALUE), RIG_VALUE, strlen(RIG_VALUE));
	pack(bomb, "gzip", zeros, n_zeros);
	bomb_ssl = ssl;
	pid_t pid = send_bomb();

	(void)usleep(500000);
	most = rig_memory(r);
	while (!a.ended) {
		assert_true(rig_read_frame(edge, &a));
		assert_false(a.reset);
		at += a.n_body;
		if (at == n_zeros && a.n_body > strlen(STARS))
			assert_memory_equal(
				a.body + a.n_body - strlen(STARS), STARS, strlen(STARS));
		a.n_body = 0;
		most = MAX(most, at % MIB < 65536 ? rig_memory(r) : 0);
	}
	assert_int_equal(at, n_zeros);
	assert_int_equal(rig_result(r, 1)->n_removed, 1);
	print_message("bomb: %llu KiB before, %llu KiB at most\n",
		(unsigned long long)before / 1024, (unsigned long long)most / 1024);
	assert_true(most < before + MAX_GROWTH);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	free(bomb);
	rig_answer_done(&a);
	(void)close(edge);
	(void)close(SSL_get_fd(ssl));
	rig_free(r);
}

/* ---- time ---- */

/* Data that looks like the beginning of the value, one byte at a time: each arrives soon, the third
 * waits. */
static void test_a_slow_stream(void **state)
{
	struct rig *r;
	SSL *ssl;
	int edge = ask(&r, &ssl, &(struct rig_req){0});
	struct rig_answer a = {0};

	rig_write(ssl, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
	assert_true(rig_read_frame(edge, &a));
	for (size_t i = 0; i < 20; i++) {
		uint64_t at = clock_mono_ms();

		rig_write(ssl, i % 2 ? "1\r\nk\r\n" : "1\r\ns\r\n");
		while (a.n_body < i + 1)
			assert_true(rig_read_frame(edge, &a));
		assert_true(clock_mono_ms() - at < 1000);
	}
	assert_memory_equal(a.body, "sksksksksksksksksksk", 20);
	done(r, ssl, edge, &a);
}

static const struct rig_req websocket = {.websocket = true,
	.headers = "sec-websocket-version: 13\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\n"
		   "sec-websocket-extensions: permessage-deflate\n"};

#define SWITCHES                                                                            \
	"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n" \
	"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

static void test_a_websocket(void **state)
{
	struct rig *r;
	SSL *ssl;
	int edge = ask(&r, &ssl, &websocket);
	struct rig_answer a = {0};
	char buf[128] = "";

	assert_int_equal(rig_count(head, "permessage-deflate"), 0);
	rig_write(ssl, SWITCHES "\x81\x1b"
				"<" RIG_VALUE ">\x81\x07"
				"sk-live");
	assert_true(rig_read_frame(edge, &a));
	assert_int_equal(recv(edge, buf, strlen(STARS) + 4, MSG_WAITALL), (int)strlen(STARS) + 4);
	assert_string_equal(buf + 2, "<" STARS ">");
	rig_hang_up(ssl);
	memset(buf, 0, sizeof(buf));
	assert_int_equal(recv(edge, buf, sizeof(buf) - 1, MSG_WAITALL), 9);
	assert_string_equal(buf + 2, "sk-live"); /* held data arrives with the end */
	rig_answer_done(&a);
	(void)close(edge);
	rig_free(r);
}

/* A mask chosen by the server hides the value from the search, and so does compression. */
static void test_a_websocket_frame_that_was_never_agreed_on_ends_it(void **state)
{
	static const char *const frames[] = {("\x81\x99\x01\x01\x01\x01"
					      "rj,mhwd,B@O@SX,6g2`8c40b3"),
		"\xc1\x05xxxxx", "\xa1\x05xxxxx", "\x91\x05xxxxx"};

	for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
		struct rig *r;
		SSL *ssl;
		int edge = ask(&r, &ssl, &websocket);
		struct rig_answer a = {0};
		char buf[128] = "";

		rig_write(ssl, SWITCHES "\x81\x05"
					"hello");
		assert_true(rig_read_frame(edge, &a));
		assert_int_equal(recv(edge, buf, 7, MSG_WAITALL), 7);
		rig_write(ssl, frames[i]);
		assert_int_equal(recv(edge, buf, sizeof(buf), 0), 0);
		done(r, ssl, edge, &a);
	}
}

/* A host with a login and no value yet: a compressed frame ends the websocket, so that compression
 * cannot be negotiated. */
static void test_a_websocket_without_a_value(void **state)
{
	struct rig *r = rig_start(NULL);
	struct rig_answer a = {0};
	char buf[8] = "";
	SSL *ssl;
	int edge;

	rig_up(r, RIG_HOST, 0);
	edge = rig_ask(r, &websocket);
	ssl = rig_serve(r);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_int_equal(rig_count(head, "sec-websocket-key"), 1);
	assert_int_equal(rig_count(head, "permessage-deflate"), 0);
	rig_write(ssl, SWITCHES "\x81\x05"
				"hello");
	assert_true(rig_read_frame(edge, &a));
	assert_int_equal(recv(edge, buf, 7, MSG_WAITALL), 7);
	assert_memory_equal(buf + 2, "hello", 5);
	done(r, ssl, edge, &a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity_is_asked_for),
		cmocka_unit_test(test_heads_and_trailers),
		cmocka_unit_test(test_content_in_pieces),
		cmocka_unit_test(test_a_length_stays_true),
		cmocka_unit_test(test_a_password_with_a_colon),
		cmocka_unit_test(test_codings_are_undone),
		cmocka_unit_test(test_what_cannot_be_decoded_is_refused),
		cmocka_unit_test(test_a_bomb_waits_for_edge),
		cmocka_unit_test(test_a_slow_stream),
		cmocka_unit_test(test_a_websocket),
		cmocka_unit_test(test_a_websocket_frame_that_was_never_agreed_on_ends_it),
		cmocka_unit_test(test_a_websocket_without_a_value),
	};

	rig_make_pki();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
