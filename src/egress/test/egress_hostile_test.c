/* SPDX-License-Identifier: Apache-2.0 */
/* A compromised or disappearing edge and keeper. */
#include "egress_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define ALLOW_ALL "policy 1\nallow network **:1-65535\nend\n"

static int listener = -1;

static int setup(void **state)
{
	rig_dns_clear();
	(void)rig_dns_add("origin.example.com", RIG_PUBLIC);
	listener = rig_listen(443);
	return 0;
}

static int teardown(void **state)
{
	fd_close(&listener);
	return 0;
}

/* No connection was made. */
static void assert_quiet(void)
{
	assert_true(rig_accept(listener, 50) < 0);
}

static void test_the_request_must_be_the_allowed_one(void **state)
{
	static const struct {
		const char *host;
		uint16_t port;
	} asked[] = {{"other.example.com", 443}, {"origin.example.com", 80},
		{"origin.example.com.", 443}, {"sub.origin.example.com", 443}, {RIG_PUBLIC, 443}};
	const struct http_req get = {.method = slice_from_str("GET"),
		.host = slice_from_str("origin.example.com"),
		.port = 443,
		.path = slice_from_str("/")};
	struct http_req tls = get;
	struct rig *r = rig_new();
	int fd;

	rig_up(r, ALLOW_ALL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		fd = rig_open(r, EGRESS_TUNNEL, "origin.example.com", 443);
		rig_send_connect(fd, asked[i].host, asked[i].port);
		(void)rig_refused(r, fd, EGRESS_BAD_REQUEST, 403);
	}
	fd = rig_open(r, EGRESS_TUNNEL, "origin.example.com", 443);
	rig_send_req(fd, &get);
	(void)rig_refused(r, fd, EGRESS_BAD_REQUEST, 403);
	fd = rig_open(r, EGRESS_HTTP, "origin.example.com", 443);
	rig_send_connect(fd, "origin.example.com", 443);
	(void)rig_refused(r, fd, EGRESS_BAD_REQUEST, 403);
	tls.scheme = HTTP_SCHEME_HTTPS;
	fd = rig_open_http(r, &tls);
	rig_send_req(fd, &tls);
	(void)rig_refused(r, fd, EGRESS_BAD_REQUEST, 403);
	/* an OPEN that is not canonical matches nothing, not even itself */
	fd = rig_open(r, EGRESS_TUNNEL, "0x7f.1", 443);
	rig_send_connect(fd, "127.0.0.1", 443);
	(void)rig_refused(r, fd, EGRESS_BAD_REQUEST, 403);
	assert_int_equal(rig_dns->n_queries, 0);
	assert_quiet();
	rig_free(r);
}

/* The keeper decided one request, and edge sends another one to the same host. */
static void test_only_the_decided_request_passes(void **state)
{
	static const struct {
		const char *method, *path, *query;
	} sent[] = {{"POST", "/a", "b=c"}, {"HEAD", "/a", "b=c"}, {"GET", "/b", "b=c"},
		{"GET", "/a/", "b=c"}, {"GET", "/%61", "b=c"}, {"GET", "/a", "b=d"},
		{"GET", "/a", ""}, {"GET", "/a", NULL}};
	const struct http_req decided = {.method = slice_from_str("GET"),
		.host = slice_from_str("origin.example.com"),
		.port = 443,
		.path = slice_from_str("/a"),
		.query = slice_from_str("b=c"),
		.has_query = true};
	struct rig *r = rig_new();

	rig_up(r, ALLOW_ALL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(sent); i++) {
		struct http_req req = decided;
		int fd = rig_open_http(r, &decided);

		req.method = slice_from_str(sent[i].method);
		req.path = slice_from_str(sent[i].path);
		req.has_query = sent[i].query != NULL;
		req.query = slice_from_str(sent[i].query ? sent[i].query : "");
		rig_send_req(fd, &req);
		(void)rig_refused(r, fd, EGRESS_BAD_REQUEST, 403);
	}
	assert_int_equal(rig_dns->n_queries, 0);
	assert_quiet();
	rig_free(r);
}

static void test_garbage_of_edge(void **state)
{
	static const uint8_t frames[][12] = {
		{2, 0, 0, 0, CANON_DATA, 1, 0, 0, 'x', 'x'},
		{2, 0, 0, 0, CANON_END, 1, 0, 0, 0, 0},
		{1, 0, 0, 0, CANON_RESET, 1, 0, 0, 1},
		{4, 0, 0, 0, CANON_N_KINDS, 1, 0, 0, 1, 0, 0, 0},
		{0, 0, 0, 0, CANON_HEAD, 1, 0, 0},
		{0xff, 0xff, 0xff, 0xff, CANON_HEAD, 1, 0, 0},
		{1, 0, 0, 0, CANON_HEAD, 0, 0, 0, 1},
		{1, 0, 0, 0, CANON_HEAD, 2, 0, 0, 1},
		{1, 0, 0, 0, CANON_HEAD, 1, 0, 0, 1},
		{1, 0, 0, 0, 77, 1, 0, 0, 1},
		{'G', 'E', 'T', ' ', '/', ' ', 'H', 'T', 'T', 'P', '/', '1'},
	};
	struct rig *r = rig_new();

	rig_up(r, ALLOW_ALL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
		int fd = rig_open(r, EGRESS_TUNNEL, "origin.example.com", 443);

		assert_int_equal(write(fd, frames[i], sizeof(frames[i])), sizeof(frames[i]));
		(void)rig_refused(r, fd, EGRESS_BAD_REQUEST, 403);
	}
	for (unsigned i = 0; i < 2; i++) { /* closed immediately, and within a head */
		int fd = rig_open(r, EGRESS_TUNNEL, "origin.example.com", 443);

		if (i)
			assert_int_equal(write(fd, "\x20\0\0\0\1\1\0\0xxx", 11), 11);
		(void)close(fd);
		assert_int_equal(rig_result(r, r->n_ids)->outcome, EGRESS_GONE);
		rig_until(r, r->seen[r->n_ids].closed);
	}
	assert_int_equal(rig_dns->n_queries, 0);
	assert_quiet();
	rig_tunnel(r, listener, "origin.example.com", RIG_PUBLIC);
	rig_free(r);
}

static void test_edge_goes_while_it_connects(void **state)
{
	struct rig *r = rig_new();
	int fd;

	rig_dns_add("slow.example.com", RIG_PUBLIC)->silent_a = true;
	rig_up(r, ALLOW_ALL, NULL);
	fd = rig_connect(r, "slow.example.com", 443);
	(void)usleep(100000);
	(void)close(fd);
	rig_until(r, r->seen[1].closed);
	assert_int_equal(rig_result(r, 1)->outcome, EGRESS_GONE);
	assert_quiet();
	rig_free(r);
}

static void test_what_the_keeper_must_not_say(void **state)
{
	static const struct egress_config none;
	struct egress_config bad = {.n_pins = 1,
		.pins = {{.host = "a.example.com", .port = 1, .addr = "0x7f.1", .addr_port = 1}}};
	struct egress_open open = {.host = "a.example.com", .port = 443};

	for (unsigned i = 0; i < 6; i++) {
		struct rig *r = rig_new();
		int fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		if (i != 0)
			assert_int_equal(egress_ask_config(r->keeper, &none), 0);
		if (i == 0 || i == 1)
			assert_int_equal(egress_ask_open(r->keeper, 1, &open, fds[1]), 0);
		if (i == 1) /* an id that is in use */
			assert_int_equal(egress_ask_open(r->keeper, 1, &open, fds[1]), 0);
		if (i == 2)
			(void)!egress_ask_config(
				r->keeper, &bad); /* egress may be gone before DIRECT */
		if (i == 3)
			assert_int_equal(chan_send_hello(r->keeper, "x"), 0);
		if (i == 4)
			assert_int_equal(ipc_send(r->keeper, EGRESS_OPEN, 1,
						 slice_of("\0\0\0\0\0", 5), fds[1]),
				0);
		if (i == 5)
			assert_int_equal(ipc_send(r->keeper, 99, 0, slice_of(NULL, 0), -1), 0);
		assert_int_equal(rig_exit(r), 4);
		(void)close(fds[0]);
		(void)close(fds[1]);
		rig_free(r);
	}
}

static void test_the_keeper_goes_away(void **state)
{
	struct rig *r = rig_new();
	struct rig_head head;
	int fd, upstream;

	rig_up(r, ALLOW_ALL, NULL);
	fd = rig_connect(r, "origin.example.com", 443);
	rig_read_head(fd, &head);
	upstream = rig_accept(listener, 60000);
	rig_passes(fd, upstream);
	fd_close(&r->keeper);
	assert_int_equal(rig_exit(r), 0);
	assert_true(rig_is_ended(fd, 1000) && rig_is_ended(upstream, 1000));
	(void)close(fd);
	(void)close(upstream);
	rig_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_request_must_be_the_allowed_one),
		TEST(test_only_the_decided_request_passes),
		TEST(test_garbage_of_edge),
		TEST(test_edge_goes_while_it_connects),
		TEST(test_what_the_keeper_must_not_say),
		TEST(test_the_keeper_goes_away),
	};

	rig_enter_world();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
