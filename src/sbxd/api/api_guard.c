/* SPDX-License-Identifier: Apache-2.0 */
/* GET and DELETE /v1/sandboxes/REF/guard: workspace files that the guest changed and that run on
 * the host, and writes that the guard denied. POST /v1/sandboxes/REF/stage: a record of what the
 * command line does with staged changes. POST /v1/audit/REF/prune: removes old segments of an audit
 * log; a record before the removal and one after it tell `sbx audit verify` how far. */
#include <errno.h>
#include <jansson.h>
#include "api_internal.h"
#include "src/sbxd/disk/disk.h"
#include "src/sbxd/journal/journal.h"
#include "lib/base/fs/paths.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/rules/airlock/autorun.h"

#define MAX_ROWS 1000 /* in one reply */

struct reply {
	json_t *list;
	const struct autorun_list *kinds;
};

static const char *program_of(const struct autorun_list *l, const struct dirty_row *row)
{
	struct autorun_match match = {0};
	size_t tree;

	if (!l)
		return "";
	autorun_find(l, row->path, GUARD_STRICT, &match, &tree);
	if (!match.row || match.row->kind != row->kind)
		match.row = autorun_kind(l, row->kind);
	return match.row ? match.row->program : "";
}

static void add_row(void *arg, const struct dirty_row *row)
{
	struct reply *r = arg;
	json_t *o;

	if (json_array_size(r->list) == MAX_ROWS)
		return;
	o = json_pack("{s:I,s:i,s:o,s:s,s:s,s:o,s:o,s:o}", "changed_at", (json_int_t)row->time_ms,
		"kind", (int)row->kind, "program", api_text(program_of(r->kinds, row)), "op",
		dirty_op_name(row->op), "state", dirty_state_name(row->state), "workspace",
		api_text(row->mount), "path", api_text(row->path), "detail", api_text(row->detail));
	if (row->copy)
		json_object_set_new(o, "copy", json_integer((json_int_t)row->copy));
	json_array_append_new(r->list, o);
}

void api_guard(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_AUTORUN struct autorun_list *kinds = NULL;
	AUTO_ROW struct store_row row = {0};
	struct reply changed = {.list = json_array()}, denied = {.list = json_array()};
	AUTO_FREE char *dir = NULL;
	struct err err = {0};
	size_t n;

	if (!api_find(d, c, req->ref, &row)) {
		json_decref(changed.list);
		json_decref(denied.list);
		return;
	}
	/* Without the list the paths are still worth showing. */
	if (autorun_load(&kinds, &err) < 0)
		log_warn("%s", err.text);
	changed.kinds = denied.kinds = kinds;
	dir = paths_get(PATHS_STATE, "sandboxes/%s/guard", row.spec.id);
	n = guarded_each(row.spec.id, GUARDED_DIRTY, add_row, &changed);
	(void)guarded_each(row.spec.id, GUARDED_DENIED, add_row, &denied);
	api_reply_json(d, c, 200,
		json_pack("{s:s,s:s,s:o,s:i,s:o,s:o}", "sandbox", row.spec.name, "guard",
			spec_guard_name(row.spec.guard), "dir", api_text(dir), "total", (int)n,
			"changed", changed.list, "denied", denied.list));
}

/* Only what the client has seen: a file that was changed meanwhile must not be forgotten. */
void api_guard_done(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	struct journal_entry e = {.kind = AUDIT_KIND_LIFECYCLE, .action = "guard-done"};
	struct err err = {0};
	int r;

	if (!api_find(d, c, req->ref, &row))
		return;
	if (guarded_each(row.spec.id, GUARDED_DIRTY, NULL, NULL) != req->total) {
		api_fail(d, c, 409, "stale", "files were changed since the list was read",
			"sbx review --guard SANDBOX");
		return;
	}
	e.sandbox = row.spec.name;
	r = journal_append(d, &e, &err);
	if (r == 0)
		r = guarded_forget(row.spec.id, &err);
	if (!api_succeeded(d, c, r, &err))
		return;
	api_watch_changed(d, row.spec.id);
	conn_reply(d, c, 204, NULL);
}

void api_stage(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	AUTO_ROW struct store_row row = {0};
	AUTO_FREE char *reason = NULL;
	struct api_stage_body body;
	struct journal_entry e = {.kind = AUDIT_KIND_LIFECYCLE};
	struct err err = {0};
	int r = api_decode_stage(c->http.body, &body, &err);

	if (!api_succeeded(d, c, r, &err) || !api_find(d, c, req->ref, &row))
		return;
	if (!row.spec.staged) {
		api_fail(d, c, 409, "conflict", "the sandbox is not staged", "sbx ls");
		return;
	}
	reason = body.sha256[0] ? xasprintf("bundle sha256 %s", body.sha256) : NULL;
	e.action = body.action;
	e.sandbox = row.spec.name;
	e.op = body.names[0] ? body.names : NULL;
	e.reason = reason;
	e.count = body.count;
	r = journal_append(d, &e, &err);
	if (api_succeeded(d, c, r, &err))
		conn_reply(d, c, 204, NULL);
}

void api_audit_prune(struct sbxd *d, struct conn *c, const struct api_request *req)
{
	const struct keep_rule rule = {
		.before_ms = req->before_ms, .keep_bytes = req->keep_bytes, .is_dry = req->dry};
	struct audit_pruned got = {0};
	struct err err = {0};
	int r = keep_prune(d, req->ref, &rule, &got, &err);

	if (!api_succeeded(d, c, r, &err))
		return;
	api_reply_json(d, c, 200,
		json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:b}", "log", api_text(req->ref),
			"segments", (json_int_t)got.segments, "records", (json_int_t)got.records,
			"bytes", (json_int_t)got.bytes, "seq", (json_int_t)got.seq, "until_ms",
			(json_int_t)got.until_ms, "written", (int)got.is_written));
}
