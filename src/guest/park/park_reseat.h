/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park_reseat - restores the directory and open files of programs on the new share.
 *
 * How      park_reseat_open opens each description once. park_reseat_hold stops the programs
 *          concerned while all are still frozen; then they are thawed. park_reseat_run makes each
 *          of them (inject.h) create a socket pair, duplicates one end, and makes it receive its
 *          files on the other, each at its old number with its old flags; its directory is restored
 *          the same way. Locks come last. Failures are reported, and the program continues anyway.
 * Trust    The programs are untrusted.
 * Owns     The opened files until the end of the process.
 * Limits   The limits of inject.h for each program.
 * See      park_reseat_test.c
 */
#pragma once

#include "inject.h"
#include "park_list.h"

struct park_held {
	struct inject in;
	pid_t pid;
	int error; /* it could not be stopped */
};

struct park_reseat {
	struct park_list *l;
	struct park_held *held;
	size_t n_held;
};

void park_reseat_open(struct park_list *l);
void park_reseat_hold(struct park_reseat *rs, struct park_list *l);
/* Reseats and releases; the list's report has the failures. */
void park_reseat_run(struct park_reseat *rs);
