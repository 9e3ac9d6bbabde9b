/* SPDX-License-Identifier: Apache-2.0 */
/*
 * review - shows what a sandbox left in the workspaces of the host.
 *
 * How      `sbx review --guard` lists the files that run on the host and that the guest changed, as
 *          diffs of the copy that the guard took and the file of now (guard_diff.h). review_note
 *          prints their number at the end of a session.
 * Trust    Paths and contents are the guest's: each is opened in its workspace without following a
 *          symbolic link, read with a limit, and printed without control characters.
 * See      guard_diff.h, proto/PROTOCOL.api, lib/rules/airlock/textdiff.h
 */
#pragma once

#include <stdint.h>
#include "edit_copy.h"
#include "screen_style.h"
#include "src/sbx/verb/verb.h"

/* `sbx review --guard`; its row is in src/sbx/stage/cmd_review.c. */
int review_guard(const struct opts *o);

/* Denied writes since since_ms (milliseconds since 1970), and how many changed files run programs
 * on the host. Prints nothing if there are none. */
void review_note(const char *ref, uint64_t since_ms);
/* The same with the names of the changed files, for a sandbox that is removed now. */
void review_note_removed(const char *ref, uint64_t since_ms);
