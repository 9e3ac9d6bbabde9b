/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_fact - one value of a request: from the query, a header or the JSON of its body.
 *
 * How      A fact is absent, known, or unknown: a name twice, an escape in the name of a field, a
 *          query with ';', a value that is too long, a body that is not there or not JSON.
 * Trust    Requests are untrusted. No I/O, no heap.
 * Owns     Nothing: a value points into the request or into the caller's buffer.
 * Limits   PACK_MAX_VALUE bytes of a value.
 * See      pack_match_test.c
 */
#pragma once

#include "pack_match.h"

enum pack_fact { PACK_ABSENT, PACK_KNOWN, PACK_UNKNOWN };

/* The next name of a query, as written; false at the end. */
bool pack_fact_next_name(struct slice *query, struct slice *ret);
/* In any case, with escapes or brackets. */
bool pack_fact_is_name(struct slice written, const char *lower);
enum pack_fact pack_fact_find(const struct pack_request *req, enum pack_source source,
	struct slice at, uint8_t buf[PACK_MAX_VALUE], struct slice *ret);
