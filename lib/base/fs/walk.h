/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk - follows a path one component after the other, as the kernel does.
 *
 * How      walk_path calls `fn` for each component with its absolute path, all links before it
 *          followed. `fn` decides whether a link is followed, and sees every link and every
 *          directory that the path depends on: also those that realpath leaves out. A relative path
 *          begins as in walk_absolute.
 * Trust    The path is the user's. Directories and links on the way may be a guest's, and may
 *          change between two calls.
 * Owns     walk_done frees the strings.
 * Limits   PATH_MAX bytes a path, WALK_MAX_LINKS links.
 * See      lib/client/api/cp_dest.h, lib/os/program/run_ref.h, walk_test.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/attr.h"
#include "lib/base/err.h"

#define WALK_MAX_LINKS 40

struct walk {
	char *at;   /* resolved so far, without a slash at the end; "" is the root directory */
	char *rest; /* what is left of the path */
	unsigned n_links;
};

/* `next` is the component's path and `after` is the rest of the path. 1: follow this link; 0: the
 * component is used as it is, a link or not; < 0 ends the walk. */
typedef int walk_fn(
	void *arg, const struct walk *w, const char *next, const char *after, struct err *err);

/* *ret must be all zero. Afterwards ret->at is where the path leads. */
int walk_path(
	const char *typed, walk_fn *fn, void *arg, struct walk *ret, struct err *err) MUST_CHECK;
void walk_done(struct walk *w);
#define AUTO_WALK CLEANUP(walk_done)
/* `typed` as an absolute path, on the heap. A relative one begins at $PWD when that is the current
 * directory: the shell came there through the links that it names, and getcwd leaves them out. */
int walk_absolute(const char *typed, char **ret, struct err *err) MUST_CHECK;
/* Whether `path` is `dir` or below it. Both absolute and normalised. */
bool walk_is_in(const char *path, const char *dir);
