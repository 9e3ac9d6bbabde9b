/* SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include "lib/base/mem.h"
#include "policy_request.h"

#define MAX_SHOWN (size_t)300 /* bytes of the resources */

void policy_print_op(const struct policy_op *op, char *buf, size_t size)
{
	bool v6 = op->host->is_addr && op->host->addr.n == 16;

	(void)snprintf(buf, size, "action=%s, resource=net:domain:%s%s%s:%u",
		rule_action_name(op->kind), v6 ? "[" : "", op->host->name, v6 ? "]" : "", op->port);
}

void policy_print_where(const struct policy_rule *rule, char *buf)
{
	if (rule->is_managed)
		(void)snprintf(buf, POLICY_MAX_WHERE, POLICY_MANAGED_FILE ":%" PRIu32, rule->index);
	else
		(void)snprintf(buf, POLICY_MAX_WHERE, "policy %" PRIu64, (uint64_t)rule->index + 1);
}

/* A rule of the managed policy is known by its file and line. */
static struct slice name_of(const struct policy_rule *rule, char where[POLICY_MAX_WHERE])
{
	policy_print_where(rule, where);
	if (rule->is_managed)
		return slice_from_str(where);
	return rule->id.n ? rule->id : slice_from_str("-");
}

static void explain_rule(const struct policy_decision *d, const char *what, char *buf, size_t size)
{
	const struct policy_rule *rule = &d->rule;
	char where[POLICY_MAX_WHERE];
	struct slice id = name_of(rule, where);

	(void)snprintf(buf, size, "%s: rule \"%.*s\" (%s %s %.*s%s) matched op(%s)",
		d->allowed ? "allowed" : "denied", (int)id.n, (const char *)id.p,
		rule_effect_name(rule->effect), rule_kind_name(rule->kind),
		(int)MIN(rule->resources.n, MAX_SHOWN), (const char *)rule->resources.p,
		rule->resources.n > MAX_SHOWN ? "..." : "", what);
}

void policy_explain_request(
	const struct policy_request *req, const struct policy_outcome *out, char *buf, size_t size)
{
	static const char *const words[] = {[POLICY_DENIES] = "denied",
		[POLICY_ALLOWS] = "allowed",
		[POLICY_ASKS] = "approval required"};
	char text[EFFECT_MAX_TEXT + 1] = "";
	const struct policy_rule *rule = &out->by.rule;
	char where[POLICY_MAX_WHERE];
	struct slice id = name_of(rule, where);

	if (out->has_effect)
		(void)effect_print(&req->list[out->description].effect[out->effect], text);
	if (!out->has_effect && out->by.why != POLICY_UNCOVERED)
		policy_explain(&req->op, &out->by, buf, size);
	else if (out->by.why != POLICY_RULE)
		(void)snprintf(buf, size,
			"denied%s: rules about requests apply to %s, and none of them permits %s",
			out->by.is_managed ? " by " POLICY_MANAGED_FILE : "", req->op.host->name,
			text[0] ? text : "the request");
	else
		(void)snprintf(buf, size, "%s: rule \"%.*s\" (%s %s %.*s%s) matched %s",
			words[out->verdict], (int)id.n, (const char *)id.p,
			rule_effect_name(rule->effect), rule_kind_name(rule->kind),
			(int)MIN(rule->resources.n, MAX_SHOWN), (const char *)rule->resources.p,
			rule->resources.n > MAX_SHOWN ? "..." : "", text);
}

static void explain_special(
	const struct policy_decision *d, const char *what, char *buf, size_t size)
{
	char addr[ADDR_MAX_TEXT];

	addr_print(&d->addr, addr);
	(void)snprintf(buf, size,
		"%s%s is a %s address, which only a rule for this address%s can allow: "
		"no applicable policies for op(%s)",
		d->is_managed ? "denied by " POLICY_MANAGED_FILE ": " : "", addr,
		addr_class_name(d->addr_class), d->addr_class == ADDR_OWN ? "" : " or its network",
		what);
}

void policy_explain(
	const struct policy_op *op, const struct policy_decision *d, char *buf, size_t size)
{
	char what[HOST_MAX_NAME + 80];

	policy_print_op(op, what, sizeof(what));
	switch (d->why) {
	case POLICY_NO_POLICY:
		(void)snprintf(
			buf, size, "no network policy is set, all traffic is denied: op(%s)", what);
		break;
	case POLICY_FAULT:
		(void)snprintf(buf, size,
			"all traffic is denied, cannot read the policy: %s: op(%s)", d->fault,
			what);
		break;
	case POLICY_NO_RULE:
		(void)snprintf(buf, size, "%sno applicable policies for op(%s)",
			d->is_managed ? "denied by " POLICY_MANAGED_FILE ": " : "", what);
		break;
	case POLICY_SPECIAL:
		explain_special(d, what, buf, size);
		break;
	case POLICY_RULE:
		explain_rule(d, what, buf, size);
		break;
	case POLICY_UNCOVERED:
		(void)snprintf(buf, size, "no rule covers an effect of the request: op(%s)", what);
		break;
	case POLICY_PUBLIC:
		(void)snprintf(buf, size, "allowed: the address is public: op(%s)", what);
		break;
	}
}
