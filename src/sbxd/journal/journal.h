/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal - the audit log of the installation: policy changes, created and removed sandboxes.
 *
 * How      journal_append opens the log JOURNAL_ID at the first record (lib/rules/audit/audit.h)
 *          and writes one. A timer signs and syncs new records. The name of a record is the sandbox
 *          it concerns, or empty for all of them; the sandbox's own log is the keeper's. keep.h
 *          removes old records of all logs.
 * Trust    Runs in sbxd, on the user's own state directory.
 * Owns     The key of the installation and the log, until journal_done.
 * Never    Prevents sbxd from starting: without a log, only operations that must be recorded fail.
 * See      proto/PROTOCOL.audit, tests/api
 */
#pragma once

#include "keep.h"
#include "src/sbxd/state/state.h"
#include "lib/rules/audit/audit.h"

#define JOURNAL_ID "sbxd"

struct journal {
	struct audit_key *key;
	struct audit *audit;
	struct loop_timer timer;
};

/* A record; fields that do not apply are NULL. */
struct journal_entry {
	enum audit_kind kind; /* AUDIT_KIND_POLICY_CHANGE, AUDIT_KIND_LIFECYCLE */
	const char *action;
	const char *sandbox; /* its name */
	const char *op;
	const char *rule;
	const char *reason;
	uint64_t count;
};

/* On an error nothing was recorded: reject the request. */
int journal_append(struct sbxd *d, const struct journal_entry *e, struct err *err) MUST_CHECK;
/* Signs and syncs appended records. */
int journal_sync(struct sbxd *d, struct err *err) MUST_CHECK;
/* Loads the key and takes the log, for callers that need them before the first record. */
int journal_open(struct sbxd *d, struct err *err) MUST_CHECK;
void journal_on_timer(struct sbxd *d);
void journal_done(struct sbxd *d);
