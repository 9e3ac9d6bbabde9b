/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy - decides whether the policy allows an operation of a sandbox.
 *
 * How      A policy has two tables (table.h) that never change: the rules for all sandboxes, and
 *          the rules of this sandbox. policy_decide looks up an operation in both. Any deny wins,
 *          then any allow; the default is deny; the order of the rules has no meaning. With a
 *          managed policy, a third table, an operation is allowed only if both policies allow it.
 *          Names of this host (host_is_here) are allowed only by a rule with exactly that name and
 *          a port. Names: one hash table of the literal ends of all patterns, searched once for
 *          each label of the host. Addresses: sorted networks, each with the one around it. Below
 *          each, disjoint ranges of ports with the longest-living deny and allow. A decision
 *          allocates nothing, and its steps do not grow with the number of rules.
 * Trust    Rules of the same user; hosts and ports of a guest, canonical (host.h). Keeper, egress
 *          and sbxd.
 * Owns     A struct policy owns its tables; what a decision points to lives as long as the policy.
 * Limits   POLICY_MAX_GLOBS patterns in front of one literal end, in each table.
 * Never    Fails open: a fault, an empty text and a NULL policy are policies that deny everything.
 * See      proto/PROTOCOL.policy, policy_test.c, policy_oracle_test.c, bench/policy
 */
#pragma once

#include "locals.h"
#include "rules.h"

#define POLICY_MAX_GLOBS 128
#define POLICY_MAX_EXPLAIN 1024
#define POLICY_MAX_WHERE 65
#define POLICY_MANAGED_FILE "/etc/sbx/policy"

struct policy;

/* In the order in which they are sent: the last one completes the policy. */
enum policy_part { POLICY_ALL, POLICY_MANAGED, POLICY_OWN, POLICY_N_PARTS };

/* An operation. A further kind of rule adds its own fields to host and port. */
struct policy_op {
	enum rule_kind kind;
	const struct host *host;
	uint16_t port;
	uint64_t now_ms;		  /* the time of day */
	const struct addr_locals *locals; /* of this host; NULL: not known */
	bool is_own; /* the address that it led to is one of this host, listed or not */
};

enum policy_why {
	POLICY_NO_POLICY,
	POLICY_FAULT,	  /* the policy could not be read */
	POLICY_NO_RULE,	  /* no rule speaks of it */
	POLICY_SPECIAL,	  /* an address of addr_class, which a rule must name */
	POLICY_RULE,	  /* decided by the rule */
	POLICY_PUBLIC,	  /* of a connected address: nothing speaks against it */
	POLICY_UNCOVERED, /* of a request to a governed host: no rule covers an effect */
};

/* A rule as a table has it. */
struct policy_rule {
	enum rule_effect effect;
	enum rule_kind kind;
	bool is_own;		    /* for this sandbox only */
	bool is_managed;	    /* of the managed policy */
	uint32_t index;		    /* in the rules that were compiled; is_managed: the line */
	uint32_t group;		    /* as struct rule */
	struct slice id, resources; /* without an id: empty */
};

struct policy_decision {
	bool allowed;
	bool is_managed; /* the managed policy denies it: no rule of the user changes that */
	enum policy_why why;
	struct policy_rule rule;    /* POLICY_RULE */
	const char *fault;	    /* POLICY_FAULT */
	enum addr_class addr_class; /* POLICY_SPECIAL */
	struct addr addr;	    /* POLICY_SPECIAL */
};

/* The rules for every sandbox and for this one, compiled. Never NULL: see policy_fault. */
struct policy *policy_new(const struct rules *rules, const char *sandbox);
/* Why this policy denies everything; NULL when it does not have a fault and is set. */
const char *policy_fault(const struct policy *policy);
void policy_free(struct policy *policy);

/* For a host as it was named, before anything is resolved. NULL is a valid policy. */
void policy_decide(
	const struct policy *policy, const struct policy_op *op, struct policy_decision *ret);
/*
 * For an address that an allowed name led to, before and after connecting: denied when a rule
 * denies it, or when it is not public and no rule for addresses names it.
 */
void policy_decide_address(const struct policy *policy, const struct policy_op *op,
	const struct addr *addr, struct policy_decision *ret);
/* Whether the host of op may be reached on any port: then its name has an address. */
bool policy_has_port(const struct policy *policy, const struct policy_op *op);

/* Where the rule of a decision is: "policy 3", the third rule of the user's policy, or FILE:LINE of
 * the managed one. buf has POLICY_MAX_WHERE bytes. */
void policy_print_where(const struct policy_rule *rule, char *buf);
/* "action=net:connect:tcp, resource=net:domain:HOST:PORT" */
void policy_print_op(const struct policy_op *op, char *buf, size_t size);
/* One sentence for people; buf should have POLICY_MAX_EXPLAIN bytes. */
void policy_explain(
	const struct policy_op *op, const struct policy_decision *decision, char *buf, size_t size);
