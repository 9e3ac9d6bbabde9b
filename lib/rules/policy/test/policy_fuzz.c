/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host name behind an `h`, else the text of a policy. What is canonical stays what it is; what
 * was decoded encodes to the same again; and no decision is anything but a rule's or a denial.
 */
#include <assert.h>
#include <stdlib.h>
#include "lib/base/mem.h"
#include "lib/rules/policy/policy_request.h"
#include "lib/rules/policy/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_host(struct slice text)
{
	struct host a, b;
	struct err err;

	if (host_from_text(text, &a, &err) < 0) {
		assert(err.text[0]);
		return;
	}
	assert(a.n > 0 && a.n <= HOST_MAX_NAME && strlen(a.name) == a.n);
	assert(host_from_wire(host_slice(&a), &b, &err) == 0);
	assert(a.is_addr == b.is_addr && slice_eq(host_slice(&a), host_slice(&b)));
	assert(host_from_text(host_slice(&a), &b, &err) == 0);
	assert(slice_eq(host_slice(&a), host_slice(&b)));
}

/* A request that rules of each kind may speak of. */
static void check_request(const struct policy *p, const struct policy_op *op)
{
	const struct effect http = {.verb = slice_from_str("POST"),
		.host = host_slice(op->host),
		.port = op->port,
		.object = slice_from_str("/v1/x"),
		.has_query = true,
		.query = slice_from_str("a=1&b=%202")};
	const struct effect api[] = {{.kind = EFFECT_API,
					     .verb = slice_from_str("issue.create"),
					     .target = slice_from_str("github"),
					     .object = slice_from_str("repo/acme/app"),
					     .risk = slice_from_str("write")},
		{.kind = EFFECT_API, .is_unknown = true, .target = slice_from_str("github")}};
	const struct effect git = {.kind = EFFECT_GIT,
		.verb = slice_from_str("push"),
		.host = host_slice(op->host),
		.target = slice_from_str("acme/app"),
		.object = slice_from_str("refs/heads/main")};
	const struct policy_description list[] = {
		{&http, 1, false}, {api, 2, false}, {&git, 1, false}};
	const struct policy_request req = {.op = *op, .list = list, .n = ARRAY_LEN(list)};
	struct policy_decision network;
	struct policy_outcome out;
	char text[POLICY_MAX_EXPLAIN];

	policy_decide(p, op, &network);
	policy_decide_request(p, &req, &out);
	assert(network.allowed || out.verdict == POLICY_DENIES);
	assert(out.verdict == POLICY_DENIES || out.by.why == POLICY_RULE);
	policy_explain_request(&req, &out, text, sizeof(text));
}

static void check_decision(const struct policy *p, struct slice name, uint16_t port)
{
	struct policy_op op = {.kind = RULE_NETWORK, .port = port, .now_ms = 1};
	struct policy_decision d;
	char text[POLICY_MAX_EXPLAIN];
	struct host h;

	if (host_from_wire(name, &h, NULL) < 0)
		return;
	op.host = &h;
	check_request(p, &op);
	policy_decide(p, &op, &d);
	assert(!d.allowed || (d.why == POLICY_RULE && d.rule.effect == RULE_ALLOW));
	assert(!d.allowed || policy_has_port(p, &op));
	policy_explain(&op, &d, text, sizeof(text));
}

/* Hosts that the rules themselves name, so that something is found. */
static void check_policy(struct rules *rules)
{
	struct slice name[64] = {slice_from_str("10.0.0.1"), slice_from_str("64:ff9b::a00:1"),
		slice_from_str("a.b.example")};
	size_t n = 3;
	struct policy *p;

	for (size_t i = 0; i < rules->n; i++)
		for (size_t j = 0; j < rules->rule[i].n_net && n < ARRAY_LEN(name); j++)
			if (rules->rule[i].net[j].name)
				name[n++] = slice_from_str(rules->rule[i].net[j].name);
	p = policy_new(rules, "demo");
	if (!policy_fault(p))
		for (size_t i = 0; i < n; i++)
			check_decision(p, name[i], 443);
	policy_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_RULES struct rules rules = {0}, again = {0};
	AUTO_FREE char *text = NULL, *same = NULL;
	struct err err = {0};
	int r;

	if (size > 0 && data[0] == 'h') {
		check_host(slice_of(data + 1, size - 1));
		return 0;
	}
	if (rules_decode(slice_of(data, size), "fuzz", &rules, &err) < 0) {
		assert(err.text[0]);
		return 0;
	}
	text = rules_encode(&rules, RULE_PRINT_ALL);
	r = rules_decode(slice_from_str(text), "again", &again, &err);
	assert(r == 0);
	same = rules_encode(&again, RULE_PRINT_ALL);
	assert(strcmp(text, same) == 0);
	check_policy(&rules);
	return 0;
}
