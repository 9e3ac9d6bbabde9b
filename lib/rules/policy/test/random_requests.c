/* SPDX-License-Identifier: Apache-2.0 */
#include "random_requests.h"

#include <stdio.h>
#include <stdlib.h>

#define PICK(rs, list) ((list)[random_below(rs, ARRAY_LEN(list))])

static const char *const hosts[] = {"a.x.com", "b.x.com", "x.com", "*.x.com", "**.com", "a*.x.com",
	"**", "1.2.3.4", "c.a.x.com", "**.x.com"};
static const char *const ports[] = {"", "", "", ":443", ":8080", ":1-500"};
static const char *const paths[] = {"/**", "/v1/**", "/v1/*", "/v1/a", "/", "/*/a", "/**/a",
	"/v1/**/b", "/V1/a", "/v1/a*c", "/v1/a/**"};
static const char *const repos[] = {
	"/**", "/acme/app", "/acme/*", "/Acme/app", "/*/app", "/acme/**"};
static const char *const services[] = {"hub", "lab", "**"};
static const char *const sandboxes[] = {NULL, NULL, NULL, "one", "two"};
static const char *const http_terms[] = {"", "", "method GET", "method GET,POST", "query a=1",
	"query a=* method GET", "query a=1 query b=2", "header x-a=1", "header x-b=*"};
static const char *const git_terms[] = {"do any", "do fetch", "do push,create", "do unknown",
	"do any,unknown", "do push ref refs/heads/main", "do any ref refs/heads/agent/**",
	"do any path docs/**", "do push path **/ci.yml ref refs/heads/*"};
static const char *const api_terms[] = {"do any", "do any risk read", "do issue.*", "do unknown",
	"do issue.create on repo/acme/app", "do any on repo/acme/*,user/**", "do any,unknown",
	"do any on repo/** risk read,write", "do pull.merge,issue.create risk danger"};
static const char *const bare_terms[] = {"", "risk danger"};

static const char *const real_hosts[] = {
	"a.x.com", "b.x.com", "x.com", "c.a.x.com", "y.com", "1.2.3.4", "5.6.7.8"};
static const uint16_t real_ports[] = {443, 443, 80, 8080, 22};
static const char *const methods[] = {"GET", "POST", "get", "DELETE"};
static const char *const real_paths[] = {
	"/", "/v1", "/v1/", "/v1/a", "/v1/b", "/v1/a/b", "/v1/abc", "/V1/A", "/a", "/x/a"};
static const char *const queries[] = {
	NULL, NULL, "", "a=1", "a=2", "b=2&a=1", "a=1&a=1", "A=1", "a=1;b=2", "%61=1", "b=3"};
static const char *const git_verbs[] = {"fetch", "push", "create", "force"};
static const char *const real_repos[] = {"acme/app", "acme/lib", "Acme/App", "other/app", ""};
static const char *const refs[] = {"refs/heads/main", "refs/heads/agent/x", "refs/tags/v1", ""};
static const char *const files[] = {"docs/a", "src/x.c", ".github/ci.yml", ""};
static const char *const api_verbs[] = {"issue.create", "issue.list", "pull.merge"};
static const char *const objects[] = {
	"repo/acme/app", "repo/acme/lib", "user/me", "repo/a/b/c", ""};
static const char *const risks[] = {"read", "write", "danger", ""};
static const char *const header_names[] = {"x-a", "x-b"};
static const char *const header_values[] = {"1", "2"};

static void add(struct rules *rules, const char *line)
{
	struct err err = {0};
	struct rule rule = {0};

	if (rule_parse(slice_from_str(line), &rule, &err) < 0 ||
		rules_add(rules, &rule, &err) < 0) {
		fprintf(stderr, "%s: %s\n", line, err.text);
		abort();
	}
}

static void random_target(struct random_state *rs, enum rule_kind kind, char *buf, size_t size)
{
	if (kind == RULE_API)
		(void)snprintf(buf, size, "%s", PICK(rs, services));
	else
		(void)snprintf(buf, size, "%s%s%s", PICK(rs, hosts), PICK(rs, ports),
			kind == RULE_HTTP ? PICK(rs, paths) : PICK(rs, repos));
}

void random_request_rule(struct random_state *rs, struct rules *rules)
{
	static const enum rule_effect effects[] = {
		RULE_ALLOW, RULE_ALLOW, RULE_ALLOW, RULE_ASK, RULE_DENY};
	enum rule_kind kind = (enum rule_kind)(RULE_HTTP + random_below(rs, 3));
	enum rule_effect effect = PICK(rs, effects);
	const char *terms = kind == RULE_HTTP  ? PICK(rs, http_terms)
			    : kind == RULE_GIT ? PICK(rs, git_terms)
					       : PICK(rs, api_terms);
	const char *sandbox = PICK(rs, sandboxes);
	char line[512], one[120], two[120];
	uint32_t until = random_below(rs, 8);

	if (kind != RULE_HTTP && effect == RULE_DENY && random_below(rs, 4) == 0)
		terms = kind == RULE_API ? PICK(rs, bare_terms) : "";
	random_target(rs, kind, one, sizeof(one));
	random_target(rs, kind, two, sizeof(two));
	(void)snprintf(line, sizeof(line), "%s %s %s%s%s %s%s%s", rule_effect_name(effect),
		rule_kind_name(kind), one, until % 4 ? "" : ",", until % 4 ? "" : two, terms,
		sandbox ? " for sandbox " : "", sandbox ? sandbox : "");
	add(rules, line);
	rules->rule[rules->n - 1].until_ms = until < 5 ? 0 : until - 4;
}

void random_open_rule(struct random_state *rs, struct rules *rules)
{
	if (random_below(rs, 4))
		add(rules, "allow network **:1-65535");
	else
		random_rule(rs, rules);
}

static struct slice pick_text(struct random_state *rs, const char *const *list, size_t n)
{
	return slice_from_str(list[random_below(rs, (uint32_t)n)]);
}

#define TEXT(rs, list) pick_text(rs, list, ARRAY_LEN(list))

static void random_http(struct random_state *rs, struct random_request *r, struct effect *e)
{
	const char *query = PICK(rs, queries);

	*e = (struct effect){.kind = EFFECT_HTTP,
		.verb = TEXT(rs, methods),
		.object = TEXT(rs, real_paths),
		.is_odd = random_below(rs, 12) == 0,
		.has_query = query != NULL,
		.query = slice_from_str(query ? query : ""),
		.has_headers = random_below(rs, 3) > 0,
		.header = r->header,
		.n_headers = random_below(rs, 4)};
	for (size_t i = 0; i < e->n_headers; i++)
		r->header[i] =
			(struct effect_header){TEXT(rs, header_names), TEXT(rs, header_values)};
}

static void random_git(struct random_state *rs, struct effect *e)
{
	bool unknown = random_below(rs, 6) == 0;

	*e = (struct effect){.kind = EFFECT_GIT,
		.is_unknown = unknown,
		.is_odd = random_below(rs, 20) == 0,
		.verb = unknown ? slice_of(NULL, 0) : TEXT(rs, git_verbs),
		.target = TEXT(rs, real_repos),
		.object = TEXT(rs, refs),
		.path = TEXT(rs, files)};
}

static void random_api(struct random_state *rs, struct slice service, struct effect *e)
{
	bool unknown = random_below(rs, 6) == 0;

	*e = (struct effect){.kind = EFFECT_API,
		.is_unknown = unknown,
		.verb = unknown ? slice_of(NULL, 0) : TEXT(rs, api_verbs),
		.target = service,
		.object = TEXT(rs, objects),
		.risk = unknown ? slice_of(NULL, 0) : TEXT(rs, risks)};
}

static void set_host(struct random_request *r, const char *name, uint16_t port, uint64_t now_ms)
{
	struct err err;

	if (host_from_wire(slice_from_str(name), &r->host, &err) < 0)
		abort();
	r->req = (struct policy_request){
		.op = {.kind = RULE_NETWORK, .host = &r->host, .port = port, .now_ms = now_ms},
		.list = r->list};
}

void random_request(struct random_state *rs, struct random_request *ret)
{
	struct slice service = slice_from_str(services[random_below(rs, 2)]);

	set_host(ret, PICK(rs, real_hosts), PICK(rs, real_ports), random_below(rs, 6));
	for (size_t d = 0; d < 3; d++) {
		if (d > 0 && random_below(rs, 2))
			continue;
		ret->list[ret->req.n].n = d ? 1 + random_below(rs, RANDOM_EFFECTS) : 1;
		ret->list[ret->req.n].effect = ret->effect[d];
		for (size_t i = 0; i < ret->list[ret->req.n].n; i++)
			if (d == 0)
				random_http(rs, ret, &ret->effect[d][i]);
			else if (d == 1)
				random_git(rs, &ret->effect[d][i]);
			else
				random_api(rs, service, &ret->effect[d][i]);
		ret->req.n++;
	}
}

/* ---- a large policy ---- */

void random_requests_wide(struct random_state *rs, size_t n, struct rules *rules)
{
	for (size_t i = 0; i < n; i++) {
		const char *effect = random_below(rs, 10) ? "allow" : "ask";
		char line[300];
		size_t k = i / 4;

		if (i % 4 == 0)
			(void)snprintf(line, sizeof(line),
				"allow network svc%zu.t%zu.example.com:443", k, k % 97);
		else if (i % 4 == 1)
			(void)snprintf(line, sizeof(line),
				"%s http svc%zu.t%zu.example.com/v1/users/%zu/** method GET,POST",
				effect, k, k % 97, k);
		else if (i % 4 == 2)
			(void)snprintf(line, sizeof(line),
				"%s git forge.example.com/org%zu/app%zu do fetch,push ref refs/heads/**",
				effect, k % 1009, k);
		else
			(void)snprintf(line, sizeof(line),
				"%s api s%zu do issue.create,issue.list on repo/org%zu/app%zu risk read,write",
				effect, k % 60, k % 1009, k);
		add(rules, line);
	}
	add(rules, "allow network forge.example.com:443");
	add(rules, "deny http **.example.com/** method DELETE");
	add(rules, "deny git ** do force");
}

void random_request_wide(struct random_state *rs, size_t n, struct random_request *ret)
{
	size_t k = random_below(rs, (uint32_t)(n / 4));
	char name[100], *t = ret->text;
	bool git = random_below(rs, 2);
	int at;

	(void)snprintf(name, sizeof(name), git ? "forge.example.com" : "svc%zu.t%zu.example.com", k,
		k % 97);
	set_host(ret, name, 443, 1);
	at = snprintf(t, 80, "/v1/users/%zu/x", k);
	ret->effect[0][0] = (struct effect){.kind = EFFECT_HTTP,
		.verb = slice_from_str("GET"),
		.object = slice_of(t, (size_t)at),
		.has_headers = true};
	ret->list[0] = (struct policy_description){ret->effect[0], 1, false};
	t += at;
	at = git ? snprintf(t, 80, "org%zu/app%zu", k % 1009, k)
		 : snprintf(t, 80, "repo/org%zu/app%zu", k % 1009, k);
	ret->effect[1][0] = git ? (struct effect){.kind = EFFECT_GIT,
					  .verb = slice_from_str("push"),
					  .target = slice_of(t, (size_t)at),
					  .object = slice_from_str("refs/heads/main")}
				: (struct effect){.kind = EFFECT_API,
					  .verb = slice_from_str("issue.create"),
					  .object = slice_of(t, (size_t)at),
					  .risk = slice_from_str("write")};
	t += at;
	at = snprintf(t, 20, "s%zu", k % 60);
	if (!git)
		ret->effect[1][0].target = slice_of(t, (size_t)at);
	ret->list[1] = (struct policy_description){ret->effect[1], 1, false};
	ret->req.n = 2;
}
