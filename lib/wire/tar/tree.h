/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - a file or a directory with all in it, to and from a tar stream. Blocking.
 *
 * How      tree_pack_path and tree_unpack_path are the two halves of `sbx cp`, with the directory
 *          rules of docker cp; one runs in sbx, the other as a builtin of sbx-guest. The first name
 *          of every entry (the top) is "." or the source's own name, and the receiver gives it the
 *          name that the user requested: the sender cannot choose the destination.
 * Trust    Unpacking reads untrusted archives. Every name is opened beneath the destination with
 *          openat2 (no symlink, no magic link, no mount escapes); absolute names and `..` are
 *          refused; symlinks are created and never followed; a hard link may only point to a file
 *          that this unpacking created, and is created from the checked descriptor; devices, fifos
 *          and sockets are rejected; an existing file is unlinked, never written through.
 * Owns     The fds it opens. in_fd, out_fd and dirfd stay the caller's.
 * Limits   TREE_MAX_DEPTH, TREE_MAX_ENTRIES, TREE_MAX_DIR_BYTES, tree_guard.reserve.
 * Never    Follows a symlink inside the tree, in either direction; -L is for the source itself.
 * See      tar.h, tree_test.c, tree_hostile_test.c
 */
#pragma once

#include <sys/stat.h>
#include "tar.h"

#define TREE_MAX_DEPTH 128
#define TREE_MAX_ENTRIES (4u << 20)
#define TREE_MAX_DIR_BYTES (64u << 20) /* remembered directory names, for their modes and times */

enum tree_flags {
	TREE_FOLLOW = 1, /* pack: if the source itself is a symlink, take what it points to */
	TREE_OWNERS = 2, /* unpack: numeric owners and set-id bits too (in the guest, as root) */
};

struct tree_count {
	uint64_t files, dirs, links, bytes;
	uint64_t skipped; /* pack: sockets, fifos and devices are skipped */
};

/* Limits of the receiver for an archive. */
struct tree_guard {
	/* Files and directories: no name that the archive chooses is in or at one of them. */
	const struct stat *closed;
	size_t n_closed;
	/* Free bytes that this file system keeps, at most a tenth of it: -ENOSPC. 0: none. The free
	 * space is first read after some megabytes: a small copy is always possible. */
	uint64_t reserve;
	dev_t reserve_dev;
};

/* Unpacks beneath dirfd until the end of the archive. With a name the top is called that, whatever
 * the archive calls it ("." merges into dirfd); with NULL names stay as they are. */
int tree_unpack(int in_fd, int dirfd, const char *name, unsigned flags, struct tree_count *ret_n,
	struct err *err) MUST_CHECK;

/* Writes a path as a user enters it, and the end of the archive. `DIR/.` means the contents of DIR
 * (the top is "."). */
int tree_pack_path(const char *path, unsigned flags, int out_fd, struct tree_count *ret_n,
	struct err *err) MUST_CHECK;
/* As tree_pack_path, with `path` beneath `root` and no symbolic link on the way followed, nor the
 * last component with TREE_FOLLOW or a slash after it: -ELOOP. */
int tree_pack_beneath(int root, const char *path, unsigned flags, int out_fd,
	struct tree_count *ret_n, struct err *err) MUST_CHECK;
/* Unpacks as `docker cp` would: into `path` under the name `as` when that is a directory (as "." or
 * NULL: its contents), else as `path` itself. The directory above `path` must be there. */
int tree_unpack_path(int in_fd, const char *path, const char *as, unsigned flags,
	struct tree_count *ret_n, struct err *err) MUST_CHECK;
/* As tree_unpack_path, with `path` beneath `root` and no symbolic link on the way followed:
 * -ELOOP. A link in the place of a file is replaced. root -1: `path` as it is, links and all. */
int tree_unpack_guarded(int in_fd, int root, const char *path, const char *as,
	const struct tree_guard *guard, struct tree_count *ret_n, struct err *err) MUST_CHECK;
/* The name a copy of `path` gets inside a directory: its last part, "." for "x/.", "/" and "..". */
void tree_base_name(const char *path, char *buf, size_t size);
