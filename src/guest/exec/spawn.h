/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn - starts the program of an exec: pipes or a terminal, user, directory, environment.
 *
 * How      Everything that can fail or block (user lookup, entering a workspace, finding the
 *          program) happens in the child. It reports errors on a status pipe, which closes
 *          automatically when the program runs. PID 1 never waits for it.
 * Trust    The host's SPEC; files of the guest's disk, read in the child.
 * Owns     A struct spawn holds PID 1's ends; the caller closes them.
 * See      proto/PROTOCOL.exec
 */
#pragma once

#include "src/guest/base/base.h"
#include "lib/base/err.h"
#include "lib/wire/guestapi/exec_frame.h"

#define SPAWN_MAX_STATUS 600

struct spawn {
	pid_t pid;    /* also its session and its process group */
	int status;   /* u8 exit status and text on failure, nothing on success */
	int in;	      /* -1 without input */
	int out, err; /* err is -1 with a terminal; both are -1 when detached */
};

/* All fds of the result are non-blocking. */
int spawn_start(const struct exec_spec *spec, const struct facts *facts, struct spawn *ret,
	struct err *err) MUST_CHECK;
/* Sets the size of the terminal of this controlling end. */
void spawn_resize(int pty, uint16_t rows, uint16_t cols);
