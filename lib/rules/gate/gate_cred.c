/* SPDX-License-Identifier: Apache-2.0 */
/* Records of credentials after a request was allowed: no policy is decided here. */
#include <stdio.h>
#include "lib/base/hex.h"
#include "gate_internal.h"

void gate_look(const struct gate *g, const char *host, uint16_t port, uint64_t now_ms,
	bool *ret_host, bool *ret_port)
{
	struct host h;
	struct policy_op op = {.kind = RULE_NETWORK,
		.host = &h,
		.port = port,
		.now_ms = now_ms,
		.locals = &g->locals};
	struct policy_decision d;

	*ret_host = *ret_port = false;
	if (host_from_wire(slice_from_str(host), &h, NULL) < 0 || strcmp(h.name, host) != 0)
		return;
	*ret_host = policy_has_port(g->policy, &op);
	policy_decide(g->policy, &op, &d);
	*ret_port = d.allowed;
}

bool gate_passes_address(const struct gate *g, const char *host, uint16_t port,
	const struct addr *addr, bool is_own, uint64_t now_ms)
{
	struct host h;
	struct policy_op op = {.kind = RULE_NETWORK,
		.host = &h,
		.port = port,
		.now_ms = now_ms,
		.locals = &g->locals,
		.is_own = is_own};
	struct policy_decision d;

	if (host_from_wire(slice_from_str(host), &h, NULL) < 0)
		return false;
	policy_decide_address(g->policy, &op, addr, &d);
	return d.allowed;
}

static void print_release(const struct gate_use *use, char *buf, size_t size)
{
	char hash[2 * ORIGIN_CERT_HASH + 1] = "";

	if (use->why) {
		(void)snprintf(buf, size, "not released: %s", use->why);
		return;
	}
	if (use->cert)
		hex_print(use->cert, ORIGIN_CERT_HASH, hash);
	(void)snprintf(buf, size, "released, serial %llu, to %s, certificate %s",
		(unsigned long long)use->serial, use->addr, hash);
}

static int record_use(struct gate *g, const struct gate_use *use, const char *action,
	const char *reason, struct err *err)
{
	struct audit_event ev = {.kind = AUDIT_KIND_CREDENTIAL_USE,
		.decision = use->why ? AUDIT_DENY : AUDIT_ALLOW,
		.action = slice_from_str(action),
		.type = slice_from_str("https"),
		.host = slice_from_str(use->host),
		.port = use->port,
		.rule = slice_from_str(use->credential),
		.reason = slice_from_str(reason)};

	return gate_append(g, &ev, err);
}

int gate_record_release(struct gate *g, const struct gate_use *use, struct err *err)
{
	char reason[EDGE_MAX_REASON];

	print_release(use, reason, sizeof(reason));
	return record_use(g, use, "release", reason, err);
}

void gate_record_kept(struct gate *g, const struct gate_use *use)
{
	char reason[EDGE_MAX_REASON];

	(void)snprintf(reason, sizeof(reason), "%s%s", use->why ? "not kept: " : "kept",
		use->why ? use->why : "");
	/* it is kept already; what cannot be recorded cannot be used either */
	(void)!record_use(g, use, "keep", reason, NULL);
}

/* Whether one of our own checks failed; all else is an external failure. */
static bool is_refusal(enum origin_outcome outcome)
{
	switch (outcome) {
	case ORIGIN_BAD_REQUEST:
	case ORIGIN_DENIED_FOREIGN:
	case ORIGIN_DENIED_METHOD:
	case ORIGIN_DENIED_REQUEST:
	case ORIGIN_BAD_CERT:
	case ORIGIN_NO_VALUE:
	case ORIGIN_CANNOT_SIGN:
	case ORIGIN_NOT_SET:
	case ORIGIN_DENIED_RULE:
		return true;
	default:
		return false;
	}
}

static void print_result(const struct origin_result *r, char *buf, size_t size)
{
	const char *text = r->text[0] ? r->text : origin_outcome_text(r->outcome);
	int n = 0;

	if (r->used)
		n = snprintf(buf, size, "used in slot %s, serial %llu; ", r->slot,
			(unsigned long long)r->serial);
	else
		n = snprintf(buf, size, "not used; ");
	if (r->status && n > 0 && (size_t)n < size)
		n += snprintf(buf + n, size - (size_t)n, "status %u; ", r->status);
	if (r->n_removed && n > 0 && (size_t)n < size)
		n += snprintf(buf + n, size - (size_t)n, "removed from the response %u times; ",
			r->n_removed);
	if (n > 0 && (size_t)n < size)
		(void)snprintf(buf + n, size - (size_t)n, "%s", text);
}

static void append_use(
	struct gate *g, const struct edge_ask *ask, const char *credential, struct audit_event *ev)
{
	char op[GATE_MAX_OP];

	ev->kind = AUDIT_KIND_CREDENTIAL_USE;
	ev->type = slice_from_str("https");
	ev->host = slice_from_str(ask->host);
	ev->port = ask->port;
	ev->path = slice_from_str(gate_path_word(ask));
	ev->rule = slice_from_str(credential);
	gate_print_op(ask, op);
	ev->op = slice_from_str(op);
	/* Nothing is left to refuse when this one cannot be written. */
	(void)!gate_append(g, ev, NULL);
}

void gate_bare_result(
	struct gate *g, const struct edge_ask *ask, const struct origin_result *result)
{
	const char *text = result->text[0] ? result->text : origin_outcome_text(result->outcome);
	char reason[ORIGIN_MAX_TEXT + ORIGIN_MAX_ADDR + 8];
	bool refused = is_refusal(result->outcome);

	if (result->outcome == ORIGIN_DONE || result->outcome == ORIGIN_GONE)
		return;
	(void)snprintf(
		reason, sizeof(reason), "%s%s%s", result->addr, result->addr[0] ? ": " : "", text);
	if (refused)
		(void)gate_count_refusal(g, ask);
	gate_record_late(g, ask, !refused, reason);
}

void gate_bare_lost(struct gate *g, const struct edge_ask *ask, const char *why)
{
	gate_record_late(g, ask, true, why);
}

void gate_origin_result(struct gate *g, const struct edge_ask *ask, const char *credential,
	const struct origin_result *result)
{
	bool refused = is_refusal(result->outcome);
	char reason[EDGE_MAX_REASON];
	struct audit_event ev = {.decision = refused ? AUDIT_DENY : AUDIT_ALLOW,
		.action = slice_from_str(refused	? "refuse"
					 : result->used ? "use"
							: "pass"),
		.count = result->n_removed};

	print_result(result, reason, sizeof(reason));
	ev.reason = slice_from_str(reason);
	if (refused)
		(void)gate_count_refusal(g, ask);
	append_use(g, ask, credential, &ev);
}

void gate_origin_lost(struct gate *g, const struct edge_ask *ask, const char *credential,
	bool had_value, const char *why)
{
	char reason[EDGE_MAX_REASON];
	struct audit_event ev = {
		.decision = AUDIT_ALLOW, .action = slice_from_str(had_value ? "use" : "pass")};

	(void)snprintf(reason, sizeof(reason), "%s; %s",
		had_value ? "may have been used: released" : "not used", why);
	ev.reason = slice_from_str(reason);
	append_use(g, ask, credential, &ev);
}
