/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effect_query - one field of the query of a URL, if every server reads the same value.
 *
 * How      A field is absent, known, or unknown: a name twice or in another case, an escape in a
 *          name, a query with ';', an escape that is not complete, a value that is too long.
 * Trust    Requests are untrusted. No I/O, no heap.
 * Owns     Nothing: a value is in the caller's buffer.
 * Limits   EFFECT_MAX_VALUE bytes of a value.
 * See      effect_terms_test.c, lib/rules/pack/pack_fact.h
 */
#pragma once

#include "lib/base/slice.h"

#define EFFECT_MAX_VALUE 256

enum effect_fact { EFFECT_ABSENT, EFFECT_KNOWN, EFFECT_UNKNOWN };

/* Escapes undone; a plus sign is a blank. */
enum effect_fact effect_query_decode(
	struct slice raw, uint8_t buf[EFFECT_MAX_VALUE], struct slice *ret);
enum effect_fact effect_query_find(
	struct slice query, struct slice at, uint8_t buf[EFFECT_MAX_VALUE], struct slice *ret);
/* Whether a server that takes a name in any case may take this one: an ASCII letter in the other
 * case, or a character beyond ASCII, since two of those are letters in another case (U+017F,
 * U+212A). */
bool effect_query_is_other_case(struct slice name, struct slice at);
