/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dirs - the list of directories that a broker keeps when it seals itself.
 *
 * How      Collected before jail_broker, which creates Landlock rules for them. A rule is for the
 *          directory that exists at that moment: a later replacement is not covered. Rules do not
 *          cover the targets of symbolic links, so jail_dirs_add_links adds the targets of the
 *          links in a directory, unless they are below a directory of the list.
 * Trust    Paths are ours; a link is the user's.
 * Owns     The paths.
 * Limits   JAIL_MAX_DIRS; further directories are skipped, and stay closed.
 * See      broker.h, src/keeper/worker/hands_seal.c, src/sbxd/hands/hands_seal.c
 */
#pragma once

#include "jail.h"

#define JAIL_MAX_DIRS 256

struct jail_dirs {
	struct jail_root list[JAIL_MAX_DIRS];
	size_t n;
};

void jail_dirs_done(struct jail_dirs *d);
/* Takes ownership of the path; NULL is skipped. */
void jail_dirs_add(struct jail_dirs *d, char *path, bool rw);
/* The directory where the file really is: it is replaced there. To read. */
void jail_dirs_add_of(struct jail_dirs *d, const char *file);
/* A directory in which users may have links, and the current targets of the links. */
void jail_dirs_add_links(struct jail_dirs *d, const char *path, bool rw);
