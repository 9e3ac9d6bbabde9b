/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gitref - names of refs, object ids and capabilities as they are in lines of git's protocol.
 *
 * How      gitref_is_valid has the rules that git-receive-pack has for a ref that a push names.
 *          gitoid_parse reads 40 lower-case digits. gitcap_next walks a list of capabilities.
 * Trust    Parses untrusted input. No I/O, no heap.
 * Limits   GITREF_MAX bytes a name.
 * See      git_lines_test.c, git-check-ref-format(1)
 */
#pragma once

#include "lib/base/slice.h"

#define GITREF_MAX 1024
#define GITOID_BYTES 20
#define GITOID_HEX 40

struct git_oid {
	uint8_t b[GITOID_BYTES];
};

/* Begins with refs/, has two components after it, and only characters that git accepts. */
bool gitref_is_valid(struct slice name);
bool gitoid_parse(struct slice hex, struct git_oid *ret);
bool gitoid_is_zero(const struct git_oid *oid);
bool gitoid_eq(const struct git_oid *a, const struct git_oid *b);
void gitoid_print(const struct git_oid *oid, char ret[GITOID_HEX + 1]);

/* The next word of a list with spaces between; an empty one after the last. */
struct slice gitcap_next(struct slice *list);
/* Whether the word is NAME or begins with it, if the name ends with '='. */
bool gitcap_is(struct slice word, const char *name);
