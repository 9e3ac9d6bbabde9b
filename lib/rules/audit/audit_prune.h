/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_prune - removes the oldest segments of a log, so that the rest still verifies.
 *
 * How      Whole segments go, from the oldest on. The records before the new beginning are replaced
 *          by a signed cut (audit_cut.h). The order is: the last removed record and the first kept
 *          one are checked against each other and the key, the caller's record function runs, the
 *          cut is saved, the files are removed. A crash in between leaves a log that verifies from
 *          its old or its new beginning; the next call removes the files that stayed.
 *          When nothing writes the log, its last segment can go too: an empty one is begun first.
 * Trust    Runs in sbxd, on the user's own state directory. The segments may be anything.
 * Owns     Nothing after it returned.
 * Never    Touches the segment that another process writes, or a log whose head at the new
 *          beginning the key did not sign. Does not verify the records that it removes: the caller
 *          does (audit_verify).
 * See      proto/PROTOCOL.audit, audit_prune_test.c
 */
#pragma once

#include "audit_cut.h"

typedef int audit_prune_fn(void *arg, const struct audit_cut *cut, struct err *err);

struct audit_prune_options {
	const char *dir;     /* state/audit */
	const char *sandbox; /* the id of the log */
	const struct audit_key *key;
	uint64_t before_ms;	/* segments whose last record is older; 0: by size */
	uint64_t keep_bytes;	/* with before_ms 0: the oldest until no more than this is left */
	bool is_dry;		/* only fill the result */
	audit_prune_fn *record; /* before anything is removed; < 0 removes nothing */
	void *arg;
};

struct audit_pruned {
	uint64_t segments, records, bytes; /* removed by this call */
	uint64_t seq, until_ms;		   /* of the last removed record */
	uint8_t log[AUDIT_LOG_LEN];
	bool is_written; /* by another process: its last segment was kept */
};

/* -ENOENT: there is no such log. -EBADMSG: it is damaged, and nothing was removed. */
int audit_prune(
	const struct audit_prune_options *o, struct audit_pruned *ret, struct err *err) MUST_CHECK;
