/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/rules/audit/audit_view.h"
#include "lib/base/mem.h"
#include "lib/os/ipc/edge_chan.h"
#include "lib/client/api/api.h"
#include "src/sbx/audit/audit.h"
#include "policy_verbs.h"
#include "lib/client/cli/table.h"
#include "src/sbx/session/session.h"
#include "lib/client/cli/when.h"

#define MAX_ROWS 100000 /* of different decisions that are shown separately */
#define MAX_CELL 320
#define REASON_COLUMN 5
#define MIN_REASON 20
#define NO_RULE "no applicable policies for op(" /* the reason of a request that no rule allows */
#define NOT_CONNECTED "<dial failed>"		 /* the rule of an allowed request that failed */

const struct opt_def policy_log_opts[] = {
	{'n', "limit", "N", "print the last N hosts of each kind; 0 prints all (default: 0)"},
	{'f', "follow", NULL, "keep printing new decisions until Ctrl-C"},
	{0, "json", NULL, "print JSON"},
	{0, "wide", NULL, "do not truncate reasons to the width of the terminal"},
	{0},
};

struct rows {
	const struct audit_view_row **v;
	size_t n, room;
};

static int collect_log(void *arg, const struct audit_view_row *row)
{
	struct rows *rows = arg;

	if (rows->n == rows->room) {
		rows->room = rows->room ? 2 * rows->room : 256;
		rows->v = xrealloc(rows->v, rows->room * sizeof(struct audit_view_row *));
	}
	rows->v[rows->n++] = row;
	return 0;
}

static int last_seen_first(const void *a, const void *b)
{
	const struct audit_view_row *x = *(const struct audit_view_row *const *)a,
				    *y = *(const struct audit_view_row *const *)b;

	return (x->last_seen_ms < y->last_seen_ms) - (x->last_seen_ms > y->last_seen_ms);
}

static void sorted_rows(const struct audit_view *v, struct rows *ret)
{
	*ret = (struct rows){0};
	if (audit_view_each(v, 0, collect_log, ret) == 0 && ret->n)
		qsort(ret->v, ret->n, sizeof(struct audit_view_row *), last_seen_first);
}

/* Sections of the output, each with its heading. */
enum section { BLOCKED, ALLOWED, UNCONNECTED, SILENT, SECTIONS };

static const char *const titles[SECTIONS] = {
	[BLOCKED] = "Blocked requests:",
	[ALLOWED] = "Allowed requests:",
	[UNCONNECTED] = "Allowed, but not connected:",
	[SILENT] = "Allowed, but closed because the sandbox sent nothing:",
};

static enum section section_of(const struct audit_view_row *row)
{
	char rule[MAX_CELL], reason[MAX_CELL];

	audit_text_cell(row->text[AUDIT_VIEW_RULE], rule, sizeof(rule));
	audit_text_cell(row->text[AUDIT_VIEW_REASON], reason, sizeof(reason));
	if (row->decision == AUDIT_ALLOW)
		return strcmp(rule, NOT_CONNECTED) == 0 ? UNCONNECTED : ALLOWED;
	return strncmp(reason, EDGE_SILENT, strlen(EDGE_SILENT)) == 0 ? SILENT : BLOCKED;
}

static void add_row(struct table *t, const struct audit_view_row *row, bool wide)
{
	char text[AUDIT_VIEW_N_TEXTS][MAX_CELL], target[MAX_CELL + 16], seen[WHEN_TEXT], count[24];
	const char *cells[] = {text[AUDIT_VIEW_SANDBOX], text[AUDIT_VIEW_TYPE], target,
		text[AUDIT_VIEW_PATH], text[AUDIT_VIEW_RULE], text[AUDIT_VIEW_REASON], seen, count};

	for (size_t i = 0; i < AUDIT_VIEW_N_TEXTS; i++)
		audit_text_cell(row->text[i], text[i], MAX_CELL);
	if (!wide && strncmp(text[AUDIT_VIEW_REASON], NO_RULE, strlen(NO_RULE)) == 0)
		(void)snprintf(text[AUDIT_VIEW_REASON], MAX_CELL, "no rule allows it");
	audit_text_target(row->text[AUDIT_VIEW_HOST], row->port, target, sizeof(target));
	when_print(row->last_seen_ms, false, seen);
	(void)snprintf(count, sizeof(count), "%" PRIu64, row->count);
	table_add(t, cells);
}

/* For a terminal; a program gets the full text. */
static void fit_terminal(struct table *t)
{
	uint16_t rows, cols;

	if (!isatty(STDOUT_FILENO))
		return;
	term_size(STDOUT_FILENO, &rows, &cols);
	table_fit(t, REASON_COLUMN, cols, MIN_REASON);
}

/* Returns true if there was a row. */
static bool print_section(
	const struct rows *rows, enum section which, bool is_first, size_t limit, bool wide)
{
	static const char *const heading[] = {
		"SANDBOX", "TYPE", "HOST", "PROXY", "RULE", "REASON", "LAST-SEEN", "COUNT"};
	CLEANUP(table_done) struct table t;
	size_t n = 0;

	table_init(&t, ARRAY_LEN(heading), heading);
	for (size_t i = 0; i < rows->n && (!limit || n < limit); i++)
		if (section_of(rows->v[i]) == which) {
			add_row(&t, rows->v[i], wide);
			n++;
		}
	if (!wide)
		fit_terminal(&t);
	if (n) {
		printf("%s%s\n", is_first ? "" : "\n", titles[which]);
		table_print(&t);
	}
	return n > 0;
}

static json_t *row_json(const struct audit_view_row *row)
{
	char host[MAX_CELL + 16], first[WHEN_TEXT], last[WHEN_TEXT];

	audit_text_target(row->text[AUDIT_VIEW_HOST], row->port, host, sizeof(host));
	when_print(row->first_seen_ms, false, first);
	when_print(row->last_seen_ms, false, last);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:I}", "host", host, "vm_name",
		audit_text_json(row->text[AUDIT_VIEW_SANDBOX]), "type",
		audit_text_json(row->text[AUDIT_VIEW_TYPE]), "proxy_type",
		audit_text_json(row->text[AUDIT_VIEW_PATH]), "rule",
		audit_text_json(row->text[AUDIT_VIEW_RULE]), "reason",
		audit_text_json(row->text[AUDIT_VIEW_REASON]), "last_seen", last, "since", first,
		"count_since", (json_int_t)row->count);
}

static json_t *section_json(const struct rows *rows, enum audit_verdict which, size_t limit)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rows->n && (!limit || json_array_size(list) < limit); i++)
		if (rows->v[i]->decision == which)
			(void)json_array_append_new(list, row_json(rows->v[i]));
	return list;
}

static void print_json(const struct rows *rows, size_t limit)
{
	AUTO_JSON json_t *whole =
		json_pack("{s:o, s:o}", "blocked_hosts", section_json(rows, AUDIT_DENY, limit),
			"allowed_hosts", section_json(rows, AUDIT_ALLOW, limit));

	api_print(whole);
}

static void print_sections(const struct rows *rows, const struct opts *o, size_t limit)
{
	bool some = false;

	for (enum section i = 0; i < SECTIONS; i++)
		if (print_section(rows, i, !some, limit, opts_has(o, "wide")))
			some = true;
	if (!some && !opts_has(o, "follow"))
		printf("No policy log entries found\n");
}

static void print_view(const struct audit_view *v, const struct opts *o, size_t limit)
{
	struct rows rows;

	sorted_rows(v, &rows);
	if (opts_has(o, "json"))
		print_json(&rows, limit);
	else
		print_sections(&rows, o, limit);
	if (audit_view_dropped(v))
		ui_note("omitted %" PRIu64 " older rows", audit_view_dropped(v));
	free(rows.v);
}

static int print_live(void *arg, const struct audit_record *rec, struct slice line)
{
	const struct opts *o = arg;

	if (rec->ev.kind != AUDIT_KIND_DECISION || slice_eq_str(rec->ev.action, AUDIT_ACTION_GUARD))
		return 0;
	if (opts_has(o, "json"))
		(void)fwrite(line.p, 1, line.n, stdout);
	else
		audit_text_line(rec, stdout);
	return ferror(stdout) ? -EPIPE : 0;
}

static int show_log(struct opts *o, struct audit_view *v, size_t limit, struct problem *p)
{
	AUTO_LOGS struct audit_logs *l = NULL;
	bool follow = opts_has(o, "follow");
	int r = audit_logs_open(
		    o->args.n ? o->args.v[0] : NULL, follow ? AUDIT_LOGS_FOLLOW : 0, &l, p),
	    bad;

	if (r < 0)
		return r;
	r = bad = audit_logs_read(l, audit_view_on_record, v, p);
	if (r < 0 && r != -EBADMSG)
		return r;
	/* Live JSON is lines of records: a summary before them would break the format. */
	if (!follow || !opts_has(o, "json"))
		print_view(v, o, limit);
	return follow ? audit_logs_follow(l, print_live, o, p) : bad;
}

int policy_log_run(struct opts *o)
{
	struct problem p = {0};
	struct audit_view *v;
	size_t limit = 0;
	int r = audit_cmd_limit(o, 0, &limit, &p.err);

	if (r < 0)
		return ui_problem(&p, problem_usage(&p, r, "policy log"));
	v = audit_view_new(MAX_ROWS);
	r = show_log(o, v, limit, &p);
	audit_view_free(v);
	return r < 0 && r != -EPIPE ? ui_problem(&p, r) : EXIT_OK;
}
