/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_glyph - the next thing in a line that occupies columns of a terminal.
 *
 * How      A glyph is a visible character with the marks on it, a tab, or the escape of something
 *          that must not reach a terminal (lib/base/text/text.h). Widths are those of wcwidth(3):
 *          in a locale without UTF-8, all other characters than ASCII are escaped.
 * Trust    Parses untrusted bytes.
 * Limits   TUI_GLYPH_MARKS combining characters on a character; others are escaped.
 * See      tui_glyph_test.c
 */
#pragma once

#include <wchar.h>
#include "lib/base/text/text.h"

#define TUI_GLYPH_MARKS 2
#define TUI_GLYPH_TAB 8

struct tui_glyph {
	size_t n;	/* bytes of the text */
	unsigned width; /* columns; at least 1 */
	wchar_t ch[TUI_GLYPH_MARKS + 2];
	char escape[TEXT_ESCAPE_SIZE]; /* instead of ch, if it is not empty */
};

/* s is not empty. `column` is where the glyph begins, for a tab. */
void tui_glyph_next(struct slice s, unsigned column, struct tui_glyph *ret);
/* Columns of a whole text that begins at column 0. */
size_t tui_glyph_columns(struct slice s);
