/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dirs - the list of directories that a broker keeps when it seals itself.
 *
 * How      Collected before jail_broker, which makes Landlock rules of them. A rule is for a
 *          directory as it is at that moment: what is put in its place later is not covered.
 *          Symbolic links lead out of a rule, so jail_dirs_add_links adds what the links of a
 *          directory lead to, unless that is below a directory of the list.
 * Trust    Paths are ours; a link is the user's.
 * Owns     The paths.
 * Limits   JAIL_MAX_DIRS; what is above it is left out, and stays closed.
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
/* Takes the path over; NULL is left out. */
void jail_dirs_add(struct jail_dirs *d, char *path, bool rw);
/* The directory where the file really is: it is replaced there. To read. */
void jail_dirs_add_of(struct jail_dirs *d, const char *file);
/* A directory that people may have put links into, and what they lead to now. */
void jail_dirs_add_links(struct jail_dirs *d, const char *path, bool rw);
