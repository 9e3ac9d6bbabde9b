/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/policy_request.h"
#include "lib/rules/policy/rules.h"

#define NOW 1000

static size_t allocations;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

/* `lines` without the first and the last one. */
static struct policy *make(const char *lines)
{
	AUTO_FREE char *text = xasprintf("policy 2\n%s\nend\n", lines);
	AUTO_RULES struct rules rules = {0};
	struct err err = {0};
	struct policy *p;

	if (rules_decode(slice_from_str(text), "f", &rules, &err) < 0)
		fail_msg("%s", err.text);
	p = policy_new(&rules, "demo");
	return p;
}

/* The texts of effects, "; " between those of one description and " | " between descriptions. */
struct wish {
	struct host host;
	struct policy_request req;
	struct policy_description list[3];
	struct effect effect[3][4];
	struct effect_copy copy[8];
};

static void read_wish(const char *host, uint16_t port, const char *texts, struct wish *w)
{
	AUTO_FREE char *copy = xstrdup(texts);
	size_t n = 0, d = 0;
	char *s = copy;

	*w = (struct wish){.req = {.op = {.kind = RULE_NETWORK, .port = port, .now_ms = NOW}}};
	assert_int_equal(host_from_wire(slice_from_str(host), &w->host, NULL), 0);
	w->req.op.host = &w->host;
	w->req.list = w->list;
	while (*s) {
		size_t k = strcspn(s, ";|");
		char sign = s[k];
		size_t len = sign == '|' ? k - 1 : k;
		struct err err = {0};

		if (effect_parse(slice_of(s, len), &w->copy[n], &err) < 0)
			fail_msg("'%.*s': %s", (int)len, s, err.text);
		w->copy[n].effect.has_headers = true;
		w->effect[d][w->list[d].n++] = w->copy[n++].effect;
		w->list[d].effect = w->effect[d];
		s += k + (sign ? 2 : 0);
		d += sign == '|';
	}
	w->req.n = d + (w->list[d].n > 0);
}

/* "allow", "deny" or "ask", with "+" if the host is governed, and the id of the rule. */
static const char *decide(
	const struct policy *p, const char *host, uint16_t port, const char *texts)
{
	static const char *const words[] = {"deny", "allow", "ask"};
	static char answer[100];
	struct policy_outcome out;
	struct wish w;
	size_t before;

	read_wish(host, port, texts, &w);
	before = allocations;
	policy_decide_request(p, &w.req, &out);
	assert_int_equal(allocations, before);
	snprintf(answer, sizeof(answer), "%s%s %.*s", words[out.verdict],
		out.is_governed ? "+" : "", (int)out.by.rule.id.n,
		out.by.rule.id.n ? (const char *)out.by.rule.id.p : "");
	return answer;
}

#define CHECK(p, host, texts, want) assert_string_equal(decide(p, host, 443, texts), want)

static void an_allow_rule_governs_its_host(void **state)
{
	struct policy *p = make("allow network **:1-65535 id n\n"
				"allow http a.com/v1/** method GET,HEAD id a\n"
				"ask http *.b.com/** method POST id b\n"
				"allow http a.com:8443/** id c\n");

	CHECK(p, "a.com", "http:GET a.com /v1/x", "allow+ a");
	CHECK(p, "a.com", "http:POST a.com /v1/x", "deny+ ");
	CHECK(p, "a.com", "http:GET a.com /v2", "deny+ ");
	CHECK(p, "a.com", "http:GET a.com /v1/a%252Fb odd=yes", "deny+ ");
	assert_string_equal(decide(p, "a.com", 8443, "http:PUT a.com:8443 /x"), "allow+ c");
	assert_string_equal(decide(p, "a.com", 22, "http:PUT a.com:22 /x"), "allow n");
	CHECK(p, "x.b.com", "http:POST x.b.com /", "ask b");
	CHECK(p, "x.b.com", "http:GET x.b.com /", "allow n");
	CHECK(p, "b.com", "http:POST b.com /", "allow n");
	policy_free(p);
}

static void network_rules_open_the_connection(void **state)
{
	struct policy *p = make("allow http a.com/** id a\nallow network b.com id n\n"
				"deny http b.com/x id d\n");

	CHECK(p, "a.com", "http:GET a.com /", "deny ");
	CHECK(p, "b.com", "http:GET b.com /", "allow n");
	CHECK(p, "b.com", "http:GET b.com /x", "deny d");
	assert_string_equal(decide(NULL, "b.com", 443, "http:GET b.com /"), "deny ");
	policy_free(p);
}

static void one_description_is_enough_and_one_deny(void **state)
{
	static const char *const merge = "http:PUT api.h.com /r/1/merge | "
					 "api:pull.merge hub repo/a/b risk=danger",
				 *const two = "http:POST api.h.com /graphql | "
					      "api:pull.list hub repo/a/b risk=read; "
					      "api:pull.merge hub repo/a/b risk=danger";
	struct policy *p = make("allow network api.h.com id n\n"
				"allow api hub do any risk read id r\n"
				"ask api hub do pull.merge on repo/a/* id m\n"
				"deny api ** risk credential id c\n"
				"allow http api.h.com/free/** id f\n");

	CHECK(p, "api.h.com", merge, "ask+ m");
	CHECK(p, "api.h.com", two, "ask+ m");
	CHECK(p, "api.h.com", "http:GET api.h.com / | api:pull.list hub - risk=read", "allow+ r");
	CHECK(p, "api.h.com", "http:GET api.h.com / | unknown:api hub - why=no-row", "deny+ c");
	CHECK(p, "api.h.com", "http:GET api.h.com /free/x | api:a.b hub - risk=write", "allow+ f");
	CHECK(p, "api.h.com", "http:GET api.h.com /free/x | api:a.b hub - risk=credential",
		"deny+ c");
	CHECK(p, "api.h.com",
		"http:POST api.h.com /graphql | api:a.b hub - risk=read; "
		"api:a.b hub - risk=write",
		"deny+ ");
	policy_free(p);
}

static void unknown_is_covered_by_its_name_only(void **state)
{
	struct policy *p = make("allow network **\n"
				"allow git g.com/a/b do any id any\n"
				"allow git g.com/a/c do any,unknown id unk\n"
				"deny git g.com/a/d do force id force\n"
				"ask git ** do push ref refs/heads/main id main\n");

	CHECK(p, "g.com", "git:fetch g.com/a/b -", "allow+ any");
	CHECK(p, "g.com", "unknown:git g.com/a/b - why=body", "deny+ ");
	CHECK(p, "g.com", "unknown:git g.com/a/c - why=body", "ask+ main");
	CHECK(p, "g.com", "unknown:git g.com/a/d - why=body", "deny+ force");
	CHECK(p, "g.com", "git:push g.com/a/c refs/heads/x", "allow+ unk");
	CHECK(p, "g.com", "git:push g.com/a/c refs/heads/main", "ask+ main");
	CHECK(p, "g.com", "git:push g.com/A/B refs/heads/x", "deny+ ");
	CHECK(p, "other.com", "git:push other.com/a refs/heads/main", "ask main");
	CHECK(p, "other.com", "git:push other.com/a refs/heads/x", "allow ");
	policy_free(p);
}

static void rules_expire_and_have_sandboxes(void **state)
{
	struct policy *p = make(
		"allow network a.com id n\n"
		"allow http a.com/** method GET until 1970-01-01T00:00:01Z id over\n"
		"allow http a.com/** method GET for sandbox other id other\n"
		"deny http a.com/x method GET for sandbox demo until 1970-01-01T00:00:01.001Z id d\n");

	CHECK(p, "a.com", "http:POST a.com /", "allow n");
	CHECK(p, "a.com", "http:GET a.com /x", "deny d");
	policy_free(p);
}

static void heads_are_needed_where_a_rule_speaks(void **state)
{
	struct policy *p = make("allow network **\n"
				"deny http *.a.com/x header X-A=1 header x-b=2 id d\n"
				"ask api hub do any id h\nallow git g.com:8080/** do any\n"
				"allow http **/** header x-a=* until 1970-01-01T00:00:00.001Z\n");
	struct slice names[POLICY_MAX_HEADERS], none = {0};
	struct policy_op op = {.port = 443, .now_ms = NOW};
	static const struct {
		const char *host;
		uint16_t port;
		const char *service;
		bool needs, governs;
	} rows[] = {{"b.a.com", 443, "", true, false}, {"a.com", 443, "", false, false},
		{"b.a.com", 9, "", true, false}, {"api.h.com", 443, "hub", true, false},
		{"api.h.com", 443, "lab", false, false}, {"g.com", 8080, "", true, true},
		{"g.com", 443, "", false, false}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct host host;

		assert_int_equal(host_from_wire(slice_from_str(rows[i].host), &host, NULL), 0);
		op.host = &host;
		op.port = rows[i].port;
		assert_int_equal(
			policy_needs_head(p, &op, slice_from_str(rows[i].service)), rows[i].needs);
		assert_int_equal(
			policy_governs(p, &op, slice_from_str(rows[i].service)), rows[i].governs);
	}
	assert_int_equal(policy_header_names(p, names), 2);
	assert_true(slice_eq_str(names[0], "x-a") && slice_eq_str(names[1], "x-b"));
	assert_false(policy_needs_head(NULL, &op, none));
	policy_free(p);
}

static void sentences_name_rule_and_effect(void **state)
{
	struct policy *p = make("allow network a.com id n\nallow http a.com/v1/** method GET id a\n"
				"ask http a.com/v1/x method PUT id q\n");
	static const struct {
		const char *effect, *text;
	} rows[] = {{"http:DELETE a.com /v1/x",
			    "denied: rules about requests apply to a.com, and none of them permits "
			    "http:DELETE a.com /v1/x"},
		{"http:PUT a.com /v1/x",
			"approval required: rule \"q\" (ask http a.com/v1/x method PUT) "
			"matched http:PUT a.com /v1/x"},
		{"http:GET a.com /v1/x", "allowed: rule \"a\" (allow http a.com/v1/** method GET) "
					 "matched http:GET a.com /v1/x"}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[POLICY_MAX_EXPLAIN];
		struct policy_outcome out;
		struct wish w;

		read_wish("a.com", 443, rows[i].effect, &w);
		policy_decide_request(p, &w.req, &out);
		policy_explain_request(&w.req, &out, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
	policy_free(p);
}

/* A policy beyond a limit denies everything, with the reason. */
static void limits_are_faults(void **state)
{
	AUTO_FREE char *many = xcalloc(1, 200000);
	struct policy *p;

	for (int i = 0; i < POLICY_MAX_AT + 1; i++)
		snprintf(many + strlen(many), 60, "allow http a.com:443/v1/** query a=%d\n", i);
	p = make(many);
	assert_string_equal(policy_fault(p), "line 1026: more than 1024 rules begin with '/v1/'");
	policy_free(p);
	many[0] = '\0';
	for (int i = 0; i < POLICY_MAX_HEADERS / 2 + 1; i++)
		snprintf(many + strlen(many), 60, "deny http a.com/v1/** header x-%d=1\n", i);
	p = make(many);
	assert_string_equal(policy_fault(p), "line 10: rules name more than 8 headers");
	policy_free(p);
	many[0] = '\0';
	for (int i = 0; i < POLICY_MAX_HOSTS + 1; i++)
		snprintf(many + strlen(many), 60, "deny http h%d*.a.com/**\n", i);
	p = make(many);
	assert_non_null(strstr(policy_fault(p), "more than 256 hosts and ports end in"));
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_allow_rule_governs_its_host),
		cmocka_unit_test(network_rules_open_the_connection),
		cmocka_unit_test(one_description_is_enough_and_one_deny),
		cmocka_unit_test(unknown_is_covered_by_its_name_only),
		cmocka_unit_test(rules_expire_and_have_sandboxes),
		cmocka_unit_test(heads_are_needed_where_a_rule_speaks),
		cmocka_unit_test(sentences_name_rule_and_effect),
		cmocka_unit_test(limits_are_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
