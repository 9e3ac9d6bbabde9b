/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_read - reads a log from its files: verify, show, export, follow.
 *
 * How      audit_verify reads everything once. A struct audit_reader does the same in steps:
 *          audit_reader_pump passes every available record to the callback and returns at the end;
 *          after the log has grown, pump again. With AUDIT_CHAIN_PLAIN only the form is checked,
 *          which is enough for views. A line is JSON already: export is the line itself.
 * Trust    The log may be anything. Runs in sbx and sbxd; takes no lock and never writes.
 * Owns     A reader owns its fds and its chain; audit_reader_close frees them.
 * Limits   One piece of AUDIT_READ_BYTES and one record in memory, however long the log is.
 * See      proto/PROTOCOL.audit, audit_read_test.c
 */
#pragma once

#include "audit_chain.h"

#define AUDIT_READ_BYTES 65536

struct audit_reader;

/* `dir` is state/audit. expect->sandbox, kept_head and cut are filled in from there. */
int audit_reader_open(const char *dir, const char *sandbox, const struct audit_expect *expect,
	struct audit_reader **ret, struct err *err) MUST_CHECK;
void audit_reader_close(struct audit_reader *rd);
/* 0: at the end for now. -EBADMSG: see the report. What the callback returned when it was < 0: the
 * refused record is treated as read, and the reader cannot be pumped again. */
int audit_reader_pump(struct audit_reader *rd, struct err *err) MUST_CHECK;
const struct audit_report *audit_reader_report(const struct audit_reader *rd);

/* 0: the whole log is good; -EBADMSG: the report names the first bad record, err is a sentence.
 * -ENOENT: there is no such log and none was kept. A log that is being written may show
 * AUDIT_TORN_TAIL for a moment. pruned: as in struct audit_expect. */
int audit_verify(const char *dir, const char *sandbox, const struct audit_pub *pub,
	const struct audit_mark *pruned, struct audit_report *ret, struct err *err) MUST_CHECK;
