/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_path - the paths of rows: what they match, and how two of them relate.
 *
 * How      A path is a list of segments with at most one PACK_MANY. pack_path_match compares it
 *          with the segments of a request. pack_path_meets and pack_path_is_within are exact: the
 *          first walks over the product of both lists, the second compares with segments that no
 *          literal equals.
 * Trust    The paths of requests are untrusted. No I/O, no heap in a comparison.
 * Owns     pack_path_parse allocates the segments; pack_path_done frees them.
 * Limits   PACK_MAX_SEGS, PACK_MAX_PATH.
 * See      pack_oracle_test.c
 */
#pragma once

#include "pack.h"

/* Segments of a request: the parts between the slashes of its normal path. */
struct pack_parts {
	struct slice v[PACK_MAX_PATH];
	size_t n;
};

/* Appends the segments of `text` to those of `base`; "." is the base itself. */
int pack_path_parse(struct slice text, const struct pack_path *base, struct pack_path *ret,
	struct err *err) MUST_CHECK;
void pack_path_done(struct pack_path *path);
/* False if there are too many. */
bool pack_path_split(struct slice path, struct pack_parts *ret);
/* Literals may differ in case: *ret_exact is then false. */
bool pack_path_match(const struct pack_path *path, const struct pack_parts *parts, bool *ret_exact);
/* The value of a placeholder of a path that matched; false if it has none with that name. */
bool pack_path_value(const struct pack_path *path, const struct pack_parts *parts,
	struct slice name, struct slice *ret);
/* As in the file, with its base; on the heap. */
char *pack_path_text(const struct pack_path *path) MUST_CHECK;
bool pack_path_has(const struct pack_path *path, struct slice name);
/* Whether some request matches both. */
bool pack_path_meets(const struct pack_path *a, const struct pack_path *b);
/* Whether each request that matches a matches b too. */
bool pack_path_is_within(const struct pack_path *a, const struct pack_path *b);
/* For sorting: negative if a may be within b, and b not within a. */
int pack_path_order(const struct pack_path *a, const struct pack_path *b);
