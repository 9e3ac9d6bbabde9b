/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_text - a request that waits for approval, as text for a person.
 *
 * How      hold_text_line is one line for lists, hold_text_print all that an answer is about.
 * Trust    Texts of a guest: a line begins with `| `, a character that is invisible, changes the
 *          direction of text or is not printable is written as its code, and what is cut off is
 *          counted.
 * Limits   HOLD_TEXT_LINE bytes of a line, HOLD_TEXT_LINES lines of the preview.
 * See      hold_text_test.c
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#define HOLD_TEXT_LINE 512
#define HOLD_TEXT_LINES 200

/* "http:get a / and 2 more", escaped, on the heap. */
char *hold_text_line(const json_t *hold);
/* "41 s left", "12 min left", "no time limit" */
void hold_text_left(const json_t *hold, char *buf, size_t size);
void hold_text_print(FILE *f, const json_t *hold);
