/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/client/api/api.h"
#include "check.h"
#include "host.h"
#include "issue.h"

#define RULE "─────────────────────────────────────────"

static const struct opt_def opts[] = {
	{0, "json", NULL, "print JSON"},
	{0, "issue", NULL, "print a report for an issue, without names of this machine"},
	{0},
};

static const char *const status_words[] = {
	[CHECK_PASS] = "pass",
	[CHECK_WARN] = "warn",
	[CHECK_FAIL] = "fail",
	[CHECK_SKIP] = "skip",
};
_Static_assert(ARRAY_LEN(status_words) == CHECK_N_STATUS, "one word per status");

PRINTF_LIKE(3, 0)
static void fill_diagnose(char *buf, size_t size, const char *fmt, va_list ap)
{
	(void)vsnprintf(buf, size, fmt, ap);
}

void check_set(struct check *c, enum check_status status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	c->status = status;
	fill_diagnose(c->message, sizeof(c->message), fmt, ap);
	va_end(ap);
}

void check_detail(struct check *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill_diagnose(c->detail, sizeof(c->detail), fmt, ap);
	va_end(ap);
}

void check_hint(struct check *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fill_diagnose(c->hint, sizeof(c->hint), fmt, ap);
	va_end(ap);
}

static void print_check(const struct check_row *row, const struct check *c)
{
	static const char *const marks[] = {"✓", "!", "✗", "-"};

	printf("  %s %s — ", c->status == CHECK_PASS ? ui_tick() : marks[c->status], row->name);
	ui_put(c->message);
	if (c->detail[0]) {
		printf("\n      ");
		ui_put(c->detail);
	}
	if (c->hint[0] && c->status != CHECK_PASS) {
		printf("\n      → ");
		ui_put(c->hint);
	}
	printf("\n");
}

static json_t *to_json(const struct check_row *row, const struct check *c)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", row->name, "group", row->group,
		"status", status_words[c->status], "message", c->message, "detail", c->detail,
		"hint", c->status == CHECK_PASS ? "" : c->hint);
}

static struct issue_names names; /* with --issue */

static void print_for_issue(const struct check_row *row, const struct check *c)
{
	AUTO_FREE char *text = issue_clean(c->status == CHECK_PASS ? "" : c->message, &names);

	issue_row(row->name, status_words[c->status], text);
}

enum form { FORM_TEXT, FORM_JSON, FORM_ISSUE };

static void run_rows(
	const struct check_row *rows, enum form form, json_t *list, int count[CHECK_N_STATUS])
{
	const char *group = "";

	for (; rows->name; rows++) {
		struct check c = {.status = CHECK_SKIP};

		rows->fn(&c);
		count[c.status]++;
		if (form == FORM_TEXT && strcmp(group, rows->group) != 0)
			printf("  %s\n", rows->group);
		group = rows->group;
		if (form == FORM_JSON)
			(void)json_array_append_new(list, to_json(rows, &c));
		else if (form == FORM_ISSUE)
			print_for_issue(rows, &c);
		else
			print_check(rows, &c);
		(void)fflush(stdout);
	}
}

static void print_summary(const int count[CHECK_N_STATUS])
{
	printf(RULE "\n  %d passed", count[CHECK_PASS]);
	if (count[CHECK_WARN])
		printf(", %d warnings", count[CHECK_WARN]);
	if (count[CHECK_FAIL])
		printf(", %d failed", count[CHECK_FAIL]);
	if (count[CHECK_SKIP])
		printf(", %d skipped", count[CHECK_SKIP]);
	printf("\n");
}

static int run_diagnose(struct opts *o)
{
	AUTO_JSON json_t *list = json_array(), *whole = NULL;
	enum form form = opts_has(o, "json")	? FORM_JSON
			 : opts_has(o, "issue") ? FORM_ISSUE
						: FORM_TEXT;
	int count[CHECK_N_STATUS] = {0};

	if (opts_has(o, "json") && opts_has(o, "issue")) {
		ui_error("--json and --issue are mutually exclusive");
		ui_hint("sbx help diagnose");
		return EXIT_USAGE;
	}
	if (form == FORM_TEXT)
		printf("sbx diagnose\n" RULE "\n");
	else if (form == FORM_ISSUE)
		issue_begin(&names);
	run_rows(check_own_rows, form, list, count);
	run_rows(check_policy_rows, form, list, count);
	run_rows(check_host_rows, form, list, count);
	if (form == FORM_JSON) {
		whole = json_pack("{s:s, s:O, s:{s:i, s:i, s:i, s:i}}", "version", "1.0", "checks",
			list, "summary", "pass", count[CHECK_PASS], "warn", count[CHECK_WARN],
			"fail", count[CHECK_FAIL], "skip", count[CHECK_SKIP]);
		api_print(whole);
	} else if (form == FORM_TEXT) {
		print_summary(count);
	}
	return count[CHECK_FAIL] ? EXIT_FAILED : EXIT_OK;
}

const struct verb verb_diagnose = {
	.name = "diagnose",
	.group = "management",
	.args = "",
	.summary = "check this machine and this installation",
	.about =
		"Checks the requirements of sandboxes: programs, virtualization, namespaces, directories,\n"
		"disk space, the template and sbxd. Each finding includes the command to run. Changes\n"
		"nothing and does not start sbxd. The exit status is 1 if a check fails; warnings do not\n"
		"affect the exit status.",
	.examples =
		"  sbx diagnose\n  sbx diagnose --issue\n  sbx diagnose --json | jq '.checks[] | "
		"select(.status==\"fail\")'\n",
	.opts = opts,
	.run = run_diagnose,
};
