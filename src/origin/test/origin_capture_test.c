/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that a service captures: the guest gets '*' instead of their values, over HTTP/1.1 and
 * HTTP/2, with a real sbx-origin. */
#include "line_h2_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>
#include "lib/base/mem.h"

#define KEY "tck-CANARY-5d81-fresh-key"
#define STARS "*************************"
#define MIB (1024 * 1024)
#define N_HELD 8

static const char service[] = "service 1\nname demo\nabout Demo: a test\nenv KEY " RIG_SENTINEL "\n"
			      "capture * /repos/*/* temp_token\ncapture POST /echo temp_token\n"
			      "slot api\nhost " RIG_HOST ":443\n"
			      "header authorization Bearer %s\nend\n";

static const struct rig_req get = {.path = "/repos/a/b"};

struct play {
	struct rig *r;
	SSL *ssl;
	bool has_value;
};

static void begin(struct play *p)
{
	*p = (struct play){.r = rig_start(NULL)};
	rig_up_as(p->r, RIG_HOST, ORIGIN_HAS_SECRET, service);
}

/* Sends the request, and returns edge's end when the server has it. */
static int ask(struct play *p, const struct rig_req *req)
{
	char head[8192];
	int edge = rig_ask(p->r, req);

	if (!p->ssl)
		p->ssl = rig_serve(p->r);
	if (!p->has_value)
		rig_give_value(p->r, RIG_VALUE);
	p->has_value = true;
	assert_true(rig_read_http(p->ssl, head, sizeof(head)));
	return edge;
}

static void end(struct play *p)
{
	rig_hang_up(p->ssl);
	rig_free(p->r);
}

static void say(struct play *p, const char *status, const char *headers, const char *content)
{
	AUTO_FREE char *text = xasprintf("HTTP/1.1 %s\r\n%scontent-length: %zu\r\n\r\n%s", status,
		headers, strlen(content), content);

	rig_write(p->ssl, text);
}

static void say_chunk(struct play *p, const void *bytes, size_t n)
{
	char line[16];

	(void)snprintf(line, sizeof(line), "%zx\r\n", n);
	rig_write(p->ssl, line);
	if (n)
		assert_int_equal(SSL_write(p->ssl, bytes, (int)n), (int)n);
	rig_write(p->ssl, "\r\n");
}

static void must_be(int edge, const char *content)
{
	struct rig_answer a;

	rig_read_answer(edge, &a);
	assert_true(a.ended);
	assert_int_equal(a.n_body, strlen(content));
	assert_string_equal(a.body ? (char *)a.body : "", content);
	assert_int_equal(rig_count(a.headers, "CANARY"), 0);
	rig_answer_done(&a);
	(void)close(edge);
}

/* 502 with the reason, and no data of the response. */
static void must_be_refused(struct play *p, int edge, const char *why)
{
	struct rig_answer a;

	rig_read_answer(edge, &a);
	assert_int_equal(a.status, 502);
	assert_int_equal(a.n_body, 0);
	if (!strstr(a.reason, why))
		fail_msg("'%s' does not say '%s'", a.reason, why);
	assert_int_equal(rig_result(p->r, p->r->n_ids)->outcome, ORIGIN_BAD_ANSWER);
	rig_answer_done(&a);
	(void)close(edge);
}

static const struct {
	const char *from, *to;
} rows[] = {
	{"{\"temp_token\":\"" KEY "\",\"id\":1}", "{\"temp_token\":\"" STARS "\",\"id\":1}"},
	{"{\"id\":1,\"temp_token\":\"" KEY "\"}", "{\"id\":1,\"temp_token\":\"" STARS "\"}"},
	{"[{\"repo\":{\"temp_token\":\"" KEY "\"}}]",
		"[{\"repo\":{\"temp_token\":\"" STARS "\"}}]"},
	{"{\"temp_token\":\"" KEY "\",\"temp_token\":\"" KEY "\"}",
		"{\"temp_token\":\"" STARS "\",\"temp_token\":\"" STARS "\"}"},
	{"{\"temp_tok\\u0065n\":\"" KEY "\",\"TEMP_TOKEN\":\"short\"}",
		"{\"temp_tok\\u0065n\":\"" STARS "\",\"TEMP_TOKEN\":\"*****\"}"},
	{"{\"temp_token\":null,\"more\":[\"temp_token\"]}",
		"{\"temp_token\":null,\"more\":[\"temp_token\"]}"},
	/* the value in another field of the same response, before and after it */
	{"{\"url\":\"https://x:" KEY "@h/\",\"temp_token\":\"" KEY "\",\"u\":\"" KEY "\"}",
		"{\"url\":\"https://x:" STARS "@h/\",\"temp_token\":\"" STARS "\",\"u\":\"" STARS
		"\"}"},
};

static void a_captured_field_has_no_value(void **state)
{
	struct play p;

	begin(&p);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int edge = ask(&p, &get);

		say(&p, "200 OK", "x-key: " KEY "\r\n", rows[i].from);
		must_be(edge, rows[i].to);
		assert_true(i == 5 || rig_result(p.r, p.r->n_ids)->n_removed > 0);
	}
	end(&p);
}

static void a_captured_field_comes_in_pieces(void **state)
{
	struct play p;

	begin(&p);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int edge = ask(&p, &get);

		rig_write(p.ssl, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
		for (const char *c = rows[i].from; *c; c++)
			say_chunk(&p, c, 1);
		say_chunk(&p, NULL, 0);
		must_be(edge, rows[i].to);
	}
	end(&p);
}

static size_t gzip(const char *text, uint8_t *to, size_t size)
{
	z_stream z = {.next_in = (uint8_t *)text,
		.avail_in = (unsigned)strlen(text),
		.next_out = to,
		.avail_out = (unsigned)size};

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	(void)deflateEnd(&z);
	return size - z.avail_out;
}

static void a_compressed_response_is_searched(void **state)
{
	struct play p;
	uint8_t packed[1024];
	size_t n = gzip(rows[2].from, packed, sizeof(packed));

	begin(&p);
	for (unsigned is_cut = 0; is_cut < 2; is_cut++) {
		int edge = ask(&p, &get);

		rig_write(p.ssl, "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n"
				 "transfer-encoding: chunked\r\n\r\n");
		say_chunk(&p, packed, n / 2);
		say_chunk(&p, packed + n / 2, n - n / 2 - is_cut);
		say_chunk(&p, NULL, 0);
		if (!is_cut)
			must_be(edge, rows[2].to);
		else
			must_be_refused(&p, edge, "cannot forward the");
	}
	end(&p);
}

static void what_cannot_be_searched_is_refused(void **state)
{
	static const struct {
		const char *status, *content, *why;
	} bad[] = {
		{"200 OK", "f({\"temp_token\":\"" KEY "\"})", "not JSON"},
		{"201 Created", "<html>" KEY "</html>", "not JSON"},
		{"200 OK", "{\"temp_token\":\"" KEY "\"", "not JSON"},
		{"200 OK", "{\"temp_token\":\"" KEY "\"}\n{\"temp_token\":\"" KEY "\"}",
			"not JSON"},
		{"200 OK", "{\"temp_token\":[\"" KEY "\"]}", "not a string"},
		{"404 Not Found", "{\"temp_token\":{\"a\":\"" KEY "\"}}", "not a string"},
		{"206 Partial Content", "{\"temp_token\":\"" KEY "\"}", "partial response"},
	};
	struct play p;

	begin(&p);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int edge = ask(&p, &get);

		say(&p, bad[i].status,
			bad[i].status[2] == '6' ? "content-range: bytes 0-9/99\r\n" : "",
			bad[i].content);
		must_be_refused(&p, edge, bad[i].why);
		end(&p); /* origin drops a line whose response was rejected at its head */
		begin(&p);
	}
	rig_free(p.r);
}

static void other_responses_pass_as_they_are(void **state)
{
	static const struct {
		const char *method, *path, *status, *content;
	} good[] = {
		{"GET", "/repos/a/b/c", "200 OK", "{\"temp_token\":\"abc\"}"},
		{"GET", "/echo", "200 OK", "temp_token"},
		{"GET", "/repos/a/b", "404 Not Found", "<html>no</html>"},
		{"GET", "/repos/a/b", "500 X", "{\"temp_"},
		{"GET", "/repos/a/b", "200 OK", ""},
	};
	struct play p;

	begin(&p);
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		int edge =
			ask(&p, &(struct rig_req){.method = good[i].method, .path = good[i].path});

		say(&p, good[i].status, "", good[i].content);
		must_be(edge, good[i].content);
	}
	end(&p);
}

/* The server repeats it elsewhere. */
static void a_captured_value_is_removed_from_later_responses(void **state)
{
	struct play p;
	int edge;

	begin(&p);
	edge = ask(&p, &get);
	say(&p, "200 OK", "", rows[0].from);
	must_be(edge, rows[0].to);
	edge = ask(&p, &(struct rig_req){.path = "/log"});
	say(&p, "200 OK", "x-key: " KEY "\r\n", "key " KEY);
	must_be(edge, "key " STARS);
	end(&p);
}

/* Larger than all queues to edge; the field is at the end. */
static void a_large_response_passes_whole(void **state)
{
	size_t n_text = 3 * MIB / 2;
	AUTO_FREE char *text = xcalloc(1, n_text + 100);
	struct rig_answer a;
	struct play p;
	int edge;

	(void)strcpy(text, "{\"text\":\"");
	memset(text + 9, 'x', n_text - 9);
	(void)strcpy(text + n_text, "\",\"temp_token\":\"" KEY "\"}");
	begin(&p);
	edge = ask(&p, &get);
	say(&p, "200 OK", "", text);
	(void)usleep(200000);
	rig_read_answer(edge, &a);
	assert_true(a.ended);
	assert_int_equal(a.n_body, strlen(text));
	assert_memory_equal(a.body, text, n_text);
	assert_string_equal((char *)a.body + n_text, "\",\"temp_token\":\"" STARS "\"}");
	rig_answer_done(&a);
	(void)close(edge);
	end(&p);
}

static void a_response_that_is_too_large_is_refused(void **state)
{
	AUTO_FREE char *blank = xcalloc(1, MIB);
	struct play p;
	int edge;

	memset(blank, ' ', MIB);
	begin(&p);
	edge = ask(&p, &get);
	rig_write(p.ssl, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
	for (unsigned i = 0; i < 2; i++)
		say_chunk(&p, blank, MIB);
	rig_write(p.ssl, "2\r\n{}\r\n");
	must_be_refused(&p, edge, "too large");
	end(&p);
}

/* Each of them holds 2 MiB, and all of them 16; memory of finished ones is free again. */
static void the_responses_that_are_held_are_limited(void **state)
{
	AUTO_FREE char *blank = xcalloc(1, 3 * MIB / 2);
	struct play p[N_HELD + 1];
	int edge[N_HELD + 1];

	memset(blank, ' ', 3 * MIB / 2);
	begin(&p[0]);
	for (unsigned i = 0; i <= N_HELD; i++) {
		if (i > 0)
			p[i] = (struct play){.r = p[0].r, .has_value = true};
		edge[i] = ask(&p[i], &get);
		rig_write(p[i].ssl, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
		say_chunk(&p[i], blank, i < N_HELD ? 3 * MIB / 2 : 100);
	}
	must_be_refused(&p[N_HELD], edge[N_HELD], "too many responses are waiting");
	for (unsigned i = 0; i < N_HELD; i++) {
		struct rig_answer a;

		rig_write(p[i].ssl, "2\r\n{}\r\n0\r\n\r\n");
		rig_read_answer(edge[i], &a);
		assert_true(a.ended);
		assert_int_equal(a.n_body, 3 * MIB / 2 + 2);
		rig_answer_done(&a);
		(void)close(edge[i]);
	}
	edge[0] = ask(&p[0], &get);
	say(&p[0], "200 OK", "", rows[0].from);
	must_be(edge[0], rows[0].to);
	for (unsigned i = 1; i <= N_HELD; i++)
		rig_hang_up(p[i].ssl);
	end(&p[0]);
}

/* The server echoes its input. */
static void http2_is_searched(void **state)
{
	const struct rig_req post = {.path = "/echo", .method = "POST", .body = HTTP_BODY_CHUNKED};
	struct rig *r = rig_start(NULL);
	pid_t pid = 0;

	rig_up_as(r, RIG_HOST, ORIGIN_HAS_SECRET, service);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = strlen(rows[i].from);
		int fd = rig_ask(r, &post);

		if (!pid) {
			pid = h2_rig_serve(r, NULL);
			rig_give_value(r, RIG_VALUE);
		}
		rig_send_data(fd, rows[i].from, n / 2);
		rig_send_data(fd, rows[i].from + n / 2, n - n / 2);
		rig_send_end(fd, NULL);
		must_be(fd, rows[i].to);
	}
	h2_rig_end(pid);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_captured_field_has_no_value),
		cmocka_unit_test(a_captured_field_comes_in_pieces),
		cmocka_unit_test(a_compressed_response_is_searched),
		cmocka_unit_test(what_cannot_be_searched_is_refused),
		cmocka_unit_test(other_responses_pass_as_they_are),
		cmocka_unit_test(a_captured_value_is_removed_from_later_responses),
		cmocka_unit_test(a_large_response_passes_whole),
		cmocka_unit_test(a_response_that_is_too_large_is_refused),
		cmocka_unit_test(the_responses_that_are_held_are_limited),
		cmocka_unit_test(http2_is_searched),
	};

	rig_make_pki();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
