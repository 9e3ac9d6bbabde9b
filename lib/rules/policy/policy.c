/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

#include <assert.h>
#include <stdio.h>
#include "glob.h"
#include "lib/base/mem.h"

#define DAMAGED "the compiled rules are damaged"

/* One operation on its way through the tables; `see` is called for each list that speaks of it. */
struct scan {
	const struct policy *p;
	const struct table *t; /* the part that is searched; NULL: none yet */
	const struct policy_op *op;
	void (*see)(struct scan *scan, const struct span *span, size_t n, bool may_allow);
	const struct policy *whole; /* for `see`: p, or the policy that p is the managed one of */
	struct policy_hit deny, allow;
	bool has_port;
	bool is_here;	 /* the name is this host's: patterns do not allow it */
	bool is_mute;	 /* allow rules of this part do not count */
	bool is_damaged; /* a reference leads out of the table */
};

/* ---- looking up ---- */

static const struct span *find_span(const struct span *span, size_t n, uint16_t port)
{
	while (n > 4) {
		size_t half = n / 2;

		if (span[half - 1].hi < port)
			span += half;
		n -= half;
	}
	for (size_t i = 0; i < n; i++)
		if (port <= span[i].hi)
			return port >= span[i].lo ? &span[i] : NULL;
	return NULL;
}

const struct table_rule *policy_live_rule(
	const struct table *t, uint32_t number, uint64_t now_ms, bool *ret_damaged)
{
	uint32_t i = (number & ~POLICY_ENDS) - 1;

	if (!table_has(t, TABLE_RULES, i, 1)) {
		*ret_damaged = true;
		return NULL;
	}
	return !(number & POLICY_ENDS) || now_ms < t->rule[i].until_ms ? &t->rule[i] : NULL;
}

static struct policy_hit live_rule(struct scan *scan, uint32_t number)
{
	return (struct policy_hit){.table = scan->t,
		.rule = policy_live_rule(scan->t, number, scan->op->now_ms, &scan->is_damaged)};
}

static void weigh_policy(struct scan *scan, const struct span *span, size_t n, bool may_allow)
{
	const struct span *s = find_span(span, n, scan->op->port);

	if (!s)
		return;
	if (s->deny && !scan->deny.rule)
		scan->deny = live_rule(scan, s->deny);
	if (s->allow && may_allow && !scan->is_mute && !scan->allow.rule)
		scan->allow = live_rule(scan, s->allow);
}

static void see_spans(struct scan *scan, const struct spans *spans, bool may_allow)
{
	if (!table_has(scan->t, TABLE_SPANS, spans->first, spans->n))
		scan->is_damaged = true;
	else if (spans->n)
		scan->see(scan, scan->t->span + spans->first, spans->n, may_allow);
}

bool policy_glob_fits(struct slice pattern, bool deep, struct slice left)
{
	for (;;) {
		size_t i = pattern.n, j = left.n;

		while (i > 0 && pattern.p[i - 1] != '.')
			i--;
		while (j > 0 && left.p[j - 1] != '.')
			j--;
		if (!glob_match(slice_of(pattern.p + i, pattern.n - i),
			    slice_of(left.p + j, left.n - j)))
			return false;
		if (i == 0)
			return deep ? j > 0 : j == 0;
		if (j == 0)
			return false;
		pattern.n = i - 1;
		left.n = j - 1;
	}
}

static void see_globs(struct scan *scan, const struct node *node, size_t at)
{
	if (!table_has(scan->t, TABLE_GLOBS, node->glob, node->n_globs)) {
		scan->is_damaged = true;
		return;
	}
	for (size_t i = 0; i < node->n_globs; i++) {
		const struct glob *g = &scan->t->glob[node->glob + i];

		if (!table_has(scan->t, TABLE_TEXT, g->text, g->n))
			scan->is_damaged = true;
		else if (policy_glob_fits(slice_of(scan->t->text + g->text, g->n), g->deep,
				 slice_of(scan->op->host->name, at - 1)))
			see_spans(scan, &g->spans, !scan->is_here);
	}
}

static const struct span *node_spans(const struct node *node)
{
	return (const struct span *)(node + 1);
}

static size_t count_node_spans(const struct node *node)
{
	return (size_t)node->n[LIST_EXACT] + node->n[LIST_ONE] + node->n[LIST_DEEP];
}

/* `at` is where the node's name begins in the host, `one` whether one label precedes it. */
static void see_node(struct scan *scan, const struct node *node, size_t at, bool one)
{
	const struct span *span = node_spans(node);

	if (node->n[LIST_EXACT] && at == 0)
		scan->see(scan, span, node->n[LIST_EXACT], true);
	if (at == 0)
		return;
	span += node->n[LIST_EXACT];
	if (node->n[LIST_ONE] && one)
		scan->see(scan, span, node->n[LIST_ONE], !scan->is_here);
	span += node->n[LIST_ONE];
	if (node->n[LIST_DEEP])
		scan->see(scan, span, node->n[LIST_DEEP], !scan->is_here);
	if (node->n_globs)
		see_globs(scan, node, at);
}

/* An end of the host that may be in the table. */
struct end {
	uint64_t hash;
	uint32_t at;
	uint32_t slot; /* where the search continues */
	uint32_t left; /* slots that were not read yet */
	const struct node *node;
};

/* The next record whose eight bits of the hash are right; it is fetched, but not yet read. */
static const struct node *next_node(struct scan *scan, struct end *end)
{
	const struct table *t = scan->t;
	uint32_t mask = (1u << t->head.slot_bits) - 1;

	for (uint32_t v; end->left > 0 && (v = t->slot[end->slot]) != 0; end->left--) {
		end->slot = (end->slot + 1) & mask;
		if ((v & 0xff) == (end->hash & 0xff)) {
			size_t at = (size_t)(v >> 8) * POLICY_UNIT;

			if (!table_has(t, TABLE_NODES, at, sizeof(struct node))) {
				scan->is_damaged = true;
				return NULL;
			}
			__builtin_prefetch(t->nodes + at);
			__builtin_prefetch(t->nodes + at + POLICY_LINE);
			end->left--;
			return (const struct node *)(const void *)(t->nodes + at);
		}
	}
	return NULL;
}

/* Whether it is the record of this name. All of a record must be in the table. */
static bool is_node_of(struct scan *scan, const struct node *node, const char *name, size_t n)
{
	size_t at = (size_t)((const uint8_t *)node - scan->t->nodes) + sizeof(*node);
	size_t n_spans = count_node_spans(node) * sizeof(struct span);

	if (node->n_name != n)
		return false;
	if (!table_has(scan->t, TABLE_NODES, at, n_spans + n)) {
		scan->is_damaged = true;
		return false;
	}
	return memcmp(scan->t->nodes + at + n_spans, name, n) == 0;
}

/* The ends of the host that can be in the table, from short to long; fetches their slots. */
static size_t cut_ends(const struct table *t, const struct host *h, struct end *ret)
{
	const struct table_head *head = &t->head;
	uint64_t hash = POLICY_HASH_START;
	size_t n = 0, labels = 0;

	for (size_t at = h->n; at > 0 && labels < head->max_labels; at--) {
		hash = policy_hash_byte(hash, (uint8_t)h->name[at - 1]);
		if (at > 1 && h->name[at - 2] != '.')
			continue;
		labels++;
		if (!(head->has_labels[labels / 64] >> labels % 64 & 1))
			continue;
		ret[n] = (struct end){.hash = policy_hash_end(hash),
			.at = (uint32_t)at - 1,
			.left = 1u << head->slot_bits};
		ret[n].slot = (uint32_t)(ret[n].hash >> (64 - head->slot_bits));
		__builtin_prefetch(&t->slot[ret[n++].slot]);
	}
	return n;
}

static void scan_name(struct scan *scan, const struct host *h)
{
	UNINITIALIZED struct end end[(HOST_MAX_NAME + 1) / 2]; /* cut_ends fills what is read */
	const char *dot = memchr(h->name, '.', h->n);
	size_t second = dot ? (size_t)(dot - h->name) + 1 : 0;
	size_t n = cut_ends(scan->t, h, end);

	for (size_t i = 0; i < n; i++)
		end[i].node = next_node(scan, &end[i]);
	while (n-- > 0) {
		size_t at = end[n].at;
		const struct node *node = end[n].node;

		while (node && !is_node_of(scan, node, h->name + at, h->n - at))
			node = next_node(scan, &end[n]);
		if (node)
			see_node(scan, node, at, at == second);
	}
}

/* How many keys are at most `key`; those with other first bits are skipped. */
static size_t count_below(struct scan *scan, const struct nets *nets, addr_bits key)
{
	const uint32_t *door = nets->door + (size_t)(key >> (128 - POLICY_DOOR_BITS));
	const addr_bits *at = nets->key + door[0];
	size_t n = door[1] - door[0];

	if (door[0] > door[1] || door[1] > nets->n) {
		scan->is_damaged = true;
		return 0;
	}
	while (n > 0) {
		size_t half = (n + 1) / 2;

		at += at[half - 1] <= key ? half : 0;
		n -= half;
	}
	return (size_t)(at - nets->key);
}

/* All networks around an address. An allow applies only if it is in `range`, if there is one. */
static void scan_nets(
	struct scan *scan, const struct addr *a, bool may_allow, const struct addr_net *range)
{
	const struct nets *nets = a->n == 4 ? &scan->t->v4 : &scan->t->v6;
	addr_bits key = addr_key(a);
	size_t n = nets->n ? count_below(scan, nets, key) : 0;

	for (uint32_t i = n ? (uint32_t)n - 1 : NO_NET, up; i != NO_NET; i = up) {
		const struct net *net = &nets->net[i];

		up = net->parent;
		if ((up != NO_NET && up >= i) || net->prefix > 128) {
			scan->is_damaged = true;
			return;
		}
		if (net->prefix && (nets->key[i] ^ key) >> (128 - net->prefix) != 0)
			continue;
		see_spans(scan, &net->spans, may_allow && (!range || net->prefix >= range->prefix));
	}
}

/* An address, and every address inside it: what is inside can be denied, not allowed. */
static void scan_addr(
	struct scan *scan, const struct addr *a, bool may_allow, const struct addr_net *range)
{
	struct addr inner[ADDR_MAX_EMBEDDED];
	size_t n = addr_embedded(a, inner);

	scan_nets(scan, a, may_allow, range);
	for (size_t i = 0; i < n; i++)
		scan_nets(scan, &inner[i], false, NULL);
}

/* In one part. */
static void scan_part(struct scan *scan, const struct host *h, const struct addr_net *range)
{
	if (h->is_addr)
		scan_addr(scan, &h->addr, true, range);
	else if (scan->t->head.max_labels)
		scan_name(scan, h);
	see_spans(scan, &scan->t->head.every, !range && !scan->is_here);
}

/* The next part that there is; false after the last, and then it begins again. */
static bool next_part(struct scan *scan)
{
	const struct table *end = scan->p->part + POLICY_N_PARTS;

	scan->t = scan->t ? scan->t + 1 : scan->p->part;
	while (scan->t < end && !scan->t->map)
		scan->t++;
	scan->is_mute =
		scan->t == &scan->p->part[POLICY_ALL] && scan->p->part[POLICY_OWN].head.only;
	if (scan->t < end)
		return true;
	scan->t = NULL;
	return false;
}

static void scan_host(struct scan *scan, const struct host *h, const struct addr_net *range)
{
	scan->is_here = host_is_here(h);
	while (next_part(scan))
		scan_part(scan, h, range);
}

/* ---- deciding ---- */

/* False with the decision made if there is nothing to search. */
static bool can_decide(const struct policy *p, struct policy_decision *ret)
{
	*ret = (struct policy_decision){.why = POLICY_NO_POLICY};
	if (p && p->fault && !p->is_unset)
		*ret = (struct policy_decision){.why = POLICY_FAULT, .fault = p->fault};
	return p && !p->fault;
}

void policy_name_rule(struct policy_hit hit, struct policy_decision *ret)
{
	const struct table_rule *rule = hit.rule;
	const char *text = hit.table->text + rule->text;

	if (!table_has(
		    hit.table, TABLE_TEXT, rule->text, (uint64_t)rule->n_id + rule->n_resources) ||
		rule->effect >= RULE_EFFECTS || rule->kind >= RULE_KINDS) {
		*ret = (struct policy_decision){.why = POLICY_FAULT, .fault = DAMAGED};
		return;
	}
	ret->why = POLICY_RULE;
	ret->rule = (struct policy_rule){.effect = (enum rule_effect)rule->effect,
		.kind = (enum rule_kind)rule->kind,
		.is_own = rule->is_own,
		.index = rule->index,
		.group = rule->group,
		.id = slice_of(text, rule->n_id),
		.resources = slice_of(text + rule->n_id, rule->n_resources)};
}

static void conclude_policy(const struct scan *scan, const struct addr *special,
	enum addr_class class, struct policy_decision *ret)
{
	*ret = (struct policy_decision){.why = POLICY_NO_RULE};
	if (scan->is_damaged) {
		ret->why = POLICY_FAULT;
		ret->fault = DAMAGED;
	} else if (scan->deny.rule) {
		policy_name_rule(scan->deny, ret);
	} else if (scan->allow.rule) {
		ret->allowed = true;
		policy_name_rule(scan->allow, ret);
	} else if (special) {
		ret->why = POLICY_SPECIAL;
		ret->addr = *special;
		ret->addr_class = class;
	}
}

static enum addr_class classify_policy(
	const struct policy_op *op, const struct addr *addr, struct addr_net *ret_range)
{
	enum addr_class class = addr_locals_classify(op->locals, addr, ret_range);

	if (!op->is_own || class == ADDR_LOOPBACK)
		return class;
	*ret_range = addr_net_of(addr, (uint8_t)(addr->n * 8));
	return ADDR_OWN;
}

static void decide_alone(
	const struct policy *p, const struct policy_op *op, struct policy_decision *ret)
{
	struct scan scan = {.p = p, .op = op, .see = weigh_policy};
	enum addr_class class = ADDR_PUBLIC;
	struct addr_net range;

	if (!can_decide(p, ret))
		return;
	if (op->host->is_addr)
		class = classify_policy(op, &op->host->addr, &range);
	scan_host(&scan, op->host, class == ADDR_PUBLIC ? NULL : &range);
	conclude_policy(&scan, class == ADDR_PUBLIC ? NULL : &op->host->addr, class, ret);
}

/* Whether the managed policy, which has decided, denies it. */
static bool is_limited(struct policy_decision *ret)
{
	ret->is_managed = ret->rule.is_managed = !ret->allowed;
	return ret->is_managed;
}

void policy_decide(const struct policy *p, const struct policy_op *op, struct policy_decision *ret)
{
	if (p && p->managed) {
		decide_alone(p->managed, op, ret);
		if (is_limited(ret))
			return;
	}
	decide_alone(p, op, ret);
}

/* A name of this host: of rules for addresses a deny counts, and the name's own rule allows nothing
 * but the loopback. */
static void decide_here(struct scan *scan, const struct addr *addr, enum addr_class class,
	struct policy_decision *ret)
{
	while (next_part(scan))
		scan_addr(scan, addr, false, NULL);
	scan_host(scan, scan->op->host, NULL);
	if (class != ADDR_LOOPBACK)
		scan->allow.rule = NULL;
	conclude_policy(scan, addr, class, ret);
}

static void decide_address_alone(const struct policy *p, const struct policy_op *op,
	const struct addr *addr, struct policy_decision *ret)
{
	struct scan scan = {.p = p, .op = op, .see = weigh_policy};
	struct addr_net range;
	enum addr_class class = classify_policy(op, addr, &range);

	if (!can_decide(p, ret))
		return;
	if (host_is_here(op->host)) {
		decide_here(&scan, addr, class, ret);
		return;
	}
	while (next_part(&scan)) {
		scan_addr(&scan, addr, true, class == ADDR_PUBLIC ? NULL : &range);
		see_spans(&scan, &scan.t->head.every, false);
	}
	if (class == ADDR_PUBLIC && !scan.deny.rule && !scan.is_damaged)
		*ret = (struct policy_decision){.allowed = true, .why = POLICY_PUBLIC};
	else
		conclude_policy(&scan, addr, class, ret);
}

void policy_decide_address(const struct policy *p, const struct policy_op *op,
	const struct addr *addr, struct policy_decision *ret)
{
	if (p && p->managed) {
		decide_address_alone(p->managed, op, addr, ret);
		if (is_limited(ret))
			return;
	}
	decide_address_alone(p, op, addr, ret);
}

/* What is allowed begins where a span begins or behind one. */
static void try_ports(struct scan *scan, const struct span *span, size_t n, bool may_allow)
{
	struct policy_op op = *scan->op;
	struct policy_decision d;

	for (size_t i = 0; i < 2 * n && !scan->has_port; i++) {
		op.port = (uint16_t)(i % 2 ? span[i / 2].hi + 1 : span[i / 2].lo);
		if (op.port == 0)
			continue;
		policy_decide(scan->whole, &op, &d);
		scan->has_port = d.allowed;
	}
}

bool policy_has_port(const struct policy *p, const struct policy_op *op)
{
	struct scan scan = {.p = p, .op = op, .see = try_ports, .whole = p};
	struct policy_decision d;

	if (!can_decide(p, &d))
		return false;
	scan_host(&scan, op->host, NULL);
	scan.p = p->managed;
	if (scan.p && !scan.has_port)
		scan_host(&scan, op->host, NULL);
	return scan.has_port && !scan.is_damaged;
}
