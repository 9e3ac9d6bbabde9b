/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_view.h"

#include "lib/base/mem.h"

/* Rows are one list by the time they were last seen, and chains of a hash table. */
struct node {
	struct audit_view_row row;
	struct node *newer, *older, *next;
	uint64_t hash;
	uint8_t bytes[]; /* of the texts */
};

struct audit_view {
	struct node **buckets;
	size_t n_buckets, n_rows, max_rows;
	struct node *newest, *oldest;
	uint64_t n_dropped;
};

struct audit_view *audit_view_new(size_t max_rows)
{
	struct audit_view *v = xcalloc(1, sizeof(*v));

	v->max_rows = max_rows ? max_rows : 1;
	for (v->n_buckets = 16; v->n_buckets < v->max_rows;)
		v->n_buckets *= 2;
	v->buckets = xcalloc(v->n_buckets, sizeof(struct node *));
	return v;
}

void audit_view_free(struct audit_view *v)
{
	struct node *n = v ? v->newest : NULL;

	while (n) {
		struct node *older = n->older;

		free(n);
		n = older;
	}
	if (v)
		free(v->buckets);
	free(v);
}

static void mix_view(uint64_t *h, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*h = (*h ^ p[i]) * UINT64_C(0x100000001b3);
	*h = (*h ^ n) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t hash_row(const struct audit_view_row *row)
{
	uint64_t h = row->port * 4 + row->decision;

	for (size_t i = 0; i < AUDIT_VIEW_N_TEXTS; i++)
		mix_view(&h, row->text[i].p, row->text[i].n);
	return h ^ h >> 32;
}

static bool is_same(const struct audit_view_row *a, const struct audit_view_row *b)
{
	if (a->decision != b->decision || a->port != b->port)
		return false;
	for (size_t i = 0; i < AUDIT_VIEW_N_TEXTS; i++)
		if (!slice_eq(a->text[i], b->text[i]))
			return false;
	return true;
}

static struct node **bucket_of(const struct audit_view *v, uint64_t hash)
{
	return &v->buckets[hash & (v->n_buckets - 1)];
}

static void unlink_node(struct audit_view *v, struct node *n)
{
	*(n->newer ? &n->newer->older : &v->newest) = n->older;
	*(n->older ? &n->older->newer : &v->oldest) = n->newer;
}

static void link_newest(struct audit_view *v, struct node *n)
{
	n->newer = NULL;
	n->older = v->newest;
	*(v->newest ? &v->newest->newer : &v->oldest) = n;
	v->newest = n;
}

static void drop_oldest(struct audit_view *v)
{
	struct node *n = v->oldest;
	struct node **at = bucket_of(v, n->hash);

	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	unlink_node(v, n);
	free(n);
	v->n_rows--;
	v->n_dropped++;
}

static struct node *make_node(const struct audit_view_row *row, uint64_t hash)
{
	struct node *n;
	size_t len = 0;

	for (size_t i = 0; i < AUDIT_VIEW_N_TEXTS; i++)
		len += row->text[i].n;
	n = xcalloc(1, sizeof(*n) + len);
	n->row = *row;
	n->hash = hash;
	len = 0;
	for (size_t i = 0; i < AUDIT_VIEW_N_TEXTS; i++) {
		struct slice s = row->text[i];

		if (s.n)
			memcpy(n->bytes + len, s.p, s.n);
		n->row.text[i].p = n->bytes + len;
		len += s.n;
	}
	return n;
}

static void add_row(struct audit_view *v, const struct audit_view_row *row)
{
	uint64_t hash = hash_row(row);
	struct node **bucket = bucket_of(v, hash), *n = *bucket;

	while (n && !(n->hash == hash && is_same(&n->row, row)))
		n = n->next;
	if (n) {
		n->row.count += row->count;
		n->row.last_seen_ms = MAX(n->row.last_seen_ms, row->last_seen_ms);
		unlink_node(v, n);
		link_newest(v, n);
		return;
	}
	if (v->n_rows == v->max_rows)
		drop_oldest(v);
	n = make_node(row, hash);
	n->next = *bucket;
	*bucket = n;
	link_newest(v, n);
	v->n_rows++;
}

static void add_record(struct audit_view *v, const struct audit_record *rec)
{
	const struct audit_event *ev = &rec->ev;
	struct audit_view_row row = {.decision = ev->decision,
		.port = ev->port,
		.count = ev->count ? ev->count : 1,
		.first_seen_ms = rec->time_ms,
		.last_seen_ms = rec->time_ms,
		.text = {
			[AUDIT_VIEW_SANDBOX] = rec->name.n ? rec->name : rec->sandbox,
			[AUDIT_VIEW_TYPE] = ev->type,
			[AUDIT_VIEW_HOST] = ev->host,
			[AUDIT_VIEW_PATH] = ev->path,
			[AUDIT_VIEW_RULE] = ev->rule,
			[AUDIT_VIEW_REASON] = ev->reason,
		}};

	/* Decisions on files are not decisions of the network policy. */
	if (ev->kind == AUDIT_KIND_DECISION && !slice_eq_str(ev->action, AUDIT_ACTION_GUARD))
		add_row(v, &row);
}

int audit_view_on_record(void *view, const struct audit_record *rec, struct slice line)
{
	(void)line;
	add_record(view, rec);
	return 0;
}

uint64_t audit_view_dropped(const struct audit_view *v)
{
	return v->n_dropped;
}

int audit_view_each(const struct audit_view *v, size_t limit, audit_view_fn *fn, void *arg)
{
	size_t n = 0;

	for (const struct node *at = v->newest; at && (!limit || n < limit); at = at->older, n++) {
		int r = fn(arg, &at->row);

		if (r < 0)
			return r;
	}
	return 0;
}
