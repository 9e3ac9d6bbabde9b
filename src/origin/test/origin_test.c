/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: the credential in its one header, only after the certificate was verified, and no
 * foreign ones. */
#include "origin_rig.h"

#include <errno.h>
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
#define BEARER "\r\nauthorization: Bearer " RIG_VALUE "\r\n"

static char head[8192];

/* The answer to a request that reaches the server. */
static void finish(struct rig *r, int edge, SSL *ssl)
{
	struct rig_answer a;

	rig_write(ssl, OK);
	rig_read_answer(edge, &a);
	assert_int_equal(a.status, 200);
	assert_true(a.ended);
	assert_string_equal((char *)a.body, "hi");
	rig_answer_done(&a);
	(void)close(edge);
	rig_until_closed(r, r->n_ids);
}

static void test_the_value_is_in_the_slot_and_the_guests_own_is_not(void **state)
{
	struct rig *r = rig_new();
	int edge =
		rig_ask(r, &(struct rig_req){.path = "/v1/models",
				   .headers = "user-agent: x\nauthorization: Bearer " RIG_SENTINEL
					      "\naccept-encoding: gzip, br\n"});
	SSL *ssl = rig_serve(r);
	struct origin_result *result;
	uint8_t want[32];
	unsigned n = 0;

	rig_give_value(r, RIG_VALUE);
	/* NEED names the connection and its certificate */
	assert_int_equal(r->need.which, ORIGIN_SECRET);
	assert_int_equal(X509_digest(rig_good.cert, EVP_sha256(), want, &n), 1);
	assert_memory_equal(r->need.cert, want, 32);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_int_equal(
		strncmp(head, "GET /v1/models HTTP/1.1\r\nhost: api.example.com\r\n", 48), 0);
	assert_non_null(strstr(head, BEARER));
	assert_int_equal(rig_count(head, "authorization"), 1);
	assert_int_equal(rig_count(head, RIG_VALUE), 1);
	assert_null(strstr(head, "proxy-managed"));
	assert_non_null(strstr(head, "\r\naccept-encoding: identity\r\n"));
	assert_null(strstr(head, "gzip"));
	finish(r, edge, ssl);
	result = rig_result(r, 1);
	assert_int_equal(result->outcome, ORIGIN_DONE);
	assert_int_equal(result->status, 200);
	assert_true(result->used);
	assert_int_equal(result->serial, 77);
	assert_string_equal(result->slot, "api");
	assert_string_equal(result->addr, "192.0.2.7");
	assert_true(r->seen[1].up > 0 && r->seen[1].down > 0);
	rig_hang_up(ssl);
	rig_free(r);
}

/* One request of each kind on one connection: our placeholder in a known place is removed. */
static void test_sentinels_are_removed_everywhere(void **state)
{
	static const struct {
		const char *path, *query, *headers, *slot;
	} rows[] = {
		{"/", NULL, "authorization: Bearer " RIG_SENTINEL "\n", "api"},
		{"/", NULL, "authorization: " RIG_SENTINEL "\n", "api"},
		{"/", NULL, "authorization: token " RIG_SENTINEL "\n", "api"},
		{"/", NULL, "", "api"},
		{"/", NULL, "authorization: \n", "api"},
		{"/", NULL, "authorization: \nauthorization: \n", "api"},
		{"/", NULL, "x-api-key: " RIG_SENTINEL "\n", "api"},
		{"/", NULL, "x_api_key: " RIG_SENTINEL "\n", "api"},
		{"/", NULL,
			"authorization: Bearer " RIG_SENTINEL "\nauthorization: " RIG_SENTINEL "\n",
			"api"},
		{"/", "a=1&key=" RIG_SENTINEL "&b=2", "", "api"},
		{"/", "key=" RIG_SENTINEL, "", "api"},
		{"/", "a=1;k%65y=" RIG_SENTINEL, "", "api"},
		{"/", "a=1&KEY=sk-proxy%2Dmanaged-000000&b=2", "", "api"},
		{"/", NULL, "cookie: a=1; session=" RIG_SENTINEL "; b=2\n", "api"},
		{"/", NULL, "cookie: session=" RIG_SENTINEL "\n", "api"},
		/* x-access-token:placeholder */
		{"/git/x", NULL,
			"authorization: Basic "
			"eC1hY2Nlc3MtdG9rZW46c2stcHJveHktbWFuYWdlZC0wMDAwMDA=\n",
			"git"},
	};
	struct rig *r = rig_new();
	SSL *ssl = NULL;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int edge = rig_ask(r, &(struct rig_req){.path = rows[i].path,
					      .query = rows[i].query,
					      .headers = rows[i].headers});
		bool is_git = strcmp(rows[i].slot, "git") == 0;

		if (!ssl) {
			ssl = rig_serve(r);
			rig_give_value(r, RIG_VALUE);
		}
		assert_true(rig_read_http(ssl, head, sizeof(head)));
		/* base64 of x-access-token: and the value */
		if (!strstr(head,
			    is_git ? "\r\nauthorization: Basic "
				     "eC1hY2Nlc3MtdG9rZW46c2stbGl2ZS1DQU5BUlktN2YzYTliNTFjMg==\r\n"
				   : BEARER))
			fail_msg("row %zu: %s", i, head);
		assert_int_equal(rig_count(head, "authorization"), 1);
		assert_null(strstr(head, "managed"));
		assert_null(strstr(head, "c2stcHJveHk"));
		if (rows[i].query && strstr(rows[i].query, "b=2"))
			assert_non_null(strstr(head, "GET /?a=1&b=2 HTTP"));
		if (strstr(rows[i].headers, "b=2"))
			assert_non_null(strstr(head, "\r\ncookie: a=1; b=2\r\n"));
		finish(r, edge, ssl);
		assert_string_equal(rig_result(r, r->n_ids)->slot, rows[i].slot);
	}
	/* one connection and one NEED for all of them */
	assert_int_equal(r->n_wants, 1);
	assert_int_equal(r->n_needs, 1);
	rig_hang_up(ssl);
	rig_free(r);
}

static void refused(struct rig *r, int edge, enum origin_outcome outcome, uint16_t status)
{
	struct rig_answer a;

	rig_read_answer(edge, &a);
	assert_int_equal(a.status, status);
	assert_true(a.ended && strlen(a.reason) > 8 && a.n_body == 0);
	assert_int_equal(rig_result(r, r->n_ids)->outcome, outcome);
	assert_string_equal(rig_result(r, r->n_ids)->text, a.reason);
	assert_false(rig_result(r, r->n_ids)->used);
	rig_answer_done(&a);
	(void)close(edge);
	rig_until_closed(r, r->n_ids);
}

static void test_a_foreign_credential_is_refused(void **state)
{
	static const struct {
		const char *query, *headers;
	} rows[] = {
		{NULL, "authorization: Bearer sk-of-somebody\n"},
		{NULL, "authorization: bearer sk-of-somebody\n"},
		{NULL, "authorization: sk-of-somebody\n"},
		{NULL, "authorization: Basic dXNlcjpwYXNz\n"},
		{NULL, "x-api-key: sk-of-somebody\n"},
		{NULL, "x_api_key: sk-of-somebody\n"},
		{NULL, "authorization: Bearer " RIG_SENTINEL "\nauthorization: Bearer evil\n"},
		{NULL, "authorization: Bearer evil\nauthorization: Bearer " RIG_SENTINEL "\n"},
		{NULL, "authorization: Bearer " RIG_SENTINEL ", Bearer evil\n"},
		{NULL, "authorization: Bearer " RIG_SENTINEL "x\n"},
		{NULL, "authorization: Bearer SK-PROXY-MANAGED-000000\n"},
		{"key=sk-of-somebody", ""},
		{"a=1&k%65y=sk-of-somebody", ""},
		{"a=1&KEY=sk-of-somebody", ""},
		{"a=1;key=sk-of-somebody", ""},
		{"key=" RIG_SENTINEL "&key=sk-of-somebody", ""},
		{NULL, "cookie: session=of-somebody\n"},
		{NULL, "cookie: a=1; session=of-somebody; b=2\n"},
		{NULL, "cookie: a=1\ncookie: session=of-somebody\n"},
		{NULL, "cookie: session=" RIG_SENTINEL "; session=of-somebody\n"},
	};
	struct rig *r = rig_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int edge = rig_ask(
			r, &(struct rig_req){.query = rows[i].query, .headers = rows[i].headers});

		refused(r, edge, ORIGIN_DENIED_FOREIGN, 403);
	}
	assert_int_equal(r->n_wants, 0); /* no connection was requested */
	rig_free(r);
}

/* Interception without a credential: the sandbox's own keys are denied, and nothing is added. */
static void test_without_a_value_nothing_is_added_and_nobody_elses_passes(void **state)
{
	static const struct {
		const char *query, *headers;
		enum origin_outcome outcome;
	} rows[] = {
		{NULL, "authorization: Bearer sk-of-somebody\n", ORIGIN_DENIED_FOREIGN},
		{"key=sk-of-somebody", "", ORIGIN_DENIED_FOREIGN},
		{NULL, "cookie: session=of-somebody\n", ORIGIN_DENIED_FOREIGN},
		{NULL, "authorization: Bearer " RIG_SENTINEL "\n", ORIGIN_NOT_SET},
		{"key=" RIG_SENTINEL, "", ORIGIN_NOT_SET},
		{NULL, "cookie: a=1; session=" RIG_SENTINEL "\n", ORIGIN_NOT_SET},
	};
	struct rig *r = rig_start(NULL);
	SSL *ssl;
	int edge;

	rig_up(r, RIG_HOST, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool is_foreign = rows[i].outcome == ORIGIN_DENIED_FOREIGN;
		const char *text;

		edge = rig_ask(
			r, &(struct rig_req){.query = rows[i].query, .headers = rows[i].headers});
		refused(r, edge, rows[i].outcome, 403);
		text = rig_result(r, r->n_ids)->text;
		assert_non_null(strstr(text, "sbx secret set demo"));
		assert_int_equal(!!strstr(text, "sbx secret own demo --sandbox demo"), is_foreign);
	}
	assert_int_equal(r->n_wants, 0);
	edge = rig_ask(r, &(struct rig_req){.headers = "user-agent: x\naccept-encoding: gzip\n"});
	ssl = rig_serve(r);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_int_equal(rig_count(head, "authorization"), 0);
	assert_non_null(strstr(head, "\r\naccept-encoding: gzip\r\n"));
	finish(r, edge, ssl);
	assert_false(rig_result(r, r->n_ids)->used);
	assert_int_equal(r->n_needs, 0);
	rig_hang_up(ssl);
	rig_free(r);
}

static const char refusing_service[] =
	"service 1\nname demo\nabout Demo\nenv DEMO_KEY " RIG_SENTINEL "\n"
	"refuse POST /keys\nrefuse GET /list\nrefuse query Action AssumeRole*\n"
	"refuse header x-amz-target *.GetSecretValue\n"
	"slot api\nhost api.example.com:443\nheader authorization Bearer %s\nend\n";

static void test_a_request_that_creates_a_credential_is_refused(void **state)
{
	static const struct rig_req rows[] = {
		{.method = "POST", .path = "/keys"},
		{.method = "post", .path = "//Keys/"},
		{.method = "POST", .path = "/%6beys;a=b"},
		{.method = "POST", .path = "/keys", .query = "a=b"},
		{.path = "/keys", .headers = "x-http-method-override: POST\n"},
		{.path = "/keys", .query = "_method=post"},
		{.path = "/keys", .query = "_meth%6fd=post"},
		{.path = "/keys", .headers = "x_http_method_override: POST\n"},
		{.path = "/keys", .query = "%24httpMethod=POST"},
		{.method = "POST",
			.path = "/list",
			.headers = "content-type: Application/x-www-form-urlencoded; a=b\n"},
		{.method = "POST",
			.path = "/list",
			.headers = "content-type: multipart/form-data\n"},
		{.method = "POST", .path = "/list"},
		{.query = "Action=AssumeRole"},
		{.headers = "x-amz-target: secretsmanager.GetSecretValue\n"},
	};
	struct rig *r = rig_start(NULL);
	int edge;

	rig_up_as(r, RIG_HOST, ORIGIN_HAS_SECRET, refusing_service);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		edge = rig_ask(r, &rows[i]);
		refused(r, edge, ORIGIN_DENIED_REQUEST, 403);
		assert_non_null(strstr(rig_result(r, r->n_ids)->text, "rule 'refuse "));
		assert_non_null(strstr(rig_result(r, r->n_ids)->text, "sbx secret set demo"));
	}
	edge = rig_ask(r, &(struct rig_req){.path = "/a//../b"});
	refused(r, edge, ORIGIN_DENIED_REQUEST, 403);
	assert_non_null(strstr(rig_result(r, r->n_ids)->text, "'..' segments"));
	assert_int_equal(r->n_wants, 0);
	edge = rig_ask(r, &(struct rig_req){.path = "/keys"}); /* GET is a different request */
	(void)rig_expect(r, ORIGIN_WANT);
	(void)close(edge);
	rig_free(r);
	r = rig_start(NULL);
	rig_up_as(r, RIG_HOST, ORIGIN_HAS_SECRET, refusing_service);
	edge = rig_ask(r, &(struct rig_req){.method = "POST",
				  .path = "/list",
				  .headers = "content-type: application/json\n"});
	(void)rig_expect(r, ORIGIN_WANT);
	(void)close(edge);
	rig_free(r);
}

/* Some servers use this path. */
static void test_a_header_may_replace_the_path(void **state)
{
	static const char *const rows[] = {"x-original-url: /keys\n", "x-rewrite-url: /keys\n",
		"x_original_url: /keys\n", "x-rewrite-uri: /a\n", "x-original-uri: /a\n"};
	struct rig *r = rig_start(NULL);
	int edge;

	rig_up_as(r, RIG_HOST, ORIGIN_HAS_SECRET, refusing_service);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		edge = rig_ask(r, &(struct rig_req){.path = "/a", .headers = rows[i]});
		refused(r, edge, ORIGIN_DENIED_REQUEST, 403);
		assert_non_null(strstr(rig_result(r, r->n_ids)->text, "instead of the path"));
	}
	assert_int_equal(r->n_wants, 0);
	rig_free(r);
	/* no rule of this service is about paths */
	r = rig_new();
	edge = rig_ask(r, &(struct rig_req){.path = "/a", .headers = rows[0]});
	(void)rig_expect(r, ORIGIN_WANT);
	(void)close(edge);
	rig_free(r);
}

/* Regression ZW5: a server may merge trailers into its headers. The request is not completed. */
static void a_trailer_is_refused_as_its_header(void **state)
{
	static const char *const rows[] = {"x-amz-target: secretsmanager.GetSecretValue\n",
		"x-http-method-override: POST\n", "x-original-url: /keys\n"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rig *r = rig_start(NULL);
		struct rig_answer a;
		char body[64] = "";
		int edge;
		SSL *ssl;

		rig_up_as(r, RIG_HOST, ORIGIN_HAS_SECRET, refusing_service);
		edge = rig_ask(r,
			&(struct rig_req){.method = "PUT", .te = true, .body = HTTP_BODY_CHUNKED});
		rig_send_data(edge, "abc", 3);
		ssl = rig_serve(r);
		rig_give_value(r, RIG_VALUE);
		assert_true(rig_read_http(ssl, head, sizeof(head)));
		rig_send_end(edge, rows[i]);
		rig_read_answer(edge, &a);
		assert_int_equal(a.status, 403);
		assert_int_equal(rig_result(r, r->n_ids)->outcome, ORIGIN_DENIED_REQUEST);
		assert_false(rig_read_http(ssl, body, sizeof(body)));
		assert_null(strstr(body, "\r\n0\r\n"));
		rig_answer_done(&a);
		(void)close(edge);
		rig_hang_up(ssl);
		rig_free(r);
	}
}

static void test_methods_and_targets(void **state)
{
	static const struct rig_req rows[] = {
		{.method = "TRACE"},
		{.method = "trace"},
		{.method = "TRACK"},
		{.host = "other.example.com"},
		{.port = 8443},
		{.is_plain = true, .port = 80},
		{.is_plain = true},
	};
	struct rig *r = rig_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		refused(r, rig_ask(r, &rows[i]),
			rows[i].method ? ORIGIN_DENIED_METHOD : ORIGIN_BAD_REQUEST, 403);
	assert_int_equal(r->n_wants, 0);
	rig_free(r);
}

static void test_no_value_without_a_good_certificate(void **state)
{
	struct rig_cert other_ca = {0};
	const struct rig_cert_want rows[] = {
		{.san = "DNS:other.example.com"}, {.san = "DNS:*.com"},
		{.san = "DNS:a*.example.com"}, {.san = "DNS:*.api.example.com"},
		{.san = "DNS:api.example.com.evil.com"}, {.san = "IP:192.0.2.7"},
		{.san = "email:root@example.com"}, /* only the subject has the name */
		{.from_s = -86400, .to_s = -3600}, {.from_s = 3600, .to_s = 86400},
		{.is_self_signed = true}, {.issuer = &other_ca},
		{.issuer = &rig_good}, /* a leaf is not a CA */
	};
	struct rig *r = rig_new();

	rig_make_cert(&other_ca, &(struct rig_cert_want){.is_self_signed = true, .is_ca = true});
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int edge = rig_ask(r, &(struct rig_req){0});
		uint32_t want = rig_expect(r, ORIGIN_WANT);
		struct rig_cert cert;
		SSL *ssl;

		rig_make_cert(&cert, &rows[i]);
		ssl = rig_accept(rig_give_socket(r, want), &cert, NULL);
		if (ssl) { /* the server may regard the handshake as complete; no data follows */
			assert_false(rig_read_http(ssl, head, sizeof(head)));
			assert_int_equal(strlen(head), 0);
			rig_hang_up(ssl);
		}
		refused(r, edge, ORIGIN_BAD_CERT, 502);
		EVP_PKEY_free(cert.key);
		X509_free(cert.cert);
	}
	EVP_PKEY_free(other_ca.key);
	X509_free(other_ca.cert);
	assert_int_equal(r->n_needs, 0);
	rig_free(r);
}

static void test_a_wildcard_and_an_address_are_good_names(void **state)
{
	static const char *const hosts[] = {RIG_HOST, "127.0.0.1"};
	static const char *const names[] = {"DNS:*.example.com", "IP:127.0.0.1"};

	for (size_t i = 0; i < 2; i++) {
		struct rig *r = rig_start(NULL);
		struct rig_cert cert;
		SSL *ssl;
		int edge;

		rig_up(r, hosts[i], ORIGIN_HAS_SECRET);
		rig_make_cert(&cert, &(struct rig_cert_want){.san = names[i]});
		edge = rig_ask(r, &(struct rig_req){.host = hosts[i]});
		ssl = rig_accept(
			rig_give_socket(r, rig_expect(r, ORIGIN_WANT)), &cert, "\x08http/1.1");
		assert_non_null(ssl);
		/* no server name for an address */
		if (i == 0)
			assert_string_equal(
				SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name), RIG_HOST);
		else
			assert_null(SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name));
		rig_give_value(r, RIG_VALUE);
		assert_true(rig_read_http(ssl, head, sizeof(head)));
		finish(r, edge, ssl);
		rig_hang_up(ssl);
		EVP_PKEY_free(cert.key);
		X509_free(cert.cert);
		rig_free(r);
	}
}

/* A path that servers may interpret in two ways: a slot for certain paths does not apply. */
static void test_an_odd_path_has_no_slot_of_paths(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){.path = "/git/..%2fadmin"});
	SSL *ssl = rig_serve(r);

	rig_give_value(r, RIG_VALUE);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_non_null(strstr(head, "GET /git/..%2fadmin HTTP"));
	assert_non_null(strstr(head, BEARER));
	assert_null(strstr(head, "Basic"));
	finish(r, edge, ssl);
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_value_refused(void **state)
{
	const struct origin_value no = {.text = "the credential was removed"};
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){0});
	SSL *ssl = rig_serve(r);
	struct rig_answer a;
	uint32_t need = rig_expect(r, ORIGIN_NEED);

	assert_int_equal(origin_answer_need(r->keeper, need, &no, -1), 0);
	rig_read_answer(edge, &a);
	assert_int_equal(a.status, 502);
	assert_string_equal(a.reason, RIG_HOST ": the credential was removed");
	assert_int_equal(rig_result(r, 1)->outcome, ORIGIN_NO_VALUE);
	(void)close(edge);
	/* The next one requests it again, on the same connection, which has carried nothing. */
	edge = rig_ask(r, &(struct rig_req){0});
	rig_give_value(r, RIG_VALUE);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	finish(r, edge, ssl);
	assert_int_equal(r->n_wants, 1);
	rig_hang_up(ssl);
	rig_free(r);
}

/* The vault dies, or sends an invalid frame: nothing is sent. */
static void test_broken_values(void **state)
{
	static const char *const bad[] = {"", "short", "line\nbreak"};
	struct rig *r = rig_new();
	SSL *ssl = NULL;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const struct origin_value given = {.given = true};
		int edge = rig_ask(r, &(struct rig_req){0}), pair[2];

		if (!ssl)
			ssl = rig_serve(r);
		if (i == 2) { /* complete, but it would be a second header */
			rig_send_value(r, rig_expect(r, ORIGIN_NEED), bad[i], 1);
		} else {
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
			assert_int_equal(origin_answer_need(r->keeper, rig_expect(r, ORIGIN_NEED),
						 &given, pair[1]),
				0);
			(void)close(pair[1]);
			assert_int_equal(
				write(pair[0], bad[i], strlen(bad[i])), (ssize_t)strlen(bad[i]));
			(void)close(pair[0]);
		}
		refused(r, edge, ORIGIN_NO_VALUE, 502);
	}
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_a_value_that_has_run_out_is_asked_for_anew(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){0});
	SSL *ssl = rig_serve(r);

	rig_send_value(r, rig_expect(r, ORIGIN_NEED), "old-value", 1);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_non_null(strstr(head, "Bearer old-value"));
	finish(r, edge, ssl);
	(void)usleep(1100000);
	edge = rig_ask(r, &(struct rig_req){0});
	rig_give_value(r, "new-value");
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_non_null(strstr(head, "Bearer new-value"));
	finish(r, edge, ssl);
	rig_hang_up(ssl);
	rig_free(r);
}

/* Edge closes before the value arrives: the request is not sent. */
static void test_edge_closes_before_the_value_comes(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){0});
	SSL *ssl = rig_serve(r);
	uint32_t need = rig_expect(r, ORIGIN_NEED);

	(void)close(edge);
	rig_until_closed(r, 1);
	assert_int_equal(rig_result(r, 1)->outcome, ORIGIN_GONE);
	assert_false(rig_result(r, 1)->used);
	rig_send_value(r, need, RIG_VALUE, 0);
	/* the next request is the first one for the server */
	edge = rig_ask(r, &(struct rig_req){.path = "/second"});
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_int_equal(strncmp(head, "GET /second ", 12), 0);
	finish(r, edge, ssl);
	rig_hang_up(ssl);
	rig_free(r);
}

/* The server closes while the value is awaited: a new connection, verified again. */
static void test_server_closes_before_the_value_comes(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){0});
	SSL *ssl = rig_serve(r);
	uint32_t need = rig_expect(r, ORIGIN_NEED);

	rig_hang_up(ssl);
	ssl = rig_serve(r);
	rig_send_value(r, need, RIG_VALUE, 0);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_non_null(strstr(head, BEARER));
	finish(r, edge, ssl);
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_killed_between_release_and_send(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){0});
	SSL *ssl = rig_serve(r);
	uint32_t need = rig_expect(r, ORIGIN_NEED);
	struct rig_answer a;

	assert_int_equal(kill(r->pid, SIGSTOP), 0);
	rig_send_value(r, need, RIG_VALUE, 0);
	assert_int_equal(kill(r->pid, SIGKILL), 0);
	assert_int_equal(rig_exit(r), -SIGKILL);
	assert_false(rig_read_http(ssl, head, sizeof(head)));
	assert_int_equal(strlen(head), 0);
	rig_read_answer(edge, &a);
	assert_true(a.status == 0 && !a.ended);
	(void)close(edge);
	rig_hang_up(ssl);
	rig_free(r);
}

/* A redirect is an answer like any other. */
static void test_no_redirect_is_followed(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){0});
	SSL *ssl = rig_serve(r);
	struct rig_answer a;

	rig_give_value(r, RIG_VALUE);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	rig_write(ssl, "HTTP/1.1 302 Found\r\nlocation: https://evil.example/\r\nsbx-reason: "
		       "forged\r\nSBX-Other: 1\r\ncontent-length: 0\r\n\r\n");
	rig_read_answer(edge, &a);
	assert_int_equal(a.status, 302);
	assert_string_equal(a.headers, "location: https://evil.example/\n");
	assert_string_equal(a.reason, "");
	(void)close(edge);
	rig_until_closed(r, 1);
	assert_false(rig_next(r, 200));
	assert_int_equal(r->n_wants, 1);
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_no_connection(void **state)
{
	struct rig *r = rig_new();
	int edge = rig_ask(r, &(struct rig_req){0});

	rig_refuse_socket(r, rig_expect(r, ORIGIN_WANT), EGRESS_REFUSED, "connection refused");
	refused(r, edge, ORIGIN_NO_CONNECTION, 502);
	edge = rig_ask(r, &(struct rig_req){0});
	rig_refuse_socket(r, rig_expect(r, ORIGIN_WANT), EGRESS_TIMEOUT, "");
	refused(r, edge, ORIGIN_TIMEOUT, 504);
	/* not TLS at all */
	edge = rig_ask(r, &(struct rig_req){0});
	{
		int fd = rig_give_socket(r, rig_expect(r, ORIGIN_WANT));

		assert_int_equal(write(fd, "HTTP/1.1 200 OK\r\n\r\n", 19), 19);
		refused(r, edge, ORIGIN_NO_TLS, 502);
		(void)close(fd);
	}
	/* all waiting exchanges fail together, not one after the other */
	for (int i = 0; i < 3; i++)
		(void)rig_ask(r, &(struct rig_req){0});
	while (!r->seen[4].has_result || !r->seen[5].has_result || !r->seen[6].has_result) {
		if (rig_next(r, 1000))
			rig_refuse_socket(r, r->msg.id, EGRESS_REFUSED, "connection refused");
		assert_true(r->n_wants <= 6);
	}
	for (uint32_t id = 4; id <= 6; id++)
		assert_int_equal(rig_result(r, id)->outcome, ORIGIN_NO_CONNECTION);
	assert_int_equal(r->n_needs, 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_value_is_in_the_slot_and_the_guests_own_is_not),
		cmocka_unit_test(test_sentinels_are_removed_everywhere),
		cmocka_unit_test(test_without_a_value_nothing_is_added_and_nobody_elses_passes),
		cmocka_unit_test(test_a_foreign_credential_is_refused),
		cmocka_unit_test(test_a_request_that_creates_a_credential_is_refused),
		cmocka_unit_test(test_a_header_may_replace_the_path),
		cmocka_unit_test(a_trailer_is_refused_as_its_header),
		cmocka_unit_test(test_methods_and_targets),
		cmocka_unit_test(test_no_value_without_a_good_certificate),
		cmocka_unit_test(test_a_wildcard_and_an_address_are_good_names),
		cmocka_unit_test(test_an_odd_path_has_no_slot_of_paths),
		cmocka_unit_test(test_value_refused),
		cmocka_unit_test(test_broken_values),
		cmocka_unit_test(test_a_value_that_has_run_out_is_asked_for_anew),
		cmocka_unit_test(test_edge_closes_before_the_value_comes),
		cmocka_unit_test(test_server_closes_before_the_value_comes),
		cmocka_unit_test(test_killed_between_release_and_send),
		cmocka_unit_test(test_no_redirect_is_followed),
		cmocka_unit_test(test_no_connection),
	};

	rig_make_pki();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
