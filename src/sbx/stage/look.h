/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look - what a path of a workspace is on the host now.
 *
 * How      Paths are opened beneath the root of the workspace with openat2, without following a
 *          link. A path whose directory does not exist, or is not a directory, is absent.
 * Trust    The user's own files; other programs may change them at any time.
 * Owns     Nothing.
 * See      plan.h, apply.h
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/hash/sha256.h"

enum look_type { LOOK_ABSENT, LOOK_FILE, LOOK_DIR, LOOK_LINK, LOOK_OTHER };

struct look {
	enum look_type type;
	uint32_t mode; /* 0777 */
	uint64_t size, dev, ino;
	int64_t mtime_ns, ctime_ns;
	uint8_t sha[SHA256_BYTES]; /* of a file's content, of a link's target */
};

/* The directory of a path, O_PATH, and the last component in *ret_base, which points into path. */
int look_parent(int root, const char *path, const char **ret_base) MUST_CHECK;
/* A directory beneath the root, for reading. */
int look_dir(int root, const char *path) MUST_CHECK;
/* With the hash. */
int look_at(int root, const char *path, struct look *ret, struct err *err) MUST_CHECK;
/* A name in an open directory. */
int look_in(int dirfd, const char *name, bool hash, struct look *ret, struct err *err) MUST_CHECK;
/* The same file, unchanged; `renamed`: its change time may differ. */
bool look_same(const struct look *a, const struct look *b, bool renamed);
