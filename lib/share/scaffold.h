/*
 * scaffold - the tree that virtiofsd serves: checked host paths bound at their guest paths.
 *
 * How      scaffold_pin opens and checks every mount of a share_config in the spawner, sorts
 *          them so that parents come before what lies in them, and scaffold_build binds them below
 *          a tmpfs at SCAFFOLD_SOURCE in the child.
 * Trust    The user's own paths, checked; folders may change between the two steps, which the
 *          comparison of device and inode turns into an error.
 * Owns     The pins' fds and paths, until scaffold_done.
 * Never    Makes anything in a workspace, follows a symlink below a guest path.
 * See      share.h, lib/jail/tree.h
 */
#pragma once

#include "share.h"

#define SCAFFOLD_SOURCE "/share"

struct scaffold_pin {
	int fd;	    /* O_PATH in the spawner's mount namespace: holds the inode */
	char *host; /* without symlinks */
	char *guest;
	bool ro, dir;
	uint64_t dev, ino;
};

struct scaffold {
	struct scaffold_pin pins[SHARE_MAX_MOUNTS];
	size_t n;
};

int scaffold_pin(
	const struct share_config *cfg, struct scaffold *ret_s, struct err *err) MUST_CHECK;
int scaffold_build(const struct scaffold *s, int new_root, struct err *err) MUST_CHECK;
void scaffold_done(struct scaffold *s);
/* Whether a workspace may lie at this absolute path of the guest. */
int scaffold_check_guest(const char *guest, struct err *err) MUST_CHECK;
