/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
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
	char id[32]; /* managed:LINE of a managed rule */
	uint64_t count, last_ms;
};

struct uses {
	struct use *v; /* sorted by id; rules without one are not decided by name */
	size_t n;
	struct managed managed;
	struct policy *ceiling;		   /* the managed policy alone; NULL: none */
	struct use *of_root;		   /* its rules, in their order */
	uint64_t since_ms, now_ms, n_gone; /* decisions of rules that no longer exist */
};

static void uses_done(struct uses *u)
{
	free(u->v);
	free(u->of_root);
	policy_free(u->ceiling);
	managed_done(&u->managed);
}

static int compare_ids(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	return strcmp(x->id, y->id);
}

static int compare_counts(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	return x->count == y->count ? strcmp(x->id, y->id) : x->count > y->count ? -1 : 1;
}

static struct use *find_use(const struct uses *u, struct slice id)
{
	size_t from = 0, to = u->n;

	while (from < to) {
		size_t at = from + (to - from) / 2;
		const char *name = u->v[at].id;
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

static void count_use(struct uses *u, struct use *use, const struct audit_record *rec)
{
	if (!use) {
		u->n_gone++;
		return;
	}
	use->count++;
	use->last_ms = MAX(use->last_ms, rec->time_ms);
}

static const char by_managed[] = MANAGED_FILE ":";

static bool is_by_managed(struct slice from)
{
	size_t n = strlen(by_managed);

	return from.n > n && memcmp(from.p, by_managed, n) == 0;
}

/* A managed rule is recorded by its line, and only if it has denied or held a request. */
static struct use *find_managed(const struct uses *u, struct slice from)
{
	AUTO_FREE char *line =
		xstrndup((const char *)from.p + strlen(by_managed), from.n - strlen(by_managed));
	uint64_t number;

	if (str_to_u64(line, 1, UINT32_MAX, &number) < 0)
		return NULL;
	for (size_t i = 0; i < u->managed.rules.n; i++)
		if (u->managed.rules.rule[i].line == number)
			return &u->of_root[i];
	return NULL;
}

/* The managed rule that permits a recorded request today: records name the user's rule only. */
static struct use *find_permitting(const struct uses *u, const struct audit_record *rec)
{
	struct policy_op op = {.kind = RULE_NETWORK, .now_ms = u->now_ms};
	struct policy_decision d;
	struct host host;

	if (!u->ceiling || rec->ev.decision != AUDIT_ALLOW || !rec->ev.port ||
		rec->ev.port > UINT16_MAX || host_from_wire(rec->ev.host, &host, NULL) < 0)
		return NULL;
	op.host = &host;
	op.port = (uint16_t)rec->ev.port;
	policy_decide(u->ceiling, &op, &d);
	return d.allowed && d.why == POLICY_RULE && d.rule.index < u->managed.rules.n
		       ? &u->of_root[d.rule.index]
		       : NULL;
}

static int count_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct uses *u = arg;
	struct use *permitting;

	if (rec->ev.kind != AUDIT_KIND_DECISION || rec->ev.action.n || rec->time_ms < u->since_ms)
		return 0;
	if (is_by_managed(rec->ev.from)) {
		count_use(u, find_managed(u, rec->ev.from), rec);
		return 0;
	}
	permitting = find_permitting(u, rec);
	if (permitting)
		count_use(u, permitting, rec);
	if (rec->ev.rule.n)
		count_use(u, find_use(u, rec->ev.rule), rec);
	return 0;
}

/* The rules of both policies in one list, the most used first. */
static struct use *merge_uses(const struct uses *u, size_t *ret_n)
{
	struct use *all = xcalloc(u->n + u->managed.rules.n + 1, sizeof(*all));

	memcpy(all, u->v, u->n * sizeof(*all));
	if (u->managed.rules.n)
		memcpy(all + u->n, u->of_root, u->managed.rules.n * sizeof(*all));
	*ret_n = u->n + u->managed.rules.n;
	qsort(all, *ret_n, sizeof(*all), compare_counts);
	return all;
}

static void print_uses(const struct uses *u, bool never)
{
	static const char *const heading[] = {"COUNT", "LAST-USED", "ID", "RULE"};
	CLEANUP(table_done) struct table t;
	size_t n;
	AUTO_FREE struct use *all = merge_uses(u, &n);

	table_init(&t, ARRAY_LEN(heading), heading);
	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *text = rule_print(all[i].rule, RULE_PRINT_PLAIN);
		char count[24], last[WHEN_TEXT];
		const char *cells[] = {count, last, all[i].id, text};

		if (never && all[i].count)
			continue;
		(void)snprintf(count, sizeof(count), "%" PRIu64, all[i].count);
		when_print(all[i].last_ms, false, last);
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
	size_t n;
	AUTO_FREE struct use *all = merge_uses(u, &n);

	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *text = rule_print(all[i].rule, RULE_PRINT_PLAIN);
		char last[WHEN_TEXT];

		if (never && all[i].count)
			continue;
		when_print(all[i].last_ms, false, last);
		(void)json_array_append_new(list,
			json_pack("{s:s, s:s, s:I, s:s?}", "id", all[i].id, "text", text, "count",
				(json_int_t)all[i].count, "last_used", all[i].count ? last : NULL));
	}
	api_print(whole);
}

static void list_uses(const struct rules *rules, struct uses *u)
{
	u->v = xcalloc(rules->n + 1, sizeof(*u->v));
	for (size_t i = 0; i < rules->n; i++) {
		struct use *use = &u->v[u->n];

		if (!rules->rule[i].id || str_copy(use->id, sizeof(use->id), rules->rule[i].id) < 0)
			continue;
		use->rule = &rules->rule[i];
		u->n++;
	}
	qsort(u->v, u->n, sizeof(*u->v), compare_ids);
}

static void list_managed(struct uses *u)
{
	const struct rules *rules = &u->managed.rules;

	policy_file_managed(&u->managed);
	u->of_root = xcalloc(rules->n + 1, sizeof(*u->of_root));
	for (size_t i = 0; i < rules->n; i++) {
		u->of_root[i].rule = &rules->rule[i];
		(void)snprintf(u->of_root[i].id, sizeof(u->of_root[i].id), MANAGED_ID "%u",
			rules->rule[i].line);
	}
	if (rules->n)
		u->ceiling = policy_new(rules, NULL);
	if (u->managed.fault.text[0])
		ui_warning("the managed policy cannot be used, so everything is denied: %s",
			u->managed.fault.text);
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
	list_managed(u);
	return audit_logs_read(l, count_record, u, p);
}

int policy_used_run(struct opts *o)
{
	AUTO_RULES struct rules rules = {0};
	CLEANUP(uses_done) struct uses u = {.now_ms = clock_wall_ms()};
	struct problem p = {0};
	int r = count_uses(o, &rules, &u, &p);

	if (r < 0)
		return ui_problem(&p, r);
	if (opts_has(o, "json"))
		print_json(&u, opts_has(o, "never"));
	else
		print_uses(&u, opts_has(o, "never"));
	return EXIT_OK;
}
