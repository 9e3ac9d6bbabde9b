/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autorun - which names in a workspace are run or believed by programs of the host.
 *
 * How      A list (data/airlock/autorun.list) has a row for each pattern: `KIND MODE PATTERN
 *          PROGRAM`, separated by spaces or tabs; `#` begins a comment line. A pattern is
 *          components with '/' between them: `*`, `?` and `[...]` as in fnmatch(3), `**` as a whole
 *          component is any number of directories, at the end it is everything below. A pattern
 *          holds anywhere in a workspace, one with '/' in front only from its root. A place is how
 *          far a directory has come in each pattern: autorun_root is the workspace, autorun_enter
 *          goes one directory down, autorun_match decides about a name there.
 * Rows     Of the rows that match a name the strictest counts. A row with `allow` or `check`
 *          replaces the rows before it.
 * Trust    The list is ours, the exceptions are the user's, names are a guest's. Decides without
 *          allocation.
 * Owns     struct autorun_list owns its texts.
 * Limits   AUTORUN_MAX_ROWS, AUTORUN_MAX_STEPS components in all, AUTORUN_MAX_TEXT bytes. Upper and
 *          lower case differ, also in workspaces on file systems that ignore it.
 * See      lib/vm/share/guard.h, autorun_test.c, autorun_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/err.h"

#define AUTORUN_MAX_ROWS 768
#define AUTORUN_MAX_STEPS 1536
#define AUTORUN_MAX_TEXT (256 * 1024)
#define AUTORUN_MAX_TYPED 200
#define AUTORUN_MAX_MEMO 1024 /* bytes of a directory; of a longer one nothing is kept */

enum autorun_mode {
	AUTORUN_NONE,
	AUTORUN_ALLOW,	     /* not guarded, whatever the rows before say */
	AUTORUN_REPORT_TREE, /* a directory: it is reported once for all below it */
	AUTORUN_REPORT_NEW,  /* reported if the name did not exist */
	AUTORUN_REPORT,
	AUTORUN_FIXED, /* refused, except a new file, which gets the only permitted content */
	AUTORUN_CHECK, /* refused, except a rename into place whose content passes a check */
	AUTORUN_DENY,
	AUTORUN_N_MODES,
};

enum guard_level {
	GUARD_OFF,
	GUARD_REPORT,  /* everything is reported, nothing is refused */
	GUARD_DEFAULT, /* as the list has it */
	GUARD_STRICT,  /* what would be reported is refused */
	GUARD_N_LEVELS,
};

struct autorun_row {
	unsigned kind; /* its number in the list; 0: an exception of the user */
	enum autorun_mode mode;
	char *pattern, *program; /* program: who runs it */
};

struct autorun_list;

struct autorun_place {
	uint64_t bits[AUTORUN_MAX_STEPS / 64];
};

struct autorun_match {
	enum autorun_mode mode;
	const struct autorun_row *row; /* NULL with AUTORUN_NONE and AUTORUN_ALLOW */
	bool anchor;		       /* the name leads to a name that is denied or checked */
};

/* ---- the list ---- */

int autorun_parse(
	const char *text, size_t n, struct autorun_list **ret, struct err *err) MUST_CHECK;
/* The file of the installation: data/airlock/autorun.list. */
int autorun_load(struct autorun_list **ret, struct err *err) MUST_CHECK;
/* The user's: `glob` is relative to the root of a workspace. */
int autorun_except(struct autorun_list *l, const char *glob, struct err *err) MUST_CHECK;
/* Whether a guest's path can be typed in a shell as an exception, and is then only this path. */
bool autorun_is_typed(const char *path);
/* Returns the first row of this kind, for the name of its program, or NULL. */
const struct autorun_row *autorun_kind(const struct autorun_list *l, unsigned kind);
void autorun_free(struct autorun_list **l);
#define AUTO_AUTORUN CLEANUP(autorun_free)

/* ---- decisions ---- */

void autorun_root(const struct autorun_list *l, struct autorun_place *ret);
/* `ret` may be `from`. */
void autorun_enter(const struct autorun_list *l, const struct autorun_place *from, const char *name,
	size_t n, struct autorun_place *ret);
void autorun_match(const struct autorun_list *l, const struct autorun_place *at, const char *name,
	size_t n, enum guard_level level, struct autorun_match *ret);
/* Whether the same names are refused below both. */
bool autorun_same(const struct autorun_list *l, const struct autorun_place *a,
	const struct autorun_place *b, enum guard_level level);
/* How far the directory of the last path has come, for one list and level. Zero: none. */
struct autorun_memo {
	char dir[AUTORUN_MAX_MEMO];
	size_t n_dir;
	struct autorun_walk {
		struct autorun_place at;
		struct autorun_match tree; /* the first directory with AUTORUN_REPORT_TREE */
		size_t n_tree;
	} walk;
};
/* autorun_find, which is faster for a path in the same directory as the last one. */
void autorun_find_near(const struct autorun_list *l, struct autorun_memo *memo, const char *path,
	enum guard_level level, struct autorun_match *ret, size_t *ret_tree);
/* A path relative to the root of a workspace. *ret_tree: the length of the part of it that is a
 * directory with AUTORUN_REPORT_TREE; 0: none. */
void autorun_find(const struct autorun_list *l, const char *path, enum guard_level level,
	struct autorun_match *ret, size_t *ret_tree);
