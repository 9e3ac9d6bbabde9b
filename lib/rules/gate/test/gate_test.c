/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/rules/gate/gate.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/rules/audit/audit_read.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/gate/test/gate_free.h"
#include "lib/rules/policy/test/policy_text.h"

#define ID "0123456789ab"
#define NOW 1000000

static char dir[64];
static struct audit_key *key;
static struct audit *audit;
static struct gate *gate;
static struct edge_verdict verdict;

static struct audit *open_audit(void)
{
	struct audit_options o = {.dir = dir, .sandbox = ID, .name = "demo", .key = key};
	struct audit *a = NULL;
	struct err err = {0};

	if (audit_open(&o, &a, &err) < 0)
		fail_msg("%s", err.text);
	return a;
}

static int up(void **state)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/gate_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(audit_key_load(dir, &key, NULL), 0);
	audit = open_audit();
	gate = gate_new("demo", audit);
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

static void set_policy(const char *rules)
{
	AUTO_FREE char *text = xasprintf("policy 1\n%send\n", rules);

	gate_set_policy(gate, policy_load(slice_from_str(text), "policy", "demo"));
}

static struct edge_ask make_ask(enum edge_ask_kind kind, const char *host, uint16_t port)
{
	struct edge_ask ask = {.kind = kind, .port = port};

	assert_int_equal(str_copy(ask.host, sizeof(ask.host), host), 0);
	if (kind == EDGE_ASK_HTTP) {
		(void)!str_copy(ask.method, sizeof(ask.method), "GET");
		(void)!str_copy(ask.target, sizeof(ask.target), "/a/b");
	}
	return ask;
}

static bool decide(enum edge_ask_kind kind, const char *host, uint16_t port)
{
	struct edge_ask ask = make_ask(kind, host, port);

	gate_decide_bound(gate, &ask, NULL, NOW, &verdict);
	assert_int_equal(verdict.allowed, verdict.count == 0);
	return verdict.allowed;
}

struct last {
	unsigned n;
	char text[1024];
};

static int see_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct last *last = arg;
	const struct audit_event *ev = &rec->ev;

	if (ev->kind != AUDIT_KIND_DECISION)
		return 0;
	last->n++;
	(void)snprintf(last->text, sizeof(last->text), "%s %.*s %.*s:%llu %.*s [%.*s] {%.*s} %.*s",
		audit_verdict_name(ev->decision), (int)ev->type.n, ev->type.p, (int)ev->host.n,
		ev->host.p, (unsigned long long)ev->port, (int)ev->path.n, ev->path.p,
		(int)ev->op.n, ev->op.p, (int)ev->rule.n, ev->rule.p, (int)ev->reason.n,
		ev->reason.p);
	return 0;
}

/* The decisions there are; the last as text. */
static struct last read_log(void)
{
	struct last last = {0};
	struct audit_expect expect = {
		.pub = audit_key_pub(key), .sandbox = ID, .fn = see_record, .arg = &last};
	struct audit_reader *rd = NULL;

	assert_int_equal(audit_reader_open(dir, ID, &expect, &rd, NULL), 0);
	assert_true(audit_reader_pump(rd, NULL) >= 0);
	audit_reader_close(rd);
	return last;
}

static unsigned must_have_recorded(const char *text)
{
	struct last last = read_log();

	if (text)
		assert_string_equal(last.text, text);
	return last.n;
}

static void without_a_policy_nothing_is_allowed(void **state)
{
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	assert_non_null(strstr(verdict.reason, "no network policy is set"));
	assert_non_null(gate_fault(gate));
	assert_false(decide(EDGE_ASK_HTTP, "a.example", 80));
	assert_false(decide(EDGE_ASK_DNS, "a.example", 0));
	assert_int_equal(must_have_recorded(NULL), 3);
	set_policy("allow network **\n");
	assert_null(gate_fault(gate));
	assert_true(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	gate_set_policy(gate, NULL);
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
}

static void a_broken_policy_denies_and_says_why(void **state)
{
	static const char *const broken[] = {"", "policy 1\nallow network **\n",
		"policy 1\nallow netwrk **\nend\n", "policy 3\nallow network **\nend\n"};

	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		gate_set_policy(gate, policy_load(slice_from_str(broken[i]), "policy", "demo"));
		assert_non_null(gate_fault(gate));
		assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
		assert_non_null(strstr(verdict.reason, "cannot read the policy"));
		assert_string_equal(verdict.rule, "");
		assert_false(decide(EDGE_ASK_DNS, "a.example", 0));
	}
}

static void the_words_are_those_of_a_refusal(void **state)
{
	set_policy("deny network bad.example,worse.example id r1\n"
		   "allow network good.example:443 id r2\n"
		   "allow network nameless.example:443\n");
	assert_false(decide(EDGE_ASK_TUNNEL, "other.example", 443));
	assert_string_equal(verdict.sandbox, "demo");
	assert_string_equal(verdict.rule, "");
	assert_string_equal(verdict.reason, "");
	(void)must_have_recorded("deny https other.example:443 forward-bypass [] {} no applicable "
				 "policies for op(action=net:connect:tcp, "
				 "resource=net:domain:other.example:443)");
	assert_false(decide(EDGE_ASK_HTTP, "bad.example", 80));
	assert_string_equal(verdict.rule, "bad.example,worse.example");
	assert_string_equal(verdict.reason, "");
	assert_string_equal(verdict.sandbox, ""); /* `policy rm` must not look for it there */
	(void)must_have_recorded(
		"deny http bad.example:80 forward [GET /a/b] {r1} denied: rule \"r1\" (deny "
		"network bad.example,worse.example) matched op(action=net:connect:tcp, "
		"resource=net:domain:bad.example:80)");
	assert_true(decide(EDGE_ASK_TUNNEL, "good.example", 443));
	assert_true(decide(EDGE_ASK_TUNNEL, "nameless.example", 443));
	(void)must_have_recorded(
		"allow https nameless.example:443 forward-bypass [] {nameless.example:443} "
		"allowed: rule \"-\" (allow network nameless.example:443) matched "
		"op(action=net:connect:tcp, resource=net:domain:nameless.example:443)");
}

/* It is asked before each connection that is caught, which is recorded itself. */
static void a_connect_is_recorded_when_it_is_refused(void **state)
{
	set_policy("allow network good.example:443\nallow network host.docker.internal:80\n");
	assert_true(decide(EDGE_ASK_CONNECT, "good.example", 443));
	assert_int_equal(must_have_recorded(NULL), 0);
	assert_false(decide(EDGE_ASK_CONNECT, "good.example", 22));
	assert_int_equal(must_have_recorded("deny tcp good.example:22 forward-bypass [] {} no "
					    "applicable policies for op(action=net:connect:tcp, "
					    "resource=net:domain:good.example:22)"),
		1);
	assert_false(decide(EDGE_ASK_CONNECT, "169.254.169.254", 80));
	assert_false(decide(EDGE_ASK_CONNECT, "Good.example", 443)); /* not canonical */
	gate_set_audit(gate, NULL, "none");
	assert_false(decide(EDGE_ASK_CONNECT, "good.example", 22));
	assert_int_equal(must_have_recorded(NULL), 3);
}

/* 169.254.169.254 and friends: no rule for `**` reaches them, and the sentence says so. */
static void special_addresses_have_a_reason(void **state)
{
	set_policy("allow network **\n");
	assert_false(decide(EDGE_ASK_HTTP, "169.254.169.254", 80));
	assert_string_equal(verdict.rule, "");
	assert_non_null(strstr(verdict.reason, "metadata address"));
	assert_false(decide(EDGE_ASK_TUNNEL, "::1", 80));
	assert_non_null(strstr(verdict.reason, "loopback"));
}

/* A health check of a container that ignores no_proxy: what helps is said, and it is no rule. */
static void the_own_loopback_is_not_behind_the_proxy(void **state)
{
	static const char *const own[] = {
		"127.0.0.1", "127.9.9.9", "::1", "localhost", "a.localhost", "localhost.localhost"};
	static const char *const others[] = {"10.0.0.1", "notlocalhost", "localhost.example"};
	struct edge_ask caught = make_ask(EDGE_ASK_HTTP, "127.0.0.1", 8080);

	set_policy("allow network a.example\n");
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		assert_false(decide(EDGE_ASK_HTTP, own[i], 8080));
		assert_non_null(strstr(verdict.reason, own[i]));
		assert_non_null(strstr(verdict.reason, "unset http_proxy"));
		assert_true(verdict.no_rule_helps);
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		assert_false(decide(EDGE_ASK_HTTP, others[i], 8080));
		assert_false(verdict.no_rule_helps);
	}
	caught.via = EDGE_VIA_TRANSPARENT;
	gate_decide_bound(gate, &caught, NULL, NOW, &verdict);
	assert_false(verdict.no_rule_helps);
	set_policy("deny network 127.0.0.1:8080\n");
	assert_false(decide(EDGE_ASK_HTTP, "127.0.0.1", 8080));
	assert_string_equal(verdict.rule, "127.0.0.1:8080");
	set_policy("allow network 127.0.0.1:8080\n");
	assert_true(decide(EDGE_ASK_HTTP, "127.0.0.1", 8080));
}

static void another_port_is_another_thing(void **state)
{
	set_policy("allow network a.example\n");
	assert_true(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	assert_true(decide(EDGE_ASK_HTTP, "a.example", 80));
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 22));
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 9999));
	set_policy("allow network a.example:22\n");
	assert_true(decide(EDGE_ASK_TUNNEL, "a.example", 22));
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
}

static void a_name_has_an_address_when_a_port_is_allowed(void **state)
{
	set_policy("allow network a.example:2222 id r1\nallow network b.example id r2\n"
		   "deny network c.example id r3\n");
	assert_true(decide(EDGE_ASK_DNS, "a.example", 0));
	(void)must_have_recorded("allow dns a.example:0 network [] {} allowed: a rule for "
				 "net:domain:a.example names another port");
	assert_true(decide(EDGE_ASK_DNS, "b.example", 0));
	assert_false(decide(EDGE_ASK_DNS, "c.example", 0));
	assert_string_equal(verdict.rule, "c.example");
	assert_false(decide(EDGE_ASK_DNS, "d.example", 0));
	assert_string_equal(verdict.rule, "");
	(void)must_have_recorded("deny dns d.example:0 network [] {} no applicable policies for "
				 "op(action=net:connect:tcp, resource=net:domain:d.example)");
}

static void a_rule_of_another_sandbox_is_none(void **state)
{
	const char *rules = "allow network a.example for sandbox other\n";

	set_policy(rules);
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	gate_set_name(gate, "other");
	gate_set_policy(gate, policy_load(slice_from_str("policy 1\nallow network a.example for "
							 "sandbox other\nend\n"),
				      "policy", "other"));
	gate_decide_bound(
		gate, &(struct edge_ask){.host = "a.example", .port = 443}, NULL, NOW, &verdict);
	assert_true(verdict.allowed);
	assert_string_equal(verdict.sandbox, "other");
}

static void a_deny_of_this_sandbox_names_it(void **state)
{
	set_policy("allow network **\ndeny network a.example for sandbox demo\n");
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	assert_string_equal(verdict.rule, "a.example");
	assert_string_equal(verdict.sandbox, "demo");
}

static void a_managed_policy_limits_and_is_named(void **state)
{
	AUTO_RULES struct rules managed = {0};
	struct policy *policy = policy_load(
		slice_from_str("policy 1\nallow network **:1-65535\nend\n"), "policy", "demo");

	assert_int_equal(rules_decode(slice_from_str("policy 1\nallow network **\n"
						     "deny network bad.example id r1\nend\n"),
				 "managed", &managed, NULL),
		0);
	policy_limit(policy, &managed, NULL);
	gate_set_policy(gate, policy);
	assert_true(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	assert_true(decide(EDGE_ASK_DNS, "a.example", 0));
	assert_false(decide(EDGE_ASK_TUNNEL, "bad.example", 443));
	assert_true(verdict.no_rule_helps); /* no command is offered */
	assert_non_null(strstr(verdict.reason, "denied: rule \"/etc/sbx/policy:3\" (deny network "
					       "bad.example)"));
	assert_false(decide(EDGE_ASK_DNS, "bad.example", 0));
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 22));
	assert_non_null(strstr(verdict.reason, "denied by /etc/sbx/policy: no applicable"));
	/* No port is allowed by both: there is no address. */
	gate_set_policy(gate, policy_load(slice_from_str("policy 1\nallow network "
							 "a.example:22,b.example:22-80\nend\n"),
				      "policy", "demo"));
	policy_limit(gate->policy, &managed, NULL);
	assert_false(decide(EDGE_ASK_DNS, "a.example", 0));
	assert_true(decide(EDGE_ASK_DNS, "b.example", 0));
	policy_limit(gate->policy, &managed, "it is broken");
	assert_false(decide(EDGE_ASK_DNS, "b.example", 0));
	assert_non_null(strstr(gate_fault(gate), "it is broken"));
}

static void a_rule_ends(void **state)
{
	struct edge_ask ask = make_ask(EDGE_ASK_TUNNEL, "a.example", 443);

	set_policy("allow network a.example until 1970-01-01T00:16:40Z\n"); /* NOW */
	gate_decide_bound(gate, &ask, NULL, NOW - 1, &verdict);
	assert_true(verdict.allowed);
	gate_decide_bound(gate, &ask, NULL, NOW, &verdict);
	assert_false(verdict.allowed);
}

/* A taken-over edge may send any text as a host: only the canonical spelling is decided on. */
static void other_spellings_are_refused(void **state)
{
	static const char *const hosts[] = {"A.example", "a.example.", "a..example", "0x7f.1",
		"2130706433", "[::1]", "::ffff:1.2.3.4", "a example", "-", "%61.example",
		"0:0:0:0:0:0:0:1", "1.2.3", "a.example:443", "\xc3\xa4.example"};

	set_policy("allow network **:1-65535\nallow network 0.0.0.0/0:1-65535\n"
		   "allow network [::/0]:1-65535\n");
	assert_true(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		if (decide(EDGE_ASK_TUNNEL, hosts[i], 443) || !verdict.reason[0])
			fail_msg("%s: %s", hosts[i], verdict.reason);
		assert_false(decide(EDGE_ASK_DNS, hosts[i], 0));
	}
}

static void what_edge_refused_is_recorded_and_never_allowed(void **state)
{
	struct edge_ask ask = make_ask(EDGE_ASK_TUNNEL, "a.example", 443);

	set_policy("allow network **\n");
	(void)!str_copy(ask.fault, sizeof(ask.fault), "the TLS name is b.example");
	gate_decide_bound(gate, &ask, NULL, NOW, &verdict);
	assert_false(verdict.allowed);
	assert_string_equal(verdict.reason, "the TLS name is b.example");
	ask = (struct edge_ask){.via = EDGE_VIA_TRANSPARENT, .fault = "not readable"};
	gate_decide_bound(gate, &ask, NULL, NOW, &verdict);
	assert_false(verdict.allowed);
	assert_int_equal(must_have_recorded("deny tcp :0 transparent [] {} not readable"), 2);
}

static void types_and_paths_have_words(void **state)
{
	static const struct {
		struct edge_ask ask;
		const char *want;
	} rows[] = {
		{{.proto = EDGE_PROTO_TLS, .port = 8443}, "https forward-bypass"},
		{{.proto = EDGE_PROTO_TCP, .port = 443}, "tcp forward-bypass"},
		{{.proto = EDGE_PROTO_UNKNOWN, .port = 443}, "https forward-bypass"},
		{{.proto = EDGE_PROTO_UNKNOWN, .port = 22}, "tcp forward-bypass"},
		{{.proto = EDGE_PROTO_HTTP, .port = 443}, "https forward-bypass"},
		{{.proto = EDGE_PROTO_HTTP, .port = 80}, "tcp forward-bypass"},
		{{.proto = EDGE_PROTO_HTTP, .via = EDGE_VIA_TRANSPARENT, .port = 80},
			"http transparent"},
		{{.via = EDGE_VIA_TRANSPARENT, .port = 22}, "tcp transparent"},
		{{.kind = EDGE_ASK_HTTP, .port = 80, .method = "GET"}, "http forward"},
		{{.kind = EDGE_ASK_HTTP, .via = EDGE_VIA_TRANSPARENT, .port = 80, .method = "GET"},
			"http transparent"},
		{{.kind = EDGE_ASK_DNS, .qtype = 28}, "dns network"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct edge_ask ask = rows[i].ask;
		struct last last;
		char type[32], path[32];

		(void)!str_copy(ask.host, sizeof(ask.host), "a.example");
		gate_decide_bound(gate, &ask, NULL, NOW, &verdict);
		last = read_log();
		assert_int_equal(sscanf(last.text, "%*s %31s %*s %31s", type, path), 2);
		(void)snprintf(last.text, sizeof(last.text), "%s %s", type, path);
		assert_string_equal(last.text, rows[i].want);
	}
}

static void what_cannot_be_recorded_is_refused(void **state)
{
	const struct rlimit none = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
	const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};

	set_policy("allow network **\n");
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_true(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	assert_non_null(strstr(verdict.reason, "cannot write the audit log"));
	assert_false(decide(EDGE_ASK_DNS, "a.example", 0));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	assert_true(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	assert_int_equal(must_have_recorded(NULL), 2);
	gate_set_audit(gate, NULL, "the disk is full\n  try: this");
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	assert_non_null(strstr(verdict.reason, ": the disk is full"));
	assert_null(strchr(verdict.reason, '\n'));
	gate_set_audit(gate, audit, NULL);
	assert_true(decide(EDGE_ASK_TUNNEL, "a.example", 443));
}

static void refusals_are_counted_one_by_one(void **state)
{
	char host[64];

	for (uint32_t i = 1; i <= 5; i++) {
		assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
		assert_int_equal(verdict.count, i);
	}
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 80));
	assert_int_equal(verdict.count, 1);
	assert_false(decide(EDGE_ASK_DNS, "a.example", 0));
	assert_int_equal(verdict.count, 1);
	/* Without a log, for speed: the table stays as large as it is, and what is asked all the
	 * time is not forgotten. */
	gate_set_audit(gate, NULL, "");
	for (unsigned i = 0; i < 20 * GATE_COUNTERS; i++) {
		(void)snprintf(host, sizeof(host), "h%u.example", i);
		assert_false(decide(EDGE_ASK_TUNNEL, host, 443));
		assert_int_equal(verdict.count, 1);
		if (i % 64 == 0)
			assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	}
	assert_int_equal(verdict.count, 1);
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	assert_int_equal(verdict.count, 5 + 20 * GATE_COUNTERS / 64 + 1);
}

static void results_are_recorded_unless_it_worked(void **state)
{
	struct edge_ask ask = make_ask(EDGE_ASK_TUNNEL, "a.example", 443);
	struct egress_result res = {.outcome = EGRESS_CONNECTED, .addr = "192.0.2.1"};

	gate_result(gate, &ask, &res, NOW);
	res.outcome = EGRESS_GONE;
	gate_result(gate, &ask, &res, NOW);
	assert_int_equal(must_have_recorded(""), 0);
	res.outcome = EGRESS_REFUSED;
	gate_result(gate, &ask, &res, NOW);
	(void)must_have_recorded("allow https a.example:443 forward-bypass [] {<dial failed>} "
				 "192.0.2.1: connection refused");
	res = (struct egress_result){EGRESS_DENIED_ADDRESS, "10.0.0.1", "10.0.0.1 is private"};
	gate_result(gate, &ask, &res, NOW);
	(void)must_have_recorded(
		"deny https a.example:443 forward-bypass [] {} 10.0.0.1 is private");
	res = (struct egress_result){.outcome = EGRESS_BAD_REQUEST};
	gate_result(gate, &ask, &res, NOW);
	assert_int_equal(must_have_recorded("deny https a.example:443 forward-bypass [] {} the "
					    "request does not match the allowed one"),
		3);
	/* They count as refusals of just this. */
	assert_false(decide(EDGE_ASK_TUNNEL, "a.example", 443));
	assert_int_equal(verdict.count, 3);
}

static void a_long_rule_is_named_by_its_id(void **state)
{
	char list[600] = "";

	for (unsigned i = 0; i < 20; i++)
		(void)snprintf(list + strlen(list), sizeof(list) - strlen(list),
			"%sa-host-name-%u.example", i ? "," : "", i);
	AUTO_FREE char *rules = xasprintf("deny network %s id r1\n", list);

	set_policy(rules);
	assert_false(decide(EDGE_ASK_TUNNEL, "a-host-name-7.example", 443));
	assert_string_equal(verdict.rule, "r1");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, up, down)
	const struct CMUnitTest tests[] = {
		TEST(without_a_policy_nothing_is_allowed),
		TEST(a_broken_policy_denies_and_says_why),
		TEST(the_words_are_those_of_a_refusal),
		TEST(a_connect_is_recorded_when_it_is_refused),
		TEST(special_addresses_have_a_reason),
		TEST(the_own_loopback_is_not_behind_the_proxy),
		TEST(another_port_is_another_thing),
		TEST(a_name_has_an_address_when_a_port_is_allowed),
		TEST(a_rule_of_another_sandbox_is_none),
		TEST(a_deny_of_this_sandbox_names_it),
		TEST(a_managed_policy_limits_and_is_named),
		TEST(a_rule_ends),
		TEST(other_spellings_are_refused),
		TEST(what_edge_refused_is_recorded_and_never_allowed),
		TEST(types_and_paths_have_words),
		TEST(what_cannot_be_recorded_is_refused),
		TEST(refusals_are_counted_one_by_one),
		TEST(results_are_recorded_unless_it_worked),
		TEST(a_long_rule_is_named_by_its_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
