/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_audit_prune - `sbx audit prune`: a preview, a prompt, then one call to sbxd for each log.
 *
 * How      A log is verified here before it is pruned: sbxd does not read the records that go.
 * Trust    As audit_logs.h. sbxd holds the key and removes the files.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "lib/rules/audit/audit_known.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/client/api/api.h"
#include "audit_cmd.h"
#include "audit_logs.h"
#include "lib/client/cli/when.h"

#define PRUNE_MS 60000

struct job {
	struct audit_logs *logs;
	bool *is_due; /* for each log */
	char query[64];
	size_t n_due, n_bad;
	uint64_t records, bytes;
};

static int ask_prune(const struct job *j, size_t i, bool dry, json_t **ret, struct problem *p)
{
	AUTO_FREE char *path = xasprintf("/v1/audit/%s/prune?%s%s", audit_logs_id(j->logs, i),
		j->query, dry ? "&dry=1" : "");

	return api_call("POST", path, NULL, PRUNE_MS, ret, p);
}

static void print_line(const struct job *j, size_t i, const json_t *got)
{
	char name[AUDIT_MAX_NAME + 1], size[32], until[WHEN_TEXT];

	audit_logs_name(j->logs, i, name);
	str_from_size((uint64_t)api_int(got, "bytes"), size, sizeof(size));
	when_print((uint64_t)api_int(got, "until_ms"), false, until);
	printf("  ");
	ui_put(name[0] ? name : "-");
	printf("  %s  %lld records up to %s, %s\n", audit_logs_id(j->logs, i),
		api_int(got, "records"), until, size);
}

/* A log that fails verification is evidence: it is not changed. */
static bool is_good(
	struct job *j, size_t i, const struct audit_pub *pub, const struct audit_known *known)
{
	const char *id = audit_logs_id(j->logs, i);
	struct problem p = {0};
	struct audit_report rep;
	int r = audit_verify(
		audit_logs_dir(j->logs), id, pub, audit_known_of(known, id), &rep, &p.err);

	if (r == 0)
		return true;
	j->n_bad++;
	r = problem_hint(&p, r, "sbx audit verify %s", id);
	(void)ui_problem(&p, r);
	return false;
}

static int plan_prune(struct job *j, struct problem *p)
{
	AUTO_KNOWN struct audit_known known = {0};
	struct audit_pub pub;
	int r = audit_pub_load(audit_logs_dir(j->logs), &pub, &p->err);

	if (r < 0)
		return r;
	audit_known_load(audit_logs_dir(j->logs), &known);
	for (size_t i = 0; i < audit_logs_n(j->logs); i++) {
		AUTO_JSON json_t *got = NULL;

		if (!is_good(j, i, &pub, &known))
			continue;
		r = ask_prune(j, i, true, &got, p);
		if (r < 0)
			return r;
		if (api_int(got, "segments") == 0)
			continue;
		if (j->n_due++ == 0)
			printf("To remove:\n");
		print_line(j, i, got);
		j->is_due[i] = true;
		j->records += (uint64_t)api_int(got, "records");
		j->bytes += (uint64_t)api_int(got, "bytes");
	}
	(void)fflush(stdout);
	return 0;
}

static int remove_them(struct job *j)
{
	uint64_t records = 0;
	int status = EXIT_OK;

	for (size_t i = 0; i < audit_logs_n(j->logs); i++) {
		AUTO_JSON json_t *got = NULL;
		struct problem p = {0};
		int r = j->is_due[i] ? ask_prune(j, i, false, &got, &p) : 0;

		if (r < 0)
			status = ui_problem(&p, r);
		records += (uint64_t)api_int(got, "records");
	}
	printf("%" PRIu64 " records removed\n", records);
	return status;
}

static int need_yes(const struct opts *o)
{
	const char *older = opts_value(o, "older-than"), *keep = opts_value(o, "keep-size");

	ui_error("refusing to remove audit records without confirmation: stdin is not a terminal");
	ui_hint("sbx audit prune %s %s %s --yes", o->args.n ? o->args.v[0] : "--all",
		older ? "--older-than" : "--keep-size", older ? older : keep);
	return EXIT_FAILED;
}

static int act_prune(struct job *j, const struct opts *o)
{
	char size[32];

	str_from_size(j->bytes, size, sizeof(size));
	if (j->n_due == 0)
		printf("No audit records to remove\n");
	if (j->n_due == 0 || opts_has(o, "dry-run"))
		return EXIT_OK;
	if (!opts_has(o, "yes") && !ui_can_ask())
		return need_yes(o);
	if (!opts_has(o, "yes") && !ui_confirm("Remove %" PRIu64 " records (%s) of %zu audit logs?",
					   j->records, size, j->n_due))
		return EXIT_FAILED;
	return remove_them(j);
}

static int take_options(const struct opts *o, struct job *j, struct err *err)
{
	const char *older = opts_value(o, "older-than"), *keep = opts_value(o, "keep-size");
	uint64_t v = 0;
	int r;

	if ((o->args.n == 0) != opts_has(o, "all"))
		return err_set(err, -EINVAL, "expected one SANDBOX or --all");
	if (!older == !keep)
		return err_set(
			err, -EINVAL, "expected one of --older-than TIME and --keep-size SIZE");
	if (keep) {
		if (str_to_size(keep, &v) < 0 || v > AUDIT_MAX_NUMBER)
			return err_set(err, -EINVAL,
				"invalid --keep-size '%s': use a form such as 100m or 1g", keep);
		(void)snprintf(j->query, sizeof(j->query), "keep_bytes=%" PRIu64, v);
		return 0;
	}
	r = when_parse(older, clock_wall_ms(), &v, err);
	if (r == 0 && v == 0)
		return err_set(
			err, -EINVAL, "invalid --older-than '%s': the time is before 1970", older);
	(void)snprintf(j->query, sizeof(j->query), "before_ms=%" PRIu64, v);
	return r;
}

int audit_cmd_prune(struct opts *o)
{
	AUTO_LOGS struct audit_logs *l = NULL;
	AUTO_FREE bool *is_due = NULL;
	struct job j = {0};
	struct problem p = {0};
	int r = take_options(o, &j, &p.err), status;

	if (r < 0)
		return ui_problem(&p, problem_usage(&p, r, "audit prune"));
	r = audit_logs_open(o->args.n ? o->args.v[0] : NULL, 0, &l, &p);
	if (r < 0)
		return ui_problem(&p, r);
	j.logs = l;
	j.is_due = is_due = xcalloc(audit_logs_n(l) + 1, sizeof(*is_due));
	r = audit_logs_n(l) ? plan_prune(&j, &p) : 0;
	if (r < 0)
		return ui_problem(&p, r);
	status = act_prune(&j, o);
	return j.n_bad ? EXIT_FAILED : status;
}
