/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_wrap - where the rows of a text begin when its lines are wrapped at a width.
 *
 * How      tui_wrap_set walks over the text once and keeps the offset of each row. A glyph is never
 *          divided; one that is wider than a row has a row for itself.
 * Trust    Any bytes.
 * Owns     The offsets, until tui_wrap_done; the text is the caller's.
 * Limits   TUI_MAX_TEXT bytes; `is_cut` reports that there are more.
 * See      tui_wrap_test.c
 */
#pragma once

#include "tui.h"

struct tui_wrap {
	struct slice text;
	unsigned width;
	uint32_t *row; /* offset, and TUI_WRAP_MORE if the row continues a line */
	size_t n, room;
	bool is_cut;
};

#define TUI_WRAP_MORE (1u << 31)

void tui_wrap_set(struct tui_wrap *w, struct slice text, unsigned width);
void tui_wrap_done(struct tui_wrap *w);
/* The bytes of a row without its newline. */
struct slice tui_wrap_row(const struct tui_wrap *w, size_t i);
bool tui_wrap_continues(const struct tui_wrap *w, size_t i);
/* The row in which the byte at an offset is. */
size_t tui_wrap_find(const struct tui_wrap *w, size_t offset);
size_t tui_wrap_offset(const struct tui_wrap *w, size_t i);
