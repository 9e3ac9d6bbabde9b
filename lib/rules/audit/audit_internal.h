/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_internal - what audit.c, audit_open.c and audit_read.c share.
 */
#pragma once

#include "audit.h"

/* The end of the chain. Copied, advanced by sealing, and put back when the bytes are written. */
struct audit_tip {
	uint64_t next_seq;
	uint8_t last[AUDIT_HASH_LEN];
	unsigned n_unsigned;
	size_t head_at, n_head; /* the last head among the bytes that are to be written */
};

struct audit {
	char *dir, *kept_path, *cut_path;
	int lock, fd;
	const struct audit_key *key;
	struct audit_hash hash;
	char sandbox[AUDIT_MAX_WORD + 1], name[AUDIT_MAX_NAME + 1];
	uint64_t max_bytes, segment_bytes;
	unsigned head_records, head_ms;
	uint64_t room, allocated; /* allocated: where the blocks of this segment end */
	bool has_spare;
	uint8_t log[AUDIT_LOG_LEN];
	unsigned format; /* a log of an older sbx changes to AUDIT_FORMAT with the next event */
	struct audit_tip tip;
	uint64_t segment, size; /* size: of what is good */
	uint64_t used;		/* by all files of the log, this one too */
	uint64_t counted_ms;	/* when a full log was last counted again */
	bool is_full_said;	/* the record of it is written */
	uint64_t unsigned_since_ms, synced_ms;
	bool is_torn;		     /* bytes of a failed write may be after size */
	bool is_sync_due;	     /* a head is written and not kept yet */
	bool must_sync;		     /* and the last try failed */
	uint64_t tried_ms;	     /* when audit_sync last failed, 0 for not */
	int failed;		     /* the kernel lost written bytes: requires a new audit_open */
	char head[AUDIT_MAX_RECORD]; /* the last head that was written */
	size_t n_head;
};

/* Seals a record of `kind` (with the fields in rec that are its own) behind tip. */
int audit_seal(
	struct audit *a, struct audit_record *rec, struct audit_tip *tip, struct wr *wr) MUST_CHECK;
int audit_seal_head(struct audit *a, struct audit_tip *tip, struct wr *wr) MUST_CHECK;
/* One write(2) of everything at the end of fd, or nothing. */
int audit_put(struct audit *a, struct slice bytes, const struct audit_tip *tip,
	struct err *err) MUST_CHECK;
/* Opens the next segment's file and writes its first record. */
int audit_begin_segment(struct audit *a, uint64_t number, struct err *err) MUST_CHECK;
void audit_free(struct audit *a);

/* audit_room.c. Before n bytes are written: -ENOSPC or -EDQUOT when they would take of the room. */
int audit_room_take(struct audit *a, size_t n) MUST_CHECK;
/* Blocks after the end of a segment that is closed, or was truncated. */
void audit_room_give_back(struct audit *a, int fd, uint64_t size);
/* a->head becomes the kept one without a new block. */
int audit_room_keep_head(struct audit *a) MUST_CHECK;
void audit_room_done(struct audit *a);
bool audit_is_no_space(int r);

#define AUDIT_SEGMENT_NAME "%s/%08llu.jsonl"
/* The bytes of all files in a log's directory. */
int audit_count_bytes(const char *dir, uint64_t *ret, struct err *err) MUST_CHECK;
char *audit_segment_path(const char *dir, uint64_t number);
int audit_sync_folder(const char *dir) MUST_CHECK;
#define AUDIT_END_BYTES ((size_t)4 * AUDIT_MAX_RECORD)
/* The last whole record of a segment; ret_line is in buf. -ENOENT. */
int audit_read_last(const char *path, uint8_t buf[AUDIT_END_BYTES], struct audit_record *ret,
	struct slice *ret_line) MUST_CHECK;
/* The highest number there is, 0 for none or no directory. */
int audit_last_segment(const char *dir, uint64_t *ret, struct err *err) MUST_CHECK;
/* Feeds everything from fd's place to its end. */
int audit_feed(struct audit_chain *c, int fd) MUST_CHECK;
/* The kept head's line; -ENOENT. */
int audit_load_kept(const char *path, char **ret, size_t *ret_n, struct err *err) MUST_CHECK;
