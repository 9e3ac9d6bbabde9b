/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html - escapes any text for an HTML page.
 *
 * How      html_put writes text for an element or a quoted attribute: the five special characters
 *          become references. Invalid UTF-8, control characters except tab and newline, and
 *          characters that change the direction of text become U+FFFD.
 * Trust    Accepts untrusted input: output of a guest.
 * Owns     Nothing.
 * Limits   HTML_MAX_TEXT bytes of a text; the rest is omitted, and the page shows that.
 * See      html_test.c, html_fuzz.c
 */
#pragma once

#include <stdio.h>
#include "lib/base/slice.h"

#define HTML_MAX_TEXT 16384

void html_put(FILE *out, struct slice text);
/* NULL is an empty text. */
void html_puts(FILE *out, const char *text);
/* Hash of the bytes, as a value of Content-Security-Policy: 'sha256-...'. */
void html_put_hash(FILE *out, struct slice bytes);
