/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store - the registry of sandboxes, in SQLite.
 *
 * How      One table, one row a sandbox, found by id or by name through an index; nothing walks all
 *          rows to serve one. store_open migrates by user_version. WAL and full sync: what was
 *          answered is on the disk. A removed sandbox is first marked (its name is free from then
 *          on), then its directory is removed, then its row: the next start completes a removal
 *          after a crash.
 * Trust    The user's own file. Damage is an error that names the file; the file is never recreated
 *          over a damaged one.
 * Owns     The database connection and its prepared statements. A struct store_row owns its spec
 *          and text; store_row_done frees them.
 * Never    Two processes: sbxd holds its instance lock before it opens this.
 * See      store_test.c
 */
#pragma once

#include "lib/rules/spec/spec.h"

#define STORE_BUSY_MS 2000
#define STORE_MAX_ERROR 512

struct store;

struct store_row {
	struct spec spec;
	uint64_t created_at, started_at, stopped_at, last_used_at; /* ms since 1970, 0: never */
	char last_error[STORE_MAX_ERROR];
};

enum store_stamp { STORE_STARTED, STORE_STOPPED, STORE_USED };

/* Return < 0 to end the walk; it is what store_list then returns. */
typedef int store_row_fn(void *arg, const struct store_row *row);
typedef int store_id_fn(void *arg, const char *id);

int store_open(const char *path, struct store **ret, struct err *err) MUST_CHECK;
void store_close(struct store *s);

void store_row_done(struct store_row *row);
#define AUTO_ROW CLEANUP(store_row_done)

/* -EEXIST when the id or the name is taken; spec->generation must be set. */
int store_insert(
	struct store *s, const struct spec *spec, uint64_t now_ms, struct err *err) MUST_CHECK;
/* By id or name; *ret must be all zero. -ENOENT. */
int store_get(struct store *s, const char *ref, struct store_row *ret, struct err *err) MUST_CHECK;
/* By name; at most `max` rows with a name after `after` (NULL: from the first). */
int store_list(struct store *s, const char *after, unsigned max, store_row_fn *fn, void *arg,
	struct err *err) MUST_CHECK;
/* Replaces the spec of spec->id when its generation is still `was`. -ESTALE, -EEXIST (name). */
int store_update(
	struct store *s, const struct spec *spec, uint64_t was, struct err *err) MUST_CHECK;
/* Sets the time and, for STARTED and STOPPED, last_error ("" for none). */
int store_stamp(struct store *s, const char *id, enum store_stamp what, uint64_t now_ms,
	const char *last_error, struct err *err) MUST_CHECK;
/* Those that were started later than stopped. */
int store_list_started(struct store *s, store_id_fn *fn, void *arg, struct err *err) MUST_CHECK;
/* Marks as being removed: all calls but the next two no longer see it. */
int store_mark_removed(struct store *s, const char *id, struct err *err) MUST_CHECK;
int store_list_removed(struct store *s, store_id_fn *fn, void *arg, struct err *err) MUST_CHECK;
int store_forget(struct store *s, const char *id, struct err *err) MUST_CHECK;
