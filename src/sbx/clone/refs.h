/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refs - the branches and tags of a clone, as its git lists them.
 *
 * How      refs_parse reads the output of `git ls-remote --symref`. Only HEAD, branches and tags
 *          are kept. A name that git itself would not create, or that a terminal or an option
 *          parser would misread, makes the whole list invalid.
 * Trust    The text is the guest's. No I/O.
 * Owns     struct refs owns its lists; refs_done frees them.
 * Limits   REFS_MAX refs, REFS_MAX_TEXT bytes, REFS_MAX_NAME bytes a name.
 * See      refs_test.c, refs_fuzz.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define REFS_MAX 20000
#define REFS_MAX_TEXT (4u << 20)
#define REFS_MAX_NAME 512
#define REFS_MAX_OID 64

struct ref {
	char oid[REFS_MAX_OID + 1];
	char *name; /* refs/heads/..., refs/tags/..., HEAD */
};

struct refs {
	struct ref *v; /* sorted by name */
	size_t n;
	char *head; /* the branch of HEAD; NULL: detached or none */
};

void refs_done(struct refs *r);
#define AUTO_REFS CLEANUP(refs_done)

/* `n_hex`: the length of an object name, 40 or 64. */
int refs_parse(struct slice text, size_t n_hex, struct refs *ret, struct err *err) MUST_CHECK;
/* A full name below refs/heads/ or refs/tags/. */
bool refs_is_name(const char *name);
/* A lower-case object name of n_hex digits. */
bool refs_is_oid(struct slice s, size_t n_hex);
