/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_record - one record of an audit log: a line of JSON in canonical encoding.
 *
 * How      One table of fields, in the order of a line, is used in both directions. A field is
 *          omitted exactly if it is empty or zero, bytes outside printable ASCII are always \u00xx,
 *          numbers have no leading zero: what audit_record_decode accepts, audit_record_encode
 *          writes again byte by byte. Some fields are of format 2 (audit_record_format): a record
 *          has them only in a log that has changed to it (audit_chain.h).
 * Trust    Decodes untrusted bytes (a modified log), encodes names that the guest chose. Does no
 *          I/O and no cryptography.
 * Owns     Nothing on the heap; slices of a decoded record point into its own text.
 * Limits   AUDIT_MAX_RECORD bytes a line. Texts over AUDIT_MAX_HOST and the others are cut by
 *          audit_record_trim, which counts the removed bytes: a long name never hides a decision.
 * See      proto/PROTOCOL.audit, audit_record_test.c
 */
#pragma once

#include "audit_crypto.h"

#define AUDIT_FORMAT 2
#define AUDIT_MAX_RECORD 6144 /* bytes of a line, with its newline */
#define AUDIT_MAX_WORD 31
#define AUDIT_MAX_NAME 63
#define AUDIT_MAX_HOST 255
#define AUDIT_MAX_OP 240
#define AUDIT_MAX_RULE 64
#define AUDIT_MAX_REASON 200
#define AUDIT_MAX_EFFECTS 1024
#define AUDIT_MAX_HOLD 8
#define AUDIT_MAX_FROM 64
#define AUDIT_DIGEST_LEN 32
#define AUDIT_MAX_NUMBER ((UINT64_C(1) << 53) - 1) /* exact in every reader of JSON */
#define AUDIT_LOG_LEN 16
#define AUDIT_ACTION_GUARD "guard" /* a decision on a file of a workspace */

enum audit_kind {
	AUDIT_KIND_OPEN,      /* first of a log */
	AUDIT_KIND_SEGMENT,   /* first of each further file */
	AUDIT_KIND_HEAD,      /* signed */
	AUDIT_KIND_RECOVERED, /* the log had not been closed; count: bytes that were cut off */
	AUDIT_KIND_FORMAT,    /* the records after it have a later format */
	AUDIT_KIND_DECISION,
	AUDIT_KIND_POLICY_CHANGE,
	AUDIT_KIND_LIFECYCLE,
	AUDIT_KIND_WORKER_VIOLATION,
	AUDIT_KIND_CREDENTIAL_USE,
	AUDIT_KIND_APPROVAL,
	AUDIT_KIND_SIGNATURE,
	AUDIT_N_KINDS,
};

enum audit_verdict { AUDIT_NONE, AUDIT_ALLOW, AUDIT_DENY, AUDIT_N_VERDICTS };

/* An event of a program. Empty and zero fields are omitted from the record. */
struct audit_event {
	enum audit_kind kind; /* AUDIT_KIND_DECISION or a later one */
	enum audit_verdict decision;
	struct slice action; /* word: "start", "rule-add" */
	struct slice type;   /* word: "http", "https", "tcp", "dns" */
	struct slice host;   /* any bytes */
	uint64_t port;
	struct slice path;   /* word: "forward", "transparent", "forward-bypass" */
	struct slice op;     /* any bytes: "GET /path" */
	struct slice rule;   /* any bytes: the id of the rule */
	struct slice reason; /* any bytes */
	/* Format 2. effects: canonical texts (effect.h) with "; " between them. digest: of all
	 * effects; all zero: none. hold: the ID of the approval request. from: where the rule is:
	 * "FILE:LINE", or "policy N" for the Nth rule of the user's policy. */
	struct slice effects;
	uint8_t digest[AUDIT_DIGEST_LEN];
	struct slice hold;
	struct slice from;
	uint64_t count;
};

struct audit_record {
	uint64_t seq, time_ms;
	struct slice sandbox; /* word */
	struct slice name;
	struct audit_event ev;
	uint64_t cut;		    /* bytes of texts that were removed */
	uint64_t version, segment;  /* OPEN, FORMAT, SEGMENT (0: format 1); SEGMENT */
	uint8_t log[AUDIT_LOG_LEN]; /* OPEN, SEGMENT, HEAD */
	uint8_t key[AUDIT_KEY_LEN]; /* OPEN: the public key of the installation */
	uint8_t prev[AUDIT_HASH_LEN];
	uint8_t sig[AUDIT_SIG_LEN];	/* HEAD: over the first n_signed bytes of the line */
	uint8_t hash[AUDIT_HASH_LEN];	/* over the first n_hashed bytes */
	size_t n_signed, n_hashed;	/* set by decoding */
	uint8_t text[AUDIT_MAX_RECORD]; /* what the slices of a decoded record point into */
};

/* "decision", "policy-change"; "" for an unknown number. */
const char *audit_kind_name(enum audit_kind kind);
/* "allow", "deny", "" */
const char *audit_verdict_name(enum audit_verdict v);
/* 1 to AUDIT_MAX_WORD bytes of a-z 0-9 and . _ : - */
bool audit_is_word(struct slice s);

/* The lowest format that has its kind and its fields. */
unsigned audit_record_format(const struct audit_record *rec);

/* Cuts texts to their limits and sets cut. Effects are also cut, after a whole one if possible, to
 * what the other texts leave of the line. */
void audit_record_trim(struct audit_record *rec);
/* The three parts of a line: all up to prev; the signature (HEAD only); hash, brace and newline.
 * -EINVAL: a field that this kind must not or must have, or an unknown word. */
int audit_record_encode(struct wr *wr, const struct audit_record *rec) MUST_CHECK;
int audit_record_encode_sig(struct wr *wr, const struct audit_record *rec) MUST_CHECK;
int audit_record_encode_hash(struct wr *wr, const struct audit_record *rec) MUST_CHECK;
/* `line` with its newline. -EBADMSG when it is not exactly what encoding would write. */
int audit_record_decode(struct slice line, struct audit_record *ret) MUST_CHECK;
