/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gitpack_internal - the table of a pack. Internal to lib/wire/git.
 *
 * How      gitpack.c reads entries, gitpack_delta.c applies deltas and caches contents.
 * Trust    As gitpack.h.
 */
#pragma once

#include <zlib.h>
#include "gitpack.h"

#define GITPACK_CACHE_SLOTS 256
#define GITPACK_CACHE_BYTES (64u << 20)
#define GITPACK_NO_SLOT GITPACK_CACHE_SLOTS

/* Types of an entry beside those of objects. */
#define GITPACK_OFS_DELTA 6
#define GITPACK_REF_DELTA 7

struct gitpack_entry {
	struct git_oid oid;
	uint32_t at;	/* where the entry begins in the pack */
	uint32_t data;	/* where its compressed bytes begin */
	uint32_t size;	/* of what the compressed bytes give */
	uint32_t whole; /* of the object, known when the type is */
	uint32_t base;	/* of a delta: its entry, if `has_base` */
	uint32_t next;	/* in the list of its bucket: a number plus 1 */
	uint16_t slot;	/* in the cache */
	uint8_t kind;	/* as in the pack */
	uint8_t type;	/* enum gitobject_type, GITOBJECT_NONE until it is known */
	bool has_base;
};

struct gitpack {
	struct gitpack_limits limits;
	uint8_t *bytes;
	size_t n_bytes, n_trailer, size; /* n_trailer: after them, when they were read */
	struct gitpack_entry *entry;
	uint32_t n_entries;
	uint32_t *bucket, mask;
	uint8_t key[16];
	uint64_t work;
	z_stream z;
	bool has_z;
	struct {
		uint8_t *p;
		uint32_t n, entry;
		uint64_t used;
	} cache[GITPACK_CACHE_SLOTS];
	size_t n_cached;
	uint64_t clock;
};

struct gitpack_buf {
	uint8_t *p;
	uint32_t n;
};

/* Unpacks `size` bytes at `at` into dest, or passes them to hash if dest is NULL. *ret_end: where
 * the compressed bytes end. */
int gitpack_inflate(struct gitpack *p, uint32_t at, uint32_t size, uint8_t *dest, void *hash,
	uint32_t *ret_end, struct err *err) MUST_CHECK;
/* Takes the bytes. */
void gitpack_cache(struct gitpack *p, uint32_t i, struct gitpack_buf bytes);
void gitpack_uncache(struct gitpack *p);
/* The content of an entry whose bases are known; xmalloc'd. */
int gitpack_unpack(
	struct gitpack *p, uint32_t i, struct gitpack_buf *ret, struct err *err) MUST_CHECK;
