/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle - the staged changes of a sandbox, frozen on the host.
 *
 * How      A bundle is a directory: one stream per workspace (lib/wire/stage/stage_read.h), as the
 *          sandbox sent it, and a manifest with the SHA-256 of each file. bundle_add reads a
 *          stream, bundle_seal sorts and checks all of it, bundle_save writes the manifest.
 *          bundle_open reads a saved one and compares the manifest byte by byte. What is shown and
 *          what is applied come from here; the sandbox is not queried again.
 * Trust    Streams are a guest's. Beyond the rules of stage_read.h, the parent of each path is a
 *          directory of the bundle: no path leads through a link or a file.
 * Owns     Entries and descriptors, until bundle_done.
 * Limits   As stage_read.h, for all workspaces together.
 * See      pull.h, plan.h, tests/cli/test_staged.py
 */
#pragma once

#include "lib/base/hash/sha256.h"
#include "lib/rules/spec/spec.h"
#include "lib/wire/stage/stage_read.h"

struct bundle_entry {
	enum stage_op op;
	uint32_t mode;
	uint64_t size, at; /* of the content: length, offset in the stream */
	uint8_t sha[SHA256_BYTES];
	size_t ws;    /* workspace */
	size_t order; /* in the stream */
	char *path, *link;
};

struct bundle {
	struct bundle_entry *v;
	size_t n, room;
	uint64_t n_bytes;
	int fds[SPEC_MAX_WORKSPACES];
	size_t n_ws;
	char manifest[2 * SHA256_BYTES +
		      1]; /* SHA-256 of the manifest, once it is saved or opened */
};

void bundle_init(struct bundle *b);
void bundle_done(struct bundle *b);
#define AUTO_BUNDLE CLEANUP(bundle_done)

/* Takes the stream over as the next workspace. */
int bundle_add(struct bundle *b, int fd, struct err *err) MUST_CHECK;
int bundle_seal(struct bundle *b, struct err *err) MUST_CHECK;
int bundle_save(struct bundle *b, const char *dir, struct err *err) MUST_CHECK;
/* All streams of a saved bundle, sealed. */
int bundle_open(struct bundle *b, const char *dir, struct err *err) MUST_CHECK;
/* NULL: the bundle has no entry with this path. */
const struct bundle_entry *bundle_find(const struct bundle *b, size_t ws, const char *path);
/* The content of a file in memory, with a NUL after it; at most `max` bytes of it. */
int bundle_load(const struct bundle *b, const struct bundle_entry *e, size_t max, char **ret,
	size_t *ret_n, struct err *err) MUST_CHECK;
/* Writes the content to a file. -EBADMSG if it is not what the manifest has. */
int bundle_copy(
	const struct bundle *b, const struct bundle_entry *e, int out, struct err *err) MUST_CHECK;
