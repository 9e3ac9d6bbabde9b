/*
 * gate - answers what edge asks: policy, how often it was refused before, and the record of it.
 *
 * How      gate_decide makes a host of the asked name, decides by the policy (names for DNS: whether
 *          any port is allowed), appends one record to the audit log and only then says yes. What
 *          cannot be recorded is refused. Refusals are counted in a bounded table, so that the
 *          answer can say how often just this was refused. gate_result records what egress met
 *          later: an address that is refused, a server that does not answer. A verdict has the
 *          words that lib/http/deny.h wants: `rule` as a person wrote it, or "" when none applies;
 *          `reason` only where neither says why; `sandbox` unless the
 *          rule is every sandbox's.
 * Trust    Asks come from edge, which the guest may have taken over. Runs in keeper.
 * Owns     The compiled policy and the counters. The audit log is borrowed and may be NULL: then
 *          everything is refused.
 * Limits   GATE_COUNTERS refusals are counted; of GATE_WAYS that share a place the least recent is
 *          forgotten.
 * Never    Fails open. Resolves a name.
 * See      gate_test.c, lib/policy/policy.h, lib/audit/audit.h
 */
#pragma once

#include "lib/audit/audit.h"
#include "lib/ipc/edge_chan.h"
#include "lib/ipc/egress_chan.h"
#include "lib/policy/policy.h"

#define GATE_COUNTERS 4096
#define GATE_WAYS 8

struct gate;

/* name: of the sandbox, as people and rules say it. */
struct gate *gate_new(const char *name, struct audit *audit);
void gate_free(struct gate *g);
/* The text of a policy file; a NULL slice means that there is none: everything is denied. */
void gate_set_policy(struct gate *g, struct slice text, const char *file);
void gate_set_name(struct gate *g, const char *name); /* call gate_set_policy afterwards */
/* Another log, or none: then why says in one sentence what is wrong with it. */
void gate_set_audit(struct gate *g, struct audit *audit, const char *why);
/* Why the policy denies everything; NULL when it does not. */
const char *gate_fault(const struct gate *g);
/* now_ms: the time of day. */
void gate_decide(
	struct gate *g, const struct edge_ask *ask, uint64_t now_ms, struct edge_verdict *ret);
/* What came of an allowed ask; records it when it did not succeed. */
void gate_result(struct gate *g, const struct edge_ask *ask, const struct egress_result *result,
	uint64_t now_ms);
