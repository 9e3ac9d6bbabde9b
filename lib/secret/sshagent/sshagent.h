/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sshagent - the SSH agent messages that a sandbox may send and receive.
 *
 * How      draft-ietf-sshm-ssh-agent, without the four bytes of length in front. Requests are read
 *          strictly: the list of keys, and one signature. Everything else, known or not, is
 *          SSHAGENT_OTHER and is answered with FAILURE. A list of keys is rewritten with those that
 *          the filter allows. sshagent_describe describes the data to sign if it can be parsed: a
 *          login (RFC 4252) or a file, commit or tag (SSHSIG).
 * Trust    Requests are the guest's, answers the host's agent's. No I/O, no secret: what passes is
 *          public keys and signatures. Runs in sbx-ssh-agent.
 * Owns     Nothing; slices point into the caller's bytes.
 * Limits   SSHAGENT_MAX_*.
 * Never    Adds, removes or locks keys; passes extensions, smart cards or constraints on.
 * See      sshagent_test.c, sshagent_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/slice.h"

#define SSHAGENT_MAX_REQUEST 65536
#define SSHAGENT_MAX_ANSWER 262144 /* OpenSSH's own limit */
#define SSHAGENT_MAX_KEYS 256	   /* in a list */
#define SSHAGENT_MAX_RULES 32
#define SSHAGENT_MAX_RULE 128
#define SSHAGENT_MAX_COMMENT 128 /* what is longer is cut where it is shown */
#define SSHAGENT_MAX_TEXT 128
#define SSHAGENT_FINGERPRINT 51 /* "SHA256:" + 43 digits + NUL */

enum sshagent_type {
	SSHAGENT_FAILURE = 5,
	SSHAGENT_REQUEST_IDENTITIES = 11,
	SSHAGENT_IDENTITIES_ANSWER = 12,
	SSHAGENT_SIGN_REQUEST = 13,
	SSHAGENT_SIGN_RESPONSE = 14,
};

enum sshagent_kind { SSHAGENT_LIST, SSHAGENT_SIGN, SSHAGENT_OTHER };

struct sshagent_request {
	enum sshagent_kind kind;
	struct slice key, data; /* SIGN */
	uint32_t flags;
};

/* Which keys a sandbox may use: each rule is a fingerprint "SHA256:..." or a whole comment.
 * None: all. */
struct sshagent_filter {
	unsigned n_rules;
	char rules[SSHAGENT_MAX_RULES][SSHAGENT_MAX_RULE];
};

struct sshagent_key {
	struct slice blob, comment;
	char fingerprint[SSHAGENT_FINGERPRINT];
};

enum sshagent_what {
	SSHAGENT_SIGNS_LOGIN,
	SSHAGENT_SIGNS_FILE,
	SSHAGENT_SIGNS_OTHER,
	SSHAGENT_N_WHATS
};

/* Never fails: what is not understood is OTHER. */
struct sshagent_request sshagent_parse(struct slice msg);
/* A list with only the allowed keys. -EBADMSG if the agent's list is invalid, -EMSGSIZE. */
int sshagent_filter_list(
	const struct sshagent_filter *f, struct slice answer, struct wr *wr) MUST_CHECK;
/* The key with this blob, when the agent has it and it is allowed. -ENOENT, -EBADMSG. */
int sshagent_find(const struct sshagent_filter *f, struct slice answer, struct slice blob,
	struct sshagent_key *ret) MUST_CHECK;
/* What `data`, to be signed with the key `blob`, is; the user's name or the namespace,
 * printable. */
enum sshagent_what sshagent_describe(
	struct slice data, struct slice blob, char ret_text[SSHAGENT_MAX_TEXT]);
/* Whether this is an answer that a request for a signature may have. */
bool sshagent_is_signed(struct slice answer);
/* Printable ASCII, cut; anything else becomes '?'. */
void sshagent_show(struct slice text, char *ret, size_t size);
