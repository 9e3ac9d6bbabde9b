/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/http/deny.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "lib/wire/http/http1.h"

static char buf[DENY_ROOM + 1];
static uint8_t long_text[1000];

static struct deny some_deny(void)
{
	return (struct deny){.host = slice_from_str("example.test"), .port = 443, .count = 1};
}

static void one_text_says_everything(void **state)
{
	struct deny d = some_deny();
	struct wr wr = wr_init(buf, DENY_ROOM);

	assert_int_equal(deny_write_text(&wr, &d), 0);
	buf[wr.n] = '\0';
	assert_string_equal(buf,
		"Blocked by network policy: example.test:443\n"
		"  reason:  no applicable policies for op(action=net:connect:tcp, "
		"resource=net:domain:example.test:443)\n"
		"  blocked: 1 time; retrying will not help\n"
		"  allow:   sbx policy allow network example.test:443     (run on the host)\n");
}

/* A DNS query: the rule is for the name. */
static void a_name_has_no_port(void **state)
{
	struct deny d = some_deny();
	struct wr wr = wr_init(buf, DENY_ROOM);

	d.port = 0;
	assert_int_equal(deny_write_text(&wr, &d), 0);
	buf[wr.n] = '\0';
	assert_non_null(strstr(buf, "policy: example.test\n"));
	assert_non_null(strstr(buf, "sbx policy allow network example.test  "));
}

static void a_rule_is_named_and_must_go(void **state)
{
	struct deny d = some_deny();
	struct wr wr = wr_init(buf, DENY_ROOM);

	d.rule = slice_from_str("**.test:443");
	d.sandbox = slice_from_str("demo");
	d.count = 12;
	assert_int_equal(deny_write_text(&wr, &d), 0);
	buf[wr.n] = '\0';
	assert_non_null(
		strstr(buf, "denied: rule \"**.test:443\" matched op(action=net:connect:tcp,"));
	assert_non_null(strstr(buf, "blocked: 12 times"));
	assert_non_null(
		strstr(buf, "sbx policy rm network --resource '**.test:443' --sandbox demo  "));
}

static void where_no_rule_helps_none_is_offered(void **state)
{
	struct deny d = some_deny();
	struct wr wr = wr_init(buf, DENY_ROOM);

	d.no_rule_helps = true;
	d.reason = slice_from_str("the request carries somebody's credential");
	d.sandbox = slice_from_str("demo");
	assert_int_equal(deny_write_text(&wr, &d), 0);
	buf[wr.n] = '\0';
	assert_null(strstr(buf, "policy allow"));
	assert_non_null(strstr(buf, "\n  see:     sbx policy log demo     (run on the host)\n"));
	wr = wr_init(buf, DENY_ROOM);
	assert_int_equal(deny_write_http(&wr, &d, true, false, false), 0);
	buf[wr.n] = '\0';
	assert_non_null(strstr(buf, "\"see\":\"sbx policy log demo\""));
	assert_null(strstr(buf, "\"allow\""));
}

static void connect_fails_for_the_client(void **state)
{
	struct deny d = some_deny();
	struct wr wr = wr_init(buf, DENY_ROOM);

	assert_int_equal(deny_write_connect(&wr, &d), 0);
	buf[wr.n] = '\0';
	assert_ptr_equal(strstr(buf, "HTTP/1.1 403 Forbidden\r\n"), buf);
	assert_non_null(strstr(buf,
		"proxy-status: sbx; error=http_request_denied; details=\"no applicable policies "
		"for "
		"op(action=net:connect:tcp, resource=net:domain:example.test:443)\"\r\n"));
	assert_non_null(strstr(buf, "\r\nconnection: close\r\n"));
}

static void json_is_for_those_who_ask(void **state)
{
	struct deny d = some_deny();
	struct wr wr = wr_init(buf, DENY_ROOM);

	assert_true(deny_wants_json(slice_from_str("text/html, Application/JSON;q=0.9")));
	assert_true(deny_wants_json(slice_from_str("application/problem+json")));
	assert_true(deny_wants_json(slice_from_str("application/vnd.github.v3+JSON; q=1")));
	assert_false(deny_wants_json(slice_from_str("*/*")));
	assert_false(deny_wants_json(slice_from_str("text/x+json")));
	assert_false(deny_wants_json(slice_from_str("")));
	d.rule = slice_from_str("a\"b\\c");
	assert_int_equal(deny_write_http(&wr, &d, true, false, false), 0);
	buf[wr.n] = '\0';
	assert_non_null(strstr(buf, "content-type: application/problem+json\r\n"));
	assert_non_null(strstr(buf, "\"rule\":\"a\\\"b\\\\c\""));
	assert_non_null(strstr(buf, "\"detail\":\"Blocked by network policy: example.test:443: "));
	assert_non_null(strstr(buf, "\"refused\":1}"));
	assert_null(strstr(buf, "connection: close"));
}

static void what_waits_for_a_person_has_its_id(void **state)
{
	struct deny d = some_deny();
	struct wr wr = wr_init(buf, DENY_ROOM);

	d.approval = slice_from_str("K7QD");
	d.no_rule_helps = true;
	d.reason = slice_from_str("needs approval: request K7QD is open");
	assert_int_equal(deny_write_text(&wr, &d), 0);
	buf[wr.n] = '\0';
	assert_string_equal(buf, "Waiting for approval: example.test:443\n"
				 "  reason:  needs approval: request K7QD is open\n"
				 "  retry:   the same request, in 60 s or later\n"
				 "  approve: sbx approve K7QD     (run on the host)\n");
	for (int json = 0; json < 2; json++) {
		wr = wr_init(buf, DENY_ROOM);
		assert_int_equal(deny_write_http(&wr, &d, json, false, false), 0);
		buf[wr.n] = '\0';
		assert_ptr_equal(strstr(buf, "HTTP/1.1 403 Forbidden\r\n"), buf);
		assert_non_null(strstr(buf, "\r\nretry-after: 60\r\n"));
	}
	assert_non_null(strstr(buf, "{\"type\":\"urn:sbx:pending\","));
	assert_non_null(strstr(buf, "\"approval\":\"K7QD\",\"retry-after\":60,"));
	assert_non_null(strstr(buf, "\"approve\":\"sbx approve K7QD\""));
	assert_null(strstr(buf, "policy log"));
}

/* Every byte value in every field, and fields far too long: what comes out is one response that our
 * own reader accepts, with no control character but line ends. */
static void nothing_is_reflected_raw(void **state)
{
	static uint8_t evil[2048];
	struct http_req req = {.method = slice_from_str("GET")};
	struct arena arena;
	struct deny d;

	for (size_t i = 0; i < sizeof(evil); i++)
		evil[i] = (uint8_t)i;
	arena_init(&arena, HTTP_ARENA_SIZE);
	d = (struct deny){.host = slice_of(evil, sizeof(evil)), .port = 1};
	d.rule = d.sandbox = d.host;
	for (int form = 0; form < 16; form++) {
		struct wr wr = wr_init(buf, DENY_ROOM);
		struct slice in;
		struct http1 h;
		struct http1_event ev;

		d.reason = form & 4 ? d.host : (struct slice){0};
		d.approval = form & 8 ? d.host : (struct slice){0};
		assert_int_equal(deny_write_http(&wr, &d, form & 1, form & 2, true), 0);
		for (size_t i = 0; i < wr.n; i++)
			assert_true(((uint8_t)buf[i] >= 0x20 && (uint8_t)buf[i] < 0x7f) ||
				    buf[i] == '\r' || buf[i] == '\n');
		req.method = slice_from_str(form & 2 ? "HEAD" : "GET");
		arena_reset(&arena);
		http1_init_response(&h, &arena, &req);
		in = slice_of(buf, wr.n);
		assert_true(http1_read(&h, &in, &ev));
		assert_int_equal(ev.kind, HTTP1_EV_HEAD);
		assert_int_equal(ev.resp->headers.n, form & 8 ? 6 : 5);
		while (http1_read(&h, &in, &ev))
			assert_int_not_equal(ev.kind, HTTP1_EV_ERROR);
		assert_int_equal(h.state, HTTP1_DONE);
		assert_int_equal(in.n, 0);
	}
	arena_done(&arena);
}

/* A rule about requests decided: the text names the request, not only the host. */
static void a_refused_request_is_named(void **state)
{
	struct deny d = {.host = slice_from_str("api.example.com"),
		.port = 443,
		.reason = slice_from_str("no rule permits this request"),
		.effect = slice_from_str("http:POST api.example.com /v1/x"),
		.instead = slice_from_str("http api.example.com/v1/** method GET"),
		.command =
			slice_from_str("sbx policy allow http api.example.com/v1/x --method POST"),
		.count = 1};
	struct wr wr = wr_init(buf, DENY_ROOM);

	assert_int_equal(deny_write_text(&wr, &d), 0);
	buf[wr.n] = '\0';
	assert_string_equal(buf,
		"Blocked by network policy: api.example.com:443\n"
		"  request: http:POST api.example.com /v1/x\n"
		"  reason:  no rule permits this request\n"
		"  allowed: http api.example.com/v1/** method GET\n"
		"  blocked: 1 time; retrying will not help\n"
		"  allow:   sbx policy allow http api.example.com/v1/x --method POST"
		"     (run on the host)\n");
	wr = wr_init(buf, DENY_ROOM);
	assert_int_equal(deny_write_http(&wr, &d, true, false, false), 0);
	buf[wr.n] = '\0';
	assert_non_null(strstr(buf, ",\"effect\":\"http:POST api.example.com /v1/x\","
				    "\"allowed_instead\":\"http api.example.com/v1/** method GET\","
				    "\"allow\":\"sbx policy allow http"));
	assert_non_null(strstr(buf, "; allowed: http api.example.com/v1/** method GET; allow: sbx "
				    "policy allow http api.example.com/v1/x --method POST\""));
	/* the longest ones fit */
	memset(long_text, '"', sizeof(long_text));
	d.effect = d.instead = d.command = d.reason = d.host = d.rule =
		slice_of(long_text, sizeof(long_text));
	for (int json = 0; json <= 1; json++) {
		wr = wr_init(buf, DENY_ROOM);
		assert_int_equal(deny_write_http(&wr, &d, json, false, false), 0);
	}
}

/* What was allowed and failed must not read like a refusal: no rule would help. */
static void a_failure_is_no_refusal(void **state)
{
	struct deny d = some_deny();
	struct wr wr = wr_init(buf, DENY_ROOM);

	d.reason = slice_from_str("the name has no \"address\"\r\nx: y");
	assert_int_equal(deny_write_failed(&wr, &d, 502, false, false, true), 0);
	buf[wr.n] = '\0';
	assert_ptr_equal(strstr(buf, "HTTP/1.1 502 Bad Gateway\r\n"), buf);
	assert_non_null(strstr(buf, "error=destination_unavailable; details=\"the name has no "
				    "\\\"address\\\"??x: y\"\r\n"));
	assert_non_null(
		strstr(buf, "\r\n\r\nConnection to example.test:443 failed (the host is allowed): "
			    "the"));
	assert_null(strstr(buf, "policy"));
	wr = wr_init(buf, DENY_ROOM);
	assert_int_equal(deny_write_failed(&wr, &d, 504, true, false, false), 0);
	buf[wr.n] = '\0';
	assert_ptr_equal(strstr(buf, "HTTP/1.1 504 Gateway Timeout\r\n"), buf);
	assert_non_null(strstr(buf, "\"title\":\"Gateway Timeout\",\"status\":504,\"detail\":"));
	assert_non_null(strstr(buf, "no \\\"address\\\"??x: y\"}\n"));
	assert_null(strstr(buf, "connection: close"));
	wr = wr_init(buf, DENY_ROOM);
	assert_int_equal(deny_write_failed(&wr, &d, 502, false, true, true), 0);
	assert_memory_equal(&buf[wr.n - 4], "\r\n\r\n", 4);
}

/* Egress refuses by its own copy of the policy and has not counted. */
static void an_unknown_count_is_not_said(void **state)
{
	struct deny d = some_deny();
	struct wr wr = wr_init(buf, DENY_ROOM);

	d.count = 0;
	assert_int_equal(deny_write_text(&wr, &d), 0);
	buf[wr.n] = '\0';
	assert_null(strstr(buf, "refused"));
}

static void faults_are_answered(void **state)
{
	struct http_fault fault = {.status = 400, .why = "a folded header line"};
	struct wr wr = wr_init(buf, DENY_ROOM);

	assert_int_equal(deny_write_fault(&wr, &fault, false), 0);
	buf[wr.n] = '\0';
	assert_ptr_equal(strstr(buf, "HTTP/1.1 400 Bad Request\r\n"), buf);
	assert_non_null(strstr(buf, "details=\"a folded header line\"\r\n"));
	assert_non_null(strstr(buf, "\r\nconnection: close\r\n"));
	/* The body of a HEAD was at fault: there is no content in its answer either. */
	wr = wr_init(buf, DENY_ROOM);
	assert_int_equal(deny_write_fault(&wr, &fault, true), 0);
	buf[wr.n] = '\0';
	assert_string_equal(strstr(buf, "\r\n\r\n"), "\r\n\r\n");
	wr = wr_init(buf, 40);
	assert_int_equal(deny_write_fault(&wr, &fault, false), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_text_says_everything),
		cmocka_unit_test(a_name_has_no_port),
		cmocka_unit_test(a_rule_is_named_and_must_go),
		cmocka_unit_test(where_no_rule_helps_none_is_offered),
		cmocka_unit_test(connect_fails_for_the_client),
		cmocka_unit_test(json_is_for_those_who_ask),
		cmocka_unit_test(what_waits_for_a_person_has_its_id),
		cmocka_unit_test(nothing_is_reflected_raw),
		cmocka_unit_test(a_refused_request_is_named),
		cmocka_unit_test(a_failure_is_no_refusal),
		cmocka_unit_test(an_unknown_count_is_not_said),
		cmocka_unit_test(faults_are_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
