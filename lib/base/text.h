/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text - characters of UTF-8, and whether a terminal and a reader can be trusted with them.
 *
 * How      text_character decodes one; text_is_plain refuses what moves the cursor, changes the
 *          direction of text or cannot be seen.
 * Trust    Made for hostile bytes.
 * See      text_test.c, lib/client/cli/ui.h, src/prove/prove_clean.h
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "slice.h"

/* The length of the valid character at the beginning of s, which is not empty; 0 when there is
 * none. */
size_t text_character(struct slice s, uint32_t *ret);
/* Neither a control character (C0, DEL, C1) nor one that is invisible or changes direction. */
bool text_is_plain(uint32_t v);
/* Valid UTF-8 of plain characters only. */
bool text_is_all_plain(struct slice s);
