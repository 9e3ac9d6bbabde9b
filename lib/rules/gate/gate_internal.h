/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_internal - what the files of lib/rules/gate share.
 *
 * Trust    As gate.h.
 */
#pragma once

#include "gate_push.h"
#include "lib/rules/head/head.h"
#include "lib/base/arena.h"

/* One thing that was refused, by its hash: the table then costs the same for long names. */
struct counter {
	uint64_t hash;
	uint32_t n;    /* 0: free */
	uint32_t used; /* when, in refusals of this gate */
};

struct gate {
	char name[EDGE_MAX_NAME];
	struct audit *audit;
	char *no_audit; /* why audit is NULL */
	struct policy *policy;
	struct addr_locals locals; /* of this host */
	uint8_t key[16];
	uint32_t now;
	struct counter *counters;
	bool is_asked, is_approved; /* the ask being decided: see gate_asked */
	char approved[HOLD_ID];	    /* is_approved: in which request */
	bool is_push;		    /* see gate_push */
	struct gate_push push;
	const struct gate_pushed *pushed; /* of the ask being decided; NULL: not known */
	struct hold_text hold;		  /* what is asked, and its texts */
	char hold_effects[HOLD_MAX_EFFECTS + 1];
	char hold_rule[HEAD_MAX_RULE];
	char where[POLICY_MAX_WHERE];			      /* of that rule */
	char effects[HOLD_MAX_EFFECTS + EFFECT_MAX_TEXT + 1]; /* see struct judgement */
	const struct packs *packs;			      /* NULL: no rule is about an API */
	struct arena arena;				      /* of one decision on a head */
};

/* The texts of a decision: `rule` and `reason` of the record and of the verdict. */
struct judgement {
	bool allowed;
	char rule[EDGE_MAX_RULE];
	char reason[POLICY_MAX_EXPLAIN];
	char where[POLICY_MAX_WHERE];  /* the rule is; or "" */
	const char *effects;	       /* as in a record, in struct gate; NULL: none */
	uint8_t digest[EFFECT_DIGEST]; /* of the effects */
	const char *hold;	       /* the approval request; NULL: none */
};

const char *gate_path_word(const struct edge_ask *ask);
/* "GET /a/b", never the query, which may have secrets; buf has GATE_MAX_OP bytes. */
#define GATE_MAX_PATH 1023 /* the record of a longer path has its beginning and " ..." */
#define GATE_MAX_OP (EDGE_MAX_METHOD + GATE_MAX_PATH + 8)
void gate_print_op(const struct edge_ask *ask, char *buf);
int gate_append(struct gate *g, const struct audit_event *ev, struct err *err) MUST_CHECK;
/* What came of an allowed request: it failed, or was refused later. */
void gate_record_late(struct gate *g, const struct edge_ask *ask, bool allowed, const char *reason);
/* gate_head.c: as gate_needs_head, and names such a rule: HEAD_MAX_RULE bytes. */
bool gate_needs_rule(
	const struct gate *g, const char *host, uint16_t port, uint64_t now_ms, char *ret_rule);
/* Of a tunnel that is intercepted: the headers that edge sends with each request. */
void gate_put_wants(
	struct gate *g, const struct edge_ask *ask, uint64_t now_ms, struct edge_verdict *ret);
void gate_refuse(struct judgement *j, struct edge_verdict *ret, const char *why);
/* gate_head.c: of an HTTP ask that the network rules allow. */
void gate_judge_head(struct gate *g, const struct edge_ask *ask, const struct policy_op *op,
	struct judgement *j, struct edge_verdict *ret);
/* gate_push.c: what the record names, and the texts for a person. */
void gate_name_effects(struct gate *g, const struct head_decision *d, struct judgement *j);
void gate_put_asked(struct gate *g, const struct head_decision *d);
/* The rules are about pushes, and this is one. */
void gate_put_push(struct gate *g, const struct edge_ask *ask, const struct head_decision *d,
	struct judgement *j, struct edge_verdict *ret);
uint32_t gate_count_refusal(struct gate *g, const struct edge_ask *ask);
