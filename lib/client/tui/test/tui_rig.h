/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_rig - a source for tests: a list of names, each with a text.
 *
 * How      Names that begin with '#' are headings. Without names, there are n_many items.
 * Trust    Tests only.
 */
#pragma once

#include <stdio.h>
#include <string.h>
#include "lib/client/tui/tui_model.h"

struct tui_rig {
	const char *const *names;
	const char *text; /* of every item; NULL: "text of NAME" */
	size_t n_rows, n_texts;
	uint32_t pressed;
	size_t pressed_item;
	enum tui_answer answer;
	char buf[128];
	struct tui_source src;
};

static inline void rig_row(void *arg, size_t i, struct tui_row *ret)
{
	struct tui_rig *rig = arg;

	rig->n_rows++;
	if (rig->names)
		(void)snprintf(rig->buf, sizeof(rig->buf), "%s", rig->names[i]);
	else
		(void)snprintf(rig->buf, sizeof(rig->buf), "item %zu", i);
	ret->text = slice_from_str(rig->buf);
	ret->mark = '*';
	ret->is_heading = rig->buf[0] == '#';
}

static inline struct slice rig_text(void *arg, size_t i)
{
	static char text[160];
	struct tui_rig *rig = arg;

	rig->n_texts++;
	if (rig->text)
		return slice_from_str(rig->text);
	(void)snprintf(text, sizeof(text), "text of %zu\n", i);
	return slice_from_str(text);
}

static inline enum tui_style rig_style(void *arg, struct slice line)
{
	(void)arg;
	return line.n && line.p[0] == '+' ? TUI_GREEN : TUI_PLAIN;
}

static inline enum tui_answer rig_press(
	void *arg, size_t i, uint32_t key, char *status, size_t size)
{
	struct tui_rig *rig = arg;

	rig->pressed = key;
	rig->pressed_item = i;
	(void)snprintf(status, size, "pressed");
	return rig->answer;
}

static inline void rig_heading(void *arg, struct tui_row *ret)
{
	(void)arg;
	ret->text = slice_from_str("COLUMNS");
}

/* The list grows at its beginning, and what was selected stays. */
static inline size_t rig_tick(void *arg, size_t i, char *status, size_t size)
{
	struct tui_rig *rig = arg;

	(void)snprintf(status, size, "ticked");
	rig->src.n++;
	return i + 1;
}

static const struct tui_bind rig_binds[] = {{'a', "apply"}, {'n', "own n"}, {0, NULL}};

static inline void rig_init(struct tui_rig *rig, const char *const *names, size_t n)
{
	*rig = (struct tui_rig){.names = names};
	rig->src = (struct tui_source){.title = "title",
		.n = n,
		.binds = rig_binds,
		.row = rig_row,
		.text = rig_text,
		.line_style = rig_style,
		.press = rig_press,
		.arg = rig};
}
