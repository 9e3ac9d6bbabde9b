/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker - the jail of a program that stays in the user's namespaces: sbx-keeper and sbxd.
 *
 * How      jail_broker sets no_new_privs, applies a Landlock ruleset and installs the start list of
 *          the profile; what the list does not name is refused with EPERM. A broker needs the
 *          user's own directories and has the user's other processes as peers, so it gets no
 *          namespaces. Its spawner (lib/os/worker) does what the list forbids. Landlock from
 *          version 2 on: no file outside of the given directories can be opened, made or removed.
 *          From version 4 on: no TCP connection. From version 6 on: no signal and no abstract
 *          socket of a process outside. Older kernels have the list of system calls alone.
 *          jail_broker_files may be called again, with less. jail_broker_close comes first, at the
 *          start of the program: no other process of the user can trace it, read its memory or take
 *          its descriptors. It writes its descriptors and variables to a file
 *          (lib/base/process/inventory.h).
 * Trust    Called before the first byte of a peer. Paths are ours.
 * Limits   None.
 * Never    Undone. Forks inherit it. Landlock does not stop stat, access, chmod, statfs nor opens
 *          that only name a file (O_PATH).
 * See      jail.h, dirs.h, profiles.c, broker_test.c, src/keeper/worker/hands.h,
 *          src/sbxd/hands/hands.h
 */
#pragma once

#include "jail.h"

/* Not dumpable from here on; fails if the process is already traced. Children inherit it until they
 * execute a program. */
int jail_broker_close(struct err *err) MUST_CHECK;
int jail_broker(enum jail_profile profile, const struct jail_root *dirs, size_t n,
	struct err *err) MUST_CHECK;
/* For its spawner, which must start programs: no_new_privs, and the calls of jail_refused_calls are
 * refused with EPERM. Everything that it starts inherits both. */
int jail_broker_spawner(struct err *err) MUST_CHECK;
/* The Landlock part alone. A directory or file that does not exist is skipped. */
int jail_broker_files(const struct jail_root *dirs, size_t n, struct err *err) MUST_CHECK;
/* What this kernel's Landlock refuses a broker, for people; "" when it has none that is of use. */
const char *jail_broker_walls(void);
