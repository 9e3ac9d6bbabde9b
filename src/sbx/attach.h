/*
 * attach - a command line in a sandbox on the user's own stdin, stdout and stderr.
 *
 * How      attach_run starts the sandbox when it is stopped, opens a stream and runs a session; the
 *          rules for terminals are those of docker exec.
 * Trust    As session.h.
 * See      session.h, cmd_exec.c, cmd_run.c
 */
#pragma once

#include "env.h"
#include "ui.h"

struct attach {
	const char *ref;
	const char *const *argv; /* NULL-terminated */
	const char *user, *cwd;	 /* NULL: the default */
	const char *accel;	 /* for a start; NULL: its own */
	struct env *env;	 /* TERM is added with a terminal */
	bool in, tty, detach;
};

/* The command's exit status, or EXIT_OURS after saying why. */
int attach_run(struct attach *a);
