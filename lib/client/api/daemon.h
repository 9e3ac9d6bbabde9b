/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon - finds sbxd, starts it if it does not run, and replaces an sbxd of another build.
 *
 * How      daemon_connect connects to sbxd.sock; if no process listens it takes a lock (two
 *          concurrent commands start one sbxd), starts the sbxd in the directory of this program or
 *          in the helper directory, and waits at most DAEMON_START_MS for it to listen.
 * Trust    The user's own directories. A listener of another user gets no request (SO_PEERCRED).
 * Limits   DAEMON_START_MS, DAEMON_STOP_MS.
 * See      proto/PROTOCOL.api, tests/cli
 */
#pragma once

#include "lib/client/cli/ui.h"

/* It waits for the disk while it starts, and a disk that others write to can take seconds. */
#define DAEMON_START_MS 20000
#define DAEMON_SLOW_MS 3000 /* then the user sees a message */
#define DAEMON_STOP_MS 5000
/* Set by the completion scripts: sbxd is neither started nor replaced. */
#define DAEMON_COMPLETE "SBX_COMPLETE"

/* A connected socket; starts or replaces sbxd when needed. */
int daemon_connect(struct problem *p) MUST_CHECK;
/* A connected socket, or -ECONNREFUSED if sbxd does not run. Never starts it. */
int daemon_try(struct problem *p) MUST_CHECK;
/* Stops sbxd and waits until it has exited. 0 also if it did not run. */
int daemon_stop(struct problem *p) MUST_CHECK;

char *daemon_socket_path(void);
char *daemon_log_path(void);
/* The path of this program on the heap, or NULL. */
char *daemon_own_path(void);
/* A helper program, from this program's directory or the helper directory. On the heap. */
char *daemon_helper_path(const char *name);
