/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui - a full-screen view: a list on the left, the text of its selected item on the right, a
 * status line and keys.
 *
 * How      The caller describes its data with a struct tui_source; tui_run shows it until a key
 *          closes the view. Rows and texts are requested when they become visible, so a list of
 *          any length costs nothing. Lines are wrapped, never cut. Below TUI_WIDE columns, the list
 *          and the text are shown one at a time. With `heading` the list is a table above the text,
 *          in the full width; below TUI_TALL rows for both, they are shown one at a time.
 * Keys     Arrows, j, k, page keys, Home, End, Tab, Enter, Space, b, n, p, ?, q. All other keys,
 *          and those that are in `binds`, go to the caller.
 * Trust    Rows, texts and status may be hostile: control characters, invisible characters and
 *          characters that change the direction of text are shown as <1B> or <U+202E>.
 * Owns     The terminal, from tui_run until it returns. tui_run restores the terminal also if the
 *          process is killed by a signal that can be caught, or aborts.
 * Limits   TUI_MAX_TEXT bytes of a text, TUI_MAX_LINE bytes of a row or of the status.
 * See      tui_model.h (state and keys), tui_paint.h (layout), tui_model_test.c
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define TUI_WIDE 60
#define TUI_TALL 9
#define TUI_MAX_TEXT (16u << 20)
#define TUI_MAX_LINE 8192

/* Keys above the characters of Unicode. */
enum tui_key {
	TUI_KEY_UP = 0x110000,
	TUI_KEY_DOWN,
	TUI_KEY_LEFT,
	TUI_KEY_RIGHT,
	TUI_KEY_PAGE_UP,
	TUI_KEY_PAGE_DOWN,
	TUI_KEY_HOME,
	TUI_KEY_END,
	TUI_KEY_BACKSPACE,
	TUI_KEY_OTHER, /* has no effect */
};

enum tui_style {
	TUI_PLAIN,
	TUI_DIM,
	TUI_BOLD,
	TUI_GREEN,
	TUI_RED,
	TUI_CYAN,
	TUI_YELLOW,
	TUI_N_STYLES,
};

struct tui_row {
	struct slice text;
	char mark; /* in front of the text; 0: none */
	enum tui_style style;
	bool is_heading; /* cannot be selected */
	unsigned width;	 /* set before the call: columns for the text */
};

struct tui_bind {
	char key;
	const char *label; /* "editor" */
};

enum tui_answer {
	TUI_STAY,
	TUI_NEXT,   /* select the next item */
	TUI_RELOAD, /* the text or the number of items has changed */
	TUI_ASK,    /* the next key goes to `press`, whatever it is */
	TUI_CLOSE,
};

struct tui_source {
	const char *title;
	size_t n;		      /* rows of the list */
	const struct tui_bind *binds; /* the last has key 0 */
	const char *more_help;	      /* further lines of the page of keys; may be NULL */
	void (*row)(void *arg, size_t i, struct tui_row *ret);
	/* The text of an item, borrowed until the next call. */
	struct slice (*text)(void *arg, size_t i);
	enum tui_style (*line_style)(void *arg, struct slice line);
	/* `i` is the selected item, n if no item is selected. `status` may be filled. */
	enum tui_answer (*press)(void *arg, size_t i, uint32_t key, char *status, size_t size);
	/* Called every tick_ms without a key, if it is not NULL: the rows may have changed. Returns
	 * where item `i`, the selected one, is now. `status` is what the view shows. */
	size_t (*tick)(void *arg, size_t i, char *status, size_t size);
	/* The names of the columns, if it is not NULL: the list is a table above the text. */
	void (*heading)(void *arg, struct tui_row *ret);
	const char *text_title; /* with `heading` */
	int tick_ms;
	void *arg;
};

/* Whether stdin and stdout are a terminal that can move its cursor. */
bool tui_is_usable(void);
int tui_run(struct tui_source *src, struct err *err) MUST_CHECK;
/* For `press`: gives the terminal to another program, and takes it back. */
void tui_pause(void);
void tui_resume(void);
