/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place - which host paths may be shared with a guest, and how they are opened.
 *
 * How      place_resolve follows symbolic links, once, when a sandbox is created. Later every start
 *          opens the stored path with place_open, which follows none: a guest that can write to a
 *          directory above the path cannot lead it elsewhere by a link. place_check refuses what
 *          holds the user's keys (unless forced) and sbx's own directories (always).
 * Trust    Runs in sbx, sbxd and keeper. The paths are the user's; directories and links in them
 *          may have been made by a guest.
 * Owns     Strings on the heap that the caller frees.
 * Limits   PATH_MAX bytes a path.
 * See      scaffold.h, src/sbx/sandbox/workspace.h, place_test.c
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "lib/base/err.h"

enum { PLACE_N_OWN = 4 };

/* sbx's state, data, config and runtime directories, without symbolic links. */
struct place_own {
	char *dirs[PLACE_N_OWN];
};

/* Whether `path` is `dir` or below it. Both absolute and normalised. */
bool place_is_in(const char *path, const char *dir);
int place_resolve(const char *path, char **ret_real, struct err *err) MUST_CHECK;
/* An O_PATH descriptor. -ELOOP, and a sentence that names the link, when there is one now. */
int place_open(const char *path, struct err *err) MUST_CHECK;
/* The first component of `path` that is a symbolic link, as a path on the heap; else `path`. */
char *place_find_link(const char *path) MUST_CHECK;
void place_own_get(struct place_own *ret);
void place_own_done(struct place_own *own);
/* `real` is a resolved path; home NULL: $HOME and the account's home. -EPERM: refused unless
 * `force`. -EACCES: refused always, because it belongs to sbx. */
int place_check(const char *real, const char *home, bool force, struct err *err) MUST_CHECK;
