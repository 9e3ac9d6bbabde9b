/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safe - the directory of the vault: its sealed file, the anchor and, optionally, the key.
 *
 * How      safe_look takes the lock, removes what a killed writer left and reads what needs no key:
 *          where the key is. The caller gets that key and calls safe_load. safe_save writes
 *          generation + 1 to a new file, syncs, renames, syncs, then the anchor: after a kill at
 *          any point the file has the last saved or the new content. A file older than the anchor
 *          is rejected.
 * Trust    Reads files that any process of the user may have changed. The vault only.
 * Owns     The lock, the key, the bytes of the sealed file until it was loaded.
 * Limits   SEAL_MAX. SAFE_SEALED, SAFE_ANCHOR, SAFE_KEY, SAFE_CREDS, SAFE_LOCK are all its files.
 * See      seal.h, safe_test.c
 */
#pragma once

#include "book.h"
#include "seal.h"

#define SAFE_SEALED "sealed"
#define SAFE_ANCHOR "anchor"
#define SAFE_KEY "key"
#define SAFE_CREDS "key.creds"
#define SAFE_LOCK "lock"
#define SAFE_MAX_DIR 512
#define SAFE_LOCK_MS 2000

struct safe {
	char dir[SAFE_MAX_DIR];
	int lock;
	bool is_new;	 /* there is no sealed file */
	bool accept_old; /* the user accepts the old copy */
	struct seal_head head;
	struct secret key;
	uint8_t *file;
	size_t file_n;
};

/* -EBUSY: another vault has the directory, for SAFE_LOCK_MS already. A new safe gets a salt;
 * its head.source is VAULT_KEY_NONE until the caller sets it. */
int safe_look(struct safe *s, const char *dir, bool accept_old, struct err *err) MUST_CHECK;
void safe_done(struct safe *s);

/* The key from its file, 0600 and owned by the user; a new safe creates one. */
int safe_key_from_file(struct safe *s, struct err *err) MUST_CHECK;
/* The bytes of SAFE_CREDS on the heap, -ENOENT; and writing them. */
int safe_creds_read(struct safe *s, char **ret, size_t *ret_n, struct err *err) MUST_CHECK;
int safe_creds_write(struct safe *s, struct slice blob, struct err *err) MUST_CHECK;

/* Opens with s->key into an empty book; a new safe is written for the first time. `floor` is the
 * generation that another process has stored, or 0. -EKEYREJECTED: another key. -ESTALE: an old
 * copy. */
int safe_load(struct safe *s, struct book *book, uint64_t floor, struct err *err) MUST_CHECK;
int safe_save(struct safe *s, const struct book *book, struct err *err) MUST_CHECK;
