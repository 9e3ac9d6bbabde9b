/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP engine from the guest's side: valid requests, their targets, and the texts of
 * denials. */
#include "src/edge/http/proxy_internal.h"
#include "proxy_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/wire/http/deny.h"

static const char get[] = "GET /a?b HTTP/1.1\r\nHost: example.test\r\nAccept: */*\r\n\r\n";
static const char proxy_get[] =
	"GET http://example.test/a?b HTTP/1.1\r\nHost: example.test\r\n\r\n";

static const char *got(const struct proxy_rig *r)
{
	return r->got.p ? (const char *)r->got.p : "";
}

static const char *seen(const struct proxy_rig *r)
{
	return r->seen.p ? (const char *)r->seen.p : "";
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *p = strstr(text, what); p; p = strstr(p + 1, what))
		n++;
	return n;
}

static struct proxy_rig *fixed(void)
{
	struct proxy_rig *r = proxy_rig_new("example.test", 80);

	r->answer = proxy_rig_ok;
	return r;
}

static struct proxy_rig *proxy(void)
{
	struct proxy_rig *r = proxy_rig_new(NULL, 0);

	r->answer = proxy_rig_ok;
	return r;
}

/* ---- requests ---- */

static void a_request_is_asked_about_and_forwarded(void **state)
{
	struct proxy_rig *r = fixed();

	proxy_rig_say(r, get);
	assert_int_equal(r->n_asks, 1);
	assert_int_equal(r->ask.kind, EDGE_ASK_HTTP);
	assert_int_equal(r->ask.via, EDGE_VIA_TRANSPARENT);
	assert_int_equal(r->ask.proto, EDGE_PROTO_HTTP);
	assert_string_equal(r->ask.host, "example.test");
	assert_int_equal(r->ask.port, 80);
	assert_string_equal(r->ask.method, "GET");
	assert_string_equal(r->ask.target, "/a?b");
	assert_string_equal(r->ask.fault, "");
	assert_string_equal(
		seen(r), "GET /a?b HTTP/1.1\r\nhost: example.test\r\naccept: */*\r\n\r\n");
	assert_string_equal(got(r), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
	assert_int_equal(r->end, RIG_OPEN);
	assert_int_equal(r->timer_ms, PROXY_IDLE_MS);
	proxy_rig_free(r);
}

static void a_proxy_request_names_its_target(void **state)
{
	struct proxy_rig *r = proxy();

	proxy_rig_say(r, proxy_get);
	proxy_rig_say(r, "GET http://OTHER.test:8080/ HTTP/1.1\r\nHost: other.test:8080\r\n\r\n");
	assert_int_equal(r->n_asks, 2);
	assert_int_equal(r->ask.via, EDGE_VIA_FORWARD);
	assert_string_equal(r->ask.host, "other.test");
	assert_int_equal(r->ask.port, 8080);
	assert_string_equal(seen(r), "GET /a?b HTTP/1.1\r\nhost: example.test\r\n\r\n"
				     "GET / HTTP/1.1\r\nhost: other.test:8080\r\n\r\n");
	assert_int_equal(r->end, RIG_OPEN);
	r->decide = -1;
	proxy_rig_say(r, "GET http://other.test:8080/ HTTP/1.1\r\nHost: other.test:8080\r\n\r\n");
	assert_non_null(strstr(got(r), "Blocked by network policy: other.test:8080\n"));
	proxy_rig_free(r);
}

/* Path and query of n bytes in all. */
static struct proxy_rig *say_target(size_t n, char target[HTTP_MAX_TARGET + 2])
{
	struct proxy_rig *r = fixed();

	memset(target, 'a', n);
	target[0] = '/';
	target[n / 2] = '?';
	target[n] = '\0';
	proxy_rig_add(&r->to_say, slice_from_str("GET "));
	proxy_rig_add(&r->to_say, slice_from_str(target));
	proxy_rig_say(r, " HTTP/1.1\r\nHost: example.test\r\n\r\n");
	return r;
}

static void the_keeper_gets_the_whole_target(void **state)
{
	static char target[HTTP_MAX_TARGET + 2];
	struct proxy_rig *r = say_target(HTTP_MAX_TARGET, target);

	assert_string_equal(r->ask.target, target);
	assert_non_null(strstr(seen(r), target));
	proxy_rig_free(r);
	r = say_target(HTTP_MAX_TARGET + 1, target);
	assert_null(strstr(seen(r), "GET"));
	assert_non_null(strstr(got(r), "HTTP/1.1 414 "));
	proxy_rig_free(r);
}

static void connect_leaves_with_what_follows(void **state)
{
	struct proxy_rig *r = proxy();

	proxy_rig_say(r, proxy_get);
	proxy_rig_say(r, "CONNECT Example.test:443 HTTP/1.1\r\nHost: example.test\r\n\r\nhello");
	assert_int_equal(r->end, RIG_CONNECT);
	assert_string_equal(r->connect_host.name, "example.test");
	assert_int_equal(r->connect_port, 443);
	assert_int_equal(r->n_raw, 5);
	assert_int_equal(r->n_asks, 1);
	assert_int_equal(r->timer_ms, 0);
	proxy_rig_free(r);
}

/* However the input is split, the asks, forwarded data and answers are the same. */
static void pieces_do_not_matter(void **state)
{
	static const char text[] =
		"POST /x HTTP/1.1\r\nHost: example.test\r\nTransfer-Encoding: chunked\r\n\r\n"
		"5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nX-Sum: 7\r\n\r\n"
		"PUT /y HTTP/1.1\r\nHost: example.test\r\nContent-Length: 3\r\n\r\nabc"
		"GET /z HTTP/1.1\r\nHost: example.test\r\nConnection: close\r\n\r\n";
	char *whole = NULL, *answers = NULL;

	for (size_t cut = 0; cut < sizeof(text); cut++) {
		struct proxy_rig *r = fixed();

		r->piece = cut == sizeof(text) - 1 ? 1 : 0;
		proxy_rig_add(&r->to_say, slice_of(text, cut));
		proxy_rig_turn(r);
		proxy_rig_say(r, text + cut);
		assert_int_equal(r->n_requests, 3);
		assert_int_equal(r->n_bad, 0);
		assert_int_equal(r->end, RIG_ENDED);
		if (!whole) {
			whole = xstrdup(seen(r));
			answers = xstrdup(got(r));
		}
		assert_string_equal(seen(r), whole);
		assert_string_equal(got(r), answers);
		proxy_rig_free(r);
	}
	assert_non_null(strstr(whole, "\r\n\r\n6\r\nhello!\r\n0\r\nx-sum: 7\r\n\r\nPUT /y "));
	assert_non_null(strstr(answers, "connection: close\r\n"));
	free(whole);
	free(answers);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	struct proxy_rig *r = fixed();
	char text[128];

	r->decide = 0;
	for (int i = 0; i < 100; i++) {
		(void)snprintf(
			text, sizeof(text), "GET /%d HTTP/1.1\r\nHost: example.test\r\n\r\n", i);
		proxy_rig_add(&r->to_say, slice_from_str(text));
	}
	for (int i = 0; i < 100; i++) {
		proxy_rig_turn(r);
		assert_int_equal(r->n_asks, i + 1);
		(void)snprintf(text, sizeof(text), "/%d", i);
		assert_string_equal(r->ask.target, text);
		proxy_rig_verdict(r, i % 3 != 0);
	}
	proxy_rig_turn(r);
	assert_int_equal(r->n_requests, 66);
	assert_int_equal(count(got(r), "HTTP/1.1 200 "), 66);
	assert_int_equal(count(got(r), "HTTP/1.1 403 "), 34);
	assert_int_equal(r->end, RIG_OPEN);
	proxy_rig_free(r);
}

static void http10_is_answered_and_ends(void **state)
{
	struct proxy_rig *r = fixed();

	r->answer = NULL;
	proxy_rig_say(r, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	proxy_rig_head(r, 103, HTTP_BODY_NONE, 0, false);
	proxy_rig_head(r, 200, HTTP_BODY_CHUNKED, 0, false);
	proxy_rig_data(r, slice_from_str("hello"));
	proxy_rig_finish(r, "x-sum", "7");
	proxy_rig_turn(r);
	assert_string_equal(got(r), "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello");
	assert_int_equal(r->end, RIG_ENDED);
	proxy_rig_free(r);
}

/* ---- names ---- */

static void wrong_names_are_421_and_the_end(void **state)
{
	static const char *const wrong[] = {
		"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.test:8080\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.test:443\r\n\r\n",
		"GET http://other.test/ HTTP/1.1\r\nHost: example.test\r\n\r\n",
		"GET http://example.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n",
		"GET http://example.test:81/ HTTP/1.1\r\nHost: example.test\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct proxy_rig *r = fixed();

		/* As the second of the connection: the first was valid. */
		proxy_rig_say(r, get);
		proxy_rig_say(r, wrong[i]);
		assert_int_equal(r->n_asks, 1);
		assert_int_equal(r->n_requests, 1);
		assert_int_equal(r->n_faults, 1);
		assert_non_null(strstr(got(r), "HTTP/1.1 421 Misdirected Request\r\n"));
		assert_int_equal(r->end, RIG_ENDED);
		proxy_rig_free(r);
	}
}

static void a_proxy_target_and_host_must_agree(void **state)
{
	static const struct {
		const char *text;
		uint16_t port;
	} wrong[] = {
		{"GET http://Example.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n", 80},
		{"GET http://example.test:81/ HTTP/1.1\r\nHost: example.test\r\n\r\n", 81},
		{"GET http://example.test/ HTTP/1.1\r\nHost: example.test:8080\r\n\r\n", 80},
		{"CONNECT example.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n", 443},
		{"CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:80\r\n\r\n", 443},
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct proxy_rig *r = proxy();

		proxy_rig_say(r, wrong[i].text);
		assert_int_equal(r->n_asks, 0);
		assert_int_equal(r->n_faults, 1);
		/* The record names the target. */
		assert_string_equal(r->fault_host, "example.test");
		assert_int_equal(r->fault_port, wrong[i].port);
		assert_non_null(strstr(got(r), "HTTP/1.1 421 "));
		assert_int_equal(r->end, RIG_ENDED);
		proxy_rig_free(r);
	}
}

static void what_a_proxy_does_not_take_is_said(void **state)
{
	static const struct {
		const char *text, *why, *host;
		uint16_t port;
	} rows[] = {
		/* A Host header alone is not a target, so the record has none. */
		{get, "invalid proxy request", "", 0},
		{"OPTIONS * HTTP/1.1\r\nHost: example.test\r\n\r\n", "invalid proxy request", "",
			0},
		{"GET https://example.test/ HTTP/1.1\r\nHost: example.test\r\n\r\n",
			"an https target requires CONNECT", "example.test", 443},
		{"GET http://[0:0::1]/ HTTP/1.1\r\nHost: .\r\n\r\n", "the Host header is not",
			"::1", 80},
		{"GET http://example.test\\@other.test/ HTTP/1.1\r\nHost: example.test\r\n\r\n",
			"contains a user", "", 0},
		{"GET http://.example.test/ HTTP/1.1\r\nHost: .example.test\r\n\r\n",
			"not a host name and port", "", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct proxy_rig *r = proxy();

		proxy_rig_say(r, rows[i].text);
		assert_int_equal(r->n_asks, 0);
		assert_non_null(strstr(got(r), "HTTP/1.1 400 "));
		assert_non_null(strstr(got(r), rows[i].why));
		assert_non_null(strstr(r->fault, rows[i].why));
		assert_string_equal(r->fault_host, rows[i].host);
		assert_int_equal(r->fault_port, rows[i].port);
		assert_int_equal(r->end, RIG_ENDED);
		proxy_rig_free(r);
	}
}

static void a_fixed_target_takes_no_connect(void **state)
{
	struct proxy_rig *r = fixed();

	proxy_rig_say(r, "CONNECT example.test:80 HTTP/1.1\r\nHost: example.test:80\r\n\r\n");
	assert_non_null(strstr(got(r), "HTTP/1.1 400 "));
	assert_int_equal(r->end, RIG_ENDED);
	proxy_rig_free(r);
	r = fixed();
	proxy_rig_say(r, "GET http://example.test/x HTTP/1.1\r\nHost: example.test\r\n\r\n");
	assert_string_equal(seen(r), "GET /x HTTP/1.1\r\nhost: example.test\r\n\r\n");
	proxy_rig_free(r);
}

static void an_address_is_a_target_like_others(void **state)
{
	struct proxy_rig *r = proxy_rig_new("2001:db8::1", 8080);

	r->answer = proxy_rig_ok;
	proxy_rig_say(r, "GET / HTTP/1.1\r\nHost: [2001:DB8:0::1]:8080\r\n\r\n");
	assert_string_equal(r->ask.host, "2001:db8::1");
	assert_string_equal(seen(r), "GET / HTTP/1.1\r\nhost: [2001:db8::1]:8080\r\n\r\n");
	proxy_rig_say(r, "GET / HTTP/1.1\r\nHost: [2001:db8::2]:8080\r\n\r\n");
	assert_non_null(strstr(got(r), "HTTP/1.1 421 "));
	proxy_rig_free(r);
}

/* ---- verdicts ---- */

static void a_no_is_said_and_the_connection_lives(void **state)
{
	struct proxy_rig *r = fixed();

	r->decide = -1;
	proxy_rig_say(r, get);
	proxy_rig_say(r, "POST / HTTP/1.1\r\nHost: example.test\r\nContent-Length: 5\r\n"
			 "Accept: application/json\r\n\r\nhel");
	assert_int_equal(r->timer_ms, PROXY_HEAD_MS);
	proxy_rig_say(r, "loHEAD / HTTP/1.1\r\nHost: example.test\r\n\r\n");
	assert_int_equal(r->n_asks, 3);
	assert_int_equal(r->n_faults, 0);
	assert_int_equal(r->end, RIG_OPEN);
	assert_int_equal(count(got(r), "HTTP/1.1 403 Forbidden\r\n"), 3);
	assert_int_equal(count(got(r), "connection: close"), 0);
	assert_non_null(strstr(got(r), "Blocked by network policy: example.test:80\n"));
	assert_non_null(strstr(got(r), "blocked: 1 time;"));
	assert_non_null(strstr(got(r), "\"refused\":2}\n"));
	assert_memory_equal(&r->got.p[r->got.n - 4], "\r\n\r\n", 4);
	r->decide = 1;
	proxy_rig_say(r, get);
	assert_non_null(strstr(got(r), "HTTP/1.1 200 OK\r\n"));
	proxy_rig_free(r);
}

static void a_no_to_a_large_body_is_the_end(void **state)
{
	static const char *const rows[] = {
		"Content-Length: 65537\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n",
		"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
		"Connection: close\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct proxy_rig *r = fixed();

		r->decide = -1;
		proxy_rig_add(
			&r->to_say, slice_from_str("POST / HTTP/1.1\r\nHost: example.test\r\n"));
		proxy_rig_say(r, rows[i]);
		assert_non_null(strstr(got(r), "HTTP/1.1 403 "));
		assert_non_null(strstr(got(r), "connection: close\r\n"));
		assert_int_equal(r->end, RIG_ENDED);
		proxy_rig_free(r);
	}
}

static void a_yes_without_a_way_is_no_refusal(void **state)
{
	struct proxy_rig *r = fixed();

	r->decide = 2;
	proxy_rig_say(r, get);
	assert_non_null(strstr(got(r), "HTTP/1.1 502 Bad Gateway\r\n"));
	assert_null(strstr(got(r), "policy"));
	assert_int_equal(r->end, RIG_ENDED);
	proxy_rig_free(r);
}

static void nothing_goes_out_before_the_verdict(void **state)
{
	struct proxy_rig *r = fixed();

	r->decide = 0;
	proxy_rig_say(r, "POST / HTTP/1.1\r\nHost: example.test\r\nContent-Length: 5\r\n\r\nhello");
	proxy_rig_say(r, get);
	assert_int_equal(r->n_asks, 1);
	assert_int_equal(r->c->fd, -1);
	assert_int_equal(bufq_len(&r->c->in), 5 + strlen(get));
	assert_string_equal(got(r), "");
	proxy_rig_verdict(r, true);
	proxy_rig_turn(r);
	assert_int_equal(r->n_asks, 2);
	assert_int_equal(r->n_requests, 1);
	proxy_rig_free(r);
}

/* ---- faults and time ---- */

static void faults_are_answered_reported_and_final(void **state)
{
	static const char *const rows[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\nHost: example.test\n\n",
		"\x16\x03\x01\x02\r\n",
		"GET / HTTP/1.1\r\nHost: example.test\r\n folded\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct proxy_rig *r = fixed();

		proxy_rig_say(r, rows[i]);
		proxy_rig_say(r, get);
		assert_int_equal(r->n_asks, 0);
		assert_int_equal(r->n_faults, 1);
		assert_non_null(strstr(got(r), "HTTP/1.1 400 "));
		assert_int_equal(r->end, RIG_ENDED);
		proxy_rig_free(r);
	}
}

static void time_runs_out(void **state)
{
	struct proxy_rig *r = fixed();

	assert_int_equal(r->timer_ms, PROXY_IDLE_MS);
	proxy_rig_timer(r);
	assert_int_equal(r->end, RIG_ENDED);
	assert_string_equal(got(r), "");
	assert_int_equal(r->n_faults, 0);
	proxy_rig_free(r);

	r = fixed();
	proxy_rig_say(r, "G");
	assert_int_equal(r->timer_ms, PROXY_HEAD_MS);
	r->timer_ms = 7;
	proxy_rig_say(r, "ET / HTTP/1.1\r\n"); /* does not restart the timeout */
	assert_int_equal(r->timer_ms, 7);
	proxy_rig_timer(r);
	assert_non_null(strstr(got(r), "HTTP/1.1 408 Request Timeout\r\n"));
	assert_int_equal(r->n_faults, 1);
	assert_int_equal(r->end, RIG_ENDED);
	proxy_rig_free(r);

	r = fixed();
	proxy_rig_say(r, "G");
	proxy_rig_say(r, get + 1);
	assert_int_equal(r->timer_ms, PROXY_IDLE_MS);
	proxy_rig_say(r, "G"); /* each head has its own timeout */
	assert_int_equal(r->timer_ms, PROXY_HEAD_MS);
	proxy_rig_free(r);

	r = fixed();
	r->decide = -1;
	proxy_rig_say(r, "POST / HTTP/1.1\r\nHost: example.test\r\nContent-Length: 5\r\n\r\n");
	proxy_rig_timer(r);
	assert_int_equal(r->end, RIG_ENDED);
	proxy_rig_free(r);
}

/* A guest that does not read stops its own connection: denials do not pile up. */
static void refusals_wait_for_room(void **state)
{
	struct proxy_rig *r = fixed();

	r->decide = -1;
	r->reads = 0;
	for (int i = 0; i < 1000; i++)
		proxy_rig_add(&r->to_say, slice_from_str(get));
	proxy_rig_turn(r);
	assert_true(r->n_asks < 200);
	assert_true(conn_room(r->c) < DENY_ROOM);
	r->reads = SIZE_MAX;
	proxy_rig_turn(r);
	assert_int_equal(r->n_asks, 1000);
	assert_int_equal(count(got(r), "HTTP/1.1 403 "), 1000);
	assert_non_null(strstr(got(r), "blocked: 1000 times"));
	proxy_rig_free(r);
}

static void an_idle_connection_holds_nothing(void **state)
{
	struct proxy_rig *r = fixed();

	assert_null(r->c->in.ring);
	assert_null(r->c->out.ring);
	proxy_rig_say(r, get);
	assert_null(r->c->in.ring);
	assert_null(r->c->out.ring);
	assert_int_equal(r->c->fd, -1);
	assert_null(r->c->proxy->arena.block);
	r->answer = NULL;
	proxy_rig_say(r, get); /* and one that waits for its answer holds little */
	assert_int_equal(r->n_requests, 2);
	assert_null(r->c->proxy->arena.block);
	proxy_rig_free(r);
}

static void the_end_of_the_guest_is_the_end(void **state)
{
	struct proxy_rig *r = fixed();

	r->to_end = true;
	proxy_rig_say(r, get); /* a half-close: the answer is still delivered */
	assert_non_null(strstr(got(r), "HTTP/1.1 200 OK\r\n"));
	assert_int_equal(r->end, RIG_ENDED);
	proxy_rig_free(r);
	r = fixed();
	r->to_end = true;
	proxy_rig_say(r, "GET / HTTP/1.1\r\n");
	assert_non_null(strstr(got(r), "the connection was closed inside a message"));
	assert_int_equal(r->end, RIG_ENDED);
	proxy_rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_asked_about_and_forwarded),
		cmocka_unit_test(a_proxy_request_names_its_target),
		cmocka_unit_test(the_keeper_gets_the_whole_target),
		cmocka_unit_test(connect_leaves_with_what_follows),
		cmocka_unit_test(pieces_do_not_matter),
		cmocka_unit_test(pipelined_requests_are_answered_in_order),
		cmocka_unit_test(http10_is_answered_and_ends),
		cmocka_unit_test(wrong_names_are_421_and_the_end),
		cmocka_unit_test(a_proxy_target_and_host_must_agree),
		cmocka_unit_test(what_a_proxy_does_not_take_is_said),
		cmocka_unit_test(a_fixed_target_takes_no_connect),
		cmocka_unit_test(an_address_is_a_target_like_others),
		cmocka_unit_test(a_no_is_said_and_the_connection_lives),
		cmocka_unit_test(a_no_to_a_large_body_is_the_end),
		cmocka_unit_test(a_yes_without_a_way_is_no_refusal),
		cmocka_unit_test(nothing_goes_out_before_the_verdict),
		cmocka_unit_test(faults_are_answered_reported_and_final),
		cmocka_unit_test(time_runs_out),
		cmocka_unit_test(refusals_wait_for_room),
		cmocka_unit_test(an_idle_connection_holds_nothing),
		cmocka_unit_test(the_end_of_the_guest_is_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
