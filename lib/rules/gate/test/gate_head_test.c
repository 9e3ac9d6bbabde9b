/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about requests: interception, the decision on the head, and what a refusal says. */
#include "lib/rules/gate/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/rules/audit/audit_read.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/gate/test/gate_free.h"
#include "lib/rules/head/head.h"
#include "lib/rules/policy/test/policy_text.h"
#include "lib/wire/http/canon/canon_named.h"

#define ID "0123456789ab"
#define NOW 1000000

static const char rules[] = "allow network **:1-65535 id net\n"
			    "allow http api.example/v1/** method GET,HEAD id get\n"
			    "deny http other.example/admin/** id admin\n"
			    "allow http query.example/** method GET query dry=1 id dry\n"
			    "ask http ask.example/** method POST id asked\n"
			    "allow git code.example/acme/* do fetch id fetch\n";

static char dir[64];
static struct audit_key *key;
static struct audit *audit;
static struct gate *gate;
static struct edge_verdict verdict;

static void set_policy(const char *lines)
{
	AUTO_FREE char *text = xasprintf("policy 2\n%send\n", lines);

	gate_set_policy(gate, policy_load(slice_from_str(text), "policy", "demo"));
	assert_null(gate_fault(gate));
}

static int up(void **state)
{
	struct audit_options o = {.dir = dir, .sandbox = ID, .name = "demo"};

	(void)snprintf(dir, sizeof(dir), "/tmp/gate_head_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(audit_key_load(dir, &key, NULL), 0);
	o.key = key;
	assert_int_equal(audit_open(&o, &audit, NULL), 0);
	gate = gate_new("demo", audit);
	set_policy(rules);
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
	char op[256], rule[256], reason[1024], effects[1100], hold[16], from[80];
	uint8_t digest[AUDIT_DIGEST_LEN];
};

static int see_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct last *last = arg;

	if (rec->ev.kind != AUDIT_KIND_DECISION)
		return 0;
	last->n++;
	(void)snprintf(last->op, sizeof(last->op), "%.*s", (int)rec->ev.op.n, rec->ev.op.p);
	(void)snprintf(last->rule, sizeof(last->rule), "%.*s", (int)rec->ev.rule.n, rec->ev.rule.p);
	(void)snprintf(last->reason, sizeof(last->reason), "%.*s", (int)rec->ev.reason.n,
		rec->ev.reason.p);
	(void)!slice_to_cstr(rec->ev.effects, last->effects, sizeof(last->effects));
	(void)!slice_to_cstr(rec->ev.hold, last->hold, sizeof(last->hold));
	(void)!slice_to_cstr(rec->ev.from, last->from, sizeof(last->from));
	memcpy(last->digest, rec->ev.digest, sizeof(last->digest));
	return 0;
}

static struct last last_record(void)
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

static struct edge_ask make_ask(const char *method, const char *host, const char *target)
{
	struct edge_ask ask = {
		.kind = EDGE_ASK_HTTP, .tls = true, .port = 443, .proto = EDGE_PROTO_HTTP};

	assert_int_equal(str_copy(ask.host, sizeof(ask.host), host), 0);
	assert_int_equal(str_copy(ask.method, sizeof(ask.method), method), 0);
	assert_int_equal(str_copy(ask.target, sizeof(ask.target), target), 0);
	return ask;
}

static bool decide(const struct edge_ask *ask)
{
	gate_decide_bound(gate, ask, NULL, NOW, &verdict);
	assert_false(verdict.allowed && verdict.count);
	return verdict.allowed;
}

static bool request(const char *method, const char *host, const char *target)
{
	struct edge_ask ask = make_ask(method, host, target);

	return decide(&ask);
}

static bool tunnel(const char *host, uint16_t port)
{
	struct edge_ask ask = {.kind = EDGE_ASK_TUNNEL, .port = port};

	assert_int_equal(str_copy(ask.host, sizeof(ask.host), host), 0);
	return decide(&ask);
}

static void tunnels_to_hosts_of_such_rules_are_intercepted(void **state)
{
	static const char *const hosts[] = {
		"api.example", "other.example", "ask.example", "code.example"};

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		assert_true(tunnel(hosts[i], 443));
		assert_true(verdict.opened);
		assert_non_null(strstr(last_record().reason, "intercepted for the rule "));
		assert_non_null(strstr(last_record().reason, hosts[i]));
	}
	/* plain HTTP is read there too */
	assert_true(tunnel("api.example", 80));
	assert_true(verdict.opened);
	assert_true(tunnel("free.example", 443));
	assert_false(verdict.opened);
	/* the rule says nothing of this port: it is 80 and 443 */
	assert_true(tunnel("api.example", 8443));
	assert_false(verdict.opened);
	/* a rule that denies is about every port */
	assert_true(tunnel("other.example", 8443));
	assert_true(verdict.opened);
}

static void a_governed_host_permits_what_rules_name(void **state)
{
	assert_true(request("GET", "api.example", "/v1/x"));
	assert_string_equal(last_record().rule, "get");
	assert_true(request("HEAD", "api.example", "/v1/x?a=1"));
	assert_false(request("POST", "api.example", "/v1/x"));
	assert_string_equal(verdict.effect, "http:POST api.example /v1/x");
	assert_string_equal(verdict.command,
		"sbx policy allow http 'api.example/v1/x' --method POST --sandbox demo");
	assert_false(verdict.no_rule_helps);
	assert_int_equal(verdict.count, 1);
	assert_false(request("GET", "api.example", "/v2/x"));
	assert_false(request("get", "api.example", "/v1/x"));
	assert_false(request("GET", "api.example", "/v1/%78"));
	assert_false(request("GET", "api.example", "/v2/../v1/x"));
	assert_false(request("GET", "api.example", "*"));
	assert_non_null(strstr(verdict.reason, "canonical form"));
}

static void plain_http_is_decided_alike(void **state)
{
	struct edge_ask ask = make_ask("GET", "api.example", "/v1/x");

	ask.tls = false;
	ask.port = 80;
	assert_true(decide(&ask));
	assert_int_equal(str_copy(ask.method, sizeof(ask.method), "DELETE"), 0);
	assert_false(decide(&ask));
	assert_string_equal(verdict.effect, "http:DELETE api.example:80 /v1/x");
}

static void other_hosts_are_only_restricted(void **state)
{
	assert_true(request("DELETE", "other.example", "/x"));
	assert_string_equal(last_record().rule, "net");
	assert_false(request("GET", "other.example", "/admin/x"));
	assert_non_null(strstr(verdict.rule, "deny http other.example/admin/**"));
	assert_true(verdict.no_rule_helps);
	assert_string_equal(last_record().rule, "admin");
	/* some server may read it as /admin/x */
	assert_false(request("GET", "other.example", "/x/..%2fadmin/x"));
}

/* Such a request inside TLS can only come from an edge that opened a tunnel by itself. */
static void what_is_not_intercepted_has_no_requests(void **state)
{
	assert_false(request("GET", "free.example", "/"));
	assert_non_null(strstr(verdict.reason, "reconnect"));
}

static void queries_are_facts(void **state)
{
	assert_true(request("GET", "query.example", "/x?dry=1"));
	assert_true(request("GET", "query.example", "/x?a=2&dry=1"));
	assert_false(request("GET", "query.example", "/x"));
	assert_false(request("GET", "query.example", "/x?dry=2"));
	assert_false(request("GET", "query.example", "/x?dry=1&dry=2"));
}

static void headers_that_rules_name_are_asked_for(void **state)
{
	struct edge_ask ask = make_ask("GET", "head.example", "/x");
	unsigned n;

	set_policy("allow network **\n"
		   "allow http head.example/** method GET header x-role=dev id role\n");
	/* an intercepted tunnel has them from the start */
	assert_true(tunnel("head.example", 443));
	assert_true(verdict.opened);
	assert_string_equal(verdict.wants, "x-role");
	ask.wants_id = verdict.wants_id;
	n = last_record().n;
	assert_false(decide(&ask));
	assert_int_equal(verdict.wants_id, 0);
	assert_int_equal(last_record().n, n + 1);
	ask.wants_id = 0;
	n = last_record().n;
	assert_false(decide(&ask));
	assert_string_equal(verdict.wants, "x-role");
	assert_int_not_equal(verdict.wants_id, 0);
	assert_int_equal(last_record().n, n); /* nothing was decided */
	ask.wants_id = verdict.wants_id;
	assert_false(decide(&ask));
	assert_int_equal(verdict.wants_id, 0);
	assert_int_equal(last_record().n, n + 1);
	(void)!str_copy(ask.named, sizeof(ask.named), "x-role:dev\n");
	assert_true(decide(&ask));
	assert_string_equal(last_record().rule, "role");
	(void)!str_copy(ask.named, sizeof(ask.named), "x-role:ops\n");
	assert_false(decide(&ask));
	assert_string_equal(verdict.effect, "http:GET head.example /x header.x-role=ops");
	(void)!str_copy(ask.named, sizeof(ask.named), "x-role:dev\nx-role:dev\n");
	assert_false(decide(&ask));
	(void)!str_copy(ask.named, sizeof(ask.named), "x-role:dev\nbroken\n");
	assert_false(decide(&ask));
	/* the rules name others now */
	(void)!str_copy(ask.named, sizeof(ask.named), "x-role:dev\n");
	set_policy("allow network **\nallow http head.example/** method GET header x-team=a\n");
	assert_false(decide(&ask));
	assert_string_equal(verdict.wants, "x-team");
	assert_int_not_equal(verdict.wants_id, ask.wants_id);
}

/* Nothing is recorded until a person has answered. */
static void what_must_be_asked_is_not_decided(void **state)
{
	struct edge_ask ask = make_ask("POST", "ask.example", "/x?force=1");
	const struct hold_text *what;
	uint8_t digest[SHA256_BYTES];
	unsigned n;

	assert_true(request("GET", "ask.example", "/x"));
	assert_null(gate_asked(gate));
	n = last_record().n;
	assert_false(decide(&ask));
	what = gate_asked(gate);
	assert_non_null(what);
	assert_string_equal(what->effects, "http:POST ask.example /x query=force=1\n");
	assert_non_null(strstr(what->rule, "ask http ask.example/** method POST"));
	sha256(slice_from_str(what->effects), digest);
	assert_memory_equal(what->digest, digest, sizeof(digest));
	assert_int_equal(last_record().n, n);
	gate_decide_approved(gate, &ask, NULL, "K7QD", NOW, &verdict);
	assert_true(verdict.allowed);
	assert_string_equal(last_record().hold, "K7QD");
	assert_memory_equal(last_record().digest, digest, sizeof(digest));
	assert_null(gate_asked(gate));
	assert_int_equal(last_record().n, n + 1);
	assert_string_equal(last_record().rule, "asked");
	assert_non_null(strstr(last_record().reason, "approved"));
	/* An approval is for one decision. */
	assert_false(decide(&ask));
	what = gate_asked(gate);
	assert_non_null(what);
	gate_refuse_asked(gate, &ask, what, "refused by the user", "K7QE", &verdict);
	assert_false(verdict.allowed);
	assert_string_equal(verdict.effect, "http:POST ask.example /x query=force=1");
	assert_string_equal(last_record().reason, "refused by the user");
	assert_string_equal(last_record().effects, "http:POST ask.example /x query=force=1");
	assert_string_equal(last_record().hold, "K7QE");
	assert_string_equal(last_record().from, "policy 5");
	assert_memory_equal(last_record().digest, digest, sizeof(digest));
	assert_true(request("GET", "ask.example", "/x"));
	assert_string_equal(last_record().hold, "");
}

static void a_record_names_the_effects_and_where_the_rule_is(void **state)
{
	static const uint8_t none[AUDIT_DIGEST_LEN];
	struct edge_ask ask = make_ask("", "query.example", "");
	struct edge_verdict v;

	assert_true(request("GET", "api.example", "/v1/x"));
	assert_string_equal(last_record().effects, "http:GET api.example /v1/x");
	assert_string_equal(last_record().from, "policy 2");
	assert_memory_not_equal(last_record().digest, none, sizeof(none));
	assert_false(request("DELETE", "api.example", "/v1/x"));
	assert_string_equal(last_record().effects, "http:DELETE api.example /v1/x");
	assert_string_equal(last_record().from, "");
	assert_false(request("GET", "other.example", "/admin/x"));
	assert_string_equal(last_record().from, "policy 3");
	assert_true(
		request("GET", "code.example", "/acme/a.git/info/refs?service=git-upload-pack"));
	assert_string_equal(last_record().effects,
		"http:GET code.example /acme/a.git/info/refs query=service=git-upload-pack; "
		"git:fetch code.example/acme/a -");
	/* A connection does nothing yet; the rule for the host is named. */
	ask.kind = EDGE_ASK_TUNNEL;
	ask.tls = false;
	gate_decide_bound(gate, &ask, NULL, NOW, &v);
	assert_true(v.allowed);
	assert_string_equal(last_record().effects, "");
	assert_string_equal(last_record().from, "policy 1");
	assert_memory_equal(last_record().digest, none, sizeof(none));
}

/* A deny wins over an approval, and what cannot be displayed is not asked for. */
static void an_approval_does_not_replace_the_policy(void **state)
{
	struct edge_ask ask = make_ask("POST", "ask.example", "/x");
	char target[700];

	set_policy("allow network **\nask http ask.example/** method POST\n"
		   "deny http ask.example/x\n");
	assert_false(decide(&ask));
	assert_null(gate_asked(gate));
	gate_decide_approved(gate, &ask, NULL, "K7QD", NOW, &verdict);
	assert_false(verdict.allowed);
	memset(target, 'a', sizeof(target) - 1);
	target[0] = '/';
	target[sizeof(target) - 1] = '\0';
	ask = make_ask("POST", "ask.example", target);
	assert_false(decide(&ask));
	assert_string_equal(gate_asked(gate)->effects, "");
}

static void git_is_described_as_git(void **state)
{
	assert_true(
		request("GET", "code.example", "/acme/a.git/info/refs?service=git-upload-pack"));
	assert_true(request("POST", "code.example", "/acme/a.git/git-upload-pack"));
	assert_false(request("POST", "code.example", "/acme/a.git/git-receive-pack"));
	assert_false(
		request("GET", "code.example", "/acme/a.git/info/refs?service=git-receive-pack"));
	assert_false(request("POST", "code.example", "/evil/a.git/git-upload-pack"));
	assert_false(request("GET", "code.example", "/acme/a.git/HEAD"));
}

/* Rules about an API speak of the hosts of its pack, and of no other. */
static void apis_are_described_by_their_packs(void **state)
{
	static const char text[] =
		"api 1\nservice demo\nabout a demo\nhost api.demo.example:443\n"
		"object repo repo/{owner}/{repo}\n"
		"op read repo.get GET /repos/{owner}/{repo} on repo\n"
		"op danger repo.delete DELETE /repos/{owner}/{repo} on repo\n"
		"case GET /repos/a/b = read repo.get repo/a/b\ncase GET /repos/a = unknown\n"
		"case DELETE /repos/a/b = danger repo.delete repo/a/b\n"
		"case DELETE /repos/a = unknown\nend\n";
	static struct packs packs = {.n = 1};
	struct edge_ask ask = make_ask("GET", "api.demo.example", "/repos/a/b");
	struct err err = {0};

	if (pack_parse(slice_from_str(text), "demo.api", &packs.v[0], &err) < 0)
		fail_msg("%s", err.text);
	assert_false(gate_has_api(gate));
	set_policy("allow network **\nallow api ** do any risk read\n");
	assert_true(gate_has_api(gate));
	gate_set_packs(gate, &packs);
	assert_true(tunnel("free.example", 443));
	assert_false(verdict.opened);
	assert_true(tunnel("api.demo.example", 443));
	assert_true(verdict.opened);
	assert_string_equal(verdict.wants, "content-type");
	ask.wants_id = verdict.wants_id;
	assert_true(decide(&ask));
	assert_non_null(strstr(last_record().reason, "api:repo.get demo repo/a/b risk=read"));
	(void)!str_copy(ask.method, sizeof(ask.method), "DELETE");
	assert_false(decide(&ask));
	assert_string_equal(verdict.effect, "http:DELETE api.demo.example /repos/a/b");
	(void)!str_copy(ask.method, sizeof(ask.method), "GET");
	(void)!str_copy(ask.target, sizeof(ask.target), "/repos/a");
	assert_false(decide(&ask));
	/* egress, which sends it, has no packs */
	(void)!str_copy(ask.target, sizeof(ask.target), "/repos/a/b");
	ask.tls = false;
	assert_false(decide(&ask));
	assert_non_null(strstr(verdict.reason, "use https"));
	gate_set_packs(gate, NULL);
	packs_done(&packs);
}

static void a_failure_names_the_rule(void **state)
{
	struct edge_ask ask = {.kind = EDGE_ASK_TUNNEL,
		.host = "api.example",
		.port = 443,
		.fault = "TLS handshake failed: unknown ca"};

	assert_false(decide(&ask));
	assert_non_null(strstr(verdict.reason, "unknown ca; requests to api.example are read"));
	assert_non_null(strstr(verdict.reason, "allow http api.example/v1/**"));
	assert_non_null(strstr(last_record().reason, "allow http api.example/v1/**"));
}

static void a_new_policy_counts_for_open_requests(void **state)
{
	struct edge_ask ask = make_ask("GET", "api.example", "/v1/x");

	assert_true(gate_passes_head(gate, &ask, false, NOW));
	set_policy("allow network **\ndeny http api.example/v1/**\n");
	assert_false(gate_passes_head(gate, &ask, false, NOW));
	set_policy("allow network **\n");
	assert_true(gate_passes_head(gate, &ask, false, NOW));
}

/* `sbx policy check http` calls head_decide with what the user typed. The keeper gets the same
 * request from edge, as a target and a text of headers. */
static bool check(const struct policy *policy, const struct edge_ask *ask, struct http_header *list,
	size_t n, struct arena *arena)
{
	const struct http_headers headers = {list, n, n};
	struct slice path = edge_ask_path(ask);
	struct host host;
	const struct policy_op op = {
		.kind = RULE_NETWORK, .host = &host, .port = ask->port, .now_ms = NOW};
	const struct head h = {.method = slice_from_str(ask->method),
		.host = slice_from_str(ask->host),
		.port = ask->port,
		.path = path,
		.has_query = ask->target[path.n] == '?',
		.query = slice_from_str(ask->target + path.n + (ask->target[path.n] == '?')),
		.headers = &headers};
	struct head_decision d;

	assert_int_equal(host_from_wire(slice_from_str(ask->host), &host, NULL), 0);
	arena_reset(arena);
	head_decide(policy, &op, NULL, &h, arena, &d);
	return d.answer == HEAD_ALLOWED || d.answer == HEAD_READ;
}

static void keeper_and_check_decide_alike(void **state)
{
	static const char *const methods[] = {"GET", "HEAD", "POST", "DELETE"};
	static const char *const hosts[] = {
		"api.example", "other.example", "query.example", "code.example", "role.example"};
	static const char *const targets[] = {"/v1/x", "/v1/%78", "/admin/x", "/x?dry=1",
		"/x?dry=2", "/acme/a/info/refs?service=git-upload-pack", "/acme/a/git-receive-pack",
		"/v2/../v1/x", "/x?dry=1&a=b", "/"};
	static const char *const values[] = {"dev", "ops", ""};
	AUTO_FREE char *lines = xasprintf(
		"%sallow http role.example/** method GET,POST header x-role=dev\n", rules);
	AUTO_FREE char *text = xasprintf("policy 2\n%send\n", lines);
	struct policy *policy = policy_load(slice_from_str(text), "policy", "demo");
	unsigned n_allowed = 0;
	struct arena arena;
	uint32_t r = 1;

	set_policy(lines);
	arena_init(&arena, HTTP_ARENA_SIZE);
	for (unsigned i = 0; i < 1000; i++) {
		struct http_header list[2] = {{slice_from_str("x-role"), slice_from_str("dev")},
			{slice_from_str("x-role"), slice_from_str(values[i % 3])}};
		size_t n = i / 3 % 3;
		struct edge_ask ask;
		struct wr wr;
		bool allowed;

		r = r * 1103515245 + 12345;
		ask = make_ask(methods[r >> 16 & 3], hosts[(r >> 18) % ARRAY_LEN(hosts)],
			targets[(r >> 22) % ARRAY_LEN(targets)]);
		(void)decide(&ask);
		assert_string_equal(verdict.wants, "x-role");
		ask.wants_id = verdict.wants_id;
		wr = wr_init(ask.named, sizeof(ask.named) - 1);
		assert_int_equal(canon_named_write(&wr, &(struct http_headers){list, n, n},
					 slice_from_str(verdict.wants)),
			0);
		allowed = check(policy, &ask, list, n, &arena);
		n_allowed += allowed;
		if (decide(&ask) != allowed)
			fail_msg("%s %s%s: %s", ask.method, ask.host, ask.target, verdict.reason);
	}
	assert_in_range(n_allowed, 100, 800);
	arena_done(&arena);
	policy_free(policy);
}

#define GATE_TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GATE_TEST(tunnels_to_hosts_of_such_rules_are_intercepted),
		GATE_TEST(a_governed_host_permits_what_rules_name),
		GATE_TEST(plain_http_is_decided_alike),
		GATE_TEST(other_hosts_are_only_restricted),
		GATE_TEST(what_is_not_intercepted_has_no_requests),
		GATE_TEST(queries_are_facts),
		GATE_TEST(headers_that_rules_name_are_asked_for),
		GATE_TEST(what_must_be_asked_is_not_decided),
		GATE_TEST(a_record_names_the_effects_and_where_the_rule_is),
		GATE_TEST(an_approval_does_not_replace_the_policy),
		GATE_TEST(git_is_described_as_git),
		GATE_TEST(apis_are_described_by_their_packs),
		GATE_TEST(a_failure_names_the_rule),
		GATE_TEST(a_new_policy_counts_for_open_requests),
		GATE_TEST(keeper_and_check_decide_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
