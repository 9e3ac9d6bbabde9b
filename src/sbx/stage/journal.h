/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal - the steps of one apply on disk, before the first of them is done.
 *
 * How      A directory per apply: `journal` has a line per step, `results` a line per finished
 *          step, `done` exists when all are finished, and the file N is the old version of step N.
 *          Together with the workspace this is enough to continue or to undo after a crash.
 * Trust    The user's own directory. The lines are checked anyway.
 * Owns     journal_read fills a plan, which the caller frees.
 * See      apply.h
 */
#pragma once

#include "plan.h"

/* The selected steps. Syncs the file and its directory. */
int journal_write(const char *dir, const struct plan *p, struct err *err) MUST_CHECK;
int journal_read(const char *dir, struct plan *ret, struct err *err) MUST_CHECK;
/* Steps that were skipped: a byte per step. The caller frees it. */
char *journal_skipped(const char *dir, size_t n);
/* Appends a result. */
int journal_result(int fd, size_t step, bool skipped) MUST_CHECK;
int journal_set_done(const char *dir, struct err *err) MUST_CHECK;
