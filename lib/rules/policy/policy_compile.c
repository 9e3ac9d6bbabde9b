/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

#include <errno.h>
#include "lib/base/mem.h"

/* One resource on one range of ports: the unit from which the tables are built. */
struct entry {
	const struct netrule *net;
	const struct rule *rule;
	uint32_t number; /* of the rule, as in struct span */
	struct netrule_ports ports;
	enum list list;
};

struct span_list {
	struct span *span;
	size_t n, max;
};

/* A literal end before it becomes a record. */
struct draft {
	struct node node;
	struct slice name;
	size_t span; /* in build.name_spans */
};

struct net_list {
	addr_bits *key;
	struct net *net;
	size_t n, max;
};

/* Arrays that grow while the sections are filled. */
struct build {
	struct table_draft *table;
	struct span_list spans;	     /* become TABLE_SPANS */
	struct span_list name_spans; /* move into the records */
	struct draft *draft;
	size_t n_drafts, max_drafts;
	struct table_words words;
	struct glob *glob;
	size_t n_globs, max_globs;
	struct net_list v4, v6;
	size_t n_bytes; /* of TABLE_NODES */
};

static void give_section(struct build *b, enum table_section section, void *bytes, size_t n)
{
	b->table->bytes[section] = bytes;
	b->table->head.section[section].n = n;
}

static void *grow_compile(void *list, size_t n, size_t *max, size_t size)
{
	if (n < *max)
		return list;
	*max = *max ? *max * 2 : 64;
	return xrealloc(list, *max * size);
}

/* ---- the entries, sorted so that what belongs together is together ---- */

static enum list list_of(const struct netrule *net)
{
	if (net->n_glob == 0)
		return net->deep ? LIST_DEEP : LIST_EXACT;
	return !net->deep && net->n_glob == 2 && net->name[0] == '*' ? LIST_ONE : LIST_GLOB;
}

static struct slice literal_end(const struct netrule *net)
{
	return slice_of(net->name + net->n_glob, net->n_name - net->n_glob);
}

static int compare_slices(struct slice a, struct slice b)
{
	int c = memcmp(a.p, b.p, MIN(a.n, b.n));

	return c ? c : (a.n > b.n) - (a.n < b.n);
}

/* Where entries go: the same place means the same list of spans. */
static int compare_places(const struct entry *a, const struct entry *b)
{
	const struct netrule *x = a->net, *y = b->net;
	addr_bits i, j;
	int c;

	if (x->form != y->form)
		return x->form < y->form ? -1 : 1;
	if (x->form == NETRULE_EVERY)
		return 0;
	if (x->form == NETRULE_ADDR) {
		i = addr_key(&x->net.addr);
		j = addr_key(&y->net.addr);
		if (x->net.addr.n != y->net.addr.n)
			return x->net.addr.n - y->net.addr.n;
		return i != j ? (i < j ? -1 : 1) : x->net.prefix - y->net.prefix;
	}
	c = compare_slices(literal_end(x), literal_end(y));
	if (c == 0)
		c = (int)a->list - (int)b->list;
	if (c == 0 && a->list == LIST_GLOB)
		c = x->deep != y->deep ? (x->deep ? 1 : -1)
				       : compare_slices(slice_of(x->name, x->n_glob),
						 slice_of(y->name, y->n_glob));
	return c;
}

/* In each list the rule that expires last comes first, and represents the others. */
static int compare_entries(const void *va, const void *vb)
{
	const struct entry *a = va, *b = vb;
	uint64_t x = a->rule->until_ms - 1, y = b->rule->until_ms - 1; /* 0 becomes the largest */
	int c = compare_places(a, b);

	if (c == 0)
		c = x != y ? (x > y ? -1 : 1) : 0;
	if (c == 0)
		c = strcmp(a->rule->id ? a->rule->id : "", b->rule->id ? b->rule->id : "");
	if (c == 0)
		c = (a->number > b->number) - (a->number < b->number);
	return c;
}

static void add_entries(struct entry *list, size_t *n, const struct rule *rule, uint32_t number)
{
	for (size_t i = 0; i < rule->n_net; i++) {
		struct netrule_ports ports[NETRULE_MAX_PORTS];
		/* A rule that allows this host applies only with a port. */
		bool counts = rule->effect == RULE_DENY || rule->net[i].ports.lo ||
			      !netrule_is_here(&rule->net[i]);
		size_t n_ports = counts ? rule_get_ports(rule, &rule->net[i], ports) : 0;

		for (size_t j = 0; j < n_ports; j++)
			list[(*n)++] = (struct entry){.net = &rule->net[i],
				.rule = rule,
				.number = number,
				.ports = ports[j],
				.list = list_of(&rule->net[i])};
	}
}

static struct entry *list_entries(const struct table_wish *wish, size_t *ret_n)
{
	size_t n = 0, max = 1;
	struct entry *list;

	for (size_t i = 0; i < wish->n; i++)
		max += wish->rules->rule[wish->pick[i]].n_net * NETRULE_MAX_PORTS;
	list = xcalloc(max, sizeof(*list));
	for (size_t i = 0; i < wish->n; i++) {
		const struct rule *rule = &wish->rules->rule[wish->pick[i]];

		if (rule->kind == RULE_NETWORK)
			add_entries(list, &n, rule,
				(uint32_t)(i + 1) | (rule->until_ms ? POLICY_ENDS : 0));
	}
	qsort(list, n, sizeof(*list), compare_entries);
	*ret_n = n;
	return list;
}

/* ---- the spans of one place ---- */

/* A cell reaches from its port to the one before the next cell. */
struct cell {
	uint32_t port;
	uint32_t rule[RULE_EFFECTS]; /* 0: not painted */
	size_t next[RULE_EFFECTS]; /* the first cell from here on that is not painted, or before it
				    */
};

static int compare_cells(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;

	return (x->port > y->port) - (x->port < y->port);
}

static struct cell *cut_cells(const struct entry *e, size_t n, size_t *ret_n)
{
	struct cell *cell = xcalloc(2 * n, sizeof(*cell));
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		cell[2 * i].port = e[i].ports.lo;
		cell[2 * i + 1].port = e[i].ports.hi + 1u;
	}
	qsort(cell, 2 * n, sizeof(*cell), compare_cells);
	for (size_t i = 0; i < 2 * n; i++)
		if (k == 0 || cell[k - 1].port != cell[i].port)
			cell[k++].port = cell[i].port;
	for (size_t i = 0; i < k; i++)
		cell[i].next[RULE_DENY] = cell[i].next[RULE_ALLOW] = i;
	*ret_n = k;
	return cell;
}

/* Painted cells are jumped over, and the jumps shortened on the way. */
static size_t next_bare(struct cell *cell, enum rule_effect effect, size_t i)
{
	while (cell[i].next[effect] != i) {
		cell[i].next[effect] = cell[cell[i].next[effect]].next[effect];
		i = cell[i].next[effect];
	}
	return i;
}

static void paint_compile(struct cell *cell, size_t n, const struct entry *e)
{
	enum rule_effect effect = e->rule->effect;
	size_t lo = 0, hi = n - 1;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (cell[mid].port < e->ports.lo)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* The last cell begins after every range and is never filled. */
	for (size_t i = next_bare(cell, effect, lo); cell[i].port <= e->ports.hi;
		i = next_bare(cell, effect, i)) {
		cell[i].rule[effect] = e->number;
		cell[i].next[effect] = i + 1;
	}
}

static void add_span(struct span_list *list, size_t first, const struct cell *cell)
{
	struct span s = {(uint16_t)cell[0].port, (uint16_t)(cell[1].port - 1),
		cell[0].rule[RULE_DENY], cell[0].rule[RULE_ALLOW]};
	struct span *last = list->n > first ? &list->span[list->n - 1] : NULL;

	if (!s.deny && !s.allow)
		return;
	if (last && last->hi + 1u == s.lo && last->deny == s.deny && last->allow == s.allow) {
		last->hi = s.hi;
		return;
	}
	list->span = grow_compile(list->span, list->n, &list->max, sizeof(*list->span));
	list->span[list->n++] = s;
}

static struct spans add_spans(struct span_list *list, const struct entry *e, size_t n)
{
	size_t first = list->n, n_cells;
	AUTO_FREE struct cell *cell = cut_cells(e, n, &n_cells);

	for (size_t i = 0; i < n; i++)
		paint_compile(cell, n_cells, &e[i]);
	for (size_t i = 0; i + 1 < n_cells; i++)
		add_span(list, first, &cell[i]);
	return (struct spans){(uint32_t)first, (uint32_t)(list->n - first)};
}

/* ---- names ---- */

uint32_t table_words_add(struct table_words *words, struct slice s)
{
	size_t at = words->n;

	while (at + s.n > words->max)
		words->text = grow_compile(words->text, words->max, &words->max, 1);
	if (s.n)
		memcpy(words->text + at, s.p, s.n);
	words->n += s.n;
	return (uint32_t)at;
}

static struct draft *draft_for(struct build *b, const struct netrule *net)
{
	struct slice name = literal_end(net);
	struct draft *last = b->n_drafts ? &b->draft[b->n_drafts - 1] : NULL;

	if (last && slice_eq(last->name, name))
		return last;
	b->draft = grow_compile(b->draft, b->n_drafts, &b->max_drafts, sizeof(*b->draft));
	last = &b->draft[b->n_drafts++];
	*last = (struct draft){.name = name, .span = b->name_spans.n};
	last->node.n_name = (uint8_t)name.n;
	last->node.glob = (uint32_t)b->n_globs;
	return last;
}

static int add_glob(
	struct build *b, struct node *node, const struct entry *e, size_t n, struct err *err)
{
	if (node->n_globs == POLICY_MAX_GLOBS)
		return err_set(err, -E2BIG,
			"line %u: more than %d patterns in front of '%.253s': use '*.' or '**.'",
			e->rule->line, POLICY_MAX_GLOBS, e->net->name + e->net->n_glob);
	b->glob = grow_compile(b->glob, b->n_globs, &b->max_globs, sizeof(*b->glob));
	b->glob[b->n_globs++] = (struct glob){
		.text = table_words_add(&b->words, slice_of(e->net->name, e->net->n_glob - 1u)),
		.n = (uint8_t)(e->net->n_glob - 1),
		.deep = e->net->deep,
		.spans = add_spans(&b->spans, e, n)};
	node->n_globs++;
	return 0;
}

static int add_name(struct build *b, const struct entry *e, size_t n, struct err *err)
{
	struct node *node = &draft_for(b, e->net)->node;

	if (e->list == LIST_GLOB)
		return add_glob(b, node, e, n, err);
	node->n[e->list] = (uint16_t)add_spans(&b->name_spans, e, n).n;
	return 0;
}

/* Room for a record of n bytes, in one cache line if possible. Unit 0 stays unused. */
static uint32_t place_record(struct build *b, size_t n)
{
	size_t at = b->n_bytes ? b->n_bytes : POLICY_UNIT;

	if (n <= POLICY_LINE && at % POLICY_LINE + n > POLICY_LINE)
		at += POLICY_LINE - at % POLICY_LINE;
	b->n_bytes = at + (n + POLICY_UNIT - 1) / POLICY_UNIT * POLICY_UNIT;
	return (uint32_t)(at / POLICY_UNIT);
}

static size_t draft_spans(const struct draft *d)
{
	return (size_t)d->node.n[LIST_EXACT] + d->node.n[LIST_ONE] + d->node.n[LIST_DEEP];
}

static void write_record(const struct build *b, const struct draft *d, uint8_t *to)
{
	size_t n = draft_spans(d) * sizeof(struct span);

	memcpy(to, &d->node, sizeof(d->node));
	if (n)
		memcpy(to + sizeof(d->node), b->name_spans.span + d->span, n);
	memcpy(to + sizeof(d->node) + n, d->name.p, d->name.n);
}

static void hash_name(struct table_head *head, uint32_t *slots, struct slice name, uint32_t unit)
{
	uint32_t mask = (1u << head->slot_bits) - 1, slot;
	uint64_t hash = POLICY_HASH_START;
	unsigned labels = 1;

	for (size_t i = name.n; i > 0; i--) {
		hash = policy_hash_byte(hash, name.p[i - 1]);
		labels += name.p[i - 1] == '.';
	}
	head->max_labels = (uint8_t)MAX(head->max_labels, labels);
	head->has_labels[labels / 64] |= 1ull << labels % 64;
	hash = policy_hash_end(hash);
	slot = (uint32_t)(hash >> (64 - head->slot_bits));
	while (slots[slot])
		slot = (slot + 1) & mask;
	slots[slot] = unit << 8 | (hash & 0xff);
}

/* At most half of the slots are used. */
static void fill_records(struct build *b, const uint32_t *unit)
{
	struct table_head *head = &b->table->head;
	size_t n = (b->n_bytes + POLICY_LINE - 1) / POLICY_LINE * POLICY_LINE;
	uint8_t *nodes = xcalloc(n, 1);
	uint32_t *slots;

	for (head->slot_bits = 1; (1ull << head->slot_bits) < b->n_drafts * 2;)
		head->slot_bits++;
	slots = xcalloc(1ul << head->slot_bits, sizeof(*slots));
	for (size_t i = 0; i < b->n_drafts; i++) {
		write_record(b, &b->draft[i], nodes + (size_t)unit[i] * POLICY_UNIT);
		hash_name(head, slots, b->draft[i].name, unit[i]);
	}
	give_section(b, TABLE_NODES, nodes, n);
	give_section(b, TABLE_SLOTS, slots, 1ul << head->slot_bits);
}

static int write_records(struct build *b, struct err *err)
{
	AUTO_FREE uint32_t *unit = xcalloc(b->n_drafts + 1, sizeof(*unit));

	for (size_t i = 0; i < b->n_drafts; i++)
		unit[i] = place_record(b, sizeof(struct node) + b->draft[i].name.n +
						  draft_spans(&b->draft[i]) * sizeof(struct span));
	if (b->n_bytes / POLICY_UNIT >= 1u << 24)
		return err_set(err, -E2BIG, "the policy is too large");
	if (b->n_drafts)
		fill_records(b, unit);
	return 0;
}

/* ---- networks ---- */

/* They come sorted, so the network around a new one is the last, or around the last. */
static void add_net(struct build *b, const struct entry *e, size_t n)
{
	const struct addr_net *a = &e->net->net;
	struct net_list *nets = a->addr.n == 4 ? &b->v4 : &b->v6;
	addr_bits key = addr_key(&a->addr);
	uint32_t up = nets->n ? (uint32_t)nets->n - 1 : NO_NET;

	while (up != NO_NET && nets->net[up].prefix &&
		(nets->key[up] ^ key) >> (128 - nets->net[up].prefix) != 0)
		up = nets->net[up].parent;
	if (nets->n == nets->max) {
		nets->max = nets->max ? nets->max * 2 : 16;
		nets->key = xrealloc(nets->key, nets->max * sizeof(*nets->key));
		nets->net = xrealloc(nets->net, nets->max * sizeof(*nets->net));
	}
	nets->key[nets->n] = key;
	nets->net[nets->n++] = (struct net){
		.parent = up, .prefix = a->prefix, .spans = add_spans(&b->spans, e, n)};
}

static void give_nets(struct build *b, const struct net_list *nets, enum table_section keys,
	enum table_section list, enum table_section doors)
{
	uint32_t *door;
	size_t k = 0;

	if (!nets->n)
		return;
	door = xcalloc(POLICY_N_DOORS, sizeof(*door));
	for (size_t i = 0; i < POLICY_N_DOORS; i++) {
		while (k < nets->n && (size_t)(nets->key[k] >> (128 - POLICY_DOOR_BITS)) < i)
			k++;
		door[i] = (uint32_t)k;
	}
	give_section(b, keys, nets->key, nets->n);
	give_section(b, list, nets->net, nets->n);
	give_section(b, doors, door, POLICY_N_DOORS);
}

/* ---- rules ---- */

static void add_rules(struct build *b, const struct table_wish *wish)
{
	struct table_rule *list = xcalloc(wish->n + 1, sizeof(*list));

	for (size_t i = 0; i < wish->n; i++) {
		const struct rule *rule = &wish->rules->rule[wish->pick[i]];
		AUTO_FREE char *resources = rule_print_what(rule);
		struct slice id = slice_from_str(rule->id ? rule->id : ""),
			     text = slice_from_str(resources);

		list[i] = (struct table_rule){.until_ms = rule->until_ms,
			.text = table_words_add(&b->words, id),
			.index = wish->part == POLICY_MANAGED ? rule->line : wish->pick[i],
			.group = (uint32_t)rule->group,
			.n_id = (uint8_t)id.n,
			.n_resources = (uint16_t)text.n,
			.effect = (uint8_t)rule->effect & 3,
			.kind = (uint8_t)rule->kind & 31,
			.is_own = rule->sandbox != NULL};
		(void)table_words_add(&b->words, text);
	}
	give_section(b, TABLE_RULES, list, wish->n);
}

static int add_place(struct build *b, const struct entry *e, size_t n, struct err *err)
{
	if (e->net->form == NETRULE_NAME)
		return add_name(b, e, n, err);
	if (e->net->form == NETRULE_ADDR)
		add_net(b, e, n);
	else
		b->table->head.every = add_spans(&b->spans, e, n);
	return 0;
}

int policy_compile(const struct table_wish *wish, struct table_draft *ret, struct err *err)
{
	struct build b = {.table = ret};
	size_t n, i = 0;
	AUTO_FREE struct entry *entry = list_entries(wish, &n);
	int r = 0;

	while (i < n && r == 0) {
		size_t k = 1;

		while (i + k < n && compare_places(&entry[i], &entry[i + k]) == 0)
			k++;
		r = add_place(&b, &entry[i], k, err);
		i += k;
	}
	if (r == 0)
		r = write_records(&b, err);
	if (r == 0)
		r = policy_compile_requests(wish, &b.words, ret, err);
	add_rules(&b, wish);
	give_section(&b, TABLE_SPANS, b.spans.span, b.spans.n);
	give_section(&b, TABLE_GLOBS, b.glob, b.n_globs);
	give_section(&b, TABLE_TEXT, b.words.text, b.words.n);
	give_nets(&b, &b.v4, TABLE_V4_KEYS, TABLE_V4_NETS, TABLE_V4_DOORS);
	give_nets(&b, &b.v6, TABLE_V6_KEYS, TABLE_V6_NETS, TABLE_V6_DOORS);
	free(b.draft);
	free(b.name_spans.span);
	return r;
}
