/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_request - decides on a request by what it does.
 *
 * How      A request has descriptions, each a list of effects (effect.h): as an HTTP request, as
 *          operations of an API, as operations of git. A deny rule that matches one effect of one
 *          description refuses it. The network rules must allow its host. If an allow rule about
 *          requests names the host, the host is governed: then each effect of at least one
 *          description must be covered by an allow or an ask rule. An ask rule that matches one
 *          effect of one description holds what is permitted so far.
 *          Index: a hash table of literal ends of hosts and of services, below each the literal
 *          starts of the patterns, sorted, each with the next shorter one. A decision allocates
 *          nothing. A managed policy decides too: what one of both refuses is refused, and what
 *          one of both asks about is held.
 * Trust    As policy.h. The effects are of an untrusted request.
 * Owns     Nothing.
 * Limits   POLICY_MAX_AT rules with one host and one literal start, POLICY_MAX_HOSTS hosts and
 *          ports below one literal end, half of POLICY_MAX_HEADERS names of
 *          headers, in each table.
 * Never    Lets an effect be covered by a rule that needs a fact which is not known.
 * See      docs/decisions/effects.md, policy_request_test.c, policy_oracle_test.c
 */
#pragma once

#include "lib/rules/effect/effect.h"
#include "policy.h"

#define POLICY_MAX_AT 1024
#define POLICY_MAX_HOSTS 256
#define POLICY_MAX_HEADERS EFFECT_MAX_HEADERS

/* One way to see a request. */
struct policy_description {
	const struct effect *effect;
	size_t n;
	/* Without effects: it is covered, in the policy and in the managed one. */
	bool is_covered, is_covered_managed;
};

struct policy_request {
	struct policy_op op; /* its host and port, the time, this host's addresses */
	const struct policy_description *list; /* a refusal names an effect of the first one */
	size_t n;
};

enum policy_verdict { POLICY_DENIES, POLICY_ALLOWS, POLICY_ASKS };

struct policy_outcome {
	enum policy_verdict verdict;
	bool is_governed;
	/* The rule. POLICY_UNCOVERED: no rule covers the effect. Else the network rules decided. */
	struct policy_decision by;
	bool has_effect;
	size_t description, effect; /* has_effect: which one */
};

/* NULL is a valid policy, which denies. */
void policy_decide_request(
	const struct policy *p, const struct policy_request *req, struct policy_outcome *ret);
/* Whether an allow rule about requests names the host, or the service of the API pack that has it
 * (empty: none has), at op->now_ms. */
bool policy_governs(const struct policy *p, const struct policy_op *op, struct slice service);
/* Whether any rule about requests does: then the heads of requests to it must be seen. */
bool policy_needs_head(const struct policy *p, const struct policy_op *op, struct slice service);
/* As policy_needs_head, or with `allows` as policy_governs. *ret is such a rule; without resources
 * if the compiled rules are damaged. */
bool policy_find_request_rule(const struct policy *p, const struct policy_op *op,
	struct slice service, bool allows, struct policy_rule *ret);
/* What rules of kind git say about pushes to a repository, those of a managed policy too. */
struct policy_git {
	bool is_named; /* some rule is about it */
	/* Some rule allows or asks, for a part of what can be done: in the policy, and in the
	 * managed one. */
	bool permits, permits_managed;
	bool paths; /* some rule is about files */
	bool asks;  /* some rule asks */
};
void policy_find_git(const struct policy *p, const struct policy_op *op, struct slice repository,
	struct policy_git *ret);
/* Whether rules of kind api name the service. */
bool policy_names_service(const struct policy *p, const struct policy_op *op, struct slice service);
/* Whether there are rules about API packs. */
bool policy_has_api(const struct policy *p);
/* The names of headers that rules have, in lower case, each once. Returns their number; if it is
 * more than POLICY_MAX_HEADERS, the policy has a fault. */
size_t policy_header_names(const struct policy *p, struct slice ret[POLICY_MAX_HEADERS]);

/* One sentence for people, as policy_explain. */
void policy_explain_request(
	const struct policy_request *req, const struct policy_outcome *out, char *buf, size_t size);
