/* SPDX-License-Identifier: Apache-2.0 */
/* Token endpoints: real tokens are sent to the vault only, and there is one refresh at a time. */
#include "line_h2_rig.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>
#include "lib/os/ipc/test/flight_rig.h"
#include "lib/os/jail/unsealed.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define TOKEN_PATH "/oauth/token"
#define S_ACCESS "dm-oat01-proxy-managed"
#define S_REFRESH "dm-ort01-proxy-managed"
#define ACCESS "oat-CANARY-access-71c2"
#define REFRESH "ort-CANARY-refresh-88d1"
#define OLD_REFRESH "ort-CANARY-before-55aa"
#define JSON "content-type: application/json\n"
#define FORM "content-type: application/x-www-form-urlencoded\n"
#define N_CLIENTS 20
#define TOKENS_ARE                                                                         \
	"{\"token_type\":\"Bearer\",\"access_token\":\"" ACCESS "\",\"expires_in\":28800," \
	"\"refresh_token\":\"" REFRESH "\",\"account\":{\"n\":12345678901234567890}}"
#define TOKENS_SEEN                                                                          \
	"{\"token_type\":\"Bearer\",\"access_token\":\"" S_ACCESS "\",\"expires_in\":28800," \
	"\"refresh_token\":\"" S_REFRESH "\",\"account\":{\"n\":12345678901234567890}}"
#define ASKS_REFRESH                                                                           \
	"{\"grant_type\":\"refresh_token\",\"refresh_token\":\"" S_REFRESH "\",\"client_id\":" \
	"\"c\"}"
#define ASKS_LOGIN "grant_type=authorization_code&code=one-time&code_verifier=v"

static const char service[] = "service 1\nname demo\nabout Demo\n"
			      "token api.example.com:443 " TOKEN_PATH "\n"
			      "field access access_token " S_ACCESS "\n"
			      "field refresh refresh_token " S_REFRESH "\n"
			      "field expires expires_in\nfield unsign id_token\n"
			      "slot api\nhost api.example.com:443\npath /v1/**\n"
			      "header authorization Bearer %s\nvalue access\nend\n";

/* The same at a path where the server of line_h2_rig.c echoes its input. */
static const char echo_service[] = "service 1\nname demo\nabout Demo\n"
				   "token api.example.com:443 /echo\n"
				   "field access access_token " S_ACCESS "\n"
				   "field refresh refresh_token " S_REFRESH "\n"
				   "slot api\nhost api.example.com:443\npath /v1/**\n"
				   "header authorization Bearer %s\nvalue access\nend\n";

static char head[8192], body[8192];

static struct rig *up(uint8_t has)
{
	struct rig *r = rig_start(NULL);

	rig_up_as(r, RIG_HOST, has, service);
	return r;
}

static int post(struct rig *r, const char *type, const char *content)
{
	size_t n = strlen(content);
	int edge = rig_ask(r, &(struct rig_req){.method = "POST",
				      .path = TOKEN_PATH,
				      .headers = type,
				      .body = HTTP_BODY_LENGTH,
				      .length = n});

	if (n)
		rig_send_data(edge, content, n);
	rig_send_end(edge, NULL);
	return edge;
}

static unsigned length_of(const char *text)
{
	const char *at = strstr(text, "content-length: ");

	return at ? (unsigned)strtoul(at + 16, NULL, 10) : 0;
}

/* The complete request, as received by the server. */
static void serve(SSL *ssl)
{
	unsigned n = 0, want;

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	want = length_of(head);
	assert_true(want < sizeof(body));
	while (n < want) {
		int got = SSL_read(ssl, body + n, (int)(want - n));

		assert_true(got > 0);
		n += (unsigned)got;
	}
	body[n] = '\0';
}

static void reply(SSL *ssl, const char *status, const char *more, const char *content)
{
	AUTO_FREE char *text = xasprintf("HTTP/1.1 %s\r\ncontent-type: application/json\r\n%s"
					 "content-length: %zu\r\n\r\n%s",
		status, more, strlen(content), content);

	rig_write(ssl, text);
}

/* Receives TOKENS with the frame in its pipe; returns the id. */
static uint32_t must_get_token(struct rig *r, enum origin_which which, const char *value)
{
	static uint8_t bytes[VAULT_FRAME_MAX];
	uint32_t id = rig_expect(r, ORIGIN_TOKENS);
	struct origin_tokens tokens;
	struct vault_frame frame;
	size_t n = 0;
	ssize_t got;

	assert_int_equal(origin_get_tokens(&r->msg, &tokens), 0);
	assert_int_equal(tokens.which, which);
	while ((got = read(r->msg.fd, bytes + n, sizeof(bytes) - n)) > 0)
		n += (size_t)got;
	assert_int_equal(got, 0);
	assert_int_equal(vault_frame_split(slice_of(bytes, n), &frame), 0);
	assert_string_equal(frame.name, which == ORIGIN_ACCESS ? "demo.access" : "demo.refresh");
	assert_true(slice_eq_str(frame.value, value));
	if (which == ORIGIN_ACCESS)
		assert_int_equal(tokens.expires_s, 28800);
	return id;
}

static void keep(struct rig *r, uint32_t id)
{
	assert_int_equal(
		origin_answer_tokens(r->keeper, id, &(struct origin_stored){.kept = true}), 0);
}

static void keep_both(struct rig *r)
{
	uint32_t refresh = must_get_token(r, ORIGIN_REFRESH, REFRESH);
	uint32_t access = must_get_token(r, ORIGIN_ACCESS, ACCESS);

	assert_int_equal(origin_ask_renew(r->keeper, ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH), 0);
	keep(r, refresh);
	keep(r, access);
}

static void must_answer(int edge, uint16_t status, const char *content)
{
	struct rig_answer a;

	rig_read_answer(edge, &a);
	if (a.status != status)
		fail_msg("%u %s", a.status, a.reason);
	assert_int_equal(rig_count(a.headers, "CANARY"), 0);
	if (content) {
		assert_true(a.ended);
		if (a.n_body != strlen(content) || memcmp(a.body, content, a.n_body) != 0)
			fail_msg("%.*s", (int)a.n_body, (const char *)a.body);
	}
	rig_answer_done(&a);
	(void)close(edge);
}

static void refused(struct rig *r, int edge, uint16_t status, enum origin_outcome outcome)
{
	must_answer(edge, status, NULL);
	assert_int_equal(rig_result(r, r->n_ids)->outcome, outcome);
	rig_until_closed(r, r->n_ids);
}

/* ---- logins ---- */

static void test_a_login(void **state)
{
	struct rig *r = up(0);
	int edge = post(r, FORM, ASKS_LOGIN);
	SSL *ssl = rig_serve(r);
	struct origin_result *result;

	serve(ssl);
	assert_string_equal(body, ASKS_LOGIN);
	assert_non_null(strstr(head, "POST " TOKEN_PATH " HTTP/1.1\r\n"));
	assert_non_null(strstr(head, "accept-encoding: identity\r\n"));
	reply(ssl, "200 OK", "x-copy: " ACCESS "\r\n", TOKENS_ARE);
	/* edge gets nothing before the vault has all tokens */
	keep_both(r);
	must_answer(edge, 200, TOKENS_SEEN);
	result = rig_result(r, 1);
	assert_int_equal(result->outcome, ORIGIN_DONE);
	assert_int_equal(result->status, 200);
	assert_false(result->used);
	assert_int_equal(r->n_needs, 0);
	/* and the next request has it */
	edge = rig_ask(r, &(struct rig_req){.path = "/v1/x",
				  .headers = "authorization: Bearer " S_ACCESS "\n"});
	rig_give_value(r, ACCESS);
	assert_int_equal(r->need.which, ORIGIN_ACCESS);
	assert_true(rig_read_http(ssl, head, sizeof(head)));
	assert_non_null(strstr(head, "authorization: Bearer " ACCESS "\r\n"));
	reply(ssl, "200 OK", "", "{}");
	must_answer(edge, 200, "{}");
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_edge_waits_for_the_vault(void **state)
{
	struct rig *r = up(0);
	int edge = post(r, FORM, ASKS_LOGIN);
	SSL *ssl = rig_serve(r);
	uint32_t refresh, access;
	uint8_t one;
	int pair[2];

	serve(ssl);
	/* another program of the user has too many descriptors in flight, for a while */
	flight_fill(pair);
	flight_limit(r->pid);
	reply(ssl, "200 OK", "", TOKENS_ARE);
	assert_false(rig_next(r, 300));
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	refresh = must_get_token(r, ORIGIN_REFRESH, REFRESH);
	access = must_get_token(r, ORIGIN_ACCESS, ACCESS);
	keep(r, refresh);
	(void)usleep(100000);
	assert_int_equal(recv(edge, &one, 1, MSG_DONTWAIT), -1);
	assert_int_equal(
		origin_answer_tokens(r->keeper, access, &(struct origin_stored){.text = "full"}),
		0);
	refused(r, edge, 502, ORIGIN_NO_VALUE);
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_pieces(void **state)
{
	struct rig *r = up(0);
	int edge = rig_ask(r, &(struct rig_req){.method = "POST",
				      .path = TOKEN_PATH,
				      .headers = FORM,
				      .body = HTTP_BODY_CHUNKED,
				      .expect = true});
	const char *text = ASKS_LOGIN;
	SSL *ssl;

	for (size_t i = 0; text[i]; i++)
		rig_send_data(edge, text + i, 1);
	rig_send_end(edge, NULL);
	ssl = rig_serve(r);
	serve(ssl);
	assert_string_equal(body, ASKS_LOGIN);
	assert_null(strstr(head, "expect"));
	rig_write(ssl, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
	for (text = TOKENS_ARE; *text; text++) {
		char chunk[16];

		(void)snprintf(chunk, sizeof(chunk), "1\r\n%c\r\n", *text);
		rig_write(ssl, chunk);
	}
	rig_write(ssl, "0\r\n\r\n");
	keep_both(r);
	must_answer(edge, 200, TOKENS_SEEN);
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_gzip(void **state)
{
	struct rig *r = up(0);
	int edge = post(r, FORM, ASKS_LOGIN);
	SSL *ssl = rig_serve(r);
	uint8_t packed[1024];
	z_stream z = {.next_in = (Bytef *)TOKENS_ARE,
		.avail_in = sizeof(TOKENS_ARE) - 1,
		.next_out = packed,
		.avail_out = sizeof(packed)};
	char top[256];

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	serve(ssl);
	(void)snprintf(top, sizeof(top),
		"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\netag: \"x\"\r\ncontent-length: "
		"%lu\r\n\r\n",
		z.total_out);
	rig_write(ssl, top);
	assert_int_equal(SSL_write(ssl, packed, (int)z.total_out), (int)z.total_out);
	(void)deflateEnd(&z);
	keep_both(r);
	must_answer(edge, 200, TOKENS_SEEN);
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_a_jwt(void **state)
{
	struct rig *r = up(0);
	int edge = post(r, FORM, ASKS_LOGIN);
	SSL *ssl = rig_serve(r);

	serve(ssl);
	reply(ssl, "200 OK", "",
		"{\"id_token\":\"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl\"}");
	must_answer(
		edge, 200, "{\"id_token\":\"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.proxymanaged\"}");
	rig_hang_up(ssl);
	rig_free(r);
}

/* ---- refreshes ---- */

static void test_a_refresh(void **state)
{
	struct rig *r = up(ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH);
	int edge = post(r, JSON, ASKS_REFRESH);
	SSL *ssl = rig_serve(r);
	struct origin_result *result;

	rig_give_value(r, OLD_REFRESH);
	assert_int_equal(r->need.which, ORIGIN_REFRESH);
	serve(ssl);
	assert_string_equal(body,
		"{\"grant_type\":\"refresh_token\",\"refresh_token\":\"" OLD_REFRESH
		"\",\"client_id\":\"c\"}");
	reply(ssl, "200 OK", "x-old: " OLD_REFRESH "\r\n", TOKENS_ARE);
	keep_both(r);
	must_answer(edge, 200, TOKENS_SEEN);
	result = rig_result(r, 1);
	assert_true(result->used);
	assert_string_equal(result->slot, "refresh");
	rig_until_closed(r, 1);
	/* so soon after it the server is not queried */
	edge = post(r, FORM, "refresh_token=" S_REFRESH "&grant_type=refresh_token");
	must_answer(edge, 200, TOKENS_SEEN);
	assert_false(rig_result(r, 2)->used);
	assert_int_equal(r->n_needs, 1);
	/* a login is independent of the cached refresh */
	edge = post(r, FORM, ASKS_LOGIN);
	serve(ssl);
	reply(ssl, "400 Bad Request", "", "{\"error\":\"x\"}");
	must_answer(edge, 400, "{\"error\":\"x\"}");
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_http2(void **state)
{
	struct rig *r = rig_start(NULL);
	int edge;
	pid_t pid;

	rig_up_as(r, RIG_HOST, ORIGIN_HAS_REFRESH, echo_service);
	edge = rig_ask(r, &(struct rig_req){.method = "POST",
				  .path = "/echo",
				  .headers = JSON,
				  .body = HTTP_BODY_LENGTH,
				  .length = sizeof(ASKS_REFRESH) - 1});
	rig_send_data(edge, ASKS_REFRESH, sizeof(ASKS_REFRESH) - 1);
	rig_send_end(edge, NULL);
	pid = h2_rig_serve(r, &(struct h2_rig_manner){0});
	rig_give_value(r, OLD_REFRESH);
	keep(r, must_get_token(r, ORIGIN_REFRESH, OLD_REFRESH));
	must_answer(edge, 200, ASKS_REFRESH);
	rig_free(r);
	h2_rig_end(pid);
}

static void test_what_has_expired_is_asked_for(void **state)
{
	struct rig *r = up(ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH);
	int edge = post(r, JSON, ASKS_REFRESH);
	SSL *ssl = rig_serve(r);

	rig_give_value(r, OLD_REFRESH);
	serve(ssl);
	reply(ssl, "200 OK", "", "{\"access_token\":\"short-CANARY\",\"expires_in\":1}");
	keep(r, rig_expect(r, ORIGIN_TOKENS));
	must_answer(edge, 200, "{\"access_token\":\"" S_ACCESS "\",\"expires_in\":1}");
	(void)usleep(1200000);
	edge = post(r, FORM, "grant_type=refresh_token&refresh_token=" S_REFRESH);
	serve(ssl);
	assert_string_equal(body, "grant_type=refresh_token&refresh_token=" OLD_REFRESH);
	reply(ssl, "200 OK", "", TOKENS_ARE);
	keep_both(r);
	must_answer(edge, 200, TOKENS_SEEN);
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_twenty_refreshes_are_one(void **state)
{
	struct rig *r = up(ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH);
	int edges[N_CLIENTS];
	SSL *ssl;

	for (size_t i = 0; i < N_CLIENTS; i++)
		edges[i] = post(r, JSON, ASKS_REFRESH);
	ssl = rig_serve(r);
	rig_give_value(r, OLD_REFRESH);
	serve(ssl);
	(void)usleep(50000);
	reply(ssl, "200 OK", "", TOKENS_ARE);
	keep_both(r);
	for (size_t i = 0; i < N_CLIENTS; i++) {
		must_answer(edges[i], 200, TOKENS_SEEN);
		rig_until_closed(r, (uint32_t)i + 1);
		assert_int_equal(r->seen[i + 1].result.used, i == 0);
	}
	assert_int_equal(r->n_wants, 1);
	assert_int_equal(r->n_needs, 1);
	assert_int_equal(SSL_pending(ssl), 0);
	rig_hang_up(ssl);
	rig_free(r);
}

/* All of them get the same answer. */
static void test_a_refused_refresh_is_shared(void **state)
{
	struct rig *r = up(ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH);
	int one = post(r, JSON, ASKS_REFRESH), two = post(r, JSON, ASKS_REFRESH);
	SSL *ssl = rig_serve(r);

	rig_give_value(r, OLD_REFRESH);
	serve(ssl);
	/* unchanged, with the credentials in it removed */
	reply(ssl, "400 Bad Request", "x-t: " OLD_REFRESH "\r\n",
		"{\"error\":\"invalid_grant\",\"you\":\"" OLD_REFRESH "\"}");
	must_answer(one, 400, "{\"error\":\"invalid_grant\",\"you\":\"**********************\"}");
	must_answer(two, 400, "{\"error\":\"invalid_grant\",\"you\":\"**********************\"}");
	assert_int_equal(rig_result(r, 1)->n_removed, 2);
	/* and nothing was cached */
	one = post(r, JSON, ASKS_REFRESH);
	serve(ssl);
	reply(ssl, "500 Oh", "", "no JSON at all");
	must_answer(one, 500, "no JSON at all");
	rig_hang_up(ssl);
	rig_free(r);
}

/* The server issues a new refresh token once: it is stored though no client waits any more. */
static void test_who_asked_goes_away(void **state)
{
	struct rig *r = up(ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH);
	int edge = post(r, JSON, ASKS_REFRESH);
	SSL *ssl = rig_serve(r);

	rig_give_value(r, OLD_REFRESH);
	serve(ssl);
	(void)close(edge);
	(void)usleep(50000);
	reply(ssl, "200 OK", "", TOKENS_ARE);
	keep_both(r);
	rig_until_closed(r, 1);
	edge = post(r, JSON, ASKS_REFRESH);
	must_answer(edge, 200, TOKENS_SEEN);
	rig_hang_up(ssl);
	rig_free(r);
}

/* The first of two disconnects before it was sent; the other one continues. */
static void test_the_next_one_goes_on(void **state)
{
	struct rig *r = up(ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH);
	int one = post(r, JSON, ASKS_REFRESH), two = post(r, JSON, ASKS_REFRESH);
	uint32_t want = rig_expect(r, ORIGIN_WANT);
	SSL *ssl;

	(void)close(one);
	rig_until_closed(r, 1);
	ssl = rig_accept(rig_give_socket(r, want), &rig_good, NULL);
	assert_non_null(ssl);
	rig_give_value(r, OLD_REFRESH);
	serve(ssl);
	reply(ssl, "200 OK", "", TOKENS_ARE);
	keep_both(r);
	must_answer(two, 200, TOKENS_SEEN);
	rig_hang_up(ssl);
	rig_free(r);
}

/* Counts a word in the readable memory of the process; -1: none is readable. */
static int count_in_memory(const struct rig *r, const char *word)
{
	char path[64], line[512];
	int found = 0, mem;
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)r->pid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)r->pid);
	maps = mem < 0 ? NULL : fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		AUTO_FREE uint8_t *p = NULL;
		unsigned long from, to;
		const uint8_t *at;
		ssize_t n;

		if (sscanf(line, "%lx-%lx", &from, &to) != 2 || to - from > 1UL << 28)
			continue;
		p = xmalloc(to - from);
		n = pread(mem, p, to - from, (off_t)from);
		at = p;
		while (n > 0 && (at = memmem(at, (size_t)(p + n - at), word, strlen(word)))) {
			found++;
			at++;
		}
	}
	if (maps)
		(void)fclose(maps);
	fd_close(&mem);
	return maps ? found : -1;
}

/* Not in freed memory, buffers or caches: only the vault has them. */
static void test_nothing_is_left_in_memory(void **state)
{
	struct rig *r = rig_start("--no-hidden-memory");
	SSL *ssl = NULL;
	int edge;

	rig_up_as(r, RIG_HOST, ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH, service);
	for (unsigned i = 0; i < 2; i++) {
		edge = i ? post(r, FORM, ASKS_LOGIN) : post(r, JSON, ASKS_REFRESH);
		ssl = ssl ? ssl : rig_serve(r);
		if (i == 0)
			rig_give_value(r, OLD_REFRESH);
		serve(ssl);
		/* the search finds it while it is in use */
		if (i == 0 && geteuid() == 0)
			assert_true(count_in_memory(r, OLD_REFRESH) > 0);
		reply(ssl, "200 OK", "", TOKENS_ARE);
		keep_both(r);
		must_answer(edge, 200, TOKENS_SEEN);
		rig_until_closed(r, i + 1);
	}
	print_message("found %d\n", count_in_memory(r, "-CANARY-"));
	assert_true(count_in_memory(r, "-CANARY-") <= 0);
	rig_hang_up(ssl);
	rig_free(r);
}

/* ---- denied requests ---- */

static void test_foreign_tokens(void **state)
{
	struct rig *r = up(ORIGIN_HAS_ACCESS | ORIGIN_HAS_REFRESH);
	int edge;

	refused(r, post(r, FORM, "grant_type=refresh_token&refresh_token=ort-of-an-attacker"), 403,
		ORIGIN_DENIED_FOREIGN);
	refused(r, post(r, JSON, "{\"grant_type\":\"refresh_token\",\"refresh_token\":\"x\"}"), 403,
		ORIGIN_DENIED_FOREIGN);
	refused(r, post(r, FORM, "grant_type=password&password=x"), 403, ORIGIN_BAD_REQUEST);
	refused(r, post(r, "content-type: text/plain\n", ASKS_LOGIN), 403, ORIGIN_BAD_REQUEST);
	refused(r, post(r, FORM "content-encoding: gzip\n", ASKS_LOGIN), 403, ORIGIN_BAD_REQUEST);
	edge = rig_ask(
		r, &(struct rig_req){.path = TOKEN_PATH, .query = "refresh_token=" S_REFRESH});
	refused(r, edge, 403, ORIGIN_DENIED_FOREIGN);
	assert_int_equal(r->n_wants, 0);
	rig_free(r);
	/* our placeholder, but no token exists */
	r = up(0);
	refused(r, post(r, JSON, ASKS_REFRESH), 502, ORIGIN_NO_VALUE);
	assert_int_equal(r->n_wants, 0);
	rig_free(r);
}

static void test_paths_that_may_be_the_endpoint(void **state)
{
	static const char *const paths[] = {"/oauth/token/", "/OAuth/Token", "/oauth//token",
		"/x/../oauth/token", "/oauth/%74oken", "/oauth%2ftoken", "/oauth/token;a=b",
		"/oauth;a=b/token", "/oauth/%2574oken", "/oauth/token%20", "/oauth/token.json",
		"/oauth/token%3Fx", "/oauth/token%3ba", "/oauth%255ctoken", "/oauth/token%2525252F",
		"/%6fauth/token", "/oauth/token/.", "//x/oauth/token", "/x/%252e%252e/oauth/token",
		"/oauth/token%09", "/a%25252525252574"};
	struct rig *r = up(0);

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int edge = rig_ask(r, &(struct rig_req){.path = paths[i]});

		refused(r, edge, 403, ORIGIN_BAD_REQUEST);
	}
	refused(r,
		rig_ask(r, &(struct rig_req){.path = "/x",
				   .headers = "x-rewrite-url: /oauth/token\n"}),
		403, ORIGIN_DENIED_REQUEST);
	assert_int_equal(r->n_wants, 0);
	rig_free(r);
}

static void test_answers_that_cannot_pass(void **state)
{
	static const char *const answers[] = {
		"{\"data\":{\"access_token\":\"" ACCESS "\"}}",
		"{\"access_token\":\"" ACCESS "\"",
		"access_token=" ACCESS,
		"{\"access_token\":[\"" ACCESS "\"]}",
		"[{\"access_token\":\"" ACCESS "\"}]",
	};
	struct rig *r = up(0);
	SSL *ssl = NULL;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		int edge = post(r, FORM, ASKS_LOGIN);

		ssl = ssl ? ssl : rig_serve(r);
		serve(ssl);
		reply(ssl, "200 OK", "", answers[i]);
		refused(r, edge, 502, ORIGIN_BAD_ANSWER);
	}
	/* tokens in an error */
	{
		int edge = post(r, FORM, ASKS_LOGIN);

		serve(ssl);
		reply(ssl, "400 Bad Request", "", TOKENS_ARE);
		refused(r, edge, 502, ORIGIN_BAD_ANSWER);
	}
	rig_hang_up(ssl);
	rig_free(r);
}

static void test_sizes_are_bounded(void **state)
{
	AUTO_FREE char *large = xcalloc(1, 200000);
	struct rig *r = up(0);
	int edge;
	SSL *ssl;

	memset(large, 'a', 17000);
	refused(r, post(r, FORM, large), 403, ORIGIN_BAD_REQUEST);
	edge = post(r, FORM, ASKS_LOGIN);
	ssl = rig_serve(r);
	serve(ssl);
	memset(large, ' ', 199999);
	large[0] = '{';
	rig_write(ssl, "HTTP/1.1 200 OK\r\ncontent-length: 199999\r\n\r\n");
	/* closed in the middle */
	(void)!SSL_write(ssl, large, 199999);
	refused(r, edge, 502, ORIGIN_BAD_ANSWER);
	rig_hang_up(ssl);
	rig_free(r);
}

/* Other paths are unchanged: streamed, and not searched for tokens. */
static void test_other_paths(void **state)
{
	struct rig *r = up(0);
	int edge = rig_ask(r, &(struct rig_req){.path = "/.well-known/oauth"});
	SSL *ssl = rig_serve(r);

	assert_true(rig_read_http(ssl, head, sizeof(head)));
	reply(ssl, "200 OK", "", "{\"access_token\":\"an example\"}");
	must_answer(edge, 200, "{\"access_token\":\"an example\"}");
	rig_hang_up(ssl);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_login),
		cmocka_unit_test(test_edge_waits_for_the_vault),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_a_jwt),
		cmocka_unit_test(test_a_refresh),
		cmocka_unit_test(test_http2),
		cmocka_unit_test(test_what_has_expired_is_asked_for),
		cmocka_unit_test(test_twenty_refreshes_are_one),
		cmocka_unit_test(test_a_refused_refresh_is_shared),
		cmocka_unit_test(test_who_asked_goes_away),
		cmocka_unit_test(test_the_next_one_goes_on),
		cmocka_unit_test(test_foreign_tokens),
		cmocka_unit_test(test_paths_that_may_be_the_endpoint),
		cmocka_unit_test(test_answers_that_cannot_pass),
		cmocka_unit_test(test_sizes_are_bounded),
		cmocka_unit_test(test_other_paths),
	};
	/* memory of the allocator of a real build: see lib/os/jail/unsealed.h */
	const struct CMUnitTest measured[] = {
		cmocka_unit_test(test_nothing_is_left_in_memory),
	};
	int n_failed;

	rig_make_pki();
	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (JAIL_SEALS)
		n_failed += cmocka_run_group_tests(measured, NULL, NULL);
	return n_failed;
}
