/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/api.h"
#include "lib/client/api/policy_file.h"
#include "lib/client/cli/table.h"
#include "lib/client/cli/when.h"
#include "lib/rules/effect/effect.h"
#include "lib/rules/audit/audit_view.h"
#include "lib/rules/contain/policies.h"
#include "src/sbx/audit/audit.h"
#include "ceiling.h"
#include "policy_verbs.h"

#define MAX_ROWS 100000 /* of different changes that are shown separately */
#define MAX_CELL 320
#define NO_RULE "no applicable policies for op("
#define BY_MANAGED "denied by " MANAGED_FILE ": "

const struct opt_def policy_replay_opts[] = {
	{0, "since", "TIME", "only decisions since TIME: 24h, 7d, 2026-01-31T12:00:00Z"},
	{0, "no-new-allow", NULL, "fail if FILE allows what was denied"},
	{0, "json", NULL, "print JSON"},
	{0},
};

enum change { NEW_DENY, NEW_ALLOW, CHANGES };

static const char *const titles[CHANGES] = {
	[NEW_DENY] = "Newly denied:",
	[NEW_ALLOW] = "Newly allowed:",
};

struct replay {
	struct rules rules;
	struct ceiling ceiling;
	struct policies policies;
	uint64_t since_ms, now_ms;
	uint64_t n_same, n_other, n_changed[CHANGES];
	struct audit_view *view[CHANGES];
};

static void replay_done(struct replay *rp)
{
	policies_done(&rp->policies);
	for (enum change i = 0; i < CHANGES; i++)
		audit_view_free(rp->view[i]);
	rules_done(&rp->rules);
	ceiling_done(&rp->ceiling);
}

/* ---- deciding again ---- */

/* Decided by a rule about requests, which are not replayed: its reason ends with the effect
 * (policy_explain_request). */
static bool is_about_request(const struct audit_event *ev)
{
	static const char before[] = ") matched ";
	const size_t n = sizeof(before) - 1;
	struct slice rest = ev->reason;
	const uint8_t *at = rest.n ? memmem(rest.p, rest.n, before, n) : NULL;
	struct effect_copy copy;

	if (!at)
		return false;
	at += n;
	return effect_parse(slice_of(at, rest.n - (size_t)(at - rest.p)), &copy, NULL) == 0;
}

static bool starts_with(struct slice s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

/* Denied for another reason than the network rules: none of a file would have changed it. */
static bool was_decided_by_rules(const struct audit_event *ev)
{
	struct slice why = ev->reason;

	if (ev->decision == AUDIT_ALLOW)
		return true;
	if (ev->rule.n || ev->from.n)
		return !is_about_request(ev);
	if (starts_with(why, BY_MANAGED))
		why = slice_of(why.p + strlen(BY_MANAGED), why.n - strlen(BY_MANAGED));
	return starts_with(why, NO_RULE);
}

static bool is_network(const struct audit_record *rec)
{
	return rec->ev.kind == AUDIT_KIND_DECISION && !rec->ev.action.n && rec->ev.host.n &&
	       (rec->ev.port || slice_eq_str(rec->ev.type, "dns"));
}

/* A name in the DNS of a sandbox has an address if any port is allowed. */
static bool decide_again(struct replay *rp, const struct audit_record *rec, const struct host *host)
{
	const struct policy *policy = policies_find(&rp->policies, rec->name);
	struct policy_op op = {.kind = RULE_NETWORK,
		.host = host,
		.port = (uint16_t)rec->ev.port,
		.now_ms = rp->now_ms};
	struct policy_decision d;

	if (!op.port)
		return policy_has_port(policy, &op);
	policy_decide(policy, &op, &d);
	return d.allowed;
}

static int replay_record(void *arg, const struct audit_record *rec, struct slice line)
{
	struct replay *rp = arg;
	struct host host;
	struct err err = {0};
	bool allowed;
	enum change which;

	if (!is_network(rec) || rec->time_ms < rp->since_ms)
		return 0;
	if (!was_decided_by_rules(&rec->ev) || rec->ev.port > UINT16_MAX ||
		host_from_wire(rec->ev.host, &host, &err) < 0) {
		rp->n_other++;
		return 0;
	}
	allowed = decide_again(rp, rec, &host);
	if (allowed == (rec->ev.decision == AUDIT_ALLOW)) {
		rp->n_same++;
		return 0;
	}
	which = allowed ? NEW_ALLOW : NEW_DENY;
	rp->n_changed[which]++;
	return audit_view_on_record(rp->view[which], rec, line);
}

/* ---- printing ---- */

static int add_row(void *arg, const struct audit_view_row *row)
{
	char sandbox[MAX_CELL], target[MAX_CELL + 16], rule[MAX_CELL], seen[WHEN_TEXT], count[24];
	const char *cells[] = {sandbox, target, rule, seen, count};

	audit_text_cell(row->text[AUDIT_VIEW_SANDBOX], sandbox, sizeof(sandbox));
	audit_text_cell(row->text[AUDIT_VIEW_RULE], rule, sizeof(rule));
	audit_text_target(row->text[AUDIT_VIEW_HOST], row->port, target, sizeof(target));
	when_print(row->last_seen_ms, false, seen);
	(void)snprintf(count, sizeof(count), "%" PRIu64, row->count);
	table_add(arg, cells);
	return 0;
}

static void print_changes(const struct replay *rp, enum change which)
{
	static const char *const heading[] = {"SANDBOX", "HOST", "RULE", "LAST-SEEN", "COUNT"};
	CLEANUP(table_done) struct table t;

	if (rp->n_changed[which] == 0)
		return;
	table_init(&t, ARRAY_LEN(heading), heading);
	(void)!audit_view_each(rp->view[which], 0, add_row, &t);
	printf("\n%s\n", titles[which]);
	table_print(&t);
	if (audit_view_dropped(rp->view[which]))
		ui_note("omitted %" PRIu64 " older rows", audit_view_dropped(rp->view[which]));
}

static int add_json(void *arg, const struct audit_view_row *row)
{
	char seen[WHEN_TEXT];

	when_print(row->last_seen_ms, false, seen);
	(void)json_array_append_new(arg,
		json_pack("{s:o, s:o, s:I, s:o, s:s, s:I}", "sandbox",
			audit_text_json(row->text[AUDIT_VIEW_SANDBOX]), "host",
			audit_text_json(row->text[AUDIT_VIEW_HOST]), "port", (json_int_t)row->port,
			"rule", audit_text_json(row->text[AUDIT_VIEW_RULE]), "last_seen", seen,
			"count", (json_int_t)row->count));
	return 0;
}

static void print_json(const struct replay *rp)
{
	json_t *list[CHANGES] = {json_array(), json_array()};
	AUTO_JSON json_t *whole = NULL;

	for (enum change i = 0; i < CHANGES; i++)
		(void)!audit_view_each(rp->view[i], 0, add_json, list[i]);
	whole = json_pack("{s:I, s:I, s:o, s:o}", "same", (json_int_t)rp->n_same, "not_replayed",
		(json_int_t)rp->n_other, "newly_denied", list[NEW_DENY], "newly_allowed",
		list[NEW_ALLOW]);
	api_print(whole);
}

static void print_text(const struct replay *rp)
{
	printf("%" PRIu64 " decisions are the same, %" PRIu64 " newly denied, %" PRIu64
	       " newly allowed\n",
		rp->n_same, rp->n_changed[NEW_DENY], rp->n_changed[NEW_ALLOW]);
	if (rp->n_other)
		printf("%" PRIu64
		       " were denied for other reasons than network rules: not replayed\n",
			rp->n_other);
	for (enum change i = 0; i < CHANGES; i++)
		print_changes(rp, i);
}

static int load_rules(const char *path, struct rules *ret, struct problem *p)
{
	AUTO_FREE char *text = NULL;
	size_t n = 0;
	int r = policy_file_read(path, &text, &n, p);

	return r < 0 ? r : rules_decode(slice_of(text, n), path, ret, &p->err);
}

static size_t count_requests(const struct rules *rules)
{
	size_t n = 0;

	for (size_t i = 0; i < rules->n; i++)
		n += rules->rule[i].kind != RULE_NETWORK;
	return n;
}

static void note_requests(const struct rules *rules, const struct rules *managed)
{
	size_t n = count_requests(rules) + count_requests(managed);

	if (n)
		ui_note("%zu rules about requests are not replayed: the log has hosts and ports",
			n);
}

static int run_replay(struct opts *o, struct replay *rp, struct problem *p)
{
	AUTO_LOGS struct audit_logs *l = NULL;
	const char *since = opts_value(o, "since");
	int r = since ? when_parse(since, rp->now_ms, &rp->since_ms, &p->err) : 0;

	if (r < 0)
		return problem_usage(p, r, "policy replay");
	r = load_rules(o->args.v[0], &rp->rules, p);
	if (r == 0)
		r = audit_logs_open(o->args.n > 1 ? o->args.v[1] : NULL, 0, &l, p);
	if (r < 0)
		return r;
	rp->policies.rules = &rp->rules;
	rp->policies.limit = ceiling_load(&rp->ceiling);
	note_requests(&rp->rules, &rp->ceiling.managed.rules);
	return audit_logs_read(l, replay_record, rp, p);
}

int policy_replay_run(struct opts *o)
{
	CLEANUP(replay_done) struct replay rp = {.now_ms = clock_wall_ms()};
	struct problem p = {0};
	int r;

	for (enum change i = 0; i < CHANGES; i++)
		rp.view[i] = audit_view_new(MAX_ROWS);
	r = run_replay(o, &rp, &p);
	if (r < 0)
		return ui_problem(&p, r);
	if (opts_has(o, "json"))
		print_json(&rp);
	else
		print_text(&rp);
	return opts_has(o, "no-new-allow") && rp.n_changed[NEW_ALLOW] ? EXIT_FAILED : EXIT_OK;
}
