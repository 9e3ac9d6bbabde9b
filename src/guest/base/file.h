/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file - reads and replaces small files, and creates parent directories.
 *
 * How      A file is replaced by a new file in the same directory and a rename, so no reader sees
 *          half of it.
 * Trust    Files of the guest's own disk. Guest root can put any file there: only regular files are
 *          read, without blocking, up to FILE_MAX_BYTES.
 * Owns     The caller frees the result of file_read.
 * See      file_test.c
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include "lib/base/err.h"
#include "lib/base/slice.h"

#define FILE_MAX_BYTES (1u << 20)

/* Returns the content, NUL-terminated, on the heap. -EFBIG above FILE_MAX_BYTES, -EINVAL if not a
 * regular file (files of /proc and /sys are). */
int file_read(const char *path, char **ret_text) MUST_CHECK;
/* The same for a file that may contain NULs. */
int file_read_bytes(const char *path, char **ret, size_t *ret_n) MUST_CHECK;
/* Writes text into an existing file (for /proc and /sys). */
int file_poke(const char *path, const char *text) MUST_CHECK;
/* Replaces path atomically by a new file with the mode and owner of the old one (0644 and root if
 * it was not a regular file). */
int file_replace(const char *path, const char *text, struct err *err) MUST_CHECK;
int file_replace_bytes(const char *path, struct slice bytes, struct err *err) MUST_CHECK;
/* As file_replace, but does not write if the file has that content already. */
int file_say(const char *path, const char *text, struct err *err) MUST_CHECK;
/* mkdir -p of all parent directories of path, 0755; existing ones are unchanged. */
int file_make_parents(const char *path, struct err *err) MUST_CHECK;
/* Changes the owner of all files beneath path (same file system) from the old to the new ids. */
int file_chown_tree(const char *path, const uid_t old[2], const uid_t new[2]) MUST_CHECK;
