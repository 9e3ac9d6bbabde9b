/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_internal - the tables of a compiled policy, for policy.c and policy_compile.c only.
 */
#pragma once

#include <assert.h>
#include "policy.h"

/* A rule in a span: its index + 1, 0 for none; the top bit marks a rule that expires. */
#define POLICY_ENDS 0x80000000u

/* Ports lo to hi: of all rules that speak of them, the deny and the allow that live longest. */
struct span {
	uint16_t lo, hi;
	uint32_t deny, allow;
};

struct spans {
	uint32_t first; /* in policy.span */
	uint32_t n;
};

/* What hangs below a literal end such as `example.com`. */
enum list { LIST_EXACT, LIST_ONE, LIST_DEEP, LIST_GLOB, N_LISTS = LIST_GLOB };

/*
 * The record of a literal end. It is followed by the spans of its N_LISTS lists, one list after the
 * other, and its name: with a large policy the cost is the number of cache lines of a decision, and
 * most records are one.
 */
struct node {
	uint32_t glob; /* in policy.glob */
	uint16_t n_globs;
	uint16_t n[N_LISTS];
	uint8_t n_name;
};

#define POLICY_UNIT 16 /* records begin at multiples of it */
#define POLICY_LINE 64

static_assert(sizeof(struct node) == POLICY_UNIT, "struct node has grown");

static inline const struct span *node_spans(const struct node *node)
{
	return (const struct span *)(node + 1);
}

static inline const char *node_name(const struct node *node)
{
	return (const char *)(node_spans(node) + node->n[LIST_EXACT] + node->n[LIST_ONE] +
			      node->n[LIST_DEEP]);
}

/* The labels in front of a literal end, patterns among them. */
struct glob {
	uint32_t text; /* in policy.text, without the dot after it */
	uint8_t n;
	bool deep;
	struct spans spans;
};

#define NO_NET UINT32_MAX

struct net {
	uint32_t parent; /* the network around it, or NO_NET */
	uint8_t prefix;
	struct spans spans;
};

/* The networks of one family, by their first address and then from wide to narrow. */
struct nets {
	addr_bits *key;
	struct net *net;
	size_t n, max;
	uint32_t *door; /* of 2^POLICY_DOOR_BITS + 1: how many keys begin with smaller bits */
};

#define POLICY_DOOR_BITS 10

struct policy {
	struct rules rules;
	char *fault;
	struct spans every; /* of `**` */
	struct span *span;
	char *text;
	struct glob *glob;
	uint8_t *nodes; /* records */
	uint32_t *slot; /* 2^slot_bits: 8 bits of the hash, 24 of the record's place; 0: empty */
	unsigned slot_bits;
	unsigned max_labels;	/* of a literal end */
	uint64_t has_labels[2]; /* bit n: there is a literal end of n labels */
	struct nets v4, v6;
};

/* The hash of a literal end grows from its last byte to its first. */
#define POLICY_HASH_START 0xcbf29ce484222325ull

static inline uint64_t policy_hash_byte(uint64_t h, uint8_t c)
{
	return (h ^ c) * 0x100000001b3ull;
}

/* The top bits choose the slot, the lowest eight are kept in it. */
static inline uint64_t policy_hash_end(uint64_t h)
{
	return (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
}

/* Fills the tables from p->rules. On an error p is half-built and holds no answer. */
int policy_compile(struct policy *p, const char *sandbox, struct err *err) MUST_CHECK;
