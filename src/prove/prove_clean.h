/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_clean - text of parts and guests, made fit for a terminal, JSON and a page.
 *
 * How      What is not valid UTF-8, control characters but the newline, and characters that change
 *          the direction of text or cannot be seen become '?'. Blank lines at both ends go.
 * Trust    Made for hostile bytes.
 * Owns     The copy is the caller's.
 * See      prove_clean_test.c
 */
#pragma once

#include "lib/base/slice.h"

/* A heap copy of at most max bytes; what was cut is said at its end. */
char *prove_clean(struct slice text, size_t max);
/* Its last line that is not empty, on the heap. */
char *prove_last_line(const char *text);
