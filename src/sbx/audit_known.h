/*
 * audit_known - how far each audit log was pruned, as the log of sbxd records it.
 *
 * How      Reads the records `audit-pruned` of sbxd's log once. A log that begins before that record
 *          number was set back.
 * Trust    The log of sbxd may be anything: a forged record makes a check fail, and none makes one
 *          pass that fails without it.
 * Owns     Its list; audit_known_free frees it.
 * Limits   AUDIT_LIST_MAX logs.
 * See      tests/cli/test_audit_prune.py
 */
#pragma once

#include <stddef.h>
#include "lib/audit/audit_record.h"

struct audit_known {
	struct audit_known_log {
		char id[AUDIT_MAX_WORD + 1];
		uint64_t seq;
	} * v;
	size_t n;
};

void audit_known_load(const char *dir, struct audit_known *ret);
/* 0 when nothing is known. */
uint64_t audit_known_seq(const struct audit_known *k, const char *id);
void audit_known_free(struct audit_known *k);
#define AUTO_KNOWN CLEANUP(audit_known_free)
