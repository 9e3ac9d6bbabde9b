/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show - staged changes for people and as JSON.
 *
 * How      A line per change, sorted by class, the sum of each class, and unified diffs.
 * Trust    Paths and contents are a guest's: nothing that a terminal obeys is printed.
 * See      stage_view.h, lib/rules/airlock/textdiff.h
 */
#pragma once

#include "stage_view.h"

/* `diffs`: with them. */
int show_view(const struct stage_view *v, bool diffs, struct err *err) MUST_CHECK;
void show_json(const struct stage_view *v);
/* The result of an apply, and each change that was skipped in it. */
void show_applied(const char *name, const struct stage_result *done);
void show_skipped(const char *path, const char *why);
