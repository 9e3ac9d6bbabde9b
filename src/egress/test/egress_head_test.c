/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about requests: sbx-egress decides again on what it is about to send. */
#include "egress_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"

#define HOST "origin.example.com"
#define ALLOW "policy 2\nallow network **:1-65535\n"
#define RULES ALLOW "allow http " HOST "/v1/** method GET\nend\n"
#define HEADER ALLOW "allow http " HOST "/** method GET header x-role=dev\nend\n"

static int listener = -1;

static int setup(void **state)
{
	rig_dns_clear();
	(void)rig_dns_add(HOST, RIG_PUBLIC);
	listener = rig_listen(80);
	return 0;
}

static int teardown(void **state)
{
	fd_close(&listener);
	return 0;
}

static struct http_req get(const char *method, const char *path)
{
	return (struct http_req){.method = slice_from_str(method),
		.host = slice_from_str(HOST),
		.port = 80,
		.path = slice_from_str(path)};
}

static void must_pass(struct rig *r, const struct http_req *req, const char *named)
{
	int fd = rig_open_named(r, req, named), upstream;
	char head[2048];

	rig_send_req(fd, req);
	rig_send_end(fd);
	upstream = rig_accept(listener, 60000);
	assert_true(upstream >= 0);
	rig_read_http(upstream, head, sizeof(head));
	(void)close(upstream);
	(void)close(fd);
	rig_until(r, r->seen[r->n_ids].closed);
}

static void must_fail(
	struct rig *r, const struct http_req *req, const char *named, enum egress_outcome outcome)
{
	int fd = rig_open_named(r, req, named);

	rig_send_req(fd, req);
	rig_send_end(fd);
	(void)rig_refused(r, fd, outcome, 403);
	assert_int_equal(rig_accept(listener, 0), -1);
}

static void a_request_that_rules_deny_is_not_sent(void **state)
{
	struct http_req good = get("GET", "/v1/x"), post = get("POST", "/v1/x"),
			other = get("GET", "/v2"), odd = get("GET", "/v1/../v2");
	struct http_header override = {
		slice_from_str("x-http-method-override"), slice_from_str("DELETE")};
	struct rig *r = rig_new();

	rig_up(r, RULES, NULL);
	must_pass(r, &good, "");
	must_fail(r, &post, "", EGRESS_DENIED_POLICY);
	must_fail(r, &other, "", EGRESS_DENIED_POLICY);
	must_fail(r, &odd, "", EGRESS_DENIED_POLICY);
	good.headers = (struct http_headers){.list = &override, .n = 1, .max = 1};
	must_fail(r, &good, "", EGRESS_DENIED_POLICY);
	rig_free(r);
}

/* The keeper sends a ticket only after the approval. A deny still wins here. */
static void what_a_person_has_approved_is_sent(void **state)
{
	struct http_req post = get("POST", "/v1/x"), denied = get("POST", "/secret");
	struct rig *r = rig_new();

	rig_up(r, ALLOW "ask http " HOST ":80/** method POST\ndeny http " HOST ":80/secret\nend\n",
		NULL);
	must_pass(r, &post, "");
	must_fail(r, &denied, "", EGRESS_DENIED_POLICY);
	rig_free(r);
}

static void headers_that_rules_name_are_in_the_ticket(void **state)
{
	struct http_header header = {slice_from_str("x-role"), slice_from_str("dev")};
	struct http_req req = get("GET", "/x");
	struct rig *r = rig_new();

	rig_up(r, HEADER, NULL);
	must_fail(r, &req, "", EGRESS_DENIED_POLICY);
	must_fail(r, &req, "x-role:dev\n", EGRESS_BAD_REQUEST);
	req.headers = (struct http_headers){.list = &header, .n = 1, .max = 1};
	must_fail(r, &req, "", EGRESS_BAD_REQUEST);
	must_pass(r, &req, "x-role:dev\n");
	header.value = slice_from_str("ops");
	must_fail(r, &req, "x-role:dev\n", EGRESS_BAD_REQUEST);
	must_fail(r, &req, "x-role:ops\n", EGRESS_DENIED_POLICY);
	rig_free(r);
}

/* A keeper that has a fault, or another policy: egress has its own copy of both. */
static void the_managed_policy_limits_requests_and_tunnels(void **state)
{
	struct http_req good = get("GET", "/v1/x"), admin = get("GET", "/v1/admin/x");
	struct rig *r = rig_new();
	int fd;

	rig_up(r, RULES, NULL);
	must_pass(r, &admin, "");
	rig_policies(r, RULES,
		"policy 2\nallow network **:1-65535\ndeny http " HOST
		":80/v1/admin/**\ndeny network far.example.com\nend\n");
	must_pass(r, &good, "");
	must_fail(r, &admin, "", EGRESS_DENIED_POLICY);
	fd = rig_connect(r, "far.example.com", 80);
	(void)rig_refused(r, fd, EGRESS_DENIED_POLICY, 403);
	/* It denies everything if it cannot be used, or if it is missing. */
	rig_policies(r, RULES, "policy 1\nallow network 10.0.0.0/8\nend\n");
	must_fail(r, &good, "", EGRESS_DENIED_POLICY);
	rig_policies(r, RULES, NULL);
	must_pass(r, &admin, "");
	rig_free(r);
}

/* The keeper intercepts such hosts; egress opens no tunnel to them even so. */
static void no_tunnel_leads_around_the_rules(void **state)
{
	struct rig *r = rig_new();
	struct rig_head head;
	int fd, upstream;

	rig_up(r, ALLOW "end\n", NULL);
	fd = rig_connect(r, HOST, 80);
	assert_int_equal(rig_result(r, r->n_ids)->outcome, EGRESS_CONNECTED);
	rig_read_head(fd, &head);
	upstream = rig_accept(listener, 60000);
	rig_passes(fd, upstream);
	rig_policy(r, RULES);
	assert_true(rig_is_ended(fd, 20000));
	(void)close(fd);
	(void)close(upstream);
	fd = rig_connect(r, HOST, 80);
	(void)rig_refused(r, fd, EGRESS_DENIED_POLICY, 403);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_request_that_rules_deny_is_not_sent, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_a_person_has_approved_is_sent, setup, teardown),
		cmocka_unit_test_setup_teardown(
			headers_that_rules_name_are_in_the_ticket, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_managed_policy_limits_requests_and_tunnels, setup, teardown),
		cmocka_unit_test_setup_teardown(no_tunnel_leads_around_the_rules, setup, teardown),
	};

	rig_enter_world();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
