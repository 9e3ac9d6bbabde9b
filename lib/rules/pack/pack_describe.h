/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_describe - the object and the sentence of an effect.
 *
 * How      pack_describe fills the braces of both texts of a row with parts of the request: of its
 *          path, query, headers and JSON, or of the arguments of a field of GraphQL.
 * Trust    Requests are untrusted. No I/O, no heap.
 * Owns     Nothing.
 * Never    Gives an effect an object of which a part is not known.
 * See      pack_match.h, pack_graphql.h, pack_match_test.c
 */
#pragma once

#include "lib/wire/graphql/graphql.h"
#include "pack_match.h"
#include "pack_path.h"

/* What fills the braces of a text. */
struct pack_filler {
	const struct pack_row *row;
	const struct pack_request *req; /* of a row with a path */
	const struct pack_parts *parts; /* NULL: a row with a field */
	const struct graphql *doc;
	const struct graphql_root *root;
	struct slice vars;
	bool is_known; /* each name had a value */
};

/* Sets the row, or why the effect is unknown. */
void pack_describe(const struct pack *p, struct pack_filler *f, struct pack_effect *ret);
