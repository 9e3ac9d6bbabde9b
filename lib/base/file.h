/*
 * file - small whole files: read with a bound, replaced in one step.
 *
 * How      file_save writes a temporary file in the same folder, syncs it, renames it over the old
 *          one and syncs the folder: after a crash the old or the new content is there, whole.
 * Trust    The user's own folders.
 * Limits   The caller's maximum; a larger file is refused, never cut.
 * See      file_test.c
 */
#pragma once

#include "slice.h"
#include "err.h"

/* Mode 0600. */
int file_save(const char *path, struct slice content, struct err *err) MUST_CHECK;
/* A heap copy with a NUL behind it; -ENOENT (err untouched), -EFBIG over max bytes. */
int file_load(
	const char *path, size_t max, char **ret_text, size_t *ret_n, struct err *err) MUST_CHECK;
