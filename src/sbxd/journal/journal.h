/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal - the audit log of the installation: changes of the policy, sandboxes made and removed.
 *
 * How      journal_append opens the log JOURNAL_ID at the first record (lib/rules/audit/audit.h)
 *          and writes one; a timer signs and syncs what is not yet. The name of a record is that of
 *          the sandbox it is about, or nothing for all of them; its own log is the keeper's. Old
 *          records of all logs are removed by keep.h.
 * Trust    Runs in sbxd, on the user's own state folder.
 * Owns     The key of the installation and the log, until journal_done.
 * Never    Keeps sbxd from starting: without a log only what must be recorded is refused.
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

/* What happened, in words; NULL where there is nothing to say. */
struct journal_entry {
	enum audit_kind kind; /* AUDIT_KIND_POLICY_CHANGE, AUDIT_KIND_LIFECYCLE */
	const char *action;
	const char *sandbox; /* its name */
	const char *rule;
	const char *reason;
	uint64_t count;
};

/* On an error nothing was recorded: refuse what was asked for. */
int journal_append(struct sbxd *d, const struct journal_entry *e, struct err *err) MUST_CHECK;
/* Signs and syncs what was appended. */
int journal_sync(struct sbxd *d, struct err *err) MUST_CHECK;
/* Loads the key and takes the log, for callers that need them before the first record. */
int journal_open(struct sbxd *d, struct err *err) MUST_CHECK;
void journal_on_timer(struct sbxd *d);
void journal_done(struct sbxd *d);
