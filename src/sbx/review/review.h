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

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "edit_copy.h"
#include "screen_style.h"
#include "src/sbx/verb/verb.h"

/* `sbx review --guard`; its row is in src/sbx/stage/cmd_review.c. */
int review_guard(const struct opts *o);

/* The end of a session: denied writes since since_ms (milliseconds since 1970), and a line with the
 * number of changed files that run programs on the host. Without any, the line is printed on a
 * terminal only, and if it is the only one (is_only). */
void review_note(const json_t *sandbox, uint64_t since_ms, bool is_only);
/* The same with the names of the changed files, for a sandbox that is removed now. */
void review_note_removed(const json_t *sandbox, uint64_t since_ms);
