/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS 5, targets without the proxy, and a proxy that cannot be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "egress_rig.h"
#include "lib/base/clock.h"

#define PROXY "proxy.corp.example.com"
#define PROXY_ADDR "10.9.8.7"
#define ALLOW_ALL "policy 1\nallow network **:1-65535\nend\n"

static int listener = -1;

static int setup(void **state)
{
	rig_dns_clear();
	listener = rig_listen(1080);
	return listener < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	fd_close(&listener);
	return 0;
}

static const struct egress_config through_socks = {
	.proxy = EGRESS_PROXY_SOCKS, .proxy_host = PROXY, .proxy_port = 1080};

static struct rig *rig_with(const struct egress_config *config)
{
	struct rig *r = rig_new();

	(void)rig_dns_add(PROXY, PROXY_ADDR);
	rig_up(r, ALLOW_ALL, config);
	return r;
}

static void say(int fd, const char *bytes, size_t n)
{
	assert_int_equal(fd_write_all(fd, bytes, n), 0);
}

#define SAY(fd, text) say(fd, text, sizeof(text) - 1)

static void must_read(int fd, const char *bytes, size_t n)
{
	char buf[512];

	assert_true(n <= sizeof(buf));
	rig_read_all(fd, buf, n);
	assert_memory_equal(buf, bytes, n);
}

#define MUST_READ(fd, text) must_read(fd, text, sizeof(text) - 1)

/* The proxy's side, up to the request. */
static int take_hello(void)
{
	int proxy = rig_accept(listener, 60000);

	assert_true(proxy >= 0);
	MUST_READ(proxy, "\5\1\0");
	SAY(proxy, "\5\0");
	return proxy;
}

#define OPENED "\5\0\0\1\x0a\1\1\1\0\x50"

static void a_tunnel_has_its_name_resolved_by_the_proxy(void **state)
{
	struct rig *r = rig_with(&through_socks);
	int fd = rig_connect(r, "far.example.com", 443), proxy = take_hello();
	struct rig_head answer;

	MUST_READ(proxy, "\5\1\0\3\x0f"
			 "far.example.com\1\xbb");
	assert_false(r->seen[1].has_result);
	SAY(proxy, OPENED "first");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 200);
	MUST_READ(fd, "first");
	rig_passes(fd, proxy);
	assert_string_equal(rig_result(r, 1)->addr, PROXY_ADDR);
	(void)close(fd);
	(void)close(proxy);
	assert_int_equal(rig_dns->n_queries, 2); /* of the proxy's own name */
	rig_free(r);
}

static void a_connection_that_is_passed_on_loses_no_byte_in_pieces(void **state)
{
	static const char reply[] = OPENED "first";
	struct rig *r = rig_with(&through_socks);

	for (size_t cut = 1; cut < sizeof(reply) - 1; cut++) {
		int fd, proxy;

		rig_open_socket(r, "93.184.216.34", 8443);
		proxy = take_hello();
		MUST_READ(proxy, "\5\1\0\1\x5d\xb8\xd8\x22\x20\xfb");
		say(proxy, reply, cut);
		(void)usleep(2000);
		say(proxy, reply + cut, sizeof(reply) - 1 - cut);
		assert_int_equal(rig_socket(r, &fd)->outcome, EGRESS_CONNECTED);
		assert_int_equal(fd_set_nonblock(fd, false), 0);
		MUST_READ(fd, "first");
		(void)close(fd);
		(void)close(proxy);
	}
	rig_free(r);
}

static void a_request_is_sent_as_to_a_server(void **state)
{
	const struct http_req req = {.method = slice_from_str("GET"),
		.scheme = HTTP_SCHEME_HTTP,
		.host = slice_from_str("far.example.com"),
		.port = 80,
		.path = slice_from_str("/x")};
	struct rig *r = rig_with(&through_socks);
	int fd = rig_open_http(r, &req), proxy;
	struct rig_head answer;
	char head[2048];

	rig_send_req(fd, &req);
	proxy = take_hello();
	MUST_READ(proxy, "\5\1\0\3\x0f"
			 "far.example.com\0\x50");
	SAY(proxy, OPENED);
	rig_read_http(proxy, head, sizeof(head));
	assert_string_equal(head, "GET /x HTTP/1.1\r\nhost: far.example.com\r\n\r\n");
	/* a server's 407 is not the proxy's */
	SAY(proxy, "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 407);
	assert_int_equal(rig_result(r, 1)->outcome, EGRESS_CONNECTED);
	(void)close(fd);
	(void)close(proxy);
	rig_free(r);
}

static void refusals_name_the_proxy_and_the_reason(void **state)
{
	static const struct {
		const char *hello;
		size_t n_hello;
		const char *reply;
		size_t n_reply;
		enum egress_outcome outcome;
		const char *why;
	} rows[] = {
		{"\5\xff", 2, "", 0, EGRESS_PROXY_LOGIN, "login required"},
		{"\5\2", 2, "", 0, EGRESS_PROXY_DOWN, "is not SOCKS 5"},
		{"HTTP/1.1 400 Bad\r\n", 18, "", 0, EGRESS_PROXY_DOWN, "is not SOCKS 5"},
		{"", 0, "", 0, EGRESS_PROXY_DOWN, "closed without a response"},
		{"\5\0", 2, "\5\2\0\1\0\0\0\0\0\0", 10, EGRESS_PROXY_REFUSED,
			"refused far.example.com, port 443: denied by the rules"},
		{"\5\0", 2, "\5\4\0\1\0\0\0\0\0\0", 10, EGRESS_PROXY_REFUSED, "host unreachable"},
		{"\5\0", 2, "\5\0\0\1\0\0", 6, EGRESS_PROXY_DOWN, "closed without a response"},
	};
	struct rig *r = rig_with(&through_socks);
	unsigned n_fds = rig_n_fds(r);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int fd = rig_connect(r, "far.example.com", 443);
		int proxy = rig_accept(listener, 60000);
		struct rig_head answer;

		MUST_READ(proxy, "\5\1\0");
		say(proxy, rows[i].hello, rows[i].n_hello);
		say(proxy, rows[i].reply, rows[i].n_reply);
		(void)shutdown(proxy, SHUT_WR);
		rig_read_head(fd, &answer);
		assert_int_equal(rig_result(r, r->n_ids)->outcome, rows[i].outcome);
		assert_int_equal(answer.status, 502);
		assert_non_null(strstr(answer.reason, "upstream proxy " PROXY ": "));
		if (!strstr(answer.reason, rows[i].why))
			fail_msg("row %zu: %s", i, answer.reason);
		(void)close(fd);
		(void)close(proxy);
	}
	assert_true(rig_n_fds(r) <= n_fds + 2); /* the resolver's */
	rig_free(r);
}

/* The same as with an HTTP proxy: the proxy may be on this host. */
static void internal_addresses_and_localhost_do_not_reach_the_proxy(void **state)
{
	static const char *const hosts[] = {
		"10.0.0.1", "127.0.0.1", "169.254.169.254", "localhost", "db.localhost", "::1"};
	struct rig *r = rig_with(&through_socks);

	rig_policy(r, "policy 1\nallow network **\nend\n");
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		int fd = rig_connect(r, hosts[i], 443);
		enum egress_outcome outcome = rig_result(r, r->n_ids)->outcome;

		assert_true(outcome == EGRESS_DENIED_ADDRESS || outcome == EGRESS_DENIED_POLICY);
		(void)close(fd);
	}
	assert_true(rig_accept(listener, 50) < 0);
	rig_free(r);
}

/* A name that is reached without the proxy has its addresses checked, as without any proxy. */
static void direct_names_are_resolved_and_checked_here(void **state)
{
	static const struct egress_config config = {.proxy = EGRESS_PROXY_SOCKS,
		.proxy_host = PROXY,
		.proxy_port = 443, /* where the listener is not */
		.n_direct = 2,
		.direct = {{.host = "corp.example", .is_below = true, .port = 1080},
			{.n = 4, .addr = {93, 184}, .prefix = 16}}};
	struct rig *r = rig_with(&config);
	int fd, server;

	(void)rig_dns_add("git.corp.example", RIG_PUBLIC);
	(void)rig_dns_add("inside.corp.example", "10.1.2.3");
	rig_policy(r, "policy 1\nallow network **:1-65535\nend\n");
	fd = rig_connect(r, "git.corp.example", 1080);
	server = rig_accept(listener, 60000);
	assert_true(server >= 0);
	assert_int_equal(rig_result(r, r->n_ids)->outcome, EGRESS_CONNECTED);
	assert_string_equal(rig_result(r, r->n_ids)->addr, RIG_PUBLIC);
	(void)close(fd);
	(void)close(server);
	fd = rig_connect(r, RIG_PUBLIC, 1080);
	server = rig_accept(listener, 60000);
	assert_true(server >= 0);
	(void)close(fd);
	(void)close(server);
	fd = rig_connect(r, "inside.corp.example", 1080);
	assert_int_equal(rig_result(r, r->n_ids)->outcome, EGRESS_DENIED_ADDRESS);
	(void)close(fd);
	/* another port goes to the proxy, where nothing listens */
	(void)rig_refused(r, rig_connect(r, "git.corp.example", 444), EGRESS_PROXY_DOWN, 502);
	rig_free(r);
}

static void a_407_to_a_request_is_not_the_guests(void **state)
{
	static const struct egress_config config = {.proxy_host = PROXY, .proxy_port = 1080};
	const struct http_req req = {.method = slice_from_str("GET"),
		.scheme = HTTP_SCHEME_HTTP,
		.host = slice_from_str("far.example.com"),
		.port = 80,
		.path = slice_from_str("/x")};
	struct rig *r = rig_with(&config);
	int fd = rig_open_http(r, &req), proxy;
	struct rig_head answer;
	char head[2048];

	rig_send_req(fd, &req);
	proxy = rig_accept(listener, 60000);
	rig_read_http(proxy, head, sizeof(head));
	SAY(proxy, "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\n"
		   "Content-Length: 0\r\n\r\n");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 502);
	assert_non_null(strstr(answer.reason, "upstream proxy " PROXY ": login required"));
	assert_int_equal(rig_result(r, 1)->outcome, EGRESS_PROXY_LOGIN);
	(void)close(fd);
	(void)close(proxy);
	rig_free(r);
}

/* ---- logins, which the keeper has the vault write ---- */

/* Waits for LOGIN; returns the connection, and writes the login there as the vault does. */
static int take_login(struct rig *r, const char *login)
{
	int fd;

	rig_until(r, r->seen[r->n_ids].login);
	fd = r->seen[r->n_ids].login;
	assert_false(r->seen[r->n_ids].has_result);
	assert_int_equal(send(fd, login, strlen(login), 0), (ssize_t)strlen(login));
	(void)close(fd);
	r->seen[r->n_ids].login = 0;
	return fd;
}

static const struct egress_config http_login = {
	.proxy_host = PROXY, .proxy_port = 1080, .proxy_user = "alice"};
static const struct egress_config socks_login = {.proxy = EGRESS_PROXY_SOCKS,
	.proxy_host = PROXY,
	.proxy_port = 1080,
	.proxy_user = "alice"};

static void the_login_is_in_the_head_of_connect_and_of_a_request(void **state)
{
	const struct http_req req = {.method = slice_from_str("GET"),
		.host = slice_from_str("far.example.com"),
		.port = 80,
		.path = slice_from_str("/x")};
	struct rig *r = rig_with(&http_login);
	int fd = rig_connect(r, "far.example.com", 443), proxy = rig_accept(listener, 60000);
	struct rig_head answer;
	char head[2048];

	(void)take_login(r, "WFla");
	assert_int_equal(egress_ask_logged(r->keeper, r->n_ids, ""), 0);
	rig_read_http(proxy, head, sizeof(head));
	assert_string_equal(head, "CONNECT far.example.com:443 HTTP/1.1\r\n"
				  "proxy-authorization: Basic WFla\r\n"
				  "host: far.example.com:443\r\n\r\n");
	SAY(proxy, "HTTP/1.1 200 OK\r\n\r\nfirst");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 200);
	MUST_READ(fd, "first");
	rig_passes(fd, proxy);
	(void)close(fd);
	(void)close(proxy);

	fd = rig_open_http(r, &req);
	rig_send_req(fd, &req);
	proxy = rig_accept(listener, 60000);
	(void)take_login(r, "WFla");
	assert_int_equal(egress_ask_logged(r->keeper, r->n_ids, ""), 0);
	rig_send_end(fd);
	rig_read_http(proxy, head, sizeof(head));
	assert_string_equal(head, "GET http://far.example.com/x HTTP/1.1\r\n"
				  "proxy-authorization: Basic WFla\r\n"
				  "host: far.example.com\r\n\r\n");
	SAY(proxy, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
	rig_read_head(fd, &answer);
	assert_int_equal(answer.status, 200);
	(void)close(fd);
	(void)close(proxy);
	rig_free(r);
}

static void the_login_of_socks_comes_when_the_proxy_selects_it(void **state)
{
	struct rig *r = rig_with(&socks_login);
	int fd, proxy;

	rig_open_socket(r, "far.example.com", 443);
	proxy = rig_accept(listener, 60000);
	MUST_READ(proxy, "\5\2\0\2");
	SAY(proxy, "\5\2");
	(void)take_login(r, "LOGIN");
	MUST_READ(proxy, "LOGIN");
	assert_int_equal(egress_ask_logged(r->keeper, r->n_ids, ""), 0);
	SAY(proxy, "\1\0");
	MUST_READ(proxy, "\5\1\0\3\x0f"
			 "far.example.com\1\xbb");
	SAY(proxy, OPENED "first");
	assert_int_equal(rig_socket(r, &fd)->outcome, EGRESS_CONNECTED);
	assert_int_equal(fd_set_nonblock(fd, false), 0);
	MUST_READ(fd, "first");
	(void)close(fd);
	(void)close(proxy);
	rig_free(r);
}

static void a_login_that_is_missing_or_refused_is_named(void **state)
{
	struct rig *r = rig_with(&http_login);
	int fd = rig_connect(r, "far.example.com", 443), proxy = rig_accept(listener, 60000);
	struct egress_result *result;
	struct rig_head answer;
	char head[2048];

	(void)take_login(r, "");
	assert_int_equal(egress_ask_logged(r->keeper, r->n_ids, "no password is stored"), 0);
	result = rig_refused(r, fd, EGRESS_PROXY_LOGIN, 502);
	assert_string_equal(
		result->text, "upstream proxy " PROXY ": no login: no password is stored");
	(void)close(proxy);

	fd = rig_connect(r, "far.example.com", 443);
	proxy = rig_accept(listener, 60000);
	(void)take_login(r, "WFla");
	assert_int_equal(egress_ask_logged(r->keeper, r->n_ids, ""), 0);
	rig_read_http(proxy, head, sizeof(head));
	SAY(proxy, "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
	rig_read_head(fd, &answer);
	assert_non_null(strstr(answer.reason, "wrong user or password (407)"));
	assert_int_equal(rig_result(r, r->n_ids)->outcome, EGRESS_PROXY_LOGIN);
	(void)close(fd);
	(void)close(proxy);

	/* an exchange that ends meanwhile, and its late answer */
	fd = rig_connect(r, "far.example.com", 443);
	proxy = rig_accept(listener, 60000);
	rig_until(r, r->seen[r->n_ids].login);
	(void)close(r->seen[r->n_ids].login);
	(void)close(fd);
	rig_until(r, r->seen[r->n_ids].closed);
	assert_int_equal(egress_ask_logged(r->keeper, r->n_ids, ""), 0);
	(void)close(proxy);
	fd = rig_connect(r, "far.example.com", 443);
	proxy = rig_accept(listener, 60000);
	(void)take_login(r, "WFla");
	(void)close(fd);
	(void)close(proxy);
	rig_free(r);
}

static void a_proxy_that_is_away_is_named(void **state)
{
	static const struct egress_config gone = {.proxy_host = PROXY, .proxy_port = 9};
	static const struct egress_config unknown = {.proxy_host = "no.example", .proxy_port = 9};
	struct rig *r = rig_with(&gone);
	struct egress_result *result;

	result = rig_refused(r, rig_connect(r, "far.example.com", 443), EGRESS_PROXY_DOWN, 502);
	assert_non_null(strstr(result->text,
		"upstream proxy " PROXY ", port 9 (" PROXY_ADDR "): connection refused"));
	rig_free(r);
	r = rig_with(&unknown);
	result = rig_refused(r, rig_connect(r, "far.example.com", 443), EGRESS_PROXY_DOWN, 502);
	assert_string_equal(result->text, "upstream proxy no.example: the name does not exist");
	rig_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tunnel_has_its_name_resolved_by_the_proxy),
		TEST(a_connection_that_is_passed_on_loses_no_byte_in_pieces),
		TEST(a_request_is_sent_as_to_a_server),
		TEST(refusals_name_the_proxy_and_the_reason),
		TEST(internal_addresses_and_localhost_do_not_reach_the_proxy),
		TEST(direct_names_are_resolved_and_checked_here),
		TEST(a_407_to_a_request_is_not_the_guests),
		TEST(the_login_is_in_the_head_of_connect_and_of_a_request),
		TEST(the_login_of_socks_comes_when_the_proxy_selects_it),
		TEST(a_login_that_is_missing_or_refused_is_named),
		TEST(a_proxy_that_is_away_is_named),
	};

	rig_enter_world();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
