/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file - small whole files: read with a bound, replaced in one step.
 *
 * How      file_save and file_new_* write a temporary file in the same directory, sync it and
 *          rename it over the old one (file_save syncs the directory, too): after a crash the file
 *          has the old or the new content. file_open neither blocks nor makes a terminal the
 *          controlling one: a FIFO, a device or a directory under the name is an error. file_lock
 *          is for files whose only purpose is their lock: a rename would replace the locked file.
 * Trust    The user's own directories, and names that a guest can replace (a file in a workspace).
 * Limits   The caller's maximum; a larger file is refused, never cut.
 * See      file_test.c
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "lib/base/slice.h"
#include "lib/base/err.h"

/* A file that replaces `path` when it is complete. A link at `path` is replaced, never followed: a
 * guest can plant one in a workspace. */
struct file_new {
	int fd; /* to write to */
	char *path, *temp;
};

int file_new_open(struct file_new *f, const char *path, struct err *err) MUST_CHECK;
/* Syncs and renames. The umask applies to `mode`. */
int file_new_keep(struct file_new *f, mode_t mode, struct err *err) MUST_CHECK;
/* Removes what was not kept, and closes the fd. All zero is fine. */
void file_new_done(struct file_new *f);
#define AUTO_FILE_NEW CLEANUP(file_new_done)

/* Mode 0600. */
int file_save(const char *path, struct slice content, struct err *err) MUST_CHECK;
/* For reading; a regular file or -EINVAL. -ENOENT leaves err untouched. */
int file_open(const char *path, struct err *err) MUST_CHECK;
/* Reads through file_open. A heap copy with a NUL after it; -ENOENT (err unset), -EFBIG over max
 * bytes. */
int file_load(
	const char *path, size_t max, char **ret_text, size_t *ret_n, struct err *err) MUST_CHECK;
/* As file_load; -ELOOP if `path` itself is a symbolic link. */
int file_load_no_link(
	const char *path, size_t max, char **ret_text, size_t *ret_n, struct err *err) MUST_CHECK;
/* The same of a file that is open; `path` is for the messages. */
int file_read(int fd, const char *path, size_t max, char **ret_text, size_t *ret_n,
	struct err *err) MUST_CHECK;

/* Creates the file with mode 0600 if need be; refuses a symbolic link. Returns the fd that holds
 * the lock. -EBUSY (err untouched): another process has held it for wait_ms. */
int file_lock(const char *path, unsigned wait_ms, struct err *err) MUST_CHECK;
/* Whether another process holds file_lock. False if there is no file. */
bool file_is_locked(const char *path);
/* Whether it is on a file system that does not wait for a server. */
bool file_is_local(const char *path);
/* Whether the file system of this directory limits the blocks of the process's user or group. */
bool file_has_quota(const char *dir);
