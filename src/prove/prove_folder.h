/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove_folder - the directory of one run of `sbx prove`, and stale ones of killed runs.
 *
 * How      TOP/sbx-prove-UID-WORD, 0700. The run holds a lock on it; a directory without a lock is
 *          stale, and the word is the name of its twin, prove-WORD.
 * Trust    Parts on the host write below it by path, so the caller passes a TOP that no guest can
 *          write to. /tmp is shared: the directory is created with mkdir, and used only if we own
 *          it and it is not a link.
 * Owns     The directory, until prove_folder_remove.
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

/* In `top`, a directory that no guest can write to. */
int prove_folder_make(struct prove_folder *f, const char *top, struct err *err) MUST_CHECK;
void prove_folder_remove(struct prove_folder *f);
/* Whether the run of f->path has ended. */
bool prove_folder_is_left(const struct prove_folder *f);
/* The first directory that a killed run left below `top`, locked by us; false if there is none. */
bool prove_folder_find_left(const char *top, struct prove_folder *ret);
