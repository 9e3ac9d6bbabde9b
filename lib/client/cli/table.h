/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - columns of text as wide as their widest cell.
 *
 * How      table_add takes a row of cells (copied and cleaned); table_print writes them to stdout,
 *          the last column without padding.
 * Trust    Cells may hold names that others chose; ui_clean makes them harmless.
 * Owns     Its cells; table_done frees them.
 * See      ui_test.c
 */
#pragma once

#include <stddef.h>
#include "lib/base/attr.h"

#define TABLE_MAX_COLUMNS 8

struct table {
	size_t n_columns, n_rows, room;
	char **cells; /* row by row */
	size_t width[TABLE_MAX_COLUMNS];
};

/* The first row is the heading. */
void table_init(struct table *t, size_t n_columns, const char *const *heading);
void table_add(struct table *t, const char *const *cells);
/* Cuts the cells of one column so that a line has at most `width` columns, but never below `least`;
 * what was cut ends with an ellipsis. */
void table_fit(struct table *t, size_t column, size_t width, size_t least);
void table_print(const struct table *t);
void table_done(struct table *t);
