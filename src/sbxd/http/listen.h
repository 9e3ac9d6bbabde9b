/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen - one sbxd for one state folder, and its socket.
 *
 * How      listen_lock takes the instance lock; whoever holds it may open the registry and replace
 *          a socket file that a dead sbxd left. listen_open makes the socket, or takes the one that
 *          a service manager passed (LISTEN_FDS).
 * Trust    The runtime folder must belong to the user and be closed to others: the socket's name is
 *          what clients believe in.
 * Owns     The fds are the caller's. The lock lasts as long as its fd.
 * See      data/units, tests/api
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"

#define LISTEN_LOCK_MS 3000 /* for the one before, which is just ending */

/* Makes a folder 0700 if need be; refuses one of another user or open to others. */
int listen_check_folder(const char *dir, struct err *err) MUST_CHECK;
/* An fd that holds the lock, or -EBUSY. */
int listen_lock(struct err *err) MUST_CHECK;
/* A listening fd, non-blocking. *ret_passed says whether it was passed in. */
int listen_open(bool *ret_passed, struct err *err) MUST_CHECK;
/* Nobody can connect any more; who did before can still be accepted. Not for a passed one. */
void listen_end(int fd);
