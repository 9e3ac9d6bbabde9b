/* SPDX-License-Identifier: Apache-2.0 */
/* What is bound to a credential: opened, refused in plain text, and named in the log. */
#include "lib/rules/gate/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/rules/audit/audit_read.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/gate/test/gate_free.h"
#include "lib/rules/policy/test/policy_text.h"

#define ID "0123456789ab"
#define NOW 1000000
#define USE_HTTPS "api.example is intercepted in this sandbox: use https"

static char dir[64];
static struct audit_key *key;
static struct audit *audit;
static struct gate *gate;
static struct edge_verdict verdict;

static const struct gate_binding bound = {.credential = "demo", .has_host = true};
static const struct gate_binding other_port = {.has_host = true};
static const struct gate_binding none;

static int up(void **state)
{
	struct audit_options o = {.dir = dir, .sandbox = ID, .name = "demo"};
	static const char policy[] =
		"policy 1\nallow network api.example:1-9999 id r1\nallow network 10.0.0.0/8\nend\n";

	(void)snprintf(dir, sizeof(dir), "/tmp/gate_cred_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(audit_key_load(dir, &key, NULL), 0);
	o.key = key;
	assert_int_equal(audit_open(&o, &audit, NULL), 0);
	gate = gate_new("demo", audit);
	gate_set_policy(gate, policy_load(slice_from_str(policy), "policy", "demo"));
	return 0;
}

static int down(void **state)
{
	AUTO_FREE char *rm = xasprintf("rm -rf %s", dir);

	gate_free(gate);
	(void)audit_close(audit, NULL);
	audit_key_free(key);
	return system(rm);
}

struct last {
	unsigned n;
	char text[1024];
};

static int see(void *arg, const struct audit_record *rec, struct slice line)
{
	struct last *last = arg;
	const struct audit_event *ev = &rec->ev;

	if (ev->kind < AUDIT_KIND_DECISION)
		return 0;
	last->n++;
	(void)snprintf(last->text, sizeof(last->text),
		"%s %s %.*s %.*s %.*s:%llu (%.*s) [%.*s] {%.*s} %.*s", audit_kind_name(ev->kind),
		audit_verdict_name(ev->decision), (int)ev->action.n, ev->action.p, (int)ev->type.n,
		ev->type.p, (int)ev->host.n, ev->host.p, (unsigned long long)ev->port,
		(int)ev->path.n, ev->path.p, (int)ev->op.n, ev->op.p, (int)ev->rule.n, ev->rule.p,
		(int)ev->reason.n, ev->reason.p);
	return 0;
}

static void must_have_recorded(const char *text)
{
	struct last last = {0};
	struct audit_expect expect = {
		.pub = audit_key_pub(key), .sandbox = ID, .fn = see, .arg = &last};
	struct audit_reader *rd = NULL;

	assert_int_equal(audit_reader_open(dir, ID, &expect, &rd, NULL), 0);
	assert_true(audit_reader_pump(rd, NULL) >= 0);
	audit_reader_close(rd);
	if (!strstr(last.text, text))
		fail_msg("'%s' is not in '%s'", text, last.text);
}

static struct edge_ask make_ask(enum edge_ask_kind kind, uint16_t port, const char *method)
{
	struct edge_ask ask = {.kind = kind, .host = "api.example", .port = port};

	(void)!str_copy(ask.method, sizeof(ask.method), method);
	if (method[0])
		(void)!str_copy(ask.target, sizeof(ask.target), "/v1");
	return ask;
}

static bool decide(const struct edge_ask *ask, const struct gate_binding *b)
{
	gate_decide_bound(gate, ask, b, NOW, &verdict);
	assert_false(verdict.opened && !verdict.allowed);
	return verdict.allowed;
}

static void a_tunnel_to_what_is_bound_is_opened(void **state)
{
	struct edge_ask ask = make_ask(EDGE_ASK_TUNNEL, 443, "");

	assert_true(decide(&ask, &bound));
	assert_true(verdict.opened);
	must_have_recorded("decision allow  https api.example:443 (forward) [] {r1} with the "
			   "credential demo: ");
	assert_true(decide(&ask, &none));
	assert_false(verdict.opened);
	must_have_recorded("decision allow  https api.example:443 (forward-bypass) [] {r1} ");
	assert_true(decide(&ask, NULL));
	assert_false(verdict.opened);
	assert_true(decide(&ask, &other_port));
	assert_false(verdict.opened);
	ask.port = 22; /* ssh to a host with a credential on 443 */
	assert_true(decide(&ask, &other_port));
}

/* Front ends of vendors answer on more ports than 443, and a tunnel there would be seen by
 * nobody. */
static void a_guarded_host_has_no_tunnel_beside(void **state)
{
	static const struct gate_binding guarded = {.has_host = true, .is_guarded = true};
	static const struct gate_binding both = {
		.credential = "demo", .has_host = true, .is_guarded = true};
	struct edge_ask ask = make_ask(EDGE_ASK_TUNNEL, 8443, "");

	assert_false(decide(&ask, &guarded));
	assert_string_equal(verdict.reason,
		"api.example is intercepted in this sandbox, and cannot be on this port");
	assert_string_equal(verdict.rule, "");
	assert_true(verdict.no_rule_helps);
	must_have_recorded("decision deny  tcp api.example:8443 (forward-bypass) [] {} api.example "
			   "is intercepted");
	ask.via = EDGE_VIA_TRANSPARENT;
	ask.proto = EDGE_PROTO_TLS;
	assert_false(decide(&ask, &guarded));
	ask = make_ask(EDGE_ASK_TUNNEL, 443, "");
	assert_true(decide(&ask, &both));
	assert_true(verdict.opened);
}

/* The rule comes first: a credential allows nothing. */
static void what_no_rule_allows_stays_refused(void **state)
{
	struct edge_ask ask = make_ask(EDGE_ASK_TUNNEL, 443, "");

	(void)!str_copy(ask.host, sizeof(ask.host), "evil.example");
	assert_false(decide(&ask, &bound));
	ask = make_ask(EDGE_ASK_HTTP, 10443, "GET");
	ask.tls = true;
	assert_false(decide(&ask, &bound));
	ask = make_ask(EDGE_ASK_TUNNEL, 443, "");
	(void)!str_copy(ask.fault, sizeof(ask.fault), "names do not agree");
	assert_false(decide(&ask, &bound));
}

static void plain_text_to_such_a_host_is_refused(void **state)
{
	struct edge_ask ask = make_ask(EDGE_ASK_HTTP, 80, "GET");

	assert_false(decide(&ask, &other_port));
	assert_string_equal(verdict.reason, USE_HTTPS);
	assert_string_equal(verdict.rule, "");
	must_have_recorded("decision deny  http api.example:80 (forward) [GET /v1] {} " USE_HTTPS);
	ask.port = 8080;
	assert_false(decide(&ask, &other_port));
	ask.port = 443; /* in the clear to the very port */
	assert_false(decide(&ask, &bound));
	assert_string_equal(verdict.reason, USE_HTTPS);
	ask = make_ask(EDGE_ASK_TUNNEL, 80, "");
	assert_false(decide(&ask, &other_port));
	ask = make_ask(EDGE_ASK_TUNNEL, 8080, "");
	ask.via = EDGE_VIA_TRANSPARENT;
	ask.proto = EDGE_PROTO_HTTP;
	assert_false(decide(&ask, &other_port));
	ask = make_ask(EDGE_ASK_HTTP, 80, "GET");
	assert_true(decide(&ask, &none));
}

static void a_request_in_opened_tls_needs_its_binding(void **state)
{
	struct edge_ask ask = make_ask(EDGE_ASK_HTTP, 443, "POST");

	ask.tls = true;
	assert_true(decide(&ask, &bound));
	assert_false(verdict.opened);
	must_have_recorded(
		"decision allow  https api.example:443 (forward) [POST /v1] {r1} with the "
		"credential demo: ");
	assert_false(decide(&ask, &none));
	assert_string_equal(
		verdict.reason, "the credential for api.example was removed: reconnect");
	assert_false(decide(&ask, &other_port));
	assert_false(decide(&ask, NULL));
}

static void methods_that_carry_no_credential(void **state)
{
	static const char *const methods[] = {"TRACE", "CONNECT", "trace"};

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		struct edge_ask ask = make_ask(EDGE_ASK_HTTP, 443, methods[i]);

		ask.tls = true;
		assert_false(decide(&ask, &bound));
		assert_non_null(strstr(verdict.reason, "no TRACE"));
	}
}

static void without_the_vault_it_is_refused(void **state)
{
	const struct gate_binding away = {
		.credential = "demo", .has_host = true, .fault = "the vault is away"};
	struct edge_ask ask = make_ask(EDGE_ASK_TUNNEL, 443, "");

	assert_false(decide(&ask, &away));
	assert_string_equal(verdict.reason, "the vault is away");
	assert_string_equal(verdict.rule, "");
	ask = make_ask(EDGE_ASK_HTTP, 443, "GET");
	ask.tls = true;
	assert_false(decide(&ask, &away));
	must_have_recorded("decision deny  https");
	/* what needs none goes on */
	ask = make_ask(EDGE_ASK_DNS, 0, "");
	assert_true(decide(&ask, &away));
}

static void without_a_record_nothing_is_opened(void **state)
{
	struct edge_ask ask = make_ask(EDGE_ASK_TUNNEL, 443, "");

	gate_set_audit(gate, NULL, "the disk is full");
	assert_false(decide(&ask, &bound));
	assert_false(verdict.opened);
	assert_non_null(strstr(verdict.reason, "the disk is full"));
}

static void what_came_of_it_is_in_the_log(void **state)
{
	struct edge_ask ask = make_ask(EDGE_ASK_HTTP, 443, "GET");
	struct origin_result res = {
		.status = 200, .used = true, .serial = 9, .n_removed = 2, .slot = "api"};
	struct origin_result foreign = {.outcome = ORIGIN_DENIED_FOREIGN};

	ask.tls = true;
	gate_origin_result(gate, &ask, "demo", &res);
	must_have_recorded(
		"credential-use allow use https api.example:443 (forward) [GET /v1] {demo} "
		"used in slot api, serial 9; status 200; removed from the response 2 "
		"times; answered");
	gate_origin_result(gate, &ask, "demo", &foreign);
	must_have_recorded(
		"credential-use deny refuse https api.example:443 (forward) [GET /v1] {demo} "
		"not used; the request carries a credential");
	res = (struct origin_result){.status = 404};
	gate_origin_result(gate, &ask, "demo", &res);
	must_have_recorded("credential-use allow pass https");
}

/* Who died with the value in hand may have sent it. */
static void a_lost_origin_with_a_value_counts_as_use(void **state)
{
	struct edge_ask ask = make_ask(EDGE_ASK_HTTP, 443, "GET");

	ask.tls = true;
	gate_origin_lost(gate, &ask, "demo", true, "sbx-origin ended");
	must_have_recorded(
		"credential-use allow use https api.example:443 (forward) [GET /v1] {demo} "
		"may have been used: released; sbx-origin ended");
	gate_origin_lost(gate, &ask, "demo", false, "sbx-origin ended");
	must_have_recorded(
		"credential-use allow pass https api.example:443 (forward) [GET /v1] {demo} "
		"not used; sbx-origin ended");
}

static void releases_are_in_the_log(void **state)
{
	static const uint8_t cert[ORIGIN_CERT_HASH] = {0xab, 0xcd};
	struct gate_use use = {.credential = "demo",
		.host = "api.example",
		.port = 443,
		.serial = 9,
		.addr = "192.0.2.1",
		.cert = cert};
	struct err err = {0};

	assert_int_equal(gate_record_release(gate, &use, &err), 0);
	must_have_recorded(
		"credential-use allow release https api.example:443 () [] {demo} released, "
		"serial 9, to 192.0.2.1, certificate abcd00");
	use.why = "no rule allows this host";
	assert_int_equal(gate_record_release(gate, &use, &err), 0);
	must_have_recorded("credential-use deny release https api.example:443 () [] {demo} not "
			   "released: no rule allows this host");
	gate_set_audit(gate, NULL, "the disk is full");
	assert_true(gate_record_release(gate, &use, &err) < 0);
}

static void looking_without_a_record(void **state)
{
	static const struct {
		const char *host;
		uint16_t port;
		bool is_host, is_port;
	} rows[] = {{"api.example", 443, true, true}, {"api.example", 10000, true, false},
		{"evil.example", 443, false, false}, {"API.example", 443, false, false},
		{"", 443, false, false}};
	struct addr public, inside, loop;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool is_host, is_port;

		gate_look(gate, rows[i].host, rows[i].port, NOW, &is_host, &is_port);
		assert_int_equal(is_host, rows[i].is_host);
		assert_int_equal(is_port, rows[i].is_port);
	}
	assert_int_equal(addr_parse(slice_from_str("93.184.216.34"), &public), 0);
	assert_int_equal(addr_parse(slice_from_str("10.1.2.3"), &inside), 0);
	assert_int_equal(addr_parse(slice_from_str("127.0.0.1"), &loop), 0);
	assert_true(gate_passes_address(gate, "api.example", 443, &public, false, NOW));
	assert_true(gate_passes_address(gate, "api.example", 443, &inside, false, NOW));
	assert_false(gate_passes_address(gate, "api.example", 443, &loop, false, NOW));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tunnel_to_what_is_bound_is_opened),
		TEST(a_guarded_host_has_no_tunnel_beside),
		TEST(what_no_rule_allows_stays_refused),
		TEST(plain_text_to_such_a_host_is_refused),
		TEST(a_request_in_opened_tls_needs_its_binding),
		TEST(methods_that_carry_no_credential),
		TEST(without_the_vault_it_is_refused),
		TEST(without_a_record_nothing_is_opened),
		TEST(what_came_of_it_is_in_the_log),
		TEST(a_lost_origin_with_a_value_counts_as_use),
		TEST(releases_are_in_the_log),
		TEST(looking_without_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
