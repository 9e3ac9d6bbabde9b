/* SPDX-License-Identifier: Apache-2.0 */
/*
 * past - what earlier applies have left: how many of them are kept, and how the rest is removed.
 *
 * How      The last `stage.keep` applies can be undone. Of an older one the journal is removed
 *          first, so that nobody undoes a half of it. Its base versions are still needed for merges
 *          and move to the copies of reviews (src/sbx/stage/merge/base.h). To remove thousands of
 *          files takes seconds on some file systems: a directory gets a name of its own at once,
 *          and a child process removes it after the command has ended. What a killed child leaves
 *          is removed by the next one. past_checkpoint requests an automatic checkpoint of a
 *          running sandbox if the setting checkpoint.before-apply is true.
 * Trust    The user's own directories.
 * Limits   Directories "N.kept", which an undo has named to the user, are not removed.
 * See      src/sbx/stage/area.h, src/sbx/stage/apply.h
 */
#pragma once

#include "src/sbx/stage/area.h"

/* After the apply `last`: removes the applies that are too old. */
void past_trim(const struct area *a, unsigned last);
/* Before an apply. A failure is a warning: the apply does not depend on it. */
void past_checkpoint(const char *ref);
/* Removes a directory of files in the background. */
void past_remove(const struct area *a, const char *dir);
