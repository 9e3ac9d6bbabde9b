/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate - decides the requests of edge: policy, number of earlier denials, audit record.
 *
 * How      gate_decide_bound parses the requested name as a host, decides by the policy (names for
 *          DNS: whether any port is allowed), appends one record to the audit log and only then
 *          allows. A request that cannot be recorded is denied. Refusals are counted in a bounded
 *          table, so that the answer has the number of denials of this request. gate_result records
 *          later results of egress: a denied address, a server that does not respond. A verdict has
 *          the texts for lib/wire/http/deny.h: `rule` as the user wrote it, or "" if none applies;
 *          `reason` only if neither explains it; `sandbox` unless the rule is for all sandboxes. A
 *          CONNECT is decided by the policy alone and recorded only when it is refused. What a
 *          credential is bound to comes in as struct gate_binding: a tunnel there is intercepted,
 *          plain HTTP to such a host denied, and the record names the credential.
 * Trust    Requests come from edge, which the guest may have compromised. Runs in keeper.
 * Owns     The compiled policy and the counters. The audit log is borrowed and may be NULL: then
 *          everything is denied.
 * Limits   GATE_COUNTERS refusals are counted; of GATE_WAYS that share a place the least recent is
 *          forgotten.
 * Never    Fails open. Resolves a name.
 * See      gate_test.c, gate_cred_test.c, release.h, lib/rules/policy/policy.h,
 *          lib/rules/audit/audit.h
 */
#pragma once

#include "lib/rules/audit/audit.h"
#include "lib/os/ipc/edge_chan.h"
#include "lib/os/ipc/origin_chan.h"
#include "lib/rules/hold/hold.h"
#include "lib/rules/pack/packs.h"
#include "lib/rules/policy/policy.h"

#define GATE_COUNTERS 4096
#define GATE_WAYS 8

struct gate;

/* name: of the sandbox, as people and rules say it. */
struct gate *gate_new(const char *name, struct audit *audit);
/* Takes the policy over; NULL: everything is denied. */
void gate_set_policy(struct gate *g, struct policy *policy);
void gate_set_name(struct gate *g, const char *name);
/* The host's addresses and networks; whether they are others than before. */
bool gate_set_locals(struct gate *g, const struct addr_locals *locals);
/* The same for egress. */
void gate_put_locals(const struct gate *g, struct egress_locals *ret);
/* Another log, or none: then `why` has the reason. */
void gate_set_audit(struct gate *g, struct audit *audit, const char *why);
/* Why the policy denies everything; NULL when it does not. */
const char *gate_fault(const struct gate *g);

/* What the keeper knows about credentials for the host of an ask. All empty: there is none. */
struct gate_binding {
	const char *credential; /* bound to the requested host and port: its name; NULL: none */
	bool has_host;		/* some port of the requested host has one */
	bool is_guarded;	/* no tunnels to the host, also on ports without a binding */
	const char *fault;	/* why what needs a credential is refused now; NULL: it is not */
};

/* binding: NULL: no credentials. now_ms: the time of day. */
void gate_decide_bound(struct gate *g, const struct edge_ask *ask,
	const struct gate_binding *binding, uint64_t now_ms, struct edge_verdict *ret);
/* What a person must approve before the last ask is allowed, unrecorded; NULL: it is decided. */
const struct hold_text *gate_asked(const struct gate *g);
/* The same ask, approved in the request `hold`. All else applies and is recorded as above. */
void gate_decide_approved(struct gate *g, const struct edge_ask *ask,
	const struct gate_binding *binding, const char *hold, uint64_t now_ms,
	struct edge_verdict *ret);
/* It is not approved (yet): records the denial. hold: the request for it; NULL: none. */
void gate_refuse_asked(struct gate *g, const struct edge_ask *ask, const struct hold_text *what,
	const char *why, const char *hold, struct edge_verdict *ret);
/* Effects, one a line, as a record has them; until the next call. */
const char *gate_join_effects(struct gate *g, const char *lines);
/* What came of an allowed ask; records it when it did not succeed. */
void gate_result(struct gate *g, const struct edge_ask *ask, const struct egress_result *result,
	uint64_t now_ms);

/* gate_head.c. Borrowed; NULL: no rule is about an API. */
void gate_set_packs(struct gate *g, const struct packs *packs);
/* The pack of the host, if rules are about APIs; or NULL. */
const struct pack *gate_pack(const struct gate *g, const char *host, uint16_t port);
/* Whether rules are about APIs. */
bool gate_has_api(const struct gate *g);
/* Whether the head of each request to the host must be read. */
bool gate_needs_head(const struct gate *g, const char *host, uint16_t port, uint64_t now_ms);
/* Whether rules still permit what this ask was about. is_judged: but for a push's content. */
bool gate_passes_head(struct gate *g, const struct edge_ask *ask, bool is_judged, uint64_t now_ms);

/* gate_cred.c. The policy of now, without a record: whether the host is allowed on any port, and
 * on this one. */
void gate_look(const struct gate *g, const char *host, uint16_t port, uint64_t now_ms,
	bool *ret_host, bool *ret_port);
/* Whether an address may be what the allowed host led to; as egress decides it. is_own: both
 * ends of the connection have this address. */
bool gate_passes_address(const struct gate *g, const char *host, uint16_t port,
	const struct addr *addr, bool is_own, uint64_t now_ms);
/* What is written about a credential, which is called by its name. */
struct gate_use {
	const char *credential;
	const char *host;
	uint16_t port;
	const char *why; /* not NULL: it was refused */
	uint64_t serial;
	const char *addr;
	const uint8_t *cert; /* ORIGIN_CERT_HASH bytes, or NULL */
};
/* That it is released to the process for a host, or why not. On an error nothing was written. */
int gate_record_release(struct gate *g, const struct gate_use *use, struct err *err) MUST_CHECK;
/* That a token which was caught is kept for this sandbox, or why not. */
void gate_record_kept(struct gate *g, const struct gate_use *use);
/* The result of an allowed request, from sbx-origin. */
void gate_origin_result(struct gate *g, const struct edge_ask *ask, const char *credential,
	const struct origin_result *result);
/* Both for a host without a credential, which is intercepted because rules need the head. */
void gate_bare_result(
	struct gate *g, const struct edge_ask *ask, const struct origin_result *result);
void gate_bare_lost(struct gate *g, const struct edge_ask *ask, const char *why);
/* The same if it exited before it reported: the value may have been sent. */
void gate_origin_lost(struct gate *g, const struct edge_ask *ask, const char *credential,
	bool had_value, const char *why);
