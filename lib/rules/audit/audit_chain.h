/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_chain - verifies an audit log as a stream, and names the first bad record.
 *
 * How      audit_chain_eat takes the bytes of one segment in pieces of any size,
 *          audit_chain_segment begins the next one, audit_chain_end checks that the end is
 *          complete. The first fault is in the report, and all later calls return -EBADMSG. Each
 *          good record goes to the callback and does not depend on later ones, so a follower can
 *          continue without end. A log begins in the format of its first record (or segment) and
 *          may change to a later one, never back: fields of format 2 in a log of format 1 are bad.
 * Trust    Parses untrusted input; no I/O. Trusts the public key and the kept head that the caller
 *          passes.
 * Owns     A hash context; audit_chain_done frees it. One line is kept when it came in pieces.
 * Limits   AUDIT_MAX_RECORD a line, AUDIT_HEAD_RECORDS records without a signed head between
 *          them.
 * Never    Names who changed a log, or detects forgery by the owner of the key.
 * See      proto/PROTOCOL.audit, audit_chain_test.c, audit_tamper_test.c
 */
#pragma once

#include "audit_cut.h"

#define AUDIT_HEAD_RECORDS 1000

enum audit_bad {
	AUDIT_OK,
	AUDIT_BAD_FORM,	     /* not a record in its one encoding */
	AUDIT_BAD_HASH,	     /* its hash is not that of its bytes */
	AUDIT_BAD_ORDER,     /* its number does not follow */
	AUDIT_BAD_CHAIN,     /* its previous hash is not that of the record before */
	AUDIT_BAD_SIGNATURE, /* a head that the key did not sign */
	AUDIT_NO_HEAD,	     /* too many records since the last head */
	AUDIT_BAD_SEGMENT,   /* the first record of a file is not, or another one is, a beginning */
	AUDIT_NO_SEGMENT,    /* a file is missing */
	AUDIT_ROLLBACK,	     /* the log is shorter than the kept head, or differs there */
	AUDIT_BAD_KEPT_HEAD, /* the kept head is missing or not one of this log by this key */
	AUDIT_OTHER_KEY,     /* the log was begun with another key */
	AUDIT_FOREIGN,	     /* a record of another sandbox or log */
	AUDIT_TORN_TAIL,     /* the last line has no end */
	AUDIT_BAD_CUT,	     /* the cut is not one of this log by this key */
	AUDIT_OLD_CUT,	     /* the log begins before a cut that is known */
	AUDIT_BAD_FORMAT,    /* of a later format than its log, or a change to an earlier one */
	AUDIT_N_BAD,
};

/* A sentence for people; "" for AUDIT_OK. */
const char *audit_bad_text(enum audit_bad bad);
/* The short name: "hash", "order". */
const char *audit_bad_name(enum audit_bad bad);

struct audit_report {
	enum audit_bad bad;
	uint64_t segment, seq; /* of the first bad record, or the last good one when bad is
				* AUDIT_OK; 0: not about a record */
	uint64_t offset;       /* where it begins in its segment's file */
	uint64_t n_records, n_heads, n_recovered;
	uint64_t signed_seq, signed_ms; /* the last good head */
	uint64_t n_unsigned;		/* good records after it: chained, not signed */
	uint64_t cut_seq;		/* records 1 to this were pruned; 0: none */
	uint64_t cut_ms, cut_until_ms, cut_segment;
};

typedef int audit_record_fn(void *arg, const struct audit_record *rec, struct slice line);

enum audit_chain_flag {
	AUDIT_CHAIN_PLAIN = 1,	/* form only: for views of a log that is not to be judged */
	AUDIT_CHAIN_MIDDLE = 2, /* the first segment eaten is not the first of the log */
	AUDIT_CHAIN_ALONE = 4,	/* there is no kept head to compare with */
};

/* How far a log is known to be pruned. Another log of the same sandbox was never pruned. */
struct audit_mark {
	uint64_t seq;
	uint8_t log[AUDIT_LOG_LEN];
};

struct audit_expect {
	const struct audit_pub *pub; /* may be NULL with AUDIT_CHAIN_PLAIN */
	const char *sandbox;	     /* NULL: any, but one */
	struct slice kept_head;	     /* the line kept apart from the log, empty: it is missing */
	struct slice cut;	     /* the line of audit_cut.h, p is NULL: there is none */
	const struct audit_mark *pruned; /* NULL: nothing is known */
	unsigned flags;
	audit_record_fn *fn; /* may be NULL; < 0 ends the eating and is returned */
	void *arg;
};

struct audit_chain {
	struct audit_expect expect;
	struct audit_report report;
	struct audit_hash hash;
	struct audit_record rec;
	char sandbox[AUDIT_MAX_WORD + 1];
	uint8_t log[AUDIT_LOG_LEN], last[AUDIT_HASH_LEN];
	uint64_t next_seq, segment, offset; /* offset: after the last good record */
	uint64_t since_head;
	unsigned format;	 /* of the last record; 0: not known yet */
	bool is_begun, is_first; /* a record was seen; the next is the first of its segment */
	bool has_kept, is_cut_bad;
	uint64_t kept_seq;
	uint8_t kept_hash[AUDIT_HASH_LEN], kept_log[AUDIT_LOG_LEN];
	uint8_t line[AUDIT_MAX_RECORD]; /* the beginning of a line that came in pieces */
	size_t n_line;
};

/* The expected things must live as long as the chain, but for kept_head and cut. */
void audit_chain_init(struct audit_chain *c, const struct audit_expect *expect);
void audit_chain_done(struct audit_chain *c);
#define AUTO_CHAIN CLEANUP(audit_chain_done)

/* Numbers must follow each other. 0, or -EBADMSG with the report filled. */
int audit_chain_segment(struct audit_chain *c, uint64_t number) MUST_CHECK;
int audit_chain_eat(struct audit_chain *c, struct slice bytes) MUST_CHECK;
int audit_chain_end(struct audit_chain *c) MUST_CHECK;
/* The segment to begin with: 1, or that of the cut. */
uint64_t audit_chain_first(const struct audit_chain *c);
/* With AUDIT_CHAIN_PLAIN: continues with a later segment, because those before it were pruned. */
void audit_chain_skip(struct audit_chain *c, uint64_t number);
