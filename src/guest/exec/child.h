/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child - the steps between fork and exec, in the child.
 *
 * How      Switches to the user, changes to the directory, connects the terminal or the pipes,
 *          executes.
 * Trust    Runs as root until it has switched to the user; reads the guest's own files.
 * Never    Returns. Failures go to the status fd as a u8 exit status and a message.
 */
#pragma once

#include "src/guest/base/base.h"
#include "lib/wire/guestapi/exec_frame.h"

struct child {
	const struct exec_spec *spec;
	const struct facts *facts;
	int in, out, err; /* become 0, 1, 2 */
	int status;
};

/* The environment of a program of that user. */
void child_env(struct env *e, const struct child *c, const struct guest_user *u);
void child_run(const struct child *c) __attribute__((noreturn));
