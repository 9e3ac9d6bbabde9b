/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_export - audit logs in one file, for verification by another party.
 *
 * How      The first line has the public key, {"sbx_audit_export":1,"key":HEX}. The records of one
 *          log after the other follow, exactly as in the logs. A record with the number 1 begins a
 *          log, one of the kind "segment" a segment.
 * Trust    audit_export_check parses an untrusted file. The key in the file proves nothing: the
 *          verifier passes the key that it knows.
 * Limits   One piece and one record in memory. Without the stored head, an export that was
 *          truncated at a head cannot be distinguished from a shorter log.
 * See      proto/PROTOCOL.audit, tests/cli/test_audit.py
 */
#pragma once

#include <stdio.h>
#include "lib/rules/audit/audit_chain.h"

void audit_export_print_key(const struct audit_pub *pub, FILE *out);

/* Called for each log, valid or not. < 0 stops the check and is returned. */
typedef int audit_export_fn(
	void *arg, const char *id, const char *name, const struct audit_report *rep);

/* pub NULL: the key in the file is used. -EINVAL: not an export. */
int audit_export_check(FILE *in, const struct audit_pub *pub, struct audit_pub *ret_pub,
	audit_export_fn *fn, void *arg, struct err *err) MUST_CHECK;
