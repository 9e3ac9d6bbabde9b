/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_audit - removes old segments of an audit log.
 *
 * How      keep_prune removes the segments. The installation's log gets a record before the removal
 *          (audit-prune) and one after it (audit-pruned), from which `sbx audit verify` learns how
 *          far a log was pruned. The work is a few small reads and unlink(2): sbxd does not read
 *          the removed records.
 * Trust    As api.h. Runs in sbxd, which holds the key; the log may be anything.
 */
#include <jansson.h>
#include "api_internal.h"
#include "src/sbxd/journal/journal.h"

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
