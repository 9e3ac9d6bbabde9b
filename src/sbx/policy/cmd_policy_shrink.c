/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fs/file.h"
#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "lib/client/api/out_place.h"
#include "lib/client/api/policy_file.h"
#include "lib/client/cli/when.h"
#include "lib/rules/contain/shrink.h"
#include "ceiling.h"
#include "policy_verbs.h"
#include "src/sbx/audit/audit.h"

const struct opt_def policy_shrink_opts[] = {
	{0, "since", "TIME", "only requests since TIME: 24h, 7d, 2026-01-31T12:00:00Z"},
	{0, "write", "FILE", "write the new policy to FILE"},
	{0, "json", NULL, "print JSON"},
	{0},
};

struct job {
	struct rules old, new;
	struct ceiling ceiling;
	struct shrink *shrink;
	uint64_t since_ms, now_ms;
	uint64_t n_allowed, n_denied; /* recorded requests, as the policy decides them now */
};

/* Lines of a policy, sorted. */
struct lines {
	char **v;
	size_t n;
};

static void job_done(struct job *j)
{
	shrink_free(j->shrink);
	ceiling_done(&j->ceiling);
	rules_done(&j->old);
	rules_done(&j->new);
}

static void lines_done(struct lines *l)
{
	mem_free_list(l->v, l->n);
}

/* ---- reading ---- */

static bool is_allowed_host(const struct audit_record *rec)
{
	return rec->ev.kind == AUDIT_KIND_DECISION && !rec->ev.action.n && rec->ev.host.n &&
	       rec->ev.decision == AUDIT_ALLOW && rec->ev.port <= UINT16_MAX &&
	       (rec->ev.port || slice_eq_str(rec->ev.type, "dns"));
}

static int add_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct job *j = arg;
	struct host host;
	int r;

	if (!is_allowed_host(rec) || rec->time_ms < j->since_ms ||
		host_from_wire(rec->ev.host, &host, NULL) < 0)
		return 0;
	r = shrink_add(j->shrink, rec->name, &host, (uint16_t)rec->ev.port);
	if (r == -E2BIG)
		return r;
	if (r < 0)
		j->n_denied++;
	else
		j->n_allowed++;
	return 0;
}

static int read_log(struct opts *o, struct job *j, struct problem *p)
{
	AUTO_LOGS struct audit_logs *l = NULL;
	const char *since = opts_value(o, "since");
	int r = since ? when_parse(since, j->now_ms, &j->since_ms, &p->err) : 0;

	if (r < 0)
		return problem_usage(p, r, "policy shrink");
	r = policy_file_load(&j->old, p);
	if (r == 0)
		r = audit_logs_open(NULL, 0, &l, p);
	if (r < 0)
		return r;
	j->shrink = shrink_new(&j->old, ceiling_load(&j->ceiling), j->now_ms);
	r = audit_logs_read(l, add_record, j, p);
	if (r == -E2BIG)
		return err_set(&p->err, r, "the log has more than %u different targets",
			SHRINK_MAX_TARGETS);
	if (r == 0 && j->n_allowed == 0)
		ui_warning("the log has no request that the policy allows: no allow rule for names "
			   "remains");
	return r;
}

static int check_rules(struct job *j, struct problem *p)
{
	struct contain_witness w;

	switch (shrink_check(j->shrink, &j->new, &w)) {
	case CONTAIN_YES:
		return 0;
	case CONTAIN_NO:
		return err_set(&p->err, -EINVAL, "the new policy is not right for %s:%u",
			w.host.name, w.port);
	case CONTAIN_UNPROVEN:
		break;
	}
	return err_set(
		&p->err, -EINVAL, "not proven that the new policy allows no more: %s", w.why);
}

/* ---- printing ---- */

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_lines(const struct rules *rules, struct lines *ret)
{
	ret->v = xcalloc(rules->n + 1, sizeof(*ret->v));
	for (size_t i = 0; i < rules->n; i++)
		ret->v[ret->n++] = rule_print(&rules->rule[i], RULE_PRINT_PLAIN);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), compare_lines);
}

static bool has_line(const struct lines *l, char *line)
{
	return l->n && bsearch(&line, l->v, l->n, sizeof(*l->v), compare_lines);
}

/* The lines of a that are not in b. */
static size_t count_missing(const struct lines *a, const struct lines *b)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		n += !has_line(b, a->v[i]);
	return n;
}

static void print_missing(const char *mark, const struct lines *a, const struct lines *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (!has_line(b, a->v[i]))
			printf("%s %s\n", mark, a->v[i]);
}

static json_t *list_missing(const struct lines *a, const struct lines *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->n; i++)
		if (!has_line(b, a->v[i]))
			(void)json_array_append_new(list, json_string(a->v[i]));
	return list;
}

static void print_text(
	const struct job *j, const struct lines *before, const struct lines *after, bool is_written)
{
	size_t n_gone = count_missing(before, after), n_new = count_missing(after, before);

	print_missing("-", before, after);
	print_missing("+", after, before);
	if (!n_gone)
		printf("No rule can be narrower.\n");
	else
		printf("%zu rules are replaced by %zu, %zu stay\n", n_gone, n_new,
			before->n - n_gone);
	printf("Proven: the new policy allows nothing more. It allows %" PRIu64
	       " recorded requests, all that the policy allows now.\n",
		j->n_allowed);
	if (j->n_denied)
		printf("%" PRIu64 " recorded requests are already denied by the policy.\n",
			j->n_denied);
	(void)fflush(stdout);
	if (n_gone && !is_written)
		ui_hint("sbx policy shrink --write new.policy");
}

static void print_changes(struct opts *o, const struct job *j)
{
	CLEANUP(lines_done) struct lines before = {0}, after = {0};
	AUTO_JSON json_t *whole = NULL;

	list_lines(&j->old, &before);
	list_lines(&j->new, &after);
	if (!opts_has(o, "json")) {
		print_text(j, &before, &after, opts_has(o, "write"));
		return;
	}
	whole = json_pack("{s:o, s:o, s:I, s:I}", "removed", list_missing(&before, &after), "added",
		list_missing(&after, &before), "allowed", (json_int_t)j->n_allowed, "denied",
		(json_int_t)j->n_denied);
	api_print(whole);
}

static int write_policy(const char *path, const struct rules *rules, struct problem *p)
{
	AUTO_FREE char *text = rules_encode(rules, RULE_PRINT_PLAIN);
	AUTO_OUT_PLACE struct out_place place = {.dir = -1};
	int r = out_place_find(path, &place, p);

	return r < 0 ? r : file_save(place.path, slice_from_str(text), &p->err);
}

int policy_shrink_run(struct opts *o)
{
	CLEANUP(job_done) struct job j = {.now_ms = clock_wall_ms()};
	const char *path = opts_value(o, "write");
	struct problem p = {0};
	int r = read_log(o, &j, &p);

	if (r == 0)
		r = shrink_rules(j.shrink, &j.new, &p.err);
	if (r == 0)
		r = check_rules(&j, &p);
	if (r == 0 && path)
		r = write_policy(path, &j.new, &p);
	if (r < 0)
		return ui_problem(&p, r);
	print_changes(o, &j);
	if (path)
		ui_note("Wrote %zu rules to %s. To use them: sbx policy import %s", j.new.n, path,
			path);
	return EXIT_OK;
}
