/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_clean - cleans text of parts and guests for a terminal, JSON and a page.
 *
 * How      Invalid UTF-8, control characters except the newline, and characters that are invisible
 *          or change the direction of text become '?'. Blank lines at both ends are removed.
 * Trust    Parses untrusted input.
 * Owns     The copy is the caller's.
 * See      prove_clean_test.c
 */
#pragma once

#include "lib/base/slice.h"

/* Returns a heap copy of at most max bytes; a note at its end reports truncation. */
char *prove_clean(struct slice text, size_t max);
/* Its last line that is not empty, on the heap. */
char *prove_last_line(const char *text);
