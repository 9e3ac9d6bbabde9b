/* SPDX-License-Identifier: Apache-2.0 */
/*
 * home_record - detects changes of the user's start-up and key files since a sandbox was created.
 *
 * How      `sbx create` takes a record before the first start and writes DIR/home-record after it:
 *          a line "GROUP HASH PATH" for each file of a fixed list of places below the home
 *          directory (home_record.c). Later the same places are read again and compared. A link is
 *          compared by its target, a directory by the names and contents in it.
 * Trust    The user's own files; contents are only hashed. The hashes are keyed with a random key
 *          of the installation, so that a record alone does not allow guessing the contents of a
 *          key file.
 * Limits   HOME_MAX_FILES files, HOME_MAX_DEPTH directories below a place; of a file beyond
 *          HOME_MAX_BYTES its first bytes and its size.
 * Never    Reports who changed a file. Follows a link, writes into the home directory.
 * See      home_record_test.c, cmd_audit_home.c, data/probes/host
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"

#define HOME_MAX_FILES 2048
#define HOME_MAX_DEPTH 3
#define HOME_MAX_BYTES (1 << 20)

enum home_change { HOME_CHANGED, HOME_NEW, HOME_GONE };

typedef void home_change_fn(
	void *arg, enum home_change what, const char *group, const char *path, const char *at);

/* Returns the record of `home` as text, on the heap. `key` is the key file; created if missing. */
int home_record_take(const char *key, const char *home, char **ret, struct err *err) MUST_CHECK;
/* Writes it into the directory `dir`, which is created. */
int home_record_save(const char *dir, const char *text, struct err *err) MUST_CHECK;
/* Calls `fn` for each difference (group NULL: in all groups); `at` is the time of the last change,
 * or empty. Returns the number of files checked, now and then; -ENOENT without a record. */
int home_record_compare(const char *dir, const char *key, const char *home, const char *group,
	home_change_fn *fn, void *arg, struct err *err) MUST_CHECK;
bool home_record_is_group(const char *name);
