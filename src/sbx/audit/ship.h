/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ship - passes audit records on, batch by batch, and remembers how far it got.
 *
 * How      Records are collected in a batch. A complete batch goes to stdout, or is the stdin of
 *          one execution of the user's command, which accepts it with exit status 0. Then the
 *          position is saved: for each log its random id and the number of the last record. A
 *          batch that is not accepted is passed again, after 1, 2, 4 ... SHIP_MAX_WAIT_S seconds,
 *          until it is. Meanwhile nothing is read: the logs on the disk are the buffer. The next
 *          process continues after the position, so a record is passed again only if sbx was
 *          killed between the end of the command and the save.
 * Trust    Records have texts of guests. They are passed as bytes of JSON lines, never as
 *          arguments. The command is the user's; it is executed without a shell.
 * Owns     The batch, the positions and the lock of the position file.
 * Limits   SHIP_MAX_BYTES and SHIP_MAX_RECORDS a batch, SHIP_RUN_S for one execution.
 * Never    Begins again at the first record because a position cannot be read.
 * See      tests/cli/org/test_ship.py
 */
#pragma once

#include "lib/rules/audit/audit_record.h"

#define SHIP_MAX_BYTES (1u << 20)
#define SHIP_MAX_RECORDS 1000
#define SHIP_RUN_S 60
#define SHIP_MAX_WAIT_S 60
#define SHIP_MAX_FILE (16u << 20)

struct ship_options {
	const char *position;	 /* its file; NULL: begin with the first record, save nothing */
	const char *const *argv; /* the command, NULL at its end; NULL: stdout */
	bool heads;		 /* only signed heads */
	const struct audit_pub *pub;
	const char *dir; /* state/audit */
};

struct ship;

/* -EBUSY: another process uses the position. -EBADMSG: it cannot be read. */
int ship_open(const struct ship_options *o, struct ship **ret, struct err *err) MUST_CHECK;
/* An audit_record_fn. Passes full batches on, and waits until they are accepted. */
int ship_record(void *ship, const struct audit_record *rec, struct slice line);
/* Passes on what is collected. -EPIPE: stdout has no reader any more. */
int ship_pass(void *ship) MUST_CHECK;
/* Why ship_record or ship_pass failed; empty: it did not. */
const struct err *ship_error(const struct ship *s);
/* NULL is fine. What was not passed on is passed on by the next process. */
void ship_close(struct ship *s);
