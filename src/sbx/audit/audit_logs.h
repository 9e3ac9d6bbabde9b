/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_logs - finds audit logs by name or id, reads and follows them.
 *
 * How      A log is selected by its id or by the name in its last record; otherwise by the id that
 *          a running sbxd returns for the name; otherwise all records are searched for the name,
 *          which finds a sandbox by an earlier name. audit_logs_read returns each existing record,
 *          log by log. audit_logs_follow continues from there forever, with logs that appear later.
 *          sbxd's own log is about all sandboxes: the name in its records is the sandbox.
 * Trust    The logs are untrusted: only the form of records is checked here (`sbx audit verify`
 *          checks the rest). Texts in them come from the guest.
 * Owns     A struct audit_logs owns its readers and its inotify fd.
 * Limits   AUDIT_LIST_MAX logs; one record in memory for each that is followed.
 * Never    Starts sbxd, takes a lock, or writes.
 * See      lib/rules/audit/audit_read.h, tests/cli/test_audit.py
 */
#pragma once

#include "lib/rules/audit/audit_read.h"
#include "lib/client/cli/ui.h"

struct audit_logs;

#define AUDIT_LOGS_SBXD "sbxd" /* id of sbxd's own log */

/* Whether this is sbxd's own log, which belongs to no sandbox whatever its records name. */
bool audit_logs_is_journal(const char *id);

enum audit_logs_flag {
	AUDIT_LOGS_FOLLOW = 1,	/* for audit_logs_follow; no log is then not an error */
	AUDIT_LOGS_JOURNAL = 2, /* with a ref also the records of sbxd's own log that name it */
	AUDIT_LOGS_SILENT = 4,	/* follow: records do not go to stdout, which can be closed */
};

/* ref NULL: all logs. Returns -ENOENT if ref matches none. */
int audit_logs_open(
	const char *ref, unsigned flags, struct audit_logs **ret, struct problem *p) MUST_CHECK;
void audit_logs_close(struct audit_logs **l);
#define AUTO_LOGS CLEANUP(audit_logs_close)

size_t audit_logs_n(const struct audit_logs *l);
const char *audit_logs_dir(const struct audit_logs *l);
const char *audit_logs_id(const struct audit_logs *l, size_t i);
/* Last name of its sandbox, or "". */
void audit_logs_name(const struct audit_logs *l, size_t i, char ret[AUDIT_MAX_NAME + 1]);

/* Returns the result of fn if < 0. A log that becomes unreadable causes a warning; the result is
 * then -EBADMSG, after all the others were read. */
int audit_logs_read(
	struct audit_logs *l, audit_record_fn *fn, void *arg, struct problem *p) MUST_CHECK;
/* Called while following, when all records that exist have been returned; < 0 ends it. */
void audit_logs_on_pass(struct audit_logs *l, int (*pass)(void *arg));
/* Returns when stdout is closed (0) or something failed. */
int audit_logs_follow(
	struct audit_logs *l, audit_record_fn *fn, void *arg, struct problem *p) MUST_CHECK;
