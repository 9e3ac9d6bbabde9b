/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share - the workspaces of one sandbox, served by one jailed virtiofsd.
 *
 * How      share_check refuses what must not be shared. share_start pins every host path with an
 *          open fd, starts virtiofsd in the jail and, in its mount namespace, builds a read-only
 *          tree of empty 0555 stubs in which each workspace is bound at its guest path (parents
 *          before children, :ro ones read-only with everything below). The child opens each path
 *          again and compares device and inode, since a mount is copied from the own namespace. No
 *          other process can name the vhost-user socket: it is made in the child's net namespace.
 * Locks    Guest-local unless share_config.locks. C virtiofsd answers EOPNOTSUPP to every lock
 *          request that may wait, so with remote locks flock() and F_SETLKW fail in the guest (Go,
 *          Gradle, apt use them). Rust virtiofsd has no remote locks: share_start refuses the flag.
 * Hide     Every call of virtiofsd with a name from the guest is shown to a supervisor process
 *          (hide.h), which answers EACCES when the name matches a glob. It is decided by name at
 *          each call, so it holds when the host replaces the file, and against guest root, whose
 *          raw requests end in the same calls. Not against a compromised virtiofsd, nor for a
 *          file the guest had open before it got a hidden name. Names stay listed.
 * Guard    In the same way: changes of files that programs of the host run (guard.h).
 * Special  Unless share_config.special_files virtiofsd's filter refuses FIFOs and sockets (EPERM).
 * Room     virtiofsd holds a descriptor for each file that the guest knows, and the host may allow
 *          it few. With share_config.room the caller hears when they get few (room.h).
 * Links    No symbolic link in a host path is followed: a guest could have made it (place.h).
 * Trust    Runs in keeper. Host paths are the user's own; directories may change under us.
 * Owns     struct share: up to three processes, two sockets. All of it dies with the keeper.
 * Limits   SHARE_MAX_MOUNTS, SHARE_MAX_HIDE.
 * See      place.h, scaffold.h, hide.h, guard.h, room.h, share_test.c, share_vm_test.c
 */
#pragma once

#include "guard.h"
#include "lib/os/jail/jail.h"
#include "room.h"

#define SHARE_MAX_MOUNTS 64
#define SHARE_MAX_HIDE 64
#define SHARE_TAG "sbx"

struct share_mount {
	const char *host;  /* absolute, without symbolic links; a directory or a single file */
	const char *guest; /* absolute, normalised; NULL: same as host */
	bool ro;
	bool own; /* may be an agent's history, which is in sbx's state directory */
};

struct share_config {
	const struct share_mount *mounts;
	size_t n_mounts;
	const char *const *hide; /* globs for the last component of a name, as in fnmatch(3) */
	size_t n_hide;
	bool force;		   /* see place_check */
	bool locks;		   /* remote locks; see above */
	bool special_files;	   /* the guest may create FIFOs and sockets */
	bool room;		   /* the caller answers to share.room (room.h) */
	struct guard_config guard; /* of writable workspaces */
	const char *home;	   /* NULL: $HOME */
	const char *program;	   /* virtiofsd; NULL: found */
	int log_fd;
};

struct share {
	struct jail_child child;  /* watch child.pidfd: its exit ends the share */
	struct jail_child hidden; /* the supervisor; pidfd -1 without hide and guard. Its end breaks
				   * the share, closed: every name is refused then */
	struct jail_child hand;	  /* the guard's; pidfd -1 without. Its end ends the supervisor */
	struct room room; /* watch room.fd (-1 without share_config.room): lookups that wait */
	int vhost_fd;	  /* connected, for qemu: TAKE_FD it or leave it to share_stop */
};

#define SHARE_EMPTY                                                                        \
	{                                                                                  \
		.child = {0, -1, -1, 0}, .hidden = {0, -1, -1, 0}, .hand = {0, -1, -1, 0}, \
		.vhost_fd = -1, .room = {                                                  \
			.fd = -1                                                           \
		}                                                                          \
	}

/* What a person should know before anything is started. */
int share_check(const struct share_config *cfg, struct err *err) MUST_CHECK;
/* Checks, starts, and gives back when virtiofsd waits for qemu. */
int share_start(
	const struct share_config *cfg, struct share *ret_share, struct err *err) MUST_CHECK;
void share_stop(struct share *s);
