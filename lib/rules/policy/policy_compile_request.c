/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include "lib/base/mem.h"
#include "policy_internal.h"
#include "policy_request.h"

/* One row before the table has it: a resource on a range of ports, with one object or none. */
struct draft_row {
	const struct rule *rule;
	const struct netrule *net;
	uint32_t number;
	struct netrule_ports ports;
	struct slice group; /* the literal end of the host, the address, or the service */
	struct slice glob;  /* the labels in front of it, without the last dot */
	struct slice pattern;
	struct slice start; /* of the pattern, or of the object, in lower case */
	uint32_t terms;
	uint16_t n_terms;
	char *owned[2]; /* an address; start */
};

struct rows {
	struct draft_row *row;
	size_t n, max;
};

/* What fills the sections. */
struct reqs {
	struct table_words *words;
	struct req_group *group;
	struct req_host *host;
	struct req_place *place;
	struct req_row *row;
	size_t n_groups, n_hosts, n_places, n_rows;
	char *headers;
	size_t n_headers;
};

static struct slice lower_of(struct slice s, char **owned)
{
	*owned = xmalloc(s.n + 1);
	for (size_t i = 0; i < s.n; i++)
		(*owned)[i] = (char)(s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] + 'a' - 'A' : s.p[i]);
	(*owned)[s.n] = '\0';
	return slice_of(*owned, s.n);
}

/* ---- the rows ---- */

static void set_group(struct draft_row *row)
{
	const struct netrule *net = row->net;

	if (net->form == NETRULE_NO_HOST) {
		row->group = slice_from_str(net->path);
	} else if (net->form == NETRULE_ADDR) {
		row->owned[0] = xmalloc(ADDR_MAX_TEXT);
		addr_print(&net->net.addr, row->owned[0]);
		row->group = slice_from_str(row->owned[0]);
	} else if (net->form == NETRULE_NAME) {
		row->group = slice_of(net->name + net->n_glob, net->n_name - net->n_glob);
		row->glob = slice_of(net->name, net->n_glob ? net->n_glob - 1u : 0);
	}
}

static void add_row(struct rows *rows, const struct draft_row *from, struct slice object)
{
	struct draft_row row = *from;
	struct slice start = object.p ? object : row.pattern;

	if (row.net->form == NETRULE_NO_HOST && !object.p)
		start = slice_from_str("");
	set_group(&row);
	row.start = lower_of(slice_of(start.p, effect_pattern_literal(start)), &row.owned[1]);
	if (rows->n == rows->max) {
		rows->max = rows->max ? rows->max * 2 : 64;
		rows->row = xrealloc(rows->row, rows->max * sizeof(*rows->row));
	}
	rows->row[rows->n++] = row;
}

/* An API's rows are found by their objects: one row for each. */
static void add_objects(struct rows *rows, const struct draft_row *row)
{
	const struct effect_terms *terms = &row->rule->terms;
	size_t n = 0;

	for (size_t i = 0; i < terms->n && row->rule->kind == RULE_API; i++)
		if (terms->term[i].kind == EFFECT_TERM_ON) {
			add_row(rows, row, slice_from_str(terms->term[i].value));
			n++;
		}
	if (n == 0)
		add_row(rows, row, slice_of(NULL, 0));
}

static void add_net(struct rows *rows, struct draft_row *row)
{
	struct netrule_ports ports[NETRULE_MAX_PORTS] = {{1, UINT16_MAX}};
	bool has_host = row->net->form != NETRULE_NO_HOST;
	size_t n = has_host ? rule_get_ports(row->rule, row->net, ports) : 1;

	row->pattern = slice_from_str(row->net->path);
	for (size_t i = 0; i < n; i++) {
		row->ports = ports[i];
		add_objects(rows, row);
	}
}

static void add_rule_rows(
	struct rows *rows, struct reqs *q, const struct rule *rule, uint32_t number)
{
	uint8_t packed[EFFECT_MAX_PACKED];
	size_t n = effect_terms_pack(&rule->terms, packed);
	struct draft_row row = {.rule = rule,
		.number = number,
		.terms = table_words_add(q->words, slice_of(packed, n)),
		.n_terms = (uint16_t)n};

	for (size_t i = 0; i < rule->n_net; i++) {
		row.net = &rule->net[i];
		add_net(rows, &row);
	}
}

static int add_header(struct reqs *q, const char *name, struct err *err)
{
	AUTO_FREE char *line = xasprintf("%s\n", name), *old = q->headers;
	size_t n = 0;

	for (const char *p = old; p && *p; p = strchr(p, '\n') + 1, n++)
		if (strncmp(p, line, strlen(line)) == 0) {
			q->headers = TAKE(old);
			return 0;
		}
	q->headers = xasprintf("%s%s", old ? old : "", line);
	return n < POLICY_MAX_HEADERS / 2 ? 0
					  : err_set(err, -E2BIG, "rules name more than %d headers",
						    POLICY_MAX_HEADERS / 2);
}

static int add_headers(struct reqs *q, const struct rule *rule, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < rule->terms.n && r == 0; i++)
		if (rule->terms.term[i].kind == EFFECT_TERM_HEADER)
			r = add_header(q, rule->terms.term[i].name, err);
	return r < 0 ? err_wrap(err, r, "line %u", rule->line) : 0;
}

/* ---- their order ---- */

static int compare_texts(struct slice a, struct slice b)
{
	size_t n = MIN(a.n, b.n);
	int c = n ? memcmp(a.p, b.p, n) : 0;

	return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int compare_groups(const struct draft_row *a, const struct draft_row *b)
{
	int c = (int)a->rule->kind - (int)b->rule->kind;

	return c ? c : compare_texts(a->group, b->group);
}

/* Deny first: the search ends there. */
static int compare_rows(const void *va, const void *vb)
{
	const struct draft_row *a = va, *b = vb;
	int c = compare_groups(a, b);

	if (c == 0)
		c = compare_texts(a->start, b->start);
	if (c == 0)
		c = (a->rule->effect != RULE_DENY) - (b->rule->effect != RULE_DENY);
	if (c == 0)
		c = strcmp(a->rule->id ? a->rule->id : "", b->rule->id ? b->rule->id : "");
	return c ? c : (a->number > b->number) - (a->number < b->number);
}

/* ---- the sections ---- */

static bool lives_longer(const struct rule *a, const struct rule *b)
{
	return a->until_ms - 1 > b->until_ms - 1; /* 0 becomes the largest */
}

static bool same_spec(
	const struct host_spec *a, const struct host_spec *b, const struct table_words *words)
{
	return a->lo == b->lo && a->hi == b->hi && a->n_glob == b->n_glob && a->deep == b->deep &&
	       a->is_every == b->is_every &&
	       memcmp(words->text + a->text, words->text + b->text, a->n_glob) == 0;
}

static struct host_spec spec_of(struct reqs *q, const struct draft_row *row)
{
	return (struct host_spec){.text = table_words_add(q->words, row->glob),
		.lo = row->ports.lo,
		.hi = row->ports.hi,
		.n_glob = (uint8_t)row->glob.n,
		.deep = row->net->deep,
		.is_every = row->net->form == NETRULE_EVERY};
}

static void keep_longest(const struct table_wish *wish, uint32_t *to, const struct draft_row *row)
{
	const struct rule *old =
		*to ? &wish->rules->rule[wish->pick[(*to & ~POLICY_ENDS) - 1]] : NULL;

	if (!old || lives_longer(row->rule, old))
		*to = row->number;
}

static int add_host(const struct table_wish *wish, struct reqs *q, struct req_group *g,
	const struct draft_row *row, const struct host_spec *spec, struct err *err)
{
	struct req_host *h = &q->host[g->host];
	uint32_t i = 0;

	while (i < g->n_hosts && !same_spec(&h[i].spec, spec, q->words))
		i++;
	if (i == POLICY_MAX_HOSTS)
		return err_set(err, -E2BIG, "line %u: more than %d hosts and ports end in '%.253s'",
			row->rule->line, POLICY_MAX_HOSTS, row->net->name ? row->net->name : "**");
	if (i == g->n_hosts) {
		h[i] = (struct req_host){.spec = *spec};
		g->n_hosts++;
		q->n_hosts++;
	}
	keep_longest(wish, &h[i].any, row);
	if (row->rule->effect == RULE_ALLOW)
		keep_longest(wish, &h[i].allow, row);
	return 0;
}

static void begin_group(struct reqs *q, const struct draft_row *row)
{
	q->group[q->n_groups++] = (struct req_group){.name = table_words_add(q->words, row->group),
		.place = (uint32_t)q->n_places,
		.host = (uint32_t)q->n_hosts,
		.n_name = (uint8_t)row->group.n,
		.kind = (uint8_t)rule_request_kind(row->rule->kind)};
}

static bool begins_with(const struct reqs *q, struct slice text, uint32_t place)
{
	const struct req_place *p = &q->place[place];

	return p->n <= text.n && memcmp(q->words->text + p->text, text.p, p->n) == 0;
}

/* They come sorted, so the longest start of a new one is the last, or a start of the last. */
static void begin_place(struct reqs *q, const struct draft_row *row)
{
	struct req_group *g = &q->group[q->n_groups - 1];
	uint32_t up = g->n_places ? (uint32_t)q->n_places - 1 : NO_PLACE;

	while (up != NO_PLACE && !begins_with(q, row->start, up))
		up = q->place[up].parent;
	q->place[q->n_places++] = (struct req_place){.front = policy_front(row->start),
		.text = table_words_add(q->words, row->start),
		.n = (uint16_t)row->start.n,
		.parent = up,
		.row = (uint32_t)q->n_rows};
	g->n_places++;
}

static int fill_row(
	const struct table_wish *wish, struct reqs *q, const struct draft_row *row, struct err *err)
{
	struct req_place *place = &q->place[q->n_places - 1];
	struct host_spec spec = spec_of(q, row);

	if (place->n_rows == POLICY_MAX_AT)
		return err_set(err, -E2BIG, "line %u: more than %d rules begin with '%.200s'",
			row->rule->line, POLICY_MAX_AT, row->owned[1]);
	place->n_rows++;
	q->row[q->n_rows++] = (struct req_row){.spec = spec,
		.rule = row->number,
		.pattern = table_words_add(q->words, row->pattern),
		.n_pattern = (uint16_t)row->pattern.n,
		.terms = row->terms,
		.n_terms = row->n_terms};
	return add_host(wish, q, &q->group[q->n_groups - 1], row, &spec, err);
}

static int fill_rows(
	const struct table_wish *wish, struct reqs *q, const struct rows *rows, struct err *err)
{
	int r = 0;

	q->group = xcalloc(rows->n + 1, sizeof(*q->group));
	q->host = xcalloc(rows->n + 1, sizeof(*q->host));
	q->place = xcalloc(rows->n + 1, sizeof(*q->place));
	q->row = xcalloc(rows->n + 1, sizeof(*q->row));
	for (size_t i = 0; i < rows->n && r == 0; i++) {
		const struct draft_row *row = &rows->row[i], *last = i ? row - 1 : NULL;
		bool is_new = !last || compare_groups(last, row) != 0;

		if (is_new)
			begin_group(q, row);
		if (is_new || compare_texts(last->start, row->start) != 0)
			begin_place(q, row);
		r = fill_row(wish, q, row, err);
	}
	return r;
}

/* At most half of the slots are used. */
static uint32_t *fill_slots(const struct reqs *q, struct table_head *head, size_t *ret_n)
{
	size_t n = 2;
	uint32_t *slot;

	while (n < q->n_groups * 2)
		n *= 2;
	slot = xcalloc(n, sizeof(*slot));
	for (size_t i = 0; i < q->n_groups; i++) {
		const struct req_group *g = &q->group[i];
		uint64_t hash = POLICY_HASH_START;
		size_t at, labels = g->n_name > 0;

		for (size_t k = g->n_name; k > 0; k--) {
			labels += q->words->text[g->name + k - 1] == '.';
			hash = policy_hash_byte(hash, (uint8_t)q->words->text[g->name + k - 1]);
		}
		head->req_labels[g->kind] |= policy_label_bit(labels);
		at = policy_hash_end(policy_hash_byte(hash, g->kind)) & (n - 1);
		while (slot[at])
			at = (at + 1) & (n - 1);
		slot[at] = (uint32_t)i + 1;
	}
	*ret_n = n;
	return slot;
}

static void give_requests(struct reqs *q, struct table_draft *ret)
{
	size_t n_slots = 0;
	const struct {
		enum table_section section;
		void *bytes;
		size_t n;
	} list[] = {{TABLE_REQ_GROUPS, q->group, q->n_groups},
		{TABLE_REQ_HOSTS, q->host, q->n_hosts}, {TABLE_REQ_PLACES, q->place, q->n_places},
		{TABLE_REQ_ROWS, q->row, q->n_rows},
		{TABLE_REQ_HEADERS, q->headers, q->headers ? strlen(q->headers) : 0}};

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		ret->bytes[list[i].section] = list[i].bytes;
		ret->head.section[list[i].section].n = list[i].n;
	}
	if (q->n_groups)
		ret->bytes[TABLE_REQ_SLOTS] = fill_slots(q, &ret->head, &n_slots);
	ret->head.section[TABLE_REQ_SLOTS].n = n_slots;
}

int policy_compile_requests(const struct table_wish *wish, struct table_words *words,
	struct table_draft *ret, struct err *err)
{
	struct reqs q = {.words = words};
	struct rows rows = {0};
	int r = 0;

	for (size_t i = 0; i < wish->n && r == 0; i++) {
		const struct rule *rule = &wish->rules->rule[wish->pick[i]];

		if (rule->kind == RULE_NETWORK)
			continue;
		add_rule_rows(
			&rows, &q, rule, (uint32_t)(i + 1) | (rule->until_ms ? POLICY_ENDS : 0));
		r = add_headers(&q, rule, err);
	}
	if (rows.n)
		qsort(rows.row, rows.n, sizeof(*rows.row), compare_rows);
	if (r == 0)
		r = fill_rows(wish, &q, &rows, err);
	give_requests(&q, ret);
	for (size_t i = 0; i < rows.n; i++) {
		free(rows.row[i].owned[0]);
		free(rows.row[i].owned[1]);
	}
	free(rows.row);
	return r;
}
