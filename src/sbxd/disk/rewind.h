/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewind - sets a stopped sandbox's layers above a checkpoint aside, or puts them back.
 *
 * How      The files above stay in the directory as root.aside.N.qcow2; the next start creates new
 *          tops. Undo exchanges them with the files above of now. The file `rewind` has the plan
 *          and its step, and is written before the first file moves. Each step can be repeated:
 *          after a crash rewind_settle completes the plan. Step 1 moves the files above to
 *          root.hold.N.qcow2, 2 removes the older ones set aside or puts them back, 3 makes the
 *          held ones those set aside, writes the list and removes the plan. For a checkpoint with
 *          memory, the sandbox is suspended then (memories.h); if that fails it boots from the
 *          disks.
 * Trust    As checkpoints.h.
 * Limits   Files are renamed within one directory; no content is read or copied.
 * See      checkpoints.h, rewind_test.c
 */
#pragma once

#include "checkpoints.h"

/* 0 if rewind_begin can start: the checkpoint exists, or with NULL a rewind to undo. -ENOENT. */
int rewind_check(const char *id, const char *label, struct err *err) MUST_CHECK;
/* label NULL: undo the last rewind. The caller holds the lock of the sandbox. */
int rewind_begin(const char *id, const char *label, struct err *err) MUST_CHECK;
/* Completes a rewind that was interrupted; 0 if there is none. */
int rewind_settle(const char *id, struct err *err) MUST_CHECK;
