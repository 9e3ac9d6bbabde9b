/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_model - the state of a view, and what a key does to it.
 *
 * How      tui_press takes a key, tui_resize a size. tui_load requests the text of the selected
 *          item if it is not there yet and wraps it: before each tui_paint. No terminal is needed.
 * Trust    As tui.h.
 * Owns     The rows of the text and the page of keys, until tui_model_done.
 * See      tui_paint.h, tui_model_test.c
 */
#pragma once

#include "tui.h"
#include "tui_wrap.h"

struct tui_model {
	struct tui_source *src;
	unsigned rows, cols;
	size_t item, top; /* of the list: selected, first on the screen; item is src->n if none */
	bool in_text;	  /* arrows scroll the text */
	bool is_help, is_asking, is_stale;
	struct tui_wrap wrap;
	size_t text_top;
	char *help;
	char status[1024];
};

/* Where things are. Widths and heights may be 0. */
struct tui_layout {
	unsigned list_w, text_x, text_w; /* text_w: without the column of marks before it */
	unsigned list_y, list_h, text_y, text_h;
	unsigned body_h;  /* of both */
	bool has_heading; /* in the row above the list */
	bool has_divider; /* in the row above the text */
	bool has_title, has_keys, has_line;
};

void tui_model_init(struct tui_model *m, struct tui_source *src);
void tui_model_done(struct tui_model *m);
void tui_resize(struct tui_model *m, unsigned rows, unsigned cols);
/* False: the view is closed. */
bool tui_press(struct tui_model *m, uint32_t key) MUST_CHECK;
/* Calls `tick` and shows what has changed. */
void tui_tick(struct tui_model *m);
void tui_load(struct tui_model *m);
void tui_layout(const struct tui_model *m, struct tui_layout *ret);
