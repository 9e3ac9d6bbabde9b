/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_request.h"

#include <stdio.h>
#include "policy_internal.h"

/* Of one request, on its way through the tables. */
struct look {
	const struct policy *p;
	const struct table *t;
	const struct policy_request *req;
	const struct effect *effect; /* NULL: only the hosts matter */
	struct slice service;
	struct policy_git *git; /* not NULL: rules are collected, and decide nothing */
	struct slice key;	/* what literal starts are compared with, in lower case */
	bool is_whole;		/* every place of a group counts: the key is in doubt */
	bool is_mute, is_damaged, is_managed;
	struct policy_hit deny, ask, allow;
	bool is_covered, is_named, is_governed;
	struct policy_hit named, governs; /* is_named and is_governed: a rule */
};

static struct slice text_at(struct look *l, uint32_t at, size_t n)
{
	if (table_has(l->t, TABLE_TEXT, at, n))
		return slice_of(l->t->text + at, n);
	l->is_damaged = true;
	return slice_of("", 0);
}

/* ---- hosts ---- */

static bool fits_port(const struct look *l, uint16_t lo, uint16_t hi)
{
	return l->req->op.port >= lo && l->req->op.port <= hi;
}

/* `at`: where the group's literal end begins in the host. */
static bool fits_host(struct look *l, const struct host_spec *spec, size_t at)
{
	const struct host *h = l->req->op.host;
	struct slice pattern = text_at(l, spec->text, spec->n_glob);

	if (spec->is_every)
		return true;
	if (pattern.n == 0)
		return spec->deep ? at > 0 : at == 0;
	return at > 0 && policy_glob_fits(pattern, spec->deep, slice_of(h->name, at - 1));
}

static void see_hosts(struct look *l, const struct req_group *g, size_t at, bool has_host)
{
	if (!table_has(l->t, TABLE_REQ_HOSTS, g->host, g->n_hosts)) {
		l->is_damaged = true;
		return;
	}
	for (uint32_t i = g->host; i < g->host + g->n_hosts; i++) {
		const struct req_host *h = &l->t->req_host[i];
		const struct table_rule *rule;

		if (has_host &&
			(!fits_port(l, h->spec.lo, h->spec.hi) || !fits_host(l, &h->spec, at)))
			continue;
		rule = policy_live_rule(l->t, h->any, l->req->op.now_ms, &l->is_damaged);
		if (rule && !l->is_named)
			l->named = (struct policy_hit){.table = l->t, .rule = rule};
		l->is_named = l->is_named || rule;
		rule = h->allow && !l->is_mute
			       ? policy_live_rule(l->t, h->allow, l->req->op.now_ms, &l->is_damaged)
			       : NULL;
		if (rule && !l->is_governed)
			l->governs = (struct policy_hit){.table = l->t, .rule = rule};
		l->is_governed = l->is_governed || rule;
	}
}

/* ---- rows ---- */

static void take_row(struct look *l, const struct req_row *row, const struct table_rule *rule,
	enum effect_match m)
{
	struct policy_hit hit = {.table = l->t, .rule = rule};

	if (rule->effect == RULE_DENY && !l->deny.rule)
		l->deny = hit;
	if (rule->effect == RULE_ASK && !l->ask.rule)
		l->ask = hit;
	if (rule->effect == RULE_DENY || m != EFFECT_MATCHES || l->is_mute)
		return;
	l->is_covered = true;
	if (rule->effect == RULE_ALLOW && !l->allow.rule)
		l->allow = hit;
}

static void collect_git(struct look *l, const struct req_row *row, const struct table_rule *rule)
{
	l->git->is_named = true;
	l->git->permits = l->git->permits || (rule->effect != RULE_DENY && !l->is_mute);
	l->git->asks = l->git->asks || rule->effect == RULE_ASK;
	l->git->paths = l->git->paths ||
			effect_terms_have(text_at(l, row->terms, row->n_terms), EFFECT_TERM_PATH);
}

static void see_row(struct look *l, const struct req_row *row, size_t at, bool has_host)
{
	const struct table_rule *rule;
	enum effect_match m;
	bool bad = false;

	if (has_host &&
		(!fits_port(l, row->spec.lo, row->spec.hi) || !fits_host(l, &row->spec, at)))
		return;
	rule = policy_live_rule(l->t, row->rule, l->req->op.now_ms, &l->is_damaged);
	if (!rule)
		return;
	m = effect_terms_match(l->effect, text_at(l, row->pattern, row->n_pattern),
		text_at(l, row->terms, row->n_terms), &bad);
	l->is_damaged = l->is_damaged || bad;
	if (l->git && m != EFFECT_DIFFERS)
		collect_git(l, row, rule);
	else if (m == EFFECT_MATCHES || (m == EFFECT_MAY_MATCH && rule->effect != RULE_ALLOW))
		take_row(l, row, rule, m);
}

static void see_place(struct look *l, const struct req_place *place, size_t at, bool has_host)
{
	if (!table_has(l->t, TABLE_REQ_ROWS, place->row, place->n_rows)) {
		l->is_damaged = true;
		return;
	}
	for (uint32_t i = place->row; i < place->row + place->n_rows && !l->deny.rule; i++)
		see_row(l, &l->t->req_row[i], at, has_host);
}

static int compare_key(struct slice a, struct slice b)
{
	int c = MIN(a.n, b.n) ? memcmp(a.p, b.p, MIN(a.n, b.n)) : 0;

	return c ? c : (a.n > b.n) - (a.n < b.n);
}

static struct slice place_text(struct look *l, uint32_t i)
{
	const struct req_place *place = &l->t->req_place[i];

	return text_at(l, place->text, place->n);
}

/* The last place of the group that is not behind the key, and so on to shorter and shorter ones. */
static void see_start(struct look *l, const struct req_group *g, size_t at, bool has_host)
{
	uint32_t from = g->place, to = g->place + g->n_places, up;
	uint64_t front = policy_front(l->key);

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (l->t->req_place[mid].front < front ||
			(l->t->req_place[mid].front == front &&
				compare_key(place_text(l, mid), l->key) <= 0))
			from = mid + 1;
		else
			to = mid;
	}
	for (uint32_t i = from > g->place ? from - 1 : NO_PLACE; i != NO_PLACE && !l->deny.rule;
		i = up) {
		struct slice start = place_text(l, i);

		up = l->t->req_place[i].parent;
		if (up != NO_PLACE && (up >= i || up < g->place)) {
			l->is_damaged = true;
			return;
		}
		if (start.n <= l->key.n && (!start.n || !memcmp(start.p, l->key.p, start.n)))
			see_place(l, &l->t->req_place[i], at, has_host);
	}
}

static void see_group(struct look *l, const struct req_group *g, size_t at, bool has_host)
{
	if (!l->effect) {
		see_hosts(l, g, at, has_host);
		return;
	}
	if (!table_has(l->t, TABLE_REQ_PLACES, g->place, g->n_places)) {
		l->is_damaged = true;
		return;
	}
	for (uint32_t i = 0; l->is_whole && i < g->n_places; i++)
		see_place(l, &l->t->req_place[g->place + i], at, has_host);
	if (!l->is_whole)
		see_start(l, g, at, has_host);
}

/* ---- groups ---- */

/* `hash` is of the name, from its last byte to its first. */
static const struct req_group *find_group(
	struct look *l, enum effect_kind kind, struct slice name, uint64_t hash)
{
	const struct table *t = l->t;
	size_t n = table_count(t, TABLE_REQ_SLOTS);
	size_t mask = n - 1, slot;

	hash = policy_hash_end(policy_hash_byte(hash, (uint8_t)kind));
	slot = hash & mask;
	for (size_t left = n; left > 0 && t->req_slot[slot]; left--, slot = (slot + 1) & mask) {
		const struct req_group *g;

		if (t->req_slot[slot] > table_count(t, TABLE_REQ_GROUPS)) {
			l->is_damaged = true;
			return NULL;
		}
		g = &t->req_group[t->req_slot[slot] - 1];
		if (g->kind == kind && g->n_name == name.n &&
			slice_eq(text_at(l, g->name, g->n_name), name))
			return g;
	}
	return NULL;
}

static void see_name(struct look *l, enum effect_kind kind, struct slice name, uint64_t hash,
	size_t at, bool has_host)
{
	const struct req_group *g = find_group(l, kind, name, hash);

	if (g)
		see_group(l, g, at, has_host);
}

/* Each end of the name that begins with a label; of an address the whole. */
static void see_host(struct look *l, enum effect_kind kind)
{
	const struct host *h = l->req->op.host;
	uint64_t hash = POLICY_HASH_START, has = l->t->head.req_labels[kind];
	size_t labels = 1;

	if (has & policy_label_bit(0))
		see_name(l, kind, slice_of("", 0), hash, 0, true);
	for (size_t at = h->n; at > 0 && has > 1; at--) {
		hash = policy_hash_byte(hash, (uint8_t)h->name[at - 1]);
		labels += h->name[at - 1] == '.';
		if (at > 1 && (h->is_addr || h->name[at - 2] != '.'))
			continue;
		if (has & policy_label_bit(labels))
			see_name(l, kind, slice_of(h->name + at - 1, h->n - at + 1), hash, at - 1,
				true);
	}
}

static void see_service(struct look *l, struct slice service)
{
	static const char every[] = "**";
	const struct slice names[] = {service, slice_of(every, 2)};

	for (size_t i = 0; i < ARRAY_LEN(names) && service.n; i++) {
		uint64_t hash = POLICY_HASH_START;

		for (size_t k = names[i].n; k > 0; k--)
			hash = policy_hash_byte(hash, names[i].p[k - 1]);
		see_name(l, EFFECT_API, names[i], hash, 0, false);
	}
}

/* The next part with rules about requests; false after the last. */
static bool next_part(struct look *l, size_t *i)
{
	for (; *i < POLICY_N_PARTS; (*i)++) {
		l->t = &l->p->part[*i];
		l->is_mute = *i == POLICY_ALL && l->p->part[POLICY_OWN].head.only;
		if (l->t->map && table_count(l->t, TABLE_REQ_SLOTS)) {
			(*i)++;
			return true;
		}
	}
	return false;
}

/* ---- one effect ---- */

static char lower_byte(uint8_t c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
}

static void look_at(struct look *l, const struct effect *e)
{
	struct slice fact = e->kind == EFFECT_GIT ? e->target : e->object;
	UNINITIALIZED char key[EFFECT_MAX_PATTERN];
	size_t part = 0;

	/* No literal start is longer than a pattern. */
	fact.n = MIN(fact.n, sizeof(key));
	for (size_t i = 0; i < fact.n; i++)
		key[i] = lower_byte(fact.p[i]);
	l->effect = e;
	l->key = slice_of(key, fact.n);
	l->is_whole = fact.n == 0 || e->is_odd || e->cut.n;
	l->deny = l->ask = l->allow = (struct policy_hit){0};
	l->is_covered = false;
	while (!l->deny.rule && next_part(l, &part)) {
		if (e->kind == EFFECT_API)
			see_service(l, e->target);
		else
			see_host(l, e->kind);
	}
	l->key = slice_of(NULL, 0);
}

/* ---- a request ---- */

/* The hosts that rules name. */
static void look_at_hosts(struct look *l)
{
	size_t part = 0;

	l->effect = NULL;
	while (next_part(l, &part)) {
		see_host(l, EFFECT_HTTP);
		see_host(l, EFFECT_GIT);
		see_service(l, l->service);
		for (size_t i = 0; i < l->req->n; i++)
			if (l->req->list[i].n && l->req->list[i].effect->kind == EFFECT_API)
				see_service(l, l->req->list[i].effect->target);
	}
}

static void set_damaged(struct policy_outcome *ret)
{
	*ret = (struct policy_outcome){
		.by = {.why = POLICY_FAULT, .fault = "the compiled rules are damaged"}};
}

static void set_rule(struct policy_outcome *ret, struct policy_hit hit, enum policy_verdict verdict,
	size_t description, size_t effect)
{
	ret->verdict = verdict;
	ret->by = (struct policy_decision){.allowed = verdict == POLICY_ALLOWS};
	policy_name_rule(hit, &ret->by);
	if (ret->by.why == POLICY_FAULT)
		ret->verdict = POLICY_DENIES;
	ret->has_effect = true;
	ret->description = description;
	ret->effect = effect;
}

/* What all descriptions together say. */
struct weighed {
	struct policy_hit ask, allow;
	size_t ask_at[2], allow_at[2], bare_at[2]; /* description and effect */
	bool is_covered, has_bare;
};

/* True: refused. */
static bool weigh_description(
	struct look *l, size_t d, struct weighed *w, struct policy_outcome *ret)
{
	const struct policy_description *list = &l->req->list[d];
	bool covered = list->n > 0 || (l->is_managed ? list->is_covered_managed : list->is_covered);

	for (size_t i = 0; i < list->n; i++) {
		look_at(l, &list->effect[i]);
		if (l->deny.rule) {
			set_rule(ret, l->deny, POLICY_DENIES, d, i);
			return true;
		}
		if (l->ask.rule && !w->ask.rule) {
			w->ask = l->ask;
			w->ask_at[0] = d;
			w->ask_at[1] = i;
		}
		if (!l->is_covered && !w->has_bare) {
			w->has_bare = true;
			w->bare_at[0] = d;
			w->bare_at[1] = i;
		}
		if (l->allow.rule && !w->is_covered && !w->allow.rule) {
			w->allow = l->allow;
			w->allow_at[0] = d;
			w->allow_at[1] = i;
		}
		covered = covered && l->is_covered;
	}
	if (!covered && !w->is_covered)
		w->allow.rule = NULL;
	w->is_covered = w->is_covered || covered;
	return false;
}

static void conclude_request(
	const struct look *l, const struct weighed *w, struct policy_outcome *ret)
{
	ret->is_governed = l->is_governed;
	if (l->is_governed && !w->is_covered) {
		ret->verdict = POLICY_DENIES;
		ret->by = (struct policy_decision){.why = POLICY_UNCOVERED};
		ret->has_effect = w->has_bare;
		ret->description = w->bare_at[0];
		ret->effect = w->bare_at[1];
	} else if (w->ask.rule) {
		set_rule(ret, w->ask, POLICY_ASKS, w->ask_at[0], w->ask_at[1]);
	} else if (l->is_governed && w->allow.rule) {
		set_rule(ret, w->allow, POLICY_ALLOWS, w->allow_at[0], w->allow_at[1]);
	}
}

static void decide_alone(const struct policy *p, bool is_managed, const struct policy_request *req,
	struct policy_outcome *ret)
{
	struct look l = {.p = p, .req = req, .is_managed = is_managed};
	struct weighed w = {0};

	*ret = (struct policy_outcome){0};
	policy_decide(p, &req->op, &ret->by);
	if (!ret->by.allowed)
		return;
	ret->verdict = POLICY_ALLOWS;
	look_at_hosts(&l);
	ret->is_governed = l.is_governed;
	for (size_t d = 0; l.is_named && d < req->n && !l.is_damaged; d++)
		if (weigh_description(&l, d, &w, ret))
			break;
	if (l.is_damaged)
		set_damaged(ret);
	else if (ret->verdict != POLICY_DENIES)
		conclude_request(&l, &w, ret);
}

/* What either policy refuses is refused, and what either one asks about is held. */
void policy_decide_request(
	const struct policy *p, const struct policy_request *req, struct policy_outcome *ret)
{
	struct policy_outcome managed;

	decide_alone(p, false, req, ret);
	if (!p || !p->managed)
		return;
	decide_alone(p->managed, true, req, &managed);
	managed.by.rule.is_managed = true;
	managed.by.is_managed = managed.verdict == POLICY_DENIES;
	managed.is_governed = managed.is_governed || ret->is_governed;
	ret->is_governed = managed.is_governed;
	if (managed.verdict == POLICY_DENIES ||
		(managed.verdict == POLICY_ASKS && ret->verdict == POLICY_ALLOWS))
		*ret = managed;
}

static struct look look_for_hosts(
	const struct policy *p, const struct policy_op *op, struct slice service)
{
	const struct policy_request req = {.op = *op};
	struct look l = {.p = p, .req = &req, .service = service};

	if (p && !p->fault)
		look_at_hosts(&l);
	l.is_named = l.is_named || l.is_damaged;
	l.is_governed = l.is_governed || l.is_damaged;
	l.req = NULL;
	return l;
}

bool policy_governs(const struct policy *p, const struct policy_op *op, struct slice service)
{
	return look_for_hosts(p, op, service).is_governed ||
	       (p && p->managed && policy_governs(p->managed, op, service));
}

bool policy_needs_head(const struct policy *p, const struct policy_op *op, struct slice service)
{
	return look_for_hosts(p, op, service).is_named ||
	       (p && p->managed && policy_needs_head(p->managed, op, service));
}

bool policy_find_request_rule(const struct policy *p, const struct policy_op *op,
	struct slice service, bool allows, struct policy_rule *ret)
{
	struct look l = look_for_hosts(p, op, service);
	struct policy_hit hit = allows ? l.governs : l.named;
	struct policy_decision d = {0};

	if (!(allows ? l.is_governed : l.is_named) && p && p->managed) {
		bool found = policy_find_request_rule(p->managed, op, service, allows, ret);

		ret->is_managed = found;
		return found;
	}
	if (hit.rule)
		policy_name_rule(hit, &d);
	*ret = d.rule;
	return allows ? l.is_governed : l.is_named;
}

static void find_git_alone(const struct policy *p, const struct policy_op *op,
	struct slice repository, struct policy_git *ret)
{
	static const char *const verbs[] = {"push", "create", "delete", "force", "tag"};
	const struct policy_request req = {.op = *op};
	struct look l = {.p = p, .req = &req, .git = ret};
	struct effect e = {.kind = EFFECT_GIT, .host = host_slice(op->host), .target = repository};

	*ret = (struct policy_git){0};
	for (size_t i = 0; p && !p->fault && i < ARRAY_LEN(verbs); i++) {
		e.verb = slice_from_str(verbs[i]);
		look_at(&l, &e);
	}
	ret->is_named = ret->is_named || l.is_damaged;
}

void policy_find_git(const struct policy *p, const struct policy_op *op, struct slice repository,
	struct policy_git *ret)
{
	struct policy_git managed;

	find_git_alone(p, op, repository, ret);
	if (!p || !p->managed)
		return;
	find_git_alone(p->managed, op, repository, &managed);
	ret->permits_managed = managed.permits;
	ret->is_named = ret->is_named || managed.is_named;
	ret->paths = ret->paths || managed.paths;
	ret->asks = ret->asks || managed.asks;
}

bool policy_names_service(const struct policy *p, const struct policy_op *op, struct slice service)
{
	const struct policy_request req = {.op = *op};
	struct look l = {.p = p, .req = &req};
	size_t part = 0;

	while (p && !p->fault && next_part(&l, &part))
		see_service(&l, service);
	return l.is_named || l.is_damaged ||
	       (p && p->managed && policy_names_service(p->managed, op, service));
}

bool policy_has_api(const struct policy *p)
{
	for (size_t part = 0; p && !p->fault && part < POLICY_N_PARTS; part++) {
		const struct table *t = &p->part[part];

		for (size_t i = 0; t->map && i < table_count(t, TABLE_REQ_GROUPS); i++)
			if (t->req_group[i].kind == EFFECT_API)
				return true;
	}
	return p && p->managed && policy_has_api(p->managed);
}

/* Adds a name, also beyond the end of the list, which is then too short. */
static void add_name(struct slice ret[POLICY_MAX_HEADERS], size_t *n, struct slice name)
{
	for (size_t k = 0; k < MIN(*n, (size_t)POLICY_MAX_HEADERS); k++)
		if (slice_eq(ret[k], name))
			return;
	if (*n < POLICY_MAX_HEADERS)
		ret[*n] = name;
	++*n;
}

static void add_names(const struct policy *p, struct slice ret[POLICY_MAX_HEADERS], size_t *n)
{
	for (size_t i = 0; i < POLICY_N_PARTS; i++) {
		const struct table *t = &p->part[i];
		struct slice rest = slice_of(t->req_header, table_count(t, TABLE_REQ_HEADERS));

		while (rest.n > 0) {
			const uint8_t *end = memchr(rest.p, '\n', rest.n);
			struct slice name = slice_of(rest.p, end ? (size_t)(end - rest.p) : rest.n);

			rest = slice_of(rest.p + name.n + !!end, rest.n - name.n - !!end);
			add_name(ret, n, name);
		}
	}
}

size_t policy_header_names(const struct policy *p, struct slice ret[POLICY_MAX_HEADERS])
{
	size_t n = 0;

	if (!p || p->fault)
		return 0;
	add_names(p, ret, &n);
	if (p->managed)
		add_names(p->managed, ret, &n);
	return n;
}
