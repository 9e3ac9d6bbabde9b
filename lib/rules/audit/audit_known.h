/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_known - how far each audit log was pruned, as the log of sbxd records it.
 *
 * How      Reads the records `audit-pruned` of sbxd's log once. A log that begins before that
 *          record number was rolled back.
 * Trust    Runs in sbx and sbxd. The log of sbxd may be anything: a forged record can make a check
 *          fail, but never makes a failing check pass.
 * Owns     Its list; audit_known_free frees it.
 * Limits   AUDIT_LIST_MAX logs.
 * See      tests/cli/test_audit_prune.py
 */
#pragma once

#include <stddef.h>
#include "audit_chain.h"

struct audit_known {
	struct audit_known_log {
		char id[AUDIT_MAX_WORD + 1];
		struct audit_mark mark;
	} * v;
	size_t n;
};

void audit_known_load(const char *dir, struct audit_known *ret);
/* NULL when nothing is known. */
const struct audit_mark *audit_known_of(const struct audit_known *k, const char *id);
void audit_known_free(struct audit_known *k);
#define AUTO_KNOWN CLEANUP(audit_known_free)
