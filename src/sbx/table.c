#include "table.h"

#include <assert.h>
#include <stdio.h>

#include "lib/base/mem.h"
#include "ui.h"

size_t table_text_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
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
	t->cells = xrealloc(t->cells, (t->n_rows + 1) * t->n_columns * sizeof(*t->cells));
	for (size_t i = 0; i < t->n_columns; i++) {
		char *cell = xstrdup(cells[i]);

		ui_clean(cell);
		t->cells[t->n_rows * t->n_columns + i] = cell;
		t->width[i] = MAX(t->width[i], table_text_width(cell));
	}
	t->n_rows++;
}

void table_print(const struct table *t)
{
	for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
		size_t column = i % t->n_columns;
		const char *cell = t->cells[i];

		if (column + 1 == t->n_columns)
			printf("%s\n", cell);
		else
			printf("%s%*s", cell, (int)(t->width[column] - table_text_width(cell) + 2),
				"");
	}
}

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->n_rows * t->n_columns; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct table){0};
}
