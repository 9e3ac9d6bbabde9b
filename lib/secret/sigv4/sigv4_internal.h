/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigv4_internal - what the parts of sigv4 share.
 *
 * How      sigv4_hash.c has the hashes, sigv4_host.c compares scope and host, sigv4_query.c reads
 *          and writes queries, sigv4.c reads requests, sigv4_sign.c signs.
 * Trust    As sigv4.h.
 */
#pragma once

#include "sigv4.h"

/* ---- hashes ---- */

struct sigv4_sum {
	void *ctx;
	bool bad; /* sticky */
};

void sigv4_sum_init(struct sigv4_sum *sum);
void sigv4_sum_add(struct sigv4_sum *sum, struct slice s);
void sigv4_sum_add_str(struct sigv4_sum *sum, const char *s);
/* -EIO when anything failed. */
int sigv4_sum_end(struct sigv4_sum *sum, uint8_t ret[SIGV4_HASH]) MUST_CHECK;
void sigv4_sum_done(struct sigv4_sum *sum);
#define AUTO_SIGV4_SUM CLEANUP(sigv4_sum_done)

int sigv4_mac(struct slice key, struct slice text, uint8_t ret[SIGV4_HASH]) MUST_CHECK;
bool sigv4_is_hex(struct slice s);
/* The chain's next signature, of this string to sign. */
int sigv4_chain_next(struct sigv4_chain *chain, struct slice to_sign) MUST_CHECK;

/* ---- text ---- */

/* Sorts as bytes; a shorter one is first. */
int sigv4_cmp(struct slice a, struct slice b);

/* ---- scope and host ---- */

/* NULL, or why a signature for this service and region cannot be one for the host. */
const char *sigv4_host_misfit(struct slice host, struct slice service, struct slice region);
/* Whether the service takes paths as they are. */
bool sigv4_is_s3(struct slice service);

/* ---- queries ---- */

enum sigv4_field {
	SIGV4_F_ALGORITHM,
	SIGV4_F_CREDENTIAL,
	SIGV4_F_DATE,
	SIGV4_F_EXPIRES,
	SIGV4_F_SIGNED,
	SIGV4_F_SIGNATURE,
	SIGV4_F_TOKEN,
	SIGV4_F_PAYLOAD,
	SIGV4_N_FIELDS,
	SIGV4_F_OTHER = SIGV4_N_FIELDS,
};

struct sigv4_pair {
	struct slice name, value;
	bool has_value; /* has an equals sign */
};

/* Cuts the next field off; false at the end. Empty fields are skipped. */
bool sigv4_next_pair(struct slice *query, struct sigv4_pair *ret);
/* Which field a name is; -EBADMSG for one of them in another spelling. */
int sigv4_which(struct slice name) MUST_CHECK;
const char *sigv4_field_name(enum sigv4_field f);
/* The fields as they are; -EBADMSG if one is duplicate or in another spelling. */
int sigv4_read_fields(struct slice query, struct slice ret[SIGV4_N_FIELDS],
	bool ret_has[SIGV4_N_FIELDS]) MUST_CHECK;
/* Escapes removed; -EBADMSG for a broken one. */
int sigv4_decode(struct slice s, struct arena *arena, struct slice *ret) MUST_CHECK;
/* In AWS's encoding: the bytes of s themselves, escapes are not decoded. */
struct slice sigv4_encode(struct slice s, struct arena *arena);
/* Adds the canonical query to the sum. */
int sigv4_sum_query(struct sigv4_sum *sum, struct slice query, struct arena *arena) MUST_CHECK;
/* Adds the canonical path. */
int sigv4_sum_path(
	struct sigv4_sum *sum, struct slice path, bool is_s3, struct arena *arena) MUST_CHECK;

/* A string in an arena that grows at its end; nothing else may be allocated meanwhile. */
struct wr sigv4_text(struct arena *arena, size_t max);
