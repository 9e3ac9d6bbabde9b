/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_internal - what the packing and the unpacking half of tree share.
 *
 * How      struct tree_inodes is an open hash table of files by device and inode number; packing
 *          finds hard links by it, unpacking the files that it made itself.
 * Trust    See tree.h.
 * Owns     tree_inodes_done frees the table.
 * Limits   TREE_MAX_ENTRIES.
 */
#pragma once

#include <sys/stat.h>
#include "tree.h"

struct tree_inode {
	uint64_t dev, ino;
	char *name; /* owned; NULL when no name was given */
	bool used;
};

struct tree_inodes {
	struct tree_inode *slots;
	size_t room, n;
};

void tree_inodes_done(struct tree_inodes *t);
/* The slot of a file, or NULL. */
const struct tree_inode *tree_inodes_find(const struct tree_inodes *t, const struct stat *st);
/* Remembers a file; -E2BIG when there are too many. name may be NULL. */
int tree_inodes_add(struct tree_inodes *t, const struct stat *st, const char *name) MUST_CHECK;

/* openat2 beneath dirfd, no symlink followed anywhere, CLOEXEC. -errno or the fd. */
int tree_open_beneath(int dirfd, const char *path, int flags) MUST_CHECK;
/* Splits "a/b/c" into "a/b" (or ".") and "c"; path must not end in a slash. */
void tree_split(const char *path, char *dir, size_t size, const char **ret_base);
