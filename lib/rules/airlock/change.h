/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change - what a reviewer should know about a changed file besides its diff.
 *
 * How      change_find compares the old and the new content of a path: names of dependencies and
 *          sources that the old one does not have, scripts of package.json, characters that cannot
 *          be seen or change the direction of text, identifiers with letters of two scripts. Files
 *          are recognised by their name; manifests are read by line rules, package.json by jtext.
 *          change_fold makes names comparable that differ in case only.
 * Trust    Parses untrusted bytes. Never says that a change is harmless. Names that are found are
 *          hostile text; the caller escapes them.
 * Owns     Nothing on the heap.
 * Limits   CHANGE_MAX_FOUND results, CHANGE_MAX_NAME bytes of a name, CHANGE_MAX_ENTRIES entries of
 *          a manifest; `is_more` reports that there are others.
 * See      change_internal.h, change_test.c, change_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/slice.h"

#define CHANGE_MAX_FOUND 32
#define CHANGE_MAX_NAME 96
#define CHANGE_MAX_ENTRIES 8192

enum change_kind {
	CHANGE_UNICODE,	   /* "U+202E", or an identifier */
	CHANGE_SCRIPT,	   /* the name of a script of package.json */
	CHANGE_DEPENDENCY, /* a name, or a line that changes where dependencies come from */
	CHANGE_LOCKFILE,   /* no name */
	CHANGE_N_KINDS,
};

struct change_name {
	enum change_kind kind;
	char text[CHANGE_MAX_NAME];
};

struct change_found {
	bool has[CHANGE_N_KINDS];
	struct change_name v[CHANGE_MAX_FOUND];
	size_t n;
	bool is_more;
};

/* "unicode", "script-change", "dependency", "lockfile" */
const char *change_kind_name(enum change_kind kind);
/* `old` is empty for a new file. */
void change_find(const char *path, struct slice old, struct slice new, struct change_found *ret);
/* The same result for names that a file system without case regards as one. In place; the length
 * does not change. */
void change_fold(char *name);
