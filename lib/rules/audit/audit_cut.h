/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_cut - the signed line that records where a pruned log begins.
 *
 * How      One line of JSON in the directory `cuts`, apart from the log. It names the log, the
 *          first segment that is left, the number, time and hash of the last record that was
 *          removed, and when that was done. The installation's key signs it, with a separate
 *          context: a head is never a cut. There is exactly one way to write it.
 * Trust    Decodes untrusted bytes: a modified cut, or one in an export.
 * Owns     Nothing.
 * Limits   AUDIT_MAX_CUT bytes.
 * See      proto/PROTOCOL.audit, audit_prune.h, audit_cut_test.c, audit_prune_test.c
 */
#pragma once

#include "audit_record.h"

#define AUDIT_MAX_CUT 640
#define AUDIT_CUT_BEGIN "{\"sbx_audit_cut\":1,"

struct audit_cut {
	char sandbox[AUDIT_MAX_WORD + 1];
	uint8_t log[AUDIT_LOG_LEN];
	uint64_t segment;	      /* the first that is left, from 2 */
	uint64_t seq;		      /* the last record that was removed: 1 to seq are */
	uint64_t until_ms;	      /* its time */
	uint64_t time_ms;	      /* of the pruning */
	uint8_t hash[AUDIT_HASH_LEN]; /* of record seq */
	uint8_t sig[AUDIT_SIG_LEN];
	size_t n_signed; /* set by decoding */
};

/* Signs and writes the line; sets sig. */
int audit_cut_encode(struct wr *wr, struct audit_cut *cut, const struct audit_key *key) MUST_CHECK;
/* `line` with its newline. -EBADMSG when encoding would not write it; the signature is not
 * checked. */
int audit_cut_decode(struct slice line, struct audit_cut *ret) MUST_CHECK;
/* Also checks the signature. */
int audit_cut_check(
	struct slice line, const struct audit_pub *pub, struct audit_cut *ret) MUST_CHECK;

/* `dir` is state/audit. On the heap. */
char *audit_cut_path(const char *dir, const char *sandbox);
/* The line; -ENOENT when the log was not pruned. */
int audit_cut_load(const char *dir, const char *sandbox, char **ret, size_t *ret_n,
	struct err *err) MUST_CHECK;
