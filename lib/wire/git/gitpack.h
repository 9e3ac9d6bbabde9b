/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gitpack - a git pack in memory: names, types and content of its objects.
 *
 * How      gitpack_put takes the bytes, gitpack_index reads all of them after the last one: each
 *          object is unpacked, its deltas are applied, and its name is computed, never believed.
 *          gitpack_find looks a name up, gitpack_load returns the content of an object.
 * Trust    Parses untrusted input: the pack of a push is guest root's. Inflating is zlib's.
 *          -EBADMSG: malformed, or not complete in itself (a thin pack). -E2BIG: over a limit.
 *          An object that is there twice is malformed, so nobody can read the other one.
 * Owns     The bytes, a table of the objects, and a cache of contents.
 * Limits   struct gitpack_limits. Work is counted in bytes that were read and produced, so a pack
 *          that unpacks to too much ends there.
 * Not      Collisions of SHA-1 are not searched for, as they are by git servers.
 * See      gitpack_test.c, gitpack_fuzz.c, docs/decisions/own-pack-reader.md, gitpack(5)
 */
#pragma once

#include "gitref.h"
#include "lib/base/err.h"

#define GITPACK_MAX_BYTES (256u << 20)
#define GITPACK_MAX_LOAD (64u << 20) /* bytes of an object that is held in memory */
#define GITPACK_MAX_CHAIN 4095	     /* deltas one upon another; git's own limit */

enum gitobject_type {
	GITOBJECT_NONE,
	GITOBJECT_COMMIT,
	GITOBJECT_TREE,
	GITOBJECT_BLOB,
	GITOBJECT_TAG,
};

struct gitpack_limits {
	uint32_t bytes;	  /* of the pack; at most GITPACK_MAX_BYTES */
	uint32_t objects; /* in it */
	uint64_t work;
};

struct gitpack;

struct gitpack *gitpack_new(const struct gitpack_limits *limits);
void gitpack_free(struct gitpack **p);
#define AUTO_GITPACK CLEANUP(gitpack_free)

int gitpack_put(struct gitpack *p, struct slice bytes, struct err *err) MUST_CHECK;
int gitpack_index(struct gitpack *p, struct err *err) MUST_CHECK;

/* All that was put. */
struct slice gitpack_bytes(const struct gitpack *p);

/* ---- after gitpack_index ---- */

uint32_t gitpack_count(const struct gitpack *p);
/* The number of an object, or -1. */
int64_t gitpack_find(const struct gitpack *p, const struct git_oid *oid);
enum gitobject_type gitpack_type(const struct gitpack *p, uint32_t i);
uint32_t gitpack_size(const struct gitpack *p, uint32_t i);
/* The content, which the caller frees. */
int gitpack_load(struct gitpack *p, uint32_t i, uint8_t **ret, struct err *err) MUST_CHECK;
