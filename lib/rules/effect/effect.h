/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effect - what a request does: one verb on one object, as rules, records and approvals name it.
 *
 * How      A request has a list of effects. effect_print writes the one canonical text of an
 *          effect, `KIND:VERB TARGET OBJECT [FIELD=VALUE]...`. effect_parse reads such a text and
 *          refuses every other spelling. effect_digest is the hash of a list, in any order.
 * Trust    Requests are untrusted. No I/O; only effect_digest uses the heap.
 * Owns     Nothing: slices point into the request, or into the struct effect_copy.
 * Limits   EFFECT_MAX_TEXT bytes of a text. A longer one is cut and ends with the hash of the whole
 *          text, so that two effects have the same text only if they are the same.
 *          EFFECT_MAX_HEADERS, EFFECT_MAX_LIST.
 * Never    Writes a byte that is not printable ASCII.
 * See      proto/PROTOCOL.effect, effect_test.c, effect_fuzz.c, effect_terms.h for the options of
 *          rules
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/hash/sha256.h"
#include "lib/base/slice.h"

#define EFFECT_MAX_TEXT 512
#define EFFECT_MAX_HEADERS 16
#define EFFECT_MAX_LIST 10000 /* effects of one request */
#define EFFECT_DIGEST SHA256_BYTES

enum effect_kind { EFFECT_HTTP, EFFECT_GIT, EFFECT_API, EFFECT_KINDS };

/* A header of the request. */
struct effect_header {
	struct slice name, value; /* name: lower case */
};

/*
 * One effect. What is empty is not known, unless the comment says otherwise: a rule that allows
 * does not match then, and one that denies or asks does.
 */
struct effect {
	enum effect_kind kind;
	bool is_unknown;   /* it is not known what the request does: no verb, but `why` */
	bool is_odd;	   /* servers may read the object in different ways (canon_normal_path) */
	struct slice verb; /* http: the method. git: a word of effect_is_git_verb. api: of a pack */
	struct slice
		host;  /* http, git: canonical, as in struct host; an address without brackets */
	uint16_t port; /* http, git */
	struct slice target; /* git: the repository, `acme/app`, without .git. api: the service */
	struct slice object; /* http: the normal path. git: the ref. api: the object of the pack */
	struct slice path;   /* git: one file that a push changes */
	bool no_path;	     /* git: it is known that no file is changed */
	struct slice risk;   /* api: a word of pack_risk_name */
	bool has_query;	     /* http; false: there is no query, and rules know that */
	struct slice query;  /* as written, without the `?`; can be empty */
	bool has_headers;    /* http: a header that is not in the list is not in the request */
	const struct effect_header *header; /* http: those that rules name */
	size_t n_headers;
	struct slice why; /* is_unknown: a word such as no-row or body */
	struct slice cut; /* the hash of the whole text; only after effect_parse of a cut one */
};

const char *effect_kind_name(enum effect_kind kind);
/* -ENOENT if there is no such kind. */
int effect_kind_find(struct slice word, enum effect_kind *ret) MUST_CHECK;
/* fetch, push, create, delete, force, tag. */
bool effect_is_git_verb(struct slice word);

/* buf has EFFECT_MAX_TEXT + 1 bytes. Returns the length. Headers and fields are sorted. */
size_t effect_print(const struct effect *e, char *buf);

/* An effect with its own bytes. */
struct effect_copy {
	struct effect effect;
	struct effect_header header[EFFECT_MAX_HEADERS];
	uint8_t bytes[EFFECT_MAX_TEXT];
};

/* -EINVAL unless effect_print writes exactly this text for the result. The effect points into
 * *ret, which must not be moved. */
int effect_parse(struct slice text, struct effect_copy *ret, struct err *err) MUST_CHECK;

/*
 * SHA-256 of the texts, sorted, each with a line feed behind it, and then of `body`, the hash of
 * the request's body (32 bytes; empty: the request has none, or the effects say all that matters).
 */
void effect_digest(
	const struct effect *list, size_t n, struct slice body, uint8_t ret[EFFECT_DIGEST]);
