/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

#include <assert.h>
#include <stdio.h>
#include "glob.h"
#include "lib/base/mem.h"

/* One operation on its way through the tables; `see` is called for each list that speaks of it. */
struct scan {
	const struct policy *p;
	const struct policy_op *op;
	void (*see)(struct scan *scan, const struct span *span, size_t n, bool may_allow);
	const struct rule *deny, *allow;
	bool has_port;
	bool is_here; /* the name is this host's: patterns do not allow it */
};

static void clear_tables(struct policy *p)
{
	free(p->span);
	free(p->text);
	free(p->glob);
	free(p->nodes);
	free(p->slot);
	free(p->v4.key);
	free(p->v4.net);
	free(p->v4.door);
	free(p->v6.key);
	free(p->v6.net);
	free(p->v6.door);
	rules_done(&p->rules);
}

static struct policy *with_fault(struct policy *p, const char *fault)
{
	clear_tables(p);
	*p = (struct policy){.fault = xstrdup(fault)};
	return p;
}

struct policy *policy_new(struct rules *rules, const char *sandbox)
{
	struct policy *p = xcalloc(1, sizeof(*p));
	struct err err;
	int r;

	p->rules = *rules;
	*rules = (struct rules){0};
	r = policy_compile(p, sandbox, &err);
	return r < 0 ? with_fault(p, err_text(&err, r)) : p;
}

struct policy *policy_load(struct slice text, const char *name, const char *sandbox)
{
	AUTO_RULES struct rules rules = {0};
	struct err err;
	int r = rules_decode(text, name, &rules, &err);

	if (r < 0)
		return with_fault(xcalloc(1, sizeof(struct policy)), err_text(&err, r));
	return policy_new(&rules, sandbox);
}

const char *policy_fault(const struct policy *p)
{
	return p->fault;
}

void policy_free(struct policy *p)
{
	if (!p)
		return;
	clear_tables(p);
	free(p->fault);
	free(p);
}

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

/* The rule of a span's number, unless it has expired: then all rules that it represents have. */
static const struct rule *live_rule(const struct scan *scan, uint32_t number)
{
	const struct rule *rule = &scan->p->rules.rule[(number & ~POLICY_ENDS) - 1];

	return number & POLICY_ENDS && rule_is_over(rule, scan->op->now_ms) ? NULL : rule;
}

static void weigh_policy(struct scan *scan, const struct span *span, size_t n, bool may_allow)
{
	const struct span *s = find_span(span, n, scan->op->port);

	if (!s)
		return;
	if (s->deny && !scan->deny)
		scan->deny = live_rule(scan, s->deny);
	if (s->allow && may_allow && !scan->allow)
		scan->allow = live_rule(scan, s->allow);
}

static void see_spans(struct scan *scan, const struct spans *spans, bool may_allow)
{
	if (spans->n)
		scan->see(scan, scan->p->span + spans->first, spans->n, may_allow);
}

/* Whether the labels of `left`, from its end, are the pattern's; `**.` requires one more. */
static bool glob_fits(const struct policy *p, const struct glob *g, struct slice left)
{
	struct slice pattern = slice_of(p->text + g->text, g->n);

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
			return g->deep ? j > 0 : j == 0;
		if (j == 0)
			return false;
		pattern.n = i - 1;
		left.n = j - 1;
	}
}

/* `at` is where the node's name begins in the host, `one` whether one label precedes it. */
static void see_node(struct scan *scan, const struct node *node, size_t at, bool one)
{
	const struct policy *p = scan->p;
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
	for (size_t i = 0; i < node->n_globs; i++) {
		const struct glob *g = &p->glob[node->glob + i];

		if (glob_fits(p, g, slice_of(scan->op->host->name, at - 1)))
			see_spans(scan, &g->spans, !scan->is_here);
	}
}

/* An end of the host that may be in the table. */
struct end {
	uint64_t hash;
	uint32_t at;
	uint32_t slot; /* where the search continues */
	const struct node *node;
};

/* The next record whose eight bits of the hash are right; it is fetched, but not yet read. */
static const struct node *next_node(const struct policy *p, struct end *end)
{
	uint32_t mask = (1u << p->slot_bits) - 1;

	for (uint32_t v; (v = p->slot[end->slot]) != 0;) {
		end->slot = (end->slot + 1) & mask;
		if ((v & 0xff) == (end->hash & 0xff)) {
			const uint8_t *node = p->nodes + (size_t)(v >> 8) * POLICY_UNIT;

			__builtin_prefetch(node);
			__builtin_prefetch(node + POLICY_LINE);
			return (const struct node *)(const void *)node;
		}
	}
	return NULL;
}

/* The ends of the host that can be in the table, from short to long; fetches their slots. */
static size_t cut_ends(const struct policy *p, const struct host *h, struct end *ret)
{
	uint64_t hash = POLICY_HASH_START;
	size_t n = 0, labels = 0;

	for (size_t at = h->n; at > 0 && labels < p->max_labels; at--) {
		hash = policy_hash_byte(hash, (uint8_t)h->name[at - 1]);
		if (at > 1 && h->name[at - 2] != '.')
			continue;
		labels++;
		if (!(p->has_labels[labels / 64] >> labels % 64 & 1))
			continue;
		ret[n] = (struct end){.hash = policy_hash_end(hash), .at = (uint32_t)at - 1};
		ret[n].slot = (uint32_t)(ret[n].hash >> (64 - p->slot_bits));
		__builtin_prefetch(&p->slot[ret[n++].slot]);
	}
	return n;
}

static void scan_name(struct scan *scan, const struct host *h)
{
	struct end end[(HOST_MAX_NAME + 1) / 2];
	const char *dot = memchr(h->name, '.', h->n);
	size_t second = dot ? (size_t)(dot - h->name) + 1 : 0;
	size_t n = cut_ends(scan->p, h, end);

	for (size_t i = 0; i < n; i++)
		end[i].node = next_node(scan->p, &end[i]);
	while (n-- > 0) {
		size_t at = end[n].at, len = h->n - at;
		const struct node *node = end[n].node;

		while (node &&
			(node->n_name != len || memcmp(node_name(node), h->name + at, len) != 0))
			node = next_node(scan->p, &end[n]);
		if (node)
			see_node(scan, node, at, at == second);
	}
}

/* How many keys are at most `key`; those with other first bits are skipped. */
static size_t count_below(const struct nets *nets, addr_bits key)
{
	const uint32_t *door = nets->door + (size_t)(key >> (128 - POLICY_DOOR_BITS));
	const addr_bits *at = nets->key + door[0];
	size_t n = door[1] - door[0];

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
	const struct nets *nets = a->n == 4 ? &scan->p->v4 : &scan->p->v6;
	addr_bits key = addr_key(a);
	size_t n = nets->n ? count_below(nets, key) : 0;

	for (uint32_t i = n ? (uint32_t)n - 1 : NO_NET; i != NO_NET; i = nets->net[i].parent) {
		const struct net *net = &nets->net[i];

		if (net->prefix && (nets->key[i] ^ key) >> (128 - net->prefix) != 0)
			continue;
		see_spans(scan, &net->spans, may_allow && (!range || net->prefix >= range->prefix));
	}
}

/* An address, and every address inside it: what is inside can be denied, not allowed. */
static void scan_addr(struct scan *scan, const struct addr *a, const struct addr_net *range)
{
	struct addr inner[ADDR_MAX_EMBEDDED];
	size_t n = addr_embedded(a, inner);

	scan_nets(scan, a, true, range);
	for (size_t i = 0; i < n; i++)
		scan_nets(scan, &inner[i], false, NULL);
}

static void scan_host(struct scan *scan, const struct host *h, const struct addr_net *range)
{
	scan->is_here = host_is_here(h);
	if (!h->is_addr)
		scan_name(scan, h);
	else
		scan_addr(scan, &h->addr, range);
	see_spans(scan, &scan->p->every, !range && !scan->is_here);
}

/* ---- deciding ---- */

/* False with the decision made if there is nothing to search. */
static bool can_decide(const struct policy *p, struct policy_decision *ret)
{
	*ret = (struct policy_decision){.why = POLICY_NO_POLICY};
	if (p && p->fault)
		*ret = (struct policy_decision){.why = POLICY_FAULT, .fault = p->fault};
	return p && !p->fault;
}

static void conclude_policy(const struct scan *scan, const struct addr *special,
	enum addr_class class, struct policy_decision *ret)
{
	const struct rule *rule = scan->deny ? scan->deny : scan->allow;

	if (rule)
		*ret = (struct policy_decision){
			.allowed = rule == scan->allow, .why = POLICY_RULE, .rule = rule};
	else if (special)
		*ret = (struct policy_decision){
			.why = POLICY_SPECIAL, .addr = *special, .addr_class = class};
	else
		*ret = (struct policy_decision){.why = POLICY_NO_RULE};
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

void policy_decide(const struct policy *p, const struct policy_op *op, struct policy_decision *ret)
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

/* A name of this host: of rules for addresses a deny counts, and the name's own rule allows nothing
 * but the loopback. */
static void decide_here(struct scan *scan, const struct addr *addr, enum addr_class class,
	struct policy_decision *ret)
{
	scan_addr(scan, addr, NULL);
	scan->allow = NULL;
	scan_host(scan, scan->op->host, NULL);
	if (class != ADDR_LOOPBACK)
		scan->allow = NULL;
	conclude_policy(scan, addr, class, ret);
}

void policy_decide_address(const struct policy *p, const struct policy_op *op,
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
	scan_addr(&scan, addr, class == ADDR_PUBLIC ? NULL : &range);
	see_spans(&scan, &p->every, false);
	if (class == ADDR_PUBLIC && !scan.deny)
		*ret = (struct policy_decision){.allowed = true, .why = POLICY_PUBLIC};
	else
		conclude_policy(&scan, addr, class, ret);
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
		policy_decide(scan->p, &op, &d);
		scan->has_port = d.allowed;
	}
}

bool policy_has_port(const struct policy *p, const struct policy_op *op)
{
	struct scan scan = {.p = p, .op = op, .see = try_ports};
	struct policy_decision d;

	if (!can_decide(p, &d))
		return false;
	scan_host(&scan, op->host, NULL);
	return scan.has_port;
}
