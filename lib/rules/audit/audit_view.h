/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_view - the decisions of logs as a table: equal ones are one row with a count.
 *
 * How      audit_view_on_record takes records in order and keeps one row for each sandbox,
 *          decision, type, host, port, path, rule and reason; audit_view_each passes them on, last
 *          seen first. When the table is full the row that was not seen for longest goes, and is
 *          counted.
 * Trust    Input: records with names that the guest chose; the caller replaces control characters
 *          before it prints them. Runs in: sbx, sbxd.
 * Owns     Its rows.
 * Limits   The number of rows given to audit_view_new.
 * See      audit_view_test.c
 */
#pragma once

#include "audit_record.h"

enum audit_view_text {
	AUDIT_VIEW_SANDBOX, /* its name, or its id when it has none */
	AUDIT_VIEW_TYPE,
	AUDIT_VIEW_HOST,
	AUDIT_VIEW_PATH,
	AUDIT_VIEW_RULE,
	AUDIT_VIEW_REASON,
	AUDIT_VIEW_N_TEXTS,
};

struct audit_view_row {
	enum audit_verdict decision;
	uint64_t port, count, first_seen_ms, last_seen_ms;
	struct slice text[AUDIT_VIEW_N_TEXTS];
};

struct audit_view;

struct audit_view *audit_view_new(size_t max_rows);
void audit_view_free(struct audit_view *v);
/* An audit_record_fn with the view as its argument. */
int audit_view_on_record(void *view, const struct audit_record *rec, struct slice line);

typedef int audit_view_fn(void *arg, const struct audit_view_row *row);
/* Last seen first; at most `limit` rows, 0 for all. < 0 stops the listing and is returned. */
int audit_view_each(
	const struct audit_view *v, size_t limit, audit_view_fn *fn, void *arg) MUST_CHECK;
/* Rows that had to go because the table was full. */
uint64_t audit_view_dropped(const struct audit_view *v);
