/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html - text into a page, whatever its bytes are.
 *
 * How      html_put writes text so that it is text in an element and in a quoted attribute: the
 *          five characters that mean something become references; what is not UTF-8, control
 *          characters but tab and newline, and those that turn the direction of writing become
 *          U+FFFD.
 * Trust    Made for hostile bytes: what a guest printed.
 * Owns     Nothing.
 * Limits   HTML_MAX_TEXT bytes of a text; the rest is left out, and the page says so.
 * See      html_test.c, html_fuzz.c
 */
#pragma once

#include <stdio.h>
#include "lib/base/slice.h"

#define HTML_MAX_TEXT 16384

void html_put(FILE *out, struct slice text);
/* NULL is an empty text. */
void html_puts(FILE *out, const char *text);
/* Of the bytes, as the value of a Content-Security-Policy: 'sha256-...'. */
void html_put_hash(FILE *out, struct slice bytes);
