/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known - contents that sbx apply and sbx undo have left in a workspace.
 *
 * How      A file that is newer than the sandbox was changed by the host, unless it still has the
 *          content that sbx itself has written. KNOWN_ABSENT is the row of a path that sbx has
 *          removed, KNOWN_MIXED of one that has changes of the host, too. The list is a text file
 *          in the state directory.
 * Trust    The user's own file.
 * Owns     Its rows, until known_done.
 * See      plan.h
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/hash/sha256.h"

struct known_row {
	size_t ws;
	char *path;
	uint8_t sha[SHA256_BYTES];
};

struct known {
	struct known_row *v;
	size_t n, room;
};

extern const uint8_t KNOWN_ABSENT[SHA256_BYTES], KNOWN_MIXED[SHA256_BYTES];

void known_done(struct known *k);
#define AUTO_KNOWN CLEANUP(known_done)

/* A file that does not exist is an empty list. */
int known_load(struct known *k, const char *file, struct err *err) MUST_CHECK;
int known_save(const struct known *k, const char *file, struct err *err) MUST_CHECK;
bool known_has(const struct known *k, size_t ws, const char *path, const uint8_t sha[SHA256_BYTES]);
/* The hash of a path; NULL: it has no row. */
const uint8_t *known_find(const struct known *k, size_t ws, const char *path);
/* For many rows: appends; the last row of a path counts after known_sort. */
void known_add(struct known *k, size_t ws, const char *path, const uint8_t sha[SHA256_BYTES]);
void known_sort(struct known *k);
