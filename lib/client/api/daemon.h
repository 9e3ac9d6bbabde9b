/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon - finding sbxd, starting it when it is not there, replacing it when it is another build.
 *
 * How      daemon_connect connects to sbxd.sock; when nobody listens it takes a lock (two commands
 *          at once start one sbxd), starts the sbxd that lies beside this program or in the
 *          helper folder, and waits at most DAEMON_START_MS for it to listen.
 * Trust    The user's own folders. A listener of another user gets no request (SO_PEERCRED).
 * Limits   DAEMON_START_MS, DAEMON_STOP_MS.
 * See      proto/PROTOCOL.api, tests/cli
 */
#pragma once

#include "lib/client/cli/ui.h"

/* It waits for the disk while it starts, and a disk that others write to can take seconds. */
#define DAEMON_START_MS 20000
#define DAEMON_SLOW_MS 3000 /* from here on the user is told */
#define DAEMON_STOP_MS 5000
/* Set by the completion scripts: sbxd is neither started nor replaced. */
#define DAEMON_COMPLETE "SBX_COMPLETE"

/* A connected socket; starts or replaces sbxd when needed. */
int daemon_connect(struct problem *p) MUST_CHECK;
/* A connected socket, or -ECONNREFUSED when sbxd is not there. Never starts it. */
int daemon_try(struct problem *p) MUST_CHECK;
/* Asks sbxd to end and waits until it has. 0 also when there was none. */
int daemon_stop(struct problem *p) MUST_CHECK;

char *daemon_socket_path(void);
char *daemon_log_path(void);
/* The path of this program on the heap, or NULL. */
char *daemon_own_path(void);
/* The helper program of that name: beside this one, else in the helper folder. On the heap. */
char *daemon_helper_path(const char *name);
