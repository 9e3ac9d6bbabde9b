/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigv4 - requests that a guest signed with the placeholder's keys, signed again with the real
 * ones.
 *
 * How      AWS Signature Version 4. sigv4_read parses the signature of the guest's SDK (the
 *          Authorization header, or the query of a presigned URL) and checks it: placeholder, time,
 *          scope against the host, how the body is covered. sigv4_sign then signs the canonical
 *          request with the real keys and changes headers or query so. It is the last change of a
 *          request: what is changed after it may be signed. `body` of struct sigv4 is what the
 *          caller must do: nothing, the hash of the whole body before sigv4_sign (sigv4_hash), or
 *          every byte of it through sigv4_chunks.h.
 * Trust    Parses untrusted fields of a request that canon_check_req found canonical. Holds the
 *          real keys for one call; derived keys are wiped. Runs in origin only.
 * Owns     Nothing: texts are in the caller's arena (SIGV4_ARENA_SIZE), which has the session's
 *          token in it after a presigned URL was signed, and must be wiped. In a header the token
 *          is not copied: the credential must live as long as the request.
 * Limits   SIGV4_MAX_*. A presigned URL is valid for at most SIGV4_SKEW_S from now, whatever the
 *          guest requests: responses may contain it.
 * Never    Signs for a host that is not the request's, without its host header, or for another key
 *          than the placeholder's. Accepts SigV4A, signed event streams, or the versions before.
 * See      sigv4_chunks.h, proto/PROTOCOL.service, sigv4_test.c, sigv4_oracle.py, sigv4_fuzz.c
 */
#pragma once

#include "lib/base/err.h"
#include "lib/wire/http/canon/canon.h"

#define SIGV4_MAX_BODY (8U << 20) /* what a caller keeps to hash it */
#define SIGV4_MAX_ID 128
#define SIGV4_MAX_SECRET 256
#define SIGV4_MAX_SESSION 8192
#define SIGV4_MAX_WORD 64     /* region, service */
#define SIGV4_MAX_SIGNED 64   /* signed headers */
#define SIGV4_MAX_FIELDS 1024 /* of a query */
#define SIGV4_MAX_EXPIRES 604800
#define SIGV4_SKEW_S 900		     /* between the guest's clock and ours */
#define SIGV4_ARENA_SIZE (8 * HTTP_MAX_HEAD) /* an arena in which the largest request fits */
#define SIGV4_HASH 32
#define SIGV4_HEX 64
#define SIGV4_STAMP 16 /* 20150830T123600Z */

/* The real keys: ID:SECRET, or ID:SECRET:SESSION. */
struct sigv4_cred {
	struct slice id, secret, session; /* session: empty when there is none */
};

/* Cuts a value in its parts; they point into it. The sentence never has a part of it. */
int sigv4_split(struct slice value, struct sigv4_cred *ret, struct err *err) MUST_CHECK;

enum sigv4_form {
	SIGV4_UNSIGNED, /* carries no signature: nothing to do */
	SIGV4_HEADER,
	SIGV4_QUERY,
};

enum sigv4_body {
	SIGV4_BODY_SAID,   /* the request states how its body is covered */
	SIGV4_BODY_WHOLE,  /* sigv4_sign needs the hash of all of it */
	SIGV4_BODY_CHUNKS, /* each chunk is signed: sigv4_chunks.h */
};

/* The signature fields of a request; slices point into it or its arena. */
struct sigv4 {
	enum sigv4_form form;
	enum sigv4_body body;
	bool has_trailer; /* of SIGV4_BODY_CHUNKS: a signed one */
	struct slice stamp, region, service;
	struct slice signed_headers; /* as the guest wrote it */
	struct slice payload;	     /* of SIGV4_BODY_SAID and _CHUNKS: the word or hash */
	uint32_t expires_s;	     /* of SIGV4_QUERY, as it will be signed */
};

struct sigv4_check {
	struct slice sentinel; /* the key's ID that the sandbox has; `*`: any letter or digit */
	int64_t now;	       /* seconds since 1970 */
};

/* -EBADMSG with a sentence for the guest when it cannot be signed again. */
int sigv4_read(const struct http_req *req, const struct sigv4_check *check, struct arena *arena,
	struct sigv4 *ret, struct err *err) MUST_CHECK;

/* What sigv4_sign leaves for the chunks of a body. Has a derived key: wipe it. */
struct sigv4_chain {
	uint8_t key[SIGV4_HASH];
	char signature[SIGV4_HEX];
	char stamp[SIGV4_STAMP];
	char scope[2 * SIGV4_MAX_WORD + 32];
	size_t n_scope;
};

void sigv4_chain_wipe(struct sigv4_chain *chain);

/*
 * Changes the request. `hash` is that of the body for SIGV4_BODY_WHOLE, else NULL; ret_chain may be
 * NULL unless the body comes in signed chunks. After an error the request must not be sent.
 */
int sigv4_sign(struct http_req *req, const struct sigv4 *s, const struct sigv4_cred *cred,
	const uint8_t *hash, struct arena *arena, struct sigv4_chain *ret_chain,
	struct err *err) MUST_CHECK;

/* SHA-256, of a body that is kept. */
int sigv4_hash(struct slice s, uint8_t ret[SIGV4_HASH]) MUST_CHECK;
