/*
 * file - small whole files: read with a bound, replaced in one step.
 *
 * How      file_save writes a temporary file in the same folder, syncs it, renames it over the old
 *          one and syncs the folder: after a crash the old or the new content is there, whole.
 *          file_open neither blocks nor makes a terminal the controlling one: a FIFO, a device or a
 *          directory under the name is an error.
 * Trust    The user's own folders, and names that a guest can replace (a file in a workspace).
 * Limits   The caller's maximum; a larger file is refused, never cut.
 * See      file_test.c
 */
#pragma once

#include "slice.h"
#include "err.h"

/* Mode 0600. */
int file_save(const char *path, struct slice content, struct err *err) MUST_CHECK;
/* For reading; a regular file or -EINVAL. -ENOENT leaves err untouched. */
int file_open(const char *path, struct err *err) MUST_CHECK;
/* Reads through file_open. A heap copy with a NUL behind it; -ENOENT (err untouched), -EFBIG over max bytes. */
int file_load(
	const char *path, size_t max, char **ret_text, size_t *ret_n, struct err *err) MUST_CHECK;
