/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text - characters of UTF-8, and whether a terminal and a reader can be trusted with them.
 *
 * How      text_character decodes one; text_is_plain refuses what moves the cursor, changes the
 *          direction of text or cannot be seen. text_escape writes such a character as its code.
 * Trust    Made for hostile bytes.
 * See      text_test.c, lib/client/cli/ui.h, src/prove/prove_clean.h
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/slice.h"

#define TEXT_ESCAPE_SIZE 12

/* The length of the valid character at the beginning of s, which is not empty; 0 when there is
 * none. */
size_t text_character(struct slice s, uint32_t *ret);
/* Neither a control character (C0, DEL, C1) nor one that is invisible or changes direction. */
bool text_is_plain(uint32_t v);
/* Plain, and not one of the letters and signs that are drawn as nothing. */
bool text_is_visible(uint32_t v);
/* "<1B>" or "<U+202E>" for the character or the invalid byte at the beginning of s, which is not
 * empty. Returns the length of what it stands for. */
size_t text_escape(struct slice s, char ret[TEXT_ESCAPE_SIZE]);
/* Valid UTF-8 of plain characters only. */
bool text_is_all_plain(struct slice s);
