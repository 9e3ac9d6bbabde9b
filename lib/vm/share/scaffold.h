/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaffold - the tree that virtiofsd serves: checked host paths bound at their guest paths.
 *
 * How      scaffold_pin opens and checks every mount of a share_config in the spawner, sorts them
 *          so that parents come before their children, and scaffold_build binds them below a tmpfs
 *          at SCAFFOLD_SOURCE in the child. A workspace inside a writable one keeps its place: what
 *          is between them is held (hold.h). Where a workspace contains one of sbx's own
 *          directories, an empty read-only directory covers it, and is held in the same way.
 * Trust    The user's own paths, checked; directories may change between the two steps, which the
 *          comparison of device and inode turns into an error.
 * Owns     The pins' fds and paths, until scaffold_done.
 * Never    Creates anything in a workspace (except a directory of sbx, which must exist to be
 *          covered), follows a symlink below a guest path.
 * See      share.h, place.h, hold.h, lib/os/jail/tree.h
 */
#pragma once

#include "place.h"
#include "share.h"

#define SCAFFOLD_SOURCE "/share"

/* The workspaces, and what is covered in them: the deepest workspace around each own directory. */
#define SCAFFOLD_MAX_PINS (SHARE_MAX_MOUNTS * (1 + PLACE_N_OWN))

struct scaffold_pin {
	int fd;	    /* O_PATH in the spawner's mount namespace: holds the inode; -1: a cover */
	char *host; /* without symlinks; of a cover: the directory that it hides */
	char *guest;
	bool ro, dir;
	bool cover; /* an empty directory */
	uint64_t dev, ino;
};

struct scaffold {
	struct scaffold_pin pins[SCAFFOLD_MAX_PINS];
	size_t n;
};

int scaffold_pin(
	const struct share_config *cfg, struct scaffold *ret_s, struct err *err) MUST_CHECK;
int scaffold_build(const struct scaffold *s, int new_root, struct err *err) MUST_CHECK;
void scaffold_done(struct scaffold *s);
