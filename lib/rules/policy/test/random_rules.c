/* SPDX-License-Identifier: Apache-2.0 */
#include "random_rules.h"

#include <stdio.h>
#include <stdlib.h>

#define PICK(rs, list) ((list)[random_below(rs, ARRAY_LEN(list))])

uint32_t random_below(struct random_state *rs, uint32_t n)
{
	uint64_t z = rs->x += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)(((z ^ z >> 31) >> 32) * n >> 32);
}

static const char *const labels[] = {"a", "b", "api", "api1", "crl3"};
static const char *const patterns[] = {"*", "a*", "api[12]", "?", "*1", "c?l[0-9]", "*i*", "[a-b]"};
static const char *const tops[] = {"x.com", "y.com", "com", "b.x.com"};
static const char *const ports[] = {"", "", ":443", ":22", ":8000-9000", ":1-65535", ":80-443"};
static const char *const nets[] = {"1.2.3.4", "1.2.3.0/24", "1.2.0.0/16", "0.0.0.0/0", "10.0.0.0/8",
	"10.1.0.0/16", "10.1.2.3", "169.254.0.0/16", "169.254.169.254", "8.0.0.0/6", "[2606::1]",
	"[2606::/16]", "[::/0]", "[fd00::/8]", "[fd00::1]", "[64:ff9b::/96]", "[64:ff9b::a01:203]",
	"[2002::/16]", "[2002:a01:203::1]"};
static const char *const hosts[] = {"1.2.3.4", "1.2.3.5", "1.2.9.9", "10.1.2.3", "10.1.9.9",
	"10.9.9.9", "8.8.8.8", "169.254.169.254", "169.254.1.1", "2606::1", "2606::2", "2a00::1",
	"fd00::1", "fd00::2", "fd00:ec2::254", "64:ff9b::a01:203", "64:ff9b::102:304",
	"2002:a01:203::1", "2002:102:304::1", "::1", "127.0.0.1"};
static const uint16_t op_ports[] = {80, 443, 443, 22, 8000, 8500, 9001, 65535, 1};
static const char *const sandboxes[] = {NULL, NULL, NULL, "one", "two"};

static void add_rule(struct rules *rules, struct rule *rule)
{
	struct err err;

	if (rules_add(rules, rule, &err) < 0)
		abort();
}

static void parse(const char *text, enum rule_effect effect, struct rule *ret)
{
	struct err err = {0};

	if (rule_make(effect, RULE_NETWORK, slice_from_str(text), ret, &err) < 0) {
		fprintf(stderr, "%s: %s\n", text, err.text);
		abort();
	}
}

static void random_resource(struct random_state *rs, char *buf, size_t size)
{
	uint32_t kind = random_below(rs, 16);
	const char *deep = random_below(rs, 3) == 0 ? "**." : "";
	const char *port = PICK(rs, ports);

	if (kind == 0)
		(void)snprintf(buf, size, "**%s", port);
	else if (kind < 5)
		(void)snprintf(buf, size, "%s%s", PICK(rs, nets), port);
	else if (kind < 8)
		(void)snprintf(buf, size, "%s%s%s", deep, PICK(rs, tops), port);
	else if (kind < 11)
		(void)snprintf(
			buf, size, "%s%s.%s%s", deep, PICK(rs, labels), PICK(rs, tops), port);
	else if (kind < 14)
		(void)snprintf(
			buf, size, "%s%s.%s%s", deep, PICK(rs, patterns), PICK(rs, tops), port);
	else
		(void)snprintf(buf, size, "%s.%s.%s%s", PICK(rs, patterns), PICK(rs, labels),
			PICK(rs, tops), port);
}

void random_rule(struct random_state *rs, struct rules *rules)
{
	char text[256], more[128];
	struct rule rule = {0};
	const char *sandbox = PICK(rs, sandboxes);

	random_resource(rs, text, sizeof(text));
	if (random_below(rs, 4) == 0) {
		random_resource(rs, more, sizeof(more));
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%s", more);
	}
	parse(text, random_below(rs, 6) ? RULE_ALLOW : RULE_DENY, &rule);
	rule.sandbox = sandbox ? strdup(sandbox) : NULL;
	rule.until_ms = random_below(rs, 2) ? 0 : 1 + random_below(rs, 4);
	add_rule(rules, &rule);
}

void random_op(struct random_state *rs, struct host *host, struct policy_op *ret)
{
	char text[128];
	uint32_t kind = random_below(rs, 8);
	struct err err;

	if (kind < 2)
		(void)snprintf(text, sizeof(text), "%s", PICK(rs, hosts));
	else if (kind < 3)
		(void)snprintf(text, sizeof(text), "%s", PICK(rs, tops));
	else if (kind < 7)
		(void)snprintf(text, sizeof(text), "%s.%s", PICK(rs, labels), PICK(rs, tops));
	else
		(void)snprintf(text, sizeof(text), "%s.%s.%s", PICK(rs, labels), PICK(rs, labels),
			PICK(rs, tops));
	if (host_from_wire(slice_from_str(text), host, &err) < 0)
		abort();
	*ret = (struct policy_op){.kind = RULE_NETWORK,
		.host = host,
		.port = PICK(rs, op_ports),
		.now_ms = random_below(rs, 6)};
}

/* Of 100 rules 60 are exact, 15 `*.`, 15 `**.`, 4 patterns, 6 networks; in any ten there is a mix.
 */
static size_t wide_kind(size_t i)
{
	return i * 37 % 100;
}

static void wide_name(size_t i, char *buf, size_t size)
{
	(void)snprintf(buf, size, "svc%zu.team%zu.example%zu.com", i, i % 977, i % 8191);
}

static void wide_addr(size_t i, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%zu.%zu.%zu", 20 + i % 60, i / 60 % 250, i / 15000 % 250);
}

void random_rules_wide(struct random_state *rs, size_t n, struct rules *rules)
{
	for (size_t i = 0; i < n; i++) {
		char name[96], text[128];
		size_t kind = wide_kind(i);
		struct rule rule = {0};

		wide_name(i, name, sizeof(name));
		if (kind < 60)
			(void)snprintf(text, sizeof(text), "%s%s", name, i % 3 ? ":443" : "");
		else if (kind < 90)
			(void)snprintf(
				text, sizeof(text), "%s.%s:443", kind < 75 ? "*" : "**", name);
		else if (kind < 94)
			(void)snprintf(text, sizeof(text), "crl*.%s:80", name);
		else {
			wide_addr(i, name, sizeof(name));
			(void)snprintf(text, sizeof(text), "%s.0/24", name);
		}
		parse(text, random_below(rs, 10) ? RULE_ALLOW : RULE_DENY, &rule);
		add_rule(rules, &rule);
	}
}

void random_op_wide(struct random_state *rs, size_t n, struct host *host, struct policy_op *ret)
{
	size_t i = random_below(rs, (uint32_t)n), kind = wide_kind(i);
	const char *front = kind < 60 ? "" : kind < 75 ? "a." : kind < 90 ? "a.b." : "crl3.";
	char name[96], text[128];
	struct err err;

	if (random_below(rs, 3) == 0) /* the same shape, and no rule for it */
		i += 100 * n;
	wide_name(i, name, sizeof(name));
	(void)snprintf(text, sizeof(text), "%s%s", front, name);
	if (kind >= 94) {
		wide_addr(i, name, sizeof(name));
		(void)snprintf(text, sizeof(text), "%s.7", name);
	}
	if (host_from_wire(slice_from_str(text), host, &err) < 0)
		abort();
	*ret = (struct policy_op){.kind = RULE_NETWORK,
		.host = host,
		.port = kind >= 90 && kind < 94 ? 80 : 443,
		.now_ms = 1};
}
