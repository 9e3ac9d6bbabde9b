/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place - writes files and directories into a tree, with fixed times.
 *
 * How      The tree is the root of this process. Each new file or directory gets the time of the
 *          image, and so does its parent directory, whose time the change has modified. A file is
 *          created under a temporary name and renamed, so no existing file is written through.
 * Trust    The tree is untrusted. Symlinks in it are followed as in the VM: they end in the tree,
 *          because it is the root.
 * Owns     The caller frees the result of place_read. Sources stay the caller's.
 * Limits   PLACE_MAX_TEXT bytes are read of a file of the tree.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "lib/base/err.h"

#define PLACE_MAX_TEXT (1u << 20)

/* The time of all written files, in seconds. */
void place_set_time(int64_t at);
bool place_is_program(const char *path);
/* Reads the text of a regular file; "" if there is none. A NUL ends it. */
int place_read(const char *path, char **ret, struct err *err) MUST_CHECK;
/* mkdir -p. An existing path must be a directory and stays unchanged. */
int place_dir(const char *path, mode_t mode, uid_t id, struct err *err) MUST_CHECK;
/* Writes a file of root. The directory must exist. */
int place_text(const char *path, const char *text, mode_t mode, struct err *err) MUST_CHECK;
/* The same with the bytes of a file. */
int place_copy(const char *path, int from, mode_t mode, struct err *err) MUST_CHECK;
/* Creates a symlink, unless the path exists. */
int place_link(const char *path, const char *target, struct err *err) MUST_CHECK;
/* Sets the fixed time of a path that other code has changed. */
void place_touch(const char *path);
