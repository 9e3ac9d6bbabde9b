/*
 * api_audit - removes old segments of an audit log.
 *
 * How      The installation's log has a record before anything is removed (audit-prune), and one
 *          after it (audit-pruned), from which `sbx audit verify` knows how far a log was pruned. The
 *          work is that of a few small reads and unlink(2): sbxd does not read the removed records.
 * Trust    As api.h. Runs in sbxd, which holds the key; the log may be anything.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "api.h"
#include "lib/audit/audit_list.h"
#include "lib/audit/audit_prune.h"
#include "lib/base/mem.h"
#include "lib/base/paths.h"
#include "sbxd.h"

struct job {
	struct sbxd *d;
	const char *id;
	char name[AUDIT_MAX_NAME + 1];
};

static int record(struct job *job, const char *action, uint64_t seq,
	const uint8_t log[AUDIT_LOG_LEN], struct err *err)
{
	char reason[96], rule[AUDIT_MAX_RULE + 1], hex[2 * AUDIT_LOG_LEN + 1] = "";
	struct journal_entry e = {.kind = AUDIT_KIND_LIFECYCLE,
		.action = action,
		.sandbox = job->name,
		.rule = rule,
		.reason = reason,
		.count = seq};
	int r;

	audit_hex(log, AUDIT_LOG_LEN, hex);
	(void)snprintf(rule, sizeof(rule), "%s:%s", job->id, hex);
	(void)snprintf(reason, sizeof(reason), "records 1 to %llu of the audit log",
		(unsigned long long)seq);
	r = journal_append(job->d, &e, err);
	return r < 0 ? r : journal_sync(job->d, err);
}

static int on_prune(void *arg, const struct audit_cut *cut, struct err *err)
{
	return record(arg, "audit-prune", cut->seq, cut->log, err);
}

static int prune(
	struct job *job, const struct api_request *req, struct audit_pruned *ret, struct err *err)
{
	AUTO_FREE char *dir = paths_get(PATHS_STATE, "audit");
	struct audit_prune_options o = {.dir = dir,
		.sandbox = req->ref,
		.before_ms = req->before_ms,
		.keep_bytes = req->keep_bytes,
		.is_dry = req->dry,
		.record = on_prune,
		.arg = job};
	int r = journal_open(job->d, err);

	if (r < 0)
		return r;
	o.key = job->d->journal.key;
	/* The records of sbxd's own log name other sandboxes. */
	if (strcmp(req->ref, JOURNAL_ID) == 0 || audit_last_name(dir, req->ref, job->name) < 0)
		job->name[0] = '\0';
	r = audit_prune(&o, ret, err);
	if (r == 0 && ret->segments && !req->dry)
		r = record(job, "audit-pruned", ret->seq, ret->log, err);
	return r;
}

void api_audit_prune(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	struct job job = {.d = d, .id = req->ref};
	struct audit_pruned got = {0};
	struct err err = {0};
	int r = prune(&job, req, &got, &err);

	if (r < 0) {
		api_fail_errno(d, c, r, &err);
		return;
	}
	api_reply_json(d, c, 200,
		json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:b}", "log", api_text(req->ref),
			"segments", (json_int_t)got.segments, "records", (json_int_t)got.records,
			"bytes", (json_int_t)got.bytes, "seq", (json_int_t)got.seq, "until_ms",
			(json_int_t)got.until_ms, "written", (int)got.is_written));
}
