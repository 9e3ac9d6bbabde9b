/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_list - the existing logs, and the last name of each sandbox.
 *
 * How      audit_list reads the directory: a log is a directory with segments, or a kept head or
 *          cut without a log. audit_last_name reads the end of a log only, so that finding a log by
 *          name costs the same for a short and a long one.
 * Trust    The user's own state directory; the logs in it may be anything.
 * Owns     The caller owns the list; audit_list_free frees it.
 * Limits   AUDIT_LIST_MAX logs.
 * See      audit_list_test.c
 */
#pragma once

#include "audit_record.h"

#define AUDIT_LIST_MAX 100000

struct audit_list {
	char (*id)[AUDIT_MAX_WORD + 1]; /* sorted */
	size_t n;
};

/* `dir` is state/audit. None when there is no such directory. */
int audit_list(const char *dir, struct audit_list *ret, struct err *err) MUST_CHECK;
void audit_list_free(struct audit_list *l);
#define AUTO_AUDIT_LIST CLEANUP(audit_list_free)

/* The name in the last whole record, "" when that has none. -ENOENT: there is no record. */
int audit_last_name(const char *dir, const char *sandbox, char ret[AUDIT_MAX_NAME + 1]) MUST_CHECK;
