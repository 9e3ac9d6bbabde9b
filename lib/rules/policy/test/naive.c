/* SPDX-License-Identifier: Apache-2.0 */
#include "naive.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

/* `*` and `?` stop at a dot; `**.` in front stands for one label or more. */
static bool match_name(const char *p, const char *s)
{
	if (strncmp(p, "**.", 3) == 0) {
		for (const char *dot = strchr(s, '.'); dot; dot = strchr(dot + 1, '.'))
			if (match_name(p + 3, dot + 1))
				return true;
		return false;
	}
	if (*p == '*')
		return match_name(p + 1, s) || (*s && *s != '.' && match_name(p, s + 1));
	if (*p == '[' && *s && *s != '.') {
		const char *end = strchr(p, ']');
		bool in = false;

		for (const char *c = p + 1; c < end; c++) {
			if (c[1] == '-' && c + 2 < end && *s >= c[0] && *s <= c[2])
				in = true;
			in |= *c == *s && *c != '-';
		}
		return in && match_name(end + 1, s + 1);
	}
	if (*p == '?')
		return *s && *s != '.' && match_name(p + 1, s + 1);
	return *p == *s && (*p == '\0' || match_name(p + 1, s + 1));
}

/* The first `bits` bits of two addresses of one family. */
static bool match_addr(const char *p, unsigned bits, const struct addr *a)
{
	uint8_t b[16];

	if (inet_pton(a->n == 4 ? AF_INET : AF_INET6, p, b) != 1)
		return false;
	for (unsigned i = 0; i < bits; i++)
		if ((b[i / 8] ^ a->b[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return true;
}

static bool match_net(const char *p, const struct policy_op *op, bool deny)
{
	struct addr all[1 + ADDR_MAX_EMBEDDED] = {op->host->addr};
	size_t n = 1 + (deny ? addr_embedded(&all[0], all + 1) : 0);
	struct addr_net range;
	bool special = addr_classify(&all[0], &range) != ADDR_PUBLIC;
	char addr[64] = "";
	unsigned bits = 128;

	if (sscanf(p, p[0] == '[' ? "[%45[0-9a-f:.]/%u" : "%45[0-9.]/%u", addr, &bits) < 2)
		bits = p[0] == '[' ? 128 : 32;
	if (!deny && special && (strcmp(p, "**") == 0 || bits < range.prefix))
		return false;
	for (size_t i = 0; i < n; i++)
		if (match_addr(addr, bits, &all[i]))
			return true;
	return strcmp(p, "**") == 0;
}

static bool match_one(const char *p, const struct policy_op *op, bool deny)
{
	const char *close = strchr(p, ']'), *colon = strchr(p[0] == '[' && close ? close : p, ':');
	char host[320] = "", *end;
	unsigned long lo, hi;

	if (colon) {
		lo = hi = strtoul(colon + 1, &end, 10);
		if (*end == '-')
			hi = strtoul(end + 1, NULL, 10);
		if (op->port < lo || op->port > hi)
			return false;
	} else if (!deny && op->port != 80 && op->port != 443) {
		return false;
	}
	memcpy(host, p, colon ? (size_t)(colon - p) : strlen(p));
	if (op->host->is_addr)
		return match_net(host, op, deny);
	return strcmp(host, "**") == 0 || match_name(host, op->host->name);
}

bool naive_matches_host(const char *resource, const struct policy_op *op, bool every_port)
{
	return (every_port || strchr(resource, ':') || op->port == 80 || op->port == 443) &&
	       match_one(resource, op, true);
}

bool naive_matches(const struct naive_rule *rule, const struct policy_op *op)
{
	const char *p = rule->resources;

	for (size_t n = strcspn(p, ","); n > 0; n = strcspn(p, ",")) {
		char one[NETRULE_MAX_TEXT];

		memcpy(one, p, n);
		one[n] = '\0';
		if (match_one(one, op, rule->rule->effect == RULE_DENY))
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}

bool naive_decide(
	const struct naive_rule *rules, size_t n, const char *sandbox, const struct policy_op *op)
{
	bool allowed = false;

	for (size_t i = 0; i < n; i++) {
		const struct rule *rule = rules[i].rule;

		if (rule->kind != RULE_NETWORK ||
			(rule->sandbox && strcmp(rule->sandbox, sandbox) != 0))
			continue;
		if ((rule->until_ms && op->now_ms >= rule->until_ms) ||
			!naive_matches(&rules[i], op))
			continue;
		if (rule->effect == RULE_DENY)
			return false;
		allowed = true;
	}
	return allowed;
}
