/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_internal - the layout of a compiled table (table.h), for its compiler and its readers.
 */
#pragma once

#include <assert.h>
#include "policy.h"
#include "table.h"

#ifndef SBX_BUILD
#define SBX_BUILD SBX_VERSION
#endif

#define TABLE_MAGIC "sbxrules"
#define TABLE_FORMAT 2
#define TABLE_MAX_BUILD 64
#define TABLE_SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)
#define TABLE_ALIGN 64 /* of each section */

/* A rule in a span: its index + 1, 0 for none; the top bit marks a rule that expires. */
#define POLICY_ENDS 0x80000000u

/* Ports lo to hi: of all rules that speak of them, the deny and the allow that live longest. */
struct span {
	uint16_t lo, hi;
	uint32_t deny, allow;
};

struct spans {
	uint32_t first; /* in table.span */
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
	uint32_t glob; /* in table.glob */
	uint16_t n_globs;
	uint16_t n[N_LISTS];
	uint8_t n_name;
};

#define POLICY_UNIT 16 /* records begin at multiples of it */
#define POLICY_LINE 64

static_assert(sizeof(struct node) == POLICY_UNIT, "struct node has grown");

/* The labels in front of a literal end, patterns among them. */
struct glob {
	uint32_t text; /* in table.text, without the dot after it */
	uint8_t n;
	uint8_t deep;
	struct spans spans;
};

#define NO_NET UINT32_MAX

struct net {
	uint32_t parent; /* the network around it, before it in the list, or NO_NET */
	uint8_t prefix;
	struct spans spans;
};

/* A door: how many keys begin with smaller bits. */
#define POLICY_DOOR_BITS 10
#define POLICY_N_DOORS ((1u << POLICY_DOOR_BITS) + 1)

/* What a decision tells about its rule. */
struct table_rule {
	uint64_t until_ms;
	uint32_t text; /* in table.text: the id, then the resources */
	uint32_t index, group;
	uint16_t n_resources;
	uint8_t n_id;
	uint8_t effect : 2, kind : 5, is_own : 1;
};

static_assert(sizeof(struct table_rule) == 24, "100,000 of them are a part of each policy");
static_assert(RULE_MAX_WORD <= UINT8_MAX && RULE_MAX_LIST <= UINT16_MAX, "their lengths fit");

/* ---- rules about requests ---- */

/* The labels in front of a group's literal end, and the ports. */
struct host_spec {
	uint32_t text; /* in table.text, without the dot after it */
	uint16_t lo, hi;
	uint8_t n_glob;
	uint8_t deep, is_every;
	uint8_t unused;
};

/* A literal end of hosts, an address, or a service: of one kind of effects. */
struct req_group {
	uint32_t name;
	uint32_t place, n_places;
	uint32_t host, n_hosts;
	uint8_t n_name, kind;
	uint16_t unused;
};

/* A host that rules of the group name: the rule that lives longest, and the allow that does. */
struct req_host {
	struct host_spec spec;
	uint32_t any, allow; /* as in struct span */
};

/* The literal start of patterns, in lower case; those of a group are sorted. */
struct req_place {
	uint64_t front; /* the first bytes of the text: policy_front */
	uint32_t text;
	uint32_t parent; /* the longest other one that this one begins with, before it */
	uint32_t row, n_rows;
	uint16_t n;
	uint16_t unused;
};

/* One resource of a rule, with one of its objects if it has any. */
struct req_row {
	struct host_spec spec;
	uint32_t rule; /* as in struct span */
	uint32_t pattern, terms;
	uint16_t n_pattern, n_terms;
};

#define NO_PLACE UINT32_MAX

enum table_section {
	TABLE_SPANS,
	TABLE_TEXT, /* of a fault: the reason */
	TABLE_GLOBS,
	TABLE_NODES, /* records; bytes */
	TABLE_SLOTS, /* 2^slot_bits: 8 bits of the hash, 24 of the record's place; 0: empty */
	TABLE_RULES,
	TABLE_V4_KEYS, /* the networks of one family, by their first address, then wide to narrow */
	TABLE_V4_NETS,
	TABLE_V4_DOORS,
	TABLE_V6_KEYS,
	TABLE_V6_NETS,
	TABLE_V6_DOORS,
	TABLE_REQ_SLOTS, /* a power of two; the number of a group, from 1; 0: empty */
	TABLE_REQ_GROUPS,
	TABLE_REQ_HOSTS,
	TABLE_REQ_PLACES,
	TABLE_REQ_ROWS,
	TABLE_REQ_HEADERS, /* names, each with a line feed behind it; bytes */
	TABLE_N_SECTIONS,
};

struct table_range {
	uint64_t at, n; /* bytes from the start of the table; elements */
};

/* The first bytes of a table. Every section is optional, and all zero means that it is empty. */
struct table_head {
	char magic[8];
	uint32_t format;
	uint32_t part;
	char build[TABLE_MAX_BUILD];
	uint64_t size;			   /* of the whole table */
	uint8_t state;			   /* enum table_state */
	uint8_t only;			   /* allow rules of the other part do not count */
	uint8_t slot_bits, max_labels;	   /* of a literal end */
	uint64_t has_labels[2];		   /* bit n: there is a literal end of n labels */
	uint64_t req_labels[EFFECT_KINDS]; /* bit n: a group of the kind has a name of n labels */
	struct spans every;		   /* of `**` */
	struct table_range section[TABLE_N_SECTIONS];
};

struct nets {
	const addr_bits *key;
	const struct net *net;
	const uint32_t *door;
	size_t n;
};

/* A table whose sections are known to be in its memory. What refers to them is checked when it is
 * followed. */
struct table {
	void *map; /* NULL: there is no such part */
	size_t size;
	bool is_mapped; /* else on the heap */
	struct table_head head;
	const struct span *span;
	const char *text;
	const struct glob *glob;
	const uint8_t *nodes;
	const uint32_t *slot;
	const struct table_rule *rule;
	struct nets v4, v6;
	const uint32_t *req_slot;
	const struct req_group *req_group;
	const struct req_host *req_host;
	const struct req_place *req_place;
	const struct req_row *req_row;
	const uint8_t *req_header;
};

#define POLICY_UNSET "no network policy is set: all traffic is denied"

struct policy {
	struct policy *managed; /* NULL: none. Its rules are its part POLICY_ALL */
	char *fault;		/* NULL: none */
	bool is_unset;		/* then it is POLICY_UNSET */
	struct table part[POLICY_N_PARTS];
};

static inline size_t table_count(const struct table *t, enum table_section section)
{
	return t->head.section[section].n;
}

/* Whether a table has these elements. */
static inline bool table_has(
	const struct table *t, enum table_section section, uint64_t first, uint64_t n)
{
	uint64_t all = t->head.section[section].n;

	return first <= all && n <= all - first;
}

/* Eight bytes as a number that has their order; a shorter text is filled with zeros. */
static inline uint64_t policy_front(struct slice s)
{
	uint64_t v = 0;

	for (size_t i = 0; i < 8; i++)
		v = v << 8 | (i < s.n ? s.p[i] : 0);
	return v;
}

/* The bit of a name in req_labels. */
static inline uint64_t policy_label_bit(size_t labels)
{
	return 1ull << (labels < 63 ? labels : 63);
}

/* ---- reading ---- */

/* The rule that decides, and where it is. */
struct policy_hit {
	const struct table *table;
	const struct table_rule *rule; /* NULL: none */
};

/* The rule of a span's number; NULL if it has expired: then all that it represents have. */
const struct table_rule *policy_live_rule(
	const struct table *t, uint32_t number, uint64_t now_ms, bool *ret_damaged);
/* Whether the labels of `left`, from its end, are the pattern's; `deep` requires one more. */
bool policy_glob_fits(struct slice pattern, bool deep, struct slice left);
/* Sets the rule of the decision, or a fault. */
void policy_name_rule(struct policy_hit hit, struct policy_decision *ret);

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

/* Where the bytes of a section are before they become a table. */
struct table_draft {
	struct table_head head;
	void *bytes[TABLE_N_SECTIONS];
};

/* Text of the table that is being made: a number of bytes, and where they are. */
struct table_words {
	char *text;
	size_t n, max;
};

uint32_t table_words_add(struct table_words *words, struct slice s);
/* The sections of rules about requests. */
int policy_compile_requests(const struct table_wish *wish, struct table_words *words,
	struct table_draft *ret, struct err *err) MUST_CHECK;

/* Fills a draft from the rules of the wish, unless they cannot be compiled. */
int policy_compile(
	const struct table_wish *wish, struct table_draft *ret, struct err *err) MUST_CHECK;
/* Bytes of one element. */
size_t table_width(enum table_section section);
