/* SPDX-License-Identifier: Apache-2.0 */
/* AWS requests through a real sbx-origin: they arrive signed with the real keys. */
#include "line_h2_rig.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/secret/sigv4/sigv4_chunks.h"

#define SENTINEL "AKIAPROXYMANAGED2222"
#define REAL "AKIAREALREALREALREAL"
#define SECRET "realSecret/CANARY+realSecret0123456789AB"
#define SIG0 "0000000000000000000000000000000000000000000000000000000000000000"

static const char service[] = "service 1\n"
			      "name aws\n"
			      "about AWS: a test\n"
			      "env AWS_ACCESS_KEY_ID " SENTINEL "\n"
			      "env AWS_SECRET_ACCESS_KEY proxymanaged0000000000000000000000000000\n"
			      "known header x-amz-security-token\n"
			      "known query X-Amz-Credential\n"
			      "known query X-Amz-Security-Token\n"
			      "slot api\n"
			      "host " RIG_HOST ":443\n"
			      "signer sigv4\n"
			      "end\n";

static char stamp[32], head[65536];

static struct rig *new_rig(void)
{
	struct rig *r = rig_start(NULL);
	time_t now = time(NULL);
	struct tm tm;

	(void)gmtime_r(&now, &tm);
	(void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
	rig_up_as(r, RIG_HOST, ORIGIN_HAS_SECRET, service);
	return r;
}

/* Headers as an SDK in the guest creates them. */
static char *sign_as(const char *id, const char *name, const char *more)
{
	return xasprintf(
		"x-amz-date: %s\n%sauthorization: AWS4-HMAC-SHA256 Credential=%s/%.8s/us-east-1/%s/"
		"aws4_request, SignedHeaders=accept-encoding;content-type;host;x-amz-date, "
		"Signature=" SIG0 "\n",
		stamp, more, id, stamp, name);
}

/* The value of a header in `head`; "" without one. */
static const char *sent(const char *name)
{
	static char value[32][8192];
	static unsigned at;
	char *to = value[at++ % 32], *found = head;
	size_t n = strlen(name);

	to[0] = '\0';
	while ((found = strstr(found, "\r\n"))) {
		found += 2;
		if (strncmp(found, name, n) == 0 && strncmp(found + n, ": ", 2) == 0)
			(void)snprintf(
				to, 8192, "%.*s", (int)strcspn(found + n + 2, "\r"), found + n + 2);
	}
	return to;
}

/* Signs the received text independently, and compares. */
static void check_signature(const char *method, const char *path, struct slice body)
{
	const char *auth = sent("authorization"), *list = strstr(auth, "SignedHeaders=");
	AUTO_FREE char *as_guest = xasprintf("AWS4-HMAC-SHA256 Credential=" SENTINEL "%s",
		strchr(auth, '/') ? strchr(auth, '/') : "");
	static const char *const names[] = {"accept-encoding", "content-type", "x-amz-date",
		"x-amz-content-sha256", "x-amz-security-token"};
	struct http_header got[8];
	struct http_req req = {.method = slice_from_str(method),
		.scheme = HTTP_SCHEME_HTTPS,
		.host = slice_from_str(RIG_HOST),
		.port = 443,
		.path = slice_from_str(path),
		.headers = {.list = got, .max = 8}};
	struct sigv4_check check = {.sentinel = slice_from_str(SENTINEL), .now = time(NULL)};
	struct sigv4_cred cred = {slice_from_str(REAL), slice_from_str(SECRET),
		slice_from_str(sent("x-amz-security-token"))};
	uint8_t hash[SIGV4_HASH];
	struct err err = {0};
	struct arena arena;
	struct sigv4 s;

	assert_non_null(list);
	arena_init(&arena, SIGV4_ARENA_SIZE);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (sent(names[i])[0])
			assert_int_equal(canon_set_header(&req.headers, slice_from_str(names[i]),
						 slice_from_str(sent(names[i]))),
				0);
	assert_int_equal(canon_set_header(&req.headers, slice_from_str("authorization"),
				 slice_from_str(as_guest)),
		0);
	assert_int_equal(sigv4_hash(body, hash), 0);
	if (sigv4_read(&req, &check, &arena, &s, &err) < 0 ||
		sigv4_sign(&req, &s, &cred, hash, &arena, NULL, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < req.headers.n; i++)
		if (slice_eq_str(req.headers.list[i].name, "authorization"))
			assert_true(slice_eq_str(req.headers.list[i].value, auth));
	arena_done(&arena);
}

static SSL *serve(struct rig *r, const char *session)
{
	SSL *ssl = rig_serve(r);
	AUTO_FREE char *value = xasprintf(REAL ":" SECRET "%s", session);

	rig_give_value(r, value);
	return ssl;
}

static void answer(SSL *ssl, int fd)
{
	struct rig_answer a;

	rig_write(ssl, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
	rig_read_answer(fd, &a);
	assert_int_equal(a.status, 200);
	rig_answer_done(&a);
	(void)close(fd);
}

static void expect_clean(void)
{
	assert_null(strstr(head, "PROXYMANAGED"));
	assert_null(strstr(head, SIG0));
	assert_null(strstr(head, "CANARY"));
	assert_non_null(strstr(sent("authorization"), "Credential=" REAL "/"));
}

static void a_request_is_signed_again(void **state)
{
	struct rig *r = new_rig();
	AUTO_FREE char *headers = sign_as(SENTINEL, "sts", "accept-encoding: gzip\n");
	int fd = rig_ask(r, &(struct rig_req){.path = "/a/b", .headers = headers});
	SSL *ssl = serve(r, ":token/+==");

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	expect_clean();
	assert_string_equal(sent("x-amz-security-token"), "token/+==");
	assert_non_null(strstr(sent("authorization"),
		"SignedHeaders=accept-encoding;host;x-amz-date;x-amz-security-token,"));
	check_signature("GET", "/a/b", slice_of(NULL, 0));
	answer(ssl, fd);
	assert_true(rig_result(r, 1)->used);
	/* and another on the same line, without data of the first */
	fd = rig_ask(r, &(struct rig_req){.path = "/c", .headers = headers});
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	expect_clean();
	check_signature("GET", "/c", slice_of(NULL, 0));
	answer(ssl, fd);
	rig_hang_up(ssl);
	rig_free(r);
}

/* A day was requested: the result is fifteen minutes from now, regardless of its age. */
static void expect_short_life(time_t age)
{
	const char *at = strstr(head, "X-Amz-Expires=");

	assert_non_null(at);
	assert_in_range(
		strtoul(at + strlen("X-Amz-Expires="), NULL, 10), 900, 900 + (unsigned long)age);
}

static void a_presigned_url_is_signed_again(void **state)
{
	time_t begun = time(NULL);
	struct rig *r = new_rig();
	AUTO_FREE char *query =
		xasprintf("a=1&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" SENTINEL
			  "%%2F%.8s%%2Fus-east-1%%2Fs3%%2Faws4_request&X-Amz-Date=%s"
			  "&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
			  "&X-Amz-Signature=" SIG0,
			stamp, stamp);
	int fd = rig_ask(r, &(struct rig_req){.path = "/k", .query = query});
	SSL *ssl = serve(r, ":token/+==");

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_non_null(strstr(head, "GET /k?a=1&X-Amz-Algorithm="));
	assert_non_null(strstr(head, "X-Amz-Credential=" REAL "%2F"));
	expect_short_life(time(NULL) - begun);
	assert_non_null(strstr(head, "&X-Amz-Security-Token=token%2F%2B%3D%3D&"));
	assert_null(strstr(head, "PROXYMANAGED"));
	assert_null(strstr(head, SIG0));
	answer(ssl, fd);
	rig_hang_up(ssl);
	rig_free(r);
}

/* Nothing is sent before the body is complete and its hash is signed. */
static void a_body_is_kept_and_hashed(void **state)
{
	static uint8_t body[300000], got[300000];
	struct rig *r = new_rig();
	AUTO_FREE char *headers =
		sign_as(SENTINEL, "dynamodb", "content-type: application/x-amz-json-1.0\n");
	int fd = rig_ask(r, &(struct rig_req){.path = "/",
				    .method = "POST",
				    .headers = headers,
				    .body = HTTP_BODY_CHUNKED,
				    .expect = true});
	struct rig_answer a = {0};
	SSL *ssl;

	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (uint8_t)(i * 7);
	assert_true(rig_read_frame(fd, &a));
	assert_int_equal(a.status, 100);
	for (size_t i = 0; i < sizeof(body); i += 30000)
		rig_send_data(fd, body + i, 30000);
	assert_false(rig_next(r, 200)); /* no WANT yet */
	rig_send_end(fd, NULL);
	ssl = serve(r, "");
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	expect_clean();
	assert_string_equal(sent("content-length"), "300000");
	assert_string_equal(sent("expect"), "");
	for (size_t n = 0; n < sizeof(got);) {
		int part = SSL_read(ssl, got + n, (int)(sizeof(got) - n));

		assert_true(part > 0);
		n += (size_t)part;
	}
	assert_memory_equal(body, got, sizeof(body));
	check_signature("POST", "/", slice_of(body, sizeof(body)));
	answer(ssl, fd);
	rig_hang_up(ssl);
	rig_free(r);
}

static void signed_chunks_are_signed_again(void **state)
{
	static const char body[] =
		"5;chunk-signature=" SIG0 "\r\nhello\r\n0;chunk-signature=" SIG0 "\r\n\r\n";
	struct rig *r = new_rig();
	AUTO_FREE char *headers = sign_as(SENTINEL, "s3",
		"x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\n"
		"x-amz-decoded-content-length: 5\n");
	int fd = rig_ask(r, &(struct rig_req){.path = "/k",
				    .method = "PUT",
				    .headers = headers,
				    .body = HTTP_BODY_LENGTH,
				    .length = sizeof(body) - 1});
	char got[sizeof(body)] = "";
	SSL *ssl;

	ssl = serve(r, "");
	for (size_t i = 0; i < sizeof(body) - 1; i++)
		rig_send_data(fd, body + i, 1);
	rig_send_end(fd, NULL);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	expect_clean();
	for (size_t n = 0; n < sizeof(body) - 1;) {
		int part = SSL_read(ssl, got + n, (int)(sizeof(body) - 1 - n));

		assert_true(part > 0);
		n += (size_t)part;
	}
	assert_null(strstr(got, SIG0));
	assert_int_equal(memcmp(got, body, 18), 0);
	assert_int_equal(memcmp(got + 18 + 64, body + 18 + 64, 9 + 18), 0);
	assert_true(memcmp(got + 18, got + 18 + 64 + 9 + 18, 64) != 0);
	answer(ssl, fd);
	rig_hang_up(ssl);
	rig_free(r);
}

/* Kept content and chunks wait for HTTP/2 windows. */
static void content_goes_over_http2(void **state)
{
	static const char line[] = "80000;chunk-signature=" SIG0 "\r\n";
	static const char last[] = "\r\n0;chunk-signature=" SIG0 "\r\n\r\n";
	static uint8_t body[524288];
	struct rig *r = new_rig();
	AUTO_FREE char *headers = sign_as(SENTINEL, "sts", "");
	AUTO_FREE char *streaming = sign_as(
		SENTINEL, "s3", "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\n");
	size_t whole = sizeof(body) + sizeof(line) + sizeof(last) - 2;
	pid_t pid = 0;

	for (size_t i = 0; i < 2; i++) {
		int fd = rig_ask(r, &(struct rig_req){.path = "/sink",
					    .method = "POST",
					    .headers = i ? streaming : headers,
					    .body = HTTP_BODY_LENGTH,
					    .length = i ? whole : sizeof(body)});
		AUTO_FREE char *want = xasprintf("%zu", i ? whole : sizeof(body));
		struct rig_answer a;

		if (i)
			rig_send_data(fd, line, sizeof(line) - 1);
		for (size_t at = 0; at < sizeof(body); at += 32768)
			rig_send_data(fd, body + at, 32768);
		if (i)
			rig_send_data(fd, last, sizeof(last) - 1);
		rig_send_end(fd, NULL);
		if (!pid) {
			pid = h2_rig_serve(r, NULL);
			rig_give_value(r, REAL ":" SECRET);
		}
		rig_read_answer(fd, &a);
		assert_int_equal(a.status, 200);
		assert_string_equal((char *)a.body, want);
		rig_answer_done(&a);
		(void)close(fd);
	}
	rig_free(r);
	h2_rig_end(pid);
}

static void what_cannot_be_signed_is_refused(void **state)
{
	struct rig *r = new_rig();
	const struct {
		char *headers;
		const char *why;
		uint64_t length;
		enum origin_outcome outcome;
	} row[] = {
		{sign_as("AKIASOMEBODYELSES222", "sts", ""), "authorization", 0,
			ORIGIN_DENIED_FOREIGN},
		{sign_as(SENTINEL, "sts", "x-amz-security-token: somebody's\n"),
			"x-amz-security-token", 0, ORIGIN_DENIED_FOREIGN},
		{sign_as(SENTINEL, "sts", ""), "larger than 8 MiB", 9 << 20, ORIGIN_CANNOT_SIGN},
		{sign_as(SENTINEL, "s3",
			 "x-amz-content-sha256: STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD\n"),
			"SigV4A", 0, ORIGIN_CANNOT_SIGN},
		{sign_as(SENTINEL, "s3 ", ""), "scope", 0, ORIGIN_CANNOT_SIGN},
	};

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct rig_answer a;
		int fd = rig_ask(
			r, &(struct rig_req){.method = "PUT",
				   .headers = row[i].headers,
				   .body = row[i].length ? HTTP_BODY_LENGTH : HTTP_BODY_NONE,
				   .length = row[i].length});

		rig_read_answer(fd, &a);
		assert_int_equal(a.status, 403);
		if (!strstr(a.reason, row[i].why))
			fail_msg("%s: %s", row[i].why, a.reason);
		assert_int_equal(rig_result(r, (uint32_t)i + 1)->outcome, row[i].outcome);
		rig_answer_done(&a);
		(void)close(fd);
		free(row[i].headers);
	}
	assert_int_equal(r->n_wants, 0);
	rig_free(r);
}

static void a_body_of_no_said_length_is_bounded(void **state)
{
	static uint8_t piece[65536];
	struct rig *r = new_rig();
	AUTO_FREE char *headers = sign_as(SENTINEL, "sts", "");
	int fd = rig_ask(r,
		&(struct rig_req){.method = "PUT", .headers = headers, .body = HTTP_BODY_CHUNKED});
	struct rig_answer a;

	for (size_t i = 0; i <= SIGV4_MAX_BODY / sizeof(piece); i++)
		rig_send_data(fd, piece, sizeof(piece));
	rig_read_answer(fd, &a);
	assert_int_equal(a.status, 403);
	assert_non_null(strstr(a.reason, "larger than 8 MiB"));
	rig_answer_done(&a);
	(void)close(fd);
	rig_until_closed(r, 1);
	assert_int_equal(r->n_wants, 0);
	rig_free(r);
}

/* Some calls are not signed; they are sent without a credential, and the vault is not queried. */
static void a_request_without_signature_gets_none(void **state)
{
	struct rig *r = new_rig();
	int fd = rig_ask(r, &(struct rig_req){.path = "/"});
	SSL *ssl = rig_serve(r);

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_string_equal(sent("authorization"), "");
	answer(ssl, fd);
	assert_false(rig_result(r, 1)->used);
	assert_int_equal(r->n_needs, 0);
	rig_hang_up(ssl);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_signed_again),
		cmocka_unit_test(a_presigned_url_is_signed_again),
		cmocka_unit_test(a_body_is_kept_and_hashed),
		cmocka_unit_test(signed_chunks_are_signed_again),
		cmocka_unit_test(content_goes_over_http2),
		cmocka_unit_test(what_cannot_be_signed_is_refused),
		cmocka_unit_test(a_body_of_no_said_length_is_bounded),
		cmocka_unit_test(a_request_without_signature_gets_none),
	};

	rig_make_pki();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
