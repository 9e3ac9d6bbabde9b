/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/fs/fd.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

enum stmt {
	INSERT,
	GET_BY_ID,
	GET_BY_NAME,
	LIST,
	UPDATE,
	STAMP_STARTED,
	STAMP_STOPPED,
	STAMP_USED,
	LIST_STARTED,
	MARK_REMOVED,
	LIST_REMOVED,
	FORGET,
	N_STMTS,
};

#define COLUMNS                                                                                 \
	"spec, name, generation, created_at, started_at, stopped_at, last_used_at, last_error " \
	"FROM sandboxes "

static const char *const sql[] = {
	[INSERT] = "INSERT INTO sandboxes (id, name, agent, spec, generation, created_at) "
		   "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[GET_BY_ID] = "SELECT " COLUMNS "WHERE id = ?1 AND name IS NOT NULL",
	[GET_BY_NAME] = "SELECT " COLUMNS "WHERE name = ?1",
	[LIST] = "SELECT " COLUMNS "WHERE name > ?1 ORDER BY name LIMIT ?2",
	[UPDATE] = "UPDATE sandboxes SET name = ?2, spec = ?3, generation = ?4 "
		   "WHERE id = ?1 AND generation = ?5 AND name IS NOT NULL",
	[STAMP_STARTED] = "UPDATE sandboxes SET started_at = max(?2, stopped_at + 1), "
			  "last_used_at = ?2, last_error = ?3 WHERE id = ?1",
	[STAMP_STOPPED] = "UPDATE sandboxes SET stopped_at = max(?2, started_at), last_error = ?3 "
			  "WHERE id = ?1",
	[STAMP_USED] = "UPDATE sandboxes SET last_used_at = ?2 WHERE id = ?1",
	[LIST_STARTED] = "SELECT id FROM sandboxes WHERE started_at > stopped_at",
	[MARK_REMOVED] = "UPDATE sandboxes SET name = NULL WHERE id = ?1",
	[LIST_REMOVED] = "SELECT id FROM sandboxes WHERE name IS NULL",
	[FORGET] = "DELETE FROM sandboxes WHERE id = ?1 AND name IS NULL",
};
static_assert(ARRAY_LEN(sql) == N_STMTS, "one statement per index");

struct store {
	sqlite3 *db;
	char *path;
	sqlite3_stmt *stmt[N_STMTS];
};

/* What each version adds; user_version counts how many were applied. */
static const char *const migrations[] = {
	"CREATE TABLE sandboxes ("
	" id TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 12),"
	" name TEXT UNIQUE," /* NULL: being removed */
	" agent TEXT NOT NULL,"
	" spec TEXT NOT NULL,"
	" generation INTEGER NOT NULL CHECK (generation > 0),"
	" created_at INTEGER NOT NULL,"
	" started_at INTEGER NOT NULL DEFAULT 0,"
	" stopped_at INTEGER NOT NULL DEFAULT 0,"
	" last_used_at INTEGER NOT NULL DEFAULT 0,"
	" last_error TEXT NOT NULL DEFAULT ''"
	") WITHOUT ROWID;"
	"CREATE INDEX sandboxes_started ON sandboxes (id) WHERE started_at > stopped_at;"
	"CREATE INDEX sandboxes_removed ON sandboxes (id) WHERE name IS NULL;",
};

static int to_errno(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_CONSTRAINT:
		return -EEXIST;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	default:
		return -EIO;
	}
}

static int fail_store(struct store *s, const char *doing, struct err *err)
{
	int r = to_errno(sqlite3_extended_errcode(s->db));

	if (r == -EUCLEAN)
		return err_set(err, r,
			"the registry %s is corrupt (%s) and was not changed: restore it from a copy, or move it away to begin with an empty one",
			s->path, sqlite3_errmsg(s->db));
	return err_set(
		err, r, "the registry %s: cannot %s: %s", s->path, doing, sqlite3_errmsg(s->db));
}

static int run_store(struct store *s, const char *text, struct err *err)
{
	if (sqlite3_exec(s->db, text, NULL, NULL, NULL) != SQLITE_OK)
		return fail_store(s, "run a statement", err);
	return 0;
}

/* The first column of the first row. */
static int ask_store(struct store *s, const char *text, char *buf, size_t size, struct err *err)
{
	sqlite3_stmt *st = NULL;
	int r = 0;

	if (sqlite3_prepare_v2(s->db, text, -1, &st, NULL) != SQLITE_OK ||
		sqlite3_step(st) != SQLITE_ROW)
		r = fail_store(s, "read", err);
	else
		(void)snprintf(buf, size, "%s", (const char *)sqlite3_column_text(st, 0));
	(void)sqlite3_finalize(st);
	return r;
}

static int check_whole(struct store *s, struct err *err)
{
	char text[200] = "";
	int r = ask_store(s, "PRAGMA quick_check(1)", text, sizeof(text), err);

	if (r < 0)
		return r;
	if (strcmp(text, "ok") != 0)
		return err_set(err, -EUCLEAN,
			"the registry %s is corrupt (%s) and was not changed: restore it from a copy, or move it away to begin with an empty one",
			s->path, text);
	return 0;
}

static int migrate_store(struct store *s, struct err *err)
{
	char text[32] = "";
	uint64_t version;
	int r = ask_store(s, "PRAGMA user_version", text, sizeof(text), err);

	if (r < 0)
		return r;
	if (str_to_u64(text, 0, ARRAY_LEN(migrations), &version) < 0)
		return err_set(err, -EPROTONOSUPPORT,
			"the registry %s was created by a newer sbx (version %s, expected at most %zu)",
			s->path, text, ARRAY_LEN(migrations));
	for (; version < ARRAY_LEN(migrations); version++) {
		AUTO_FREE char *step =
			xasprintf("BEGIN IMMEDIATE; %s PRAGMA user_version = %u; COMMIT",
				migrations[version], (unsigned)version + 1);

		r = run_store(s, step, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int prepare_store(struct store *s, struct err *err)
{
	for (size_t i = 0; i < N_STMTS; i++)
		if (sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->stmt[i],
			    NULL) != SQLITE_OK)
			return fail_store(s, "prepare a statement", err);
	return 0;
}

static int set_up(struct store *s, struct err *err)
{
	int r;

	(void)sqlite3_busy_timeout(s->db, STORE_BUSY_MS);
	r = check_whole(s, err);
	if (r == 0)
		r = run_store(s,
			"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
			"PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF",
			err);
	if (r == 0)
		r = migrate_store(s, err);
	return r == 0 ? prepare_store(s, err) : r;
}

/* SQLite would make it with the mode of the umask; the journal files take the mode of this one. */
static int make_private(const char *path, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? err_errno(err, -errno, "cannot open the registry %s", path) : 0;
}

int store_open(const char *path, struct store **ret, struct err *err)
{
	struct store *s;
	int r = make_private(path, err);

	if (r < 0)
		return r;
	s = xcalloc(1, sizeof(*s));
	s->path = xstrdup(path);
	if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, NULL) !=
		SQLITE_OK)
		r = fail_store(s, "open the database", err);
	else
		r = set_up(s, err);
	if (r < 0) {
		store_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < N_STMTS; i++)
		(void)sqlite3_finalize(s->stmt[i]);
	(void)sqlite3_close(s->db);
	free(s->path);
	free(s);
}

void store_row_done(struct store_row *row)
{
	spec_done(&row->spec);
	*row = (struct store_row){0};
}

static void bind_text(sqlite3_stmt *st, int i, const char *s)
{
	(void)sqlite3_bind_text(st, i, s, -1, SQLITE_TRANSIENT);
}

static void bind_u64(sqlite3_stmt *st, int i, uint64_t v)
{
	(void)sqlite3_bind_int64(st, i, (sqlite3_int64)v);
}

/* Runs a statement that gives no rows, and makes it ready for the next time. */
static int finish_store(struct store *s, sqlite3_stmt *st, const char *doing, struct err *err)
{
	int r = sqlite3_step(st) == SQLITE_DONE ? 0 : fail_store(s, doing, err);

	(void)sqlite3_reset(st);
	(void)sqlite3_clear_bindings(st);
	return r;
}

int store_insert(struct store *s, const struct spec *spec, uint64_t now_ms, struct err *err)
{
	AUTO_FREE char *json = spec_encode(spec);
	sqlite3_stmt *st = s->stmt[INSERT];
	int r;

	bind_text(st, 1, spec->id);
	bind_text(st, 2, spec->name);
	bind_text(st, 3, spec->agent);
	bind_text(st, 4, json);
	bind_u64(st, 5, spec->generation);
	bind_u64(st, 6, now_ms);
	r = finish_store(s, st, "add a sandbox", err);
	if (r == -EEXIST)
		return err_set(err, r, "a sandbox with this name or id already exists");
	return r;
}

static uint64_t col_u64(sqlite3_stmt *st, int i)
{
	return (uint64_t)sqlite3_column_int64(st, i);
}

static int read_row(struct store *s, sqlite3_stmt *st, struct store_row *ret, struct err *err)
{
	struct slice json =
		slice_of(sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0));
	const char *error = (const char *)sqlite3_column_text(st, 7);
	int r;

	r = spec_decode(json, &ret->spec, err);
	if (r == 0)
		r = spec_check(&ret->spec, err);
	if (r < 0) {
		store_row_done(ret);
		return err_wrap(err, -EUCLEAN, "the registry %s is corrupt: spec of %s", s->path,
			(const char *)sqlite3_column_text(st, 1));
	}
	ret->spec.generation = col_u64(st, 2);
	ret->created_at = col_u64(st, 3);
	ret->started_at = col_u64(st, 4);
	ret->stopped_at = col_u64(st, 5);
	ret->last_used_at = col_u64(st, 6);
	(void)snprintf(ret->last_error, sizeof(ret->last_error), "%s", error ? error : "");
	return 0;
}

int store_get(struct store *s, const char *ref, struct store_row *ret, struct err *err)
{
	sqlite3_stmt *st = s->stmt[spec_is_id(ref) ? GET_BY_ID : GET_BY_NAME];
	int rc, r;

	bind_text(st, 1, ref);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		r = read_row(s, st, ret, err);
	else if (rc == SQLITE_DONE)
		r = err_set(err, -ENOENT, "no sandbox named %.80s", ref);
	else
		r = fail_store(s, "read", err);
	(void)sqlite3_reset(st);
	(void)sqlite3_clear_bindings(st);
	return r;
}

int store_list(struct store *s, const char *after, unsigned max, store_row_fn *fn, void *arg,
	struct err *err)
{
	sqlite3_stmt *st = s->stmt[LIST];
	int rc = SQLITE_DONE, r = 0;

	bind_text(st, 1, after ? after : "");
	(void)sqlite3_bind_int64(st, 2, max ? (sqlite3_int64)max : -1);
	while (r == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		AUTO_ROW struct store_row row = {0};

		r = read_row(s, st, &row, err);
		if (r == 0)
			r = fn(arg, &row);
	}
	if (r == 0 && rc != SQLITE_DONE)
		r = fail_store(s, "list sandboxes", err);
	(void)sqlite3_reset(st);
	(void)sqlite3_clear_bindings(st);
	return r;
}

int store_update(struct store *s, const struct spec *spec, uint64_t was, struct err *err)
{
	AUTO_FREE char *json = spec_encode(spec);
	sqlite3_stmt *st = s->stmt[UPDATE];
	int r;

	bind_text(st, 1, spec->id);
	bind_text(st, 2, spec->name);
	bind_text(st, 3, json);
	bind_u64(st, 4, spec->generation);
	bind_u64(st, 5, was);
	r = finish_store(s, st, "change a sandbox", err);
	if (r == -EEXIST)
		return err_set(err, r, "sandbox '%s' already exists", spec->name);
	if (r == 0 && sqlite3_changes(s->db) == 0)
		return err_set(
			err, -ESTALE, "sandbox '%s' was changed by another request", spec->name);
	return r;
}

int store_stamp(struct store *s, const char *id, enum store_stamp what, uint64_t now_ms,
	const char *last_error, struct err *err)
{
	static const enum stmt by_stamp[] = {
		[STORE_STARTED] = STAMP_STARTED,
		[STORE_STOPPED] = STAMP_STOPPED,
		[STORE_USED] = STAMP_USED,
	};
	sqlite3_stmt *st = s->stmt[by_stamp[what]];

	bind_text(st, 1, id);
	bind_u64(st, 2, now_ms);
	if (what != STORE_USED)
		bind_text(st, 3, last_error);
	return finish_store(s, st, "record a time", err);
}

/* The callback may change rows, so the ids are collected before it is called. */
static int list_ids(struct store *s, enum stmt which, store_id_fn *fn, void *arg, struct err *err)
{
	sqlite3_stmt *st = s->stmt[which];
	char(*ids)[SPEC_ID_LEN + 1] = NULL;
	size_t n = 0;
	int rc, r = 0;

	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		ids = xrealloc(ids, (n + 1) * sizeof(*ids));
		(void)snprintf(
			ids[n++], sizeof(*ids), "%s", (const char *)sqlite3_column_text(st, 0));
	}
	if (rc != SQLITE_DONE)
		r = fail_store(s, "list sandboxes", err);
	(void)sqlite3_reset(st);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = fn(arg, ids[i]);
	free(ids);
	return r;
}

int store_list_started(struct store *s, store_id_fn *fn, void *arg, struct err *err)
{
	return list_ids(s, LIST_STARTED, fn, arg, err);
}

int store_list_removed(struct store *s, store_id_fn *fn, void *arg, struct err *err)
{
	return list_ids(s, LIST_REMOVED, fn, arg, err);
}

int store_mark_removed(struct store *s, const char *id, struct err *err)
{
	bind_text(s->stmt[MARK_REMOVED], 1, id);
	return finish_store(s, s->stmt[MARK_REMOVED], "remove a sandbox", err);
}

int store_forget(struct store *s, const char *id, struct err *err)
{
	bind_text(s->stmt[FORGET], 1, id);
	return finish_store(s, s->stmt[FORGET], "remove a sandbox", err);
}
