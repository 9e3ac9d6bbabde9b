/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/api/policy_file.h"
#include "lib/client/cli/table.h"
#include "lib/client/cli/when.h"
#include "src/sbx/audit/audit.h"
#include "policy_verbs.h"

const struct opt_def policy_used_opts[] = {
	{0, "since", "TIME", "only decisions since TIME: 24h, 7d, 2026-01-31T12:00:00Z"},
	{0, "never", NULL, "print only rules that decided nothing"},
	{0, "json", NULL, "print JSON"},
	{0},
};

struct use {
	const struct rule *rule;
	uint64_t count, last_ms;
};

struct uses {
	struct use *v; /* sorted by id; rules without one are not decided by name */
	size_t n;
	uint64_t since_ms, n_gone; /* decisions of rules that no longer exist */
};

static int compare_ids(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	return strcmp(x->rule->id, y->rule->id);
}

static int compare_counts(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	return x->count == y->count  ? strcmp(x->rule->id, y->rule->id)
	       : x->count > y->count ? -1
				     : 1;
}

static struct use *find_use(const struct uses *u, struct slice id)
{
	size_t from = 0, to = u->n;

	while (from < to) {
		size_t at = from + (to - from) / 2;
		const char *name = u->v[at].rule->id;
		int r = strncmp(name, (const char *)id.p, id.n);

		if (r == 0 && !name[id.n])
			return &u->v[at];
		if (r < 0)
			from = at + 1;
		else
			to = at;
	}
	return NULL;
}

static int count_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct uses *u = arg;
	struct use *use;

	if (rec->ev.kind != AUDIT_KIND_DECISION || rec->ev.action.n || !rec->ev.rule.n ||
		rec->time_ms < u->since_ms)
		return 0;
	use = find_use(u, rec->ev.rule);
	if (!use) {
		u->n_gone++;
		return 0;
	}
	use->count++;
	use->last_ms = MAX(use->last_ms, rec->time_ms);
	return 0;
}

static void print_uses(const struct uses *u, bool never)
{
	static const char *const heading[] = {"COUNT", "LAST-USED", "ID", "RULE"};
	CLEANUP(table_done) struct table t;

	table_init(&t, ARRAY_LEN(heading), heading);
	for (size_t i = 0; i < u->n; i++) {
		AUTO_FREE char *text = rule_print(u->v[i].rule, RULE_PRINT_PLAIN);
		char count[24], last[WHEN_TEXT];
		const char *cells[] = {count, last, u->v[i].rule->id, text};

		if (never && u->v[i].count)
			continue;
		(void)snprintf(count, sizeof(count), "%" PRIu64, u->v[i].count);
		when_print(u->v[i].last_ms, false, last);
		table_add(&t, cells);
	}
	table_print(&t);
	if (u->n_gone)
		ui_note("%" PRIu64 " decisions by rules that no longer exist", u->n_gone);
}

static void print_json(const struct uses *u, bool never)
{
	json_t *list = json_array();
	AUTO_JSON json_t *whole =
		json_pack("{s:o, s:I}", "rules", list, "removed", (json_int_t)u->n_gone);

	for (size_t i = 0; i < u->n; i++) {
		AUTO_FREE char *text = rule_print(u->v[i].rule, RULE_PRINT_PLAIN);
		char last[WHEN_TEXT];

		if (never && u->v[i].count)
			continue;
		when_print(u->v[i].last_ms, false, last);
		(void)json_array_append_new(
			list, json_pack("{s:s, s:s, s:I, s:s?}", "id", u->v[i].rule->id, "text",
				      text, "count", (json_int_t)u->v[i].count, "last_used",
				      u->v[i].count ? last : NULL));
	}
	api_print(whole);
}

static void list_uses(const struct rules *rules, struct uses *u)
{
	u->v = xcalloc(rules->n + 1, sizeof(*u->v));
	for (size_t i = 0; i < rules->n; i++)
		if (rules->rule[i].id)
			u->v[u->n++].rule = &rules->rule[i];
	qsort(u->v, u->n, sizeof(*u->v), compare_ids);
}

static int count_uses(struct opts *o, struct rules *rules, struct uses *u, struct problem *p)
{
	AUTO_LOGS struct audit_logs *l = NULL;
	const char *since = opts_value(o, "since");
	int r = since ? when_parse(since, clock_wall_ms(), &u->since_ms, &p->err) : 0;

	if (r < 0)
		return problem_usage(p, r, "policy used");
	r = policy_file_load(rules, p);
	if (r == 0)
		r = audit_logs_open(o->args.n ? o->args.v[0] : NULL, 0, &l, p);
	if (r < 0)
		return r;
	list_uses(rules, u);
	return audit_logs_read(l, count_record, u, p);
}

int policy_used_run(struct opts *o)
{
	AUTO_RULES struct rules rules = {0};
	struct uses u = {0};
	struct problem p = {0};
	int r = count_uses(o, &rules, &u, &p);

	if (r == 0) {
		qsort(u.v, u.n, sizeof(*u.v), compare_counts);
		if (opts_has(o, "json"))
			print_json(&u, opts_has(o, "never"));
		else
			print_uses(&u, opts_has(o, "never"));
	}
	free(u.v);
	return r < 0 ? ui_problem(&p, r) : EXIT_OK;
}
