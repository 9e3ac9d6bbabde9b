/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words - paths as words of a text file, and back.
 *
 * How      Bytes that are not printable ASCII, spaces and '%' become %XX; an empty text is "%".
 * Trust    Any bytes.
 * Owns     Results are the caller's.
 */
#pragma once

#include "lib/base/attr.h"

char *words_escape(const char *s);
/* NULL if the word is invalid. */
char *words_unescape(const char *s, size_t n);
