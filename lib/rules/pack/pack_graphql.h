/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_graphql - all effects of one request: of GraphQL one for each root field, else one.
 *
 * How      pack_match_all reads the documents of a request to the path of GraphQL, from its body or
 *          its query, and finds the row of each root field of each operation, also of those that
 *          the request does not name. Other requests are for pack_match.
 * Trust    Requests are untrusted. No I/O; the heap for the time of the call.
 * Owns     Nothing: the effects have their own texts, and pointers to rows of the pack.
 * Limits   PACK_MAX_EFFECTS: more are one unknown effect.
 * Never    Gives a request no effect.
 * See      pack_match.h, pack_graphql_test.c, tests/cli/test_gh.py
 */
#pragma once

#include "lib/wire/graphql/graphql.h"
#include "pack_match.h"

#define PACK_MAX_EFFECTS GRAPHQL_MAX_ROOTS

struct pack_effects {
	struct pack_effect v[PACK_MAX_EFFECTS];
	size_t n;
};

/* The row of a field, or the one for any field; NULL: none. type: "query" ... */
const struct pack_row *pack_find_field(const struct pack *p, struct slice type, struct slice name);
void pack_match_all(const struct pack *p, const struct pack_request *req, struct pack_effects *ret);
