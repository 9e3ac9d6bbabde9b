/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_folder - the folder of one run of `sbx prove`, and those that killed runs have left.
 *
 * How      sbx-prove-UID-WORD below $TMPDIR or /tmp, 0700. A lock on it says that its run goes on;
 *          one without is a leftover, and the word leads to its twin, prove-WORD.
 * Trust    /tmp is everybody's: made with mkdir, taken only when it is ours and no link.
 * Owns     The folder, until prove_folder_remove.
 * See      prove_run.c, prove_twin.c
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"

#define PROVE_WORD 8

struct prove_folder {
	char *path;
	char word[PROVE_WORD + 1];
	int lock; /* an fd */
};

int prove_folder_make(struct prove_folder *f, struct err *err) MUST_CHECK;
void prove_folder_remove(struct prove_folder *f);
/* Whether the run of f->path is over. */
bool prove_folder_is_left(const struct prove_folder *f);
/* The first that a killed run left, locked by us; false when there is none. */
bool prove_folder_find_left(struct prove_folder *ret);
