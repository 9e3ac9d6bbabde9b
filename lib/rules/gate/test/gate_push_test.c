/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes of git: when their content must be read, and what is decided then. */
#include "lib/rules/gate/gate_push.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/rules/audit/audit_read.h"
#include "lib/rules/gate/test/gate_free.h"
#include "lib/rules/head/head.h"
#include "lib/rules/policy/test/policy_text.h"

#define ID "0123456789ab"
#define NOW 1000000
#define HOST "code.example"

static char dir[64];
static struct audit_key *key;
static struct audit *audit;
static struct gate *gate;
static struct edge_verdict verdict;

static struct policy *load(const char *lines)
{
	AUTO_FREE char *text =
		xasprintf("policy 2\nallow network **:1-65535 id net\n%send\n", lines);

	return policy_load(slice_from_str(text), "policy", "demo");
}

static void set_policy(const char *lines)
{
	gate_set_policy(gate, load(lines));
	assert_null(gate_fault(gate));
}

static int up(void **state)
{
	struct audit_options o = {.dir = dir, .sandbox = ID, .name = "demo"};

	(void)snprintf(dir, sizeof(dir), "/tmp/gate_push_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(audit_key_load(dir, &key, NULL), 0);
	o.key = key;
	assert_int_equal(audit_open(&o, &audit, NULL), 0);
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

struct last {
	unsigned n, n_allowed;
	char reason[1024];
};

static int see_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct last *last = arg;

	if (rec->ev.kind != AUDIT_KIND_DECISION)
		return 0;
	last->n++;
	last->n_allowed += rec->ev.decision == AUDIT_ALLOW;
	(void)snprintf(last->reason, sizeof(last->reason), "%.*s", (int)rec->ev.reason.n,
		rec->ev.reason.p);
	return 0;
}

static struct last records(void)
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

static struct edge_ask make_ask(const char *method, const char *target)
{
	struct edge_ask ask = {
		.kind = EDGE_ASK_HTTP, .tls = true, .port = 443, .proto = EDGE_PROTO_HTTP};

	assert_int_equal(str_copy(ask.host, sizeof(ask.host), HOST), 0);
	assert_int_equal(str_copy(ask.method, sizeof(ask.method), method), 0);
	assert_int_equal(str_copy(ask.target, sizeof(ask.target), target), 0);
	return ask;
}

static const struct gate_push *ask_head(const char *method, const char *target)
{
	struct edge_ask ask = make_ask(method, target);

	gate_decide_bound(gate, &ask, NULL, NOW, &verdict);
	assert_null(gate_asked(gate));
	return gate_push(gate);
}

static struct effect make_effect(const char *verb, const char *ref, const char *path)
{
	return (struct effect){.kind = EFFECT_GIT,
		.verb = slice_from_str(verb),
		.host = slice_from_str(HOST),
		.port = 443,
		.target = slice_from_str("acme/a"),
		.object = slice_from_str(ref),
		.path = slice_from_str(path)};
}

#define PUSH "/acme/a.git/git-receive-pack"
#define REFS "/acme/a.git/info/refs?service=git-receive-pack"

/* Whether a push with these effects is allowed. */
static bool decide(const struct effect *list, size_t n, const char *hold)
{
	struct edge_ask ask = make_ask("POST", PUSH);
	const struct gate_pushed pushed = {.effect = list, .n = n, .preview = "two commits"};

	gate_decide_push(gate, &ask, NULL, &pushed, hold, NOW, &verdict);
	assert_null(gate_push(gate));
	return verdict.allowed;
}

static bool decide_one(const char *verb, const char *ref, const char *path)
{
	struct effect e = make_effect(verb, ref, path);

	return decide(&e, 1, NULL);
}

static void the_content_is_read_only_if_rules_need_it(void **state)
{
	set_policy("allow git " HOST "/acme/* do push ref refs/heads/agent/**\n");
	assert_non_null(ask_head("POST", PUSH));
	assert_true(verdict.allowed);
	assert_string_equal(gate_push(gate)->repository, "acme/a");
	assert_false(gate_push(gate)->is_advert);
	assert_false(gate_push(gate)->paths);
	assert_int_equal(records().n, 0);
	/* the list of refs is decided at once */
	assert_non_null(ask_head("GET", REFS));
	assert_true(verdict.allowed && gate_push(gate)->is_advert);
	assert_int_equal(records().n_allowed, 1);
	/* another repository, a fetch, another spelling */
	assert_null(ask_head("POST", "/evil/a.git/git-receive-pack"));
	assert_false(verdict.allowed);
	assert_null(ask_head("GET", "/evil/a.git/info/refs?service=git-receive-pack"));
	assert_false(verdict.allowed);
	assert_null(ask_head("POST", "/acme/a.git/git-upload-pack"));
	assert_null(ask_head("POST", "/acme/a.git/GIT-receive-pack"));
	assert_false(verdict.allowed);
	assert_null(ask_head("POST", PUSH "?x"));
	assert_false(verdict.allowed);
	assert_null(ask_head("POST", "/acme//a.git/git-receive-pack"));
	assert_false(verdict.allowed);
}

static void files_are_needed_if_a_rule_names_some(void **state)
{
	set_policy("allow git " HOST "/acme/* do push\ndeny git ** do any path x/**\n");
	assert_true(ask_head("POST", PUSH)->paths);
	set_policy("allow git " HOST "/acme/* do push\ndeny git " HOST "/b/* do any path x/**\n");
	assert_false(ask_head("POST", PUSH)->paths);
}

static void a_push_that_may_be_unknown_is_not_read(void **state)
{
	set_policy("allow git " HOST "/acme/* do any\nallow git " HOST "/acme/* do unknown\n");
	assert_null(ask_head("POST", PUSH));
	assert_true(verdict.allowed);
	assert_int_equal(records().n_allowed, 1);
}

/* The network rules permit the rest; the rule about git only takes away. */
static void rules_that_deny_need_the_content_too(void **state)
{
	set_policy("deny git " HOST "/acme/* do force\n");
	assert_non_null(ask_head("POST", PUSH));
	assert_true(decide_one("push", "refs/heads/x", ""));
	assert_false(decide_one("force", "refs/heads/x", ""));
	assert_non_null(strstr(verdict.rule, "do force"));
}

static void nobody_reads_a_push_over_plain_http(void **state)
{
	struct edge_ask ask = make_ask("POST", PUSH);

	set_policy("allow git " HOST ":80/acme/* do push\n");
	ask.tls = false;
	ask.port = 80;
	gate_decide_bound(gate, &ask, NULL, NOW, &verdict);
	assert_false(verdict.allowed);
	assert_non_null(strstr(verdict.reason, "https"));
	assert_int_equal(records().n, 1);
}

static void each_effect_must_be_permitted(void **state)
{
	struct effect two[] = {make_effect("push", "refs/heads/agent/x", ""),
		make_effect("push", "refs/heads/main", "")};

	set_policy("allow git " HOST "/acme/* do push ref refs/heads/agent/**\n");
	assert_true(decide_one("push", "refs/heads/agent/x", ""));
	assert_non_null(strstr(records().reason, "git:push " HOST "/acme/a refs/heads/agent/x"));
	assert_false(decide_one("create", "refs/heads/agent/x", ""));
	assert_false(decide(two, 2, NULL));
	assert_string_equal(verdict.effect, "git:push " HOST "/acme/a refs/heads/main");
	assert_string_equal(verdict.command,
		"sbx policy allow git " HOST
		"/acme/a --do push --ref 'refs/heads/main' --sandbox demo");
	assert_int_equal(records().n, 3);
	assert_int_equal(records().n_allowed, 1);
	/* git's probe has no effect */
	assert_true(decide(NULL, 0, NULL));
}

static void a_rule_about_files_permits_no_others(void **state)
{
	struct effect none = make_effect("push", "refs/heads/x", "");

	set_policy("allow git " HOST "/acme/* do push path docs/**\n"
		   "deny git " HOST "/acme/* do any path docs/secret\n");
	assert_true(decide_one("push", "refs/heads/x", "docs/a"));
	assert_false(decide_one("push", "refs/heads/x", "src/a"));
	assert_false(decide_one("push", "refs/heads/x", "docs/secret"));
	assert_false(decide_one("push", "refs/heads/x", "")); /* not known */
	set_policy("allow git " HOST "/acme/* do push\n"
		   "deny git " HOST "/acme/* do any path docs/secret\n");
	assert_false(decide(&none, 1, NULL));
	none.no_path = true;
	assert_true(decide(&none, 1, NULL));
}

static void a_held_push_is_approved_by_its_commits(void **state)
{
	struct effect e = make_effect("push", "refs/heads/main", "");
	struct edge_ask ask = make_ask("POST", PUSH);
	struct gate_pushed pushed = {.effect = &e, .n = 1, .preview = "two commits"};
	uint8_t first[SHA256_BYTES];

	set_policy("ask git " HOST "/acme/* do push\n");
	assert_non_null(ask_head("POST", PUSH));
	gate_decide_push(gate, &ask, NULL, &pushed, NULL, NOW, &verdict);
	assert_non_null(gate_asked(gate));
	assert_non_null(
		strstr(gate_asked(gate)->effects, "git:push " HOST "/acme/a refs/heads/main"));
	assert_string_equal(gate_asked(gate)->preview, "two commits");
	memcpy(first, gate_asked(gate)->digest, sizeof(first));
	assert_int_equal(records().n, 0);
	pushed.commands[0] ^= 1;
	gate_decide_push(gate, &ask, NULL, &pushed, NULL, NOW, &verdict);
	assert_memory_not_equal(gate_asked(gate)->digest, first, sizeof(first));
	assert_true(decide(&e, 1, "K7QD"));
	assert_int_equal(records().n_allowed, 1);
}

/* One line for a ref, however many files; the digest is of all of them. */
static void many_files_are_one_line(void **state)
{
	static struct effect list[1000];
	struct gate_pushed pushed = {.effect = list, .n = ARRAY_LEN(list), .preview = ""};
	struct edge_ask ask = make_ask("POST", PUSH);
	char path[ARRAY_LEN(list)][8];
	uint8_t first[SHA256_BYTES];

	set_policy("ask git " HOST "/acme/* do push path **\n");
	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		(void)snprintf(path[i], sizeof(path[i]), "f%zu", i);
		list[i] = make_effect("push", "refs/heads/main", path[i]);
	}
	gate_decide_push(gate, &ask, NULL, &pushed, NULL, NOW, &verdict);
	assert_int_equal(strlen(gate_asked(gate)->effects) > 40, 1);
	assert_null(strstr(gate_asked(gate)->effects, "path="));
	memcpy(first, gate_asked(gate)->digest, sizeof(first));
	path[999][0] = 'g';
	gate_decide_push(gate, &ask, NULL, &pushed, NULL, NOW, &verdict);
	assert_memory_not_equal(gate_asked(gate)->digest, first, sizeof(first));
}

/* What sbx-origin decides: the content only with the keeper's word for it. */
static bool may_send(const struct policy *policy, const char *method, const char *path,
	const char *query, bool is_judged)
{
	struct host host;
	const struct policy_op op = {
		.kind = RULE_NETWORK, .host = &host, .port = 443, .now_ms = NOW};
	const struct head_sender sender = {.policy = policy, .op = &op, .is_judged = is_judged};
	const struct http_req req = {.method = slice_from_str(method),
		.host = slice_from_str(HOST),
		.port = 443,
		.path = slice_from_str(path),
		.query = slice_from_str(query),
		.has_query = query[0] != '\0'};
	struct arena arena;
	char why[512];
	bool may;

	assert_int_equal(host_from_wire(slice_from_str(HOST), &host, NULL), 0);
	arena_init(&arena, HTTP_ARENA_SIZE);
	may = head_may_send(&sender, &req, &arena, why, sizeof(why));
	arena_done(&arena);
	return may;
}

static void a_push_is_sent_only_if_the_keeper_has_decided(void **state)
{
	struct policy *p = load("allow git " HOST "/acme/* do fetch,push\n"
				"deny http " HOST "/acme/b.git/** id b\n");

	assert_false(may_send(p, "POST", PUSH, "", false));
	assert_true(may_send(p, "POST", PUSH, "", true));
	assert_true(may_send(p, "GET", "/acme/a.git/info/refs", "service=git-receive-pack", false));
	/* the word is for the content, and for nothing else */
	assert_false(may_send(p, "POST", "/acme/b.git/git-receive-pack", "", true));
	assert_false(may_send(p, "PUT", PUSH, "", true));
	assert_false(may_send(p, "POST", "/x", "", true));
	assert_false(may_send(p, "POST", PUSH, "x", true));
	policy_free(p);
}

static void a_new_policy_counts_for_open_pushes(void **state)
{
	struct effect e = make_effect("push", "refs/heads/main", "");
	struct edge_ask ask = make_ask("POST", PUSH);
	const struct gate_pushed pushed = {.effect = &e, .n = 1, .preview = ""};

	set_policy("allow git " HOST "/acme/* do push\n");
	assert_true(gate_passes_push(gate, &ask, &pushed, NOW));
	assert_true(gate_passes_head(gate, &ask, true, NOW));
	assert_false(gate_passes_head(gate, &ask, false, NOW));
	set_policy("allow git " HOST "/acme/* do push ref refs/heads/agent/**\n");
	assert_false(gate_passes_push(gate, &ask, &pushed, NOW));
	set_policy("deny http " HOST "/acme/**\n");
	assert_false(gate_passes_head(gate, &ask, true, NOW));
}

static void an_unreadable_push_is_refused_and_recorded(void **state)
{
	static const struct gate_push push = {.repository = "acme/a"};
	struct edge_ask ask = make_ask("POST", PUSH);

	set_policy("allow git " HOST "/acme/* do push\n");
	gate_refuse_push(gate, &ask, &push, "the pack is malformed", &verdict);
	assert_false(verdict.allowed);
	assert_string_equal(verdict.effect, "unknown:git " HOST "/acme/a - why=body");
	assert_string_equal(verdict.reason, "the pack is malformed");
	assert_string_equal(records().reason, "the pack is malformed");
}

#define PUSH_TEST(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PUSH_TEST(the_content_is_read_only_if_rules_need_it),
		PUSH_TEST(files_are_needed_if_a_rule_names_some),
		PUSH_TEST(a_push_that_may_be_unknown_is_not_read),
		PUSH_TEST(rules_that_deny_need_the_content_too),
		PUSH_TEST(nobody_reads_a_push_over_plain_http),
		PUSH_TEST(each_effect_must_be_permitted),
		PUSH_TEST(a_rule_about_files_permits_no_others),
		PUSH_TEST(a_held_push_is_approved_by_its_commits),
		PUSH_TEST(many_files_are_one_line),
		PUSH_TEST(a_push_is_sent_only_if_the_keeper_has_decided),
		PUSH_TEST(a_new_policy_counts_for_open_pushes),
		PUSH_TEST(an_unreadable_push_is_refused_and_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
