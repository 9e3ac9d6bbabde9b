/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit - the writer of one sandbox's audit log: append-only, chained, signed.
 *
 * How      audit_append writes a record with one write(2) and only then succeeds, so kill -9 loses
 *          no acknowledged record. A signed head follows every AUDIT_HEAD_RECORDS records or
 *          AUDIT_HEAD_MS, in the same write as the record that made it due; then the file is synced
 *          and the head is kept apart from the log, at most every AUDIT_SYNC_MS. audit_open repairs
 *          what a crash left: bytes after the last good record are moved to a cut- file, recorded
 *          by a `recovered` record. Segments change at segment_bytes. A log with max_bytes takes no
 *          more records that a guest can cause (decisions and similar), which one record reports;
 *          events of the host are still recorded. A log that was pruned (audit_prune.h) and is full
 *          is counted again, once in AUDIT_RETRY_MS. With `room`, space is allocated ahead
 *          (audit_room.c): on a full disk records of the host are still written, and those that a
 *          guest can cause are refused before it is used up.
 * Trust    Runs in keeper and sbxd, on the user's own state directory. Texts of events are the
 *          guest's.
 * Owns     A struct audit owns its files, its lock and its memory; the key is borrowed.
 * Limits   AUDIT_MAX_RECORD bytes a record; longer texts are cut and counted. max_bytes.
 * Never    Continues a log that is corrupt before its kept head: audit_open refuses. Gives up a
 *          sequence number: when a write fails, nothing was recorded and the next try is the same.
 * See      proto/PROTOCOL.audit, audit_test.c, audit_kill_test.c
 */
#pragma once

#include "audit_chain.h"

#define AUDIT_HEAD_MS 1000
#define AUDIT_SYNC_MS 100
#define AUDIT_RETRY_MS 1000 /* between tries to sync what could not be */
#define AUDIT_SEGMENT_BYTES (16u << 20)
#define AUDIT_ROOM (64u << 10) /* more than 100 records */

struct audit_options {
	const char *dir;	     /* state/audit */
	const char *sandbox;	     /* its id: a-z 0-9 and -, at most AUDIT_MAX_WORD */
	const char *name;	     /* its name, at most AUDIT_MAX_NAME; may be "" */
	const struct audit_key *key; /* must live until audit_close */
	uint64_t max_bytes;	     /* of all files of the log; 0: no bound */
	uint64_t segment_bytes;	     /* 0: AUDIT_SEGMENT_BYTES */
	uint64_t room;		     /* bytes to keep for records of the host; 0: none */
	unsigned head_records;	     /* 0: AUDIT_HEAD_RECORDS, which is also the maximum */
	unsigned head_ms;	     /* 0: AUDIT_HEAD_MS */
};

struct audit;

/* Continues the log or begins it. -EBUSY: another process writes it. -EBADMSG: it is damaged or was
 * set back, and the sentence names the record. */
int audit_open(const struct audit_options *o, struct audit **ret, struct err *err) MUST_CHECK;
/* On an error nothing was recorded: deny the request. -EDQUOT: the log is full, and the message has
 * a command to run. ret_seq may be NULL. */
int audit_append(struct audit *a, const struct audit_event *ev, uint64_t *ret_seq,
	struct err *err) MUST_CHECK;
/* For records to come. */
int audit_set_name(struct audit *a, const char *name) MUST_CHECK;
/* Takes effect immediately. */
void audit_set_max_bytes(struct audit *a, uint64_t max_bytes);
bool audit_is_full(const struct audit *a);
/* The disk lost what was written: every append fails until the log is closed and opened again. */
bool audit_is_failed(const struct audit *a);
/* Milliseconds until audit_sync should be called; -1: everything is signed and kept. */
int audit_due_ms(const struct audit *a);
/* Signs what is not, syncs, keeps the head. Blocks for as long as the disk does. */
int audit_sync(struct audit *a, struct err *err) MUST_CHECK;
/* audit_sync, then frees in any case. NULL is fine. */
int audit_close(struct audit *a, struct err *err);
