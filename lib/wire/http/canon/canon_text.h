/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canon_text - the bytes that are allowed in each part of a message, and helpers for such text.
 *
 * How      One table of byte classes, and predicates over slices. The reader (http1.h) and the
 *          checks of the canonical form (canon.h) use the same table, so they always agree.
 * Trust    Input: untrusted bytes. Pure functions; runs in edge and egress.
 * Owns     Nothing.
 * Never    Depends on the locale, or on a NUL at the end.
 * See      canon_test.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/slice.h"

/* One byte or more, each a token character: methods and header names. */
bool canon_text_is_token(struct slice s);
/* As canon_text_is_token, and no upper-case letter. */
bool canon_text_is_lower_token(struct slice s);
/* Printable ASCII, TAB, and bytes above 0x7f; empty is fine. */
bool canon_text_is_value(struct slice s);
/* A value that neither begins nor ends with a space or TAB. */
bool canon_text_is_trimmed_value(struct slice s);
/* Without spaces and TABs at both ends. */
struct slice canon_text_trim(struct slice s);
/* ASCII letters only are folded. */
bool canon_text_eq_fold(struct slice a, const char *lower);
/* Cuts the next element of a comma list off *list, trimmed; false at the end. Empty elements are
 * given too. */
bool canon_text_next(struct slice *list, struct slice *ret);
/* Whether a comma list has the element, letters folded. */
bool canon_text_list_has(struct slice list, const char *lower);
/* 1 to 19 decimal digits and nothing else. */
bool canon_text_to_u64(struct slice s, uint64_t *ret);
/* The part of s from byte `from` on, at most n bytes of it. */
struct slice canon_text_cut(struct slice s, size_t from, size_t n);

static inline uint8_t canon_text_lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}
