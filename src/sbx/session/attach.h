/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach - runs a command in a sandbox on the user's stdin, stdout and stderr.
 *
 * How      attach_run starts the sandbox if it is stopped, opens a stream and runs a session; the
 *          rules for terminals are those of docker exec. With a session name it attaches to that
 *          session if it is running and starts it otherwise. The session can be left running
 *          (detach keys, a closed terminal, another client), and the command to reattach is
 *          printed.
 * Trust    As session_run.h.
 * See      session_run.h, cmd_exec.c, cmd_run.c, cmd_attach.c
 */
#pragma once

#include "env.h"
#include "session_run.h"
#include "lib/client/cli/ui.h"

/* The session of `sbx run`. */
#define ATTACH_AGENT "agent"

struct attach {
	const char *ref;
	const char *const *argv; /* NULL-terminated */
	const char *user, *cwd;	 /* NULL: the default */
	const char *accel;	 /* for a start; NULL: the sandbox's */
	struct env *env;	 /* TERM is added with a terminal */
	bool in, tty, detach;
	const char *session;  /* session name; requires in, tty and a terminal; NULL: plain */
	const char *starting; /* the name of a slow starter; NULL: not slow */
	bool only; /* attaches or fails: starts neither the session nor a stopped sandbox */
	const char *detach_keys; /* NULL: the setting's */
	enum session_left left;	 /* result: the program was left running */
};

/* Returns the exit status, or EXIT_OURS after an error message. 0 if it was left running. */
int attach_run(struct attach *a);
/* Link to a sandbox's streams; ref is borrowed. */
struct session_link attach_link(const char *ref);
