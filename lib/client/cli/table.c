/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <assert.h>
#include <stdio.h>

#include "lib/base/mem.h"
#include "ui.h"

static bool is_inside(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80; /* of a UTF-8 character */
}

/* The columns that a text takes on a screen: UTF-8 characters, not bytes. */
static size_t text_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += !is_inside(*s);
	return n;
}

void table_init(struct table *t, size_t n_columns, const char *const *heading)
{
	assert(n_columns > 0 && n_columns <= TABLE_MAX_COLUMNS);
	*t = (struct table){.n_columns = n_columns};
	table_add(t, heading);
}

void table_add(struct table *t, const char *const *cells)
{
	if (t->n_rows == t->room) {
		t->room = t->room ? 2 * t->room : 16;
		t->cells = xrealloc(t->cells, t->room * t->n_columns * sizeof(*t->cells));
	}
	for (size_t i = 0; i < t->n_columns; i++) {
		char *cell = xstrdup(cells[i]);

		ui_clean(cell);
		t->cells[t->n_rows * t->n_columns + i] = cell;
		t->width[i] = MAX(t->width[i], text_width(cell));
	}
	t->n_rows++;
}

/* To width - 1 characters and an ellipsis, which is one column. */
static void cut_table(char **cell, size_t width)
{
	AUTO_FREE char *old = NULL;
	size_t at = 0;

	if (text_width(*cell) <= width)
		return;
	old = *cell;
	for (size_t n = 1; n < width; n++)
		do
			at++;
		while (is_inside(old[at]));
	*cell = xasprintf("%.*s\xe2\x80\xa6", (int)at, old);
}

void table_fit(struct table *t, size_t column, size_t width, size_t least)
{
	size_t others = 2 * (t->n_columns - 1), room;

	for (size_t i = 0; i < t->n_columns; i++)
		others += i == column ? 0 : t->width[i];
	room = MAX(width > others ? width - others : 0, least);
	if (t->width[column] <= room)
		return;
	for (size_t i = 0; i < t->n_rows; i++)
		cut_table(&t->cells[i * t->n_columns + column], room);
	t->width[column] = room;
}

void table_print(const struct table *t)
{
	for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
		size_t column = i % t->n_columns;
		const char *cell = t->cells[i];

		if (column + 1 == t->n_columns)
			printf("%s\n", cell);
		else
			printf("%s%*s", cell, (int)(t->width[column] - text_width(cell) + 2), "");
	}
}

void table_done(struct table *t)
{
	mem_free_list(t->cells, t->n_rows * t->n_columns);
	*t = (struct table){0};
}
