/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen - ensures one sbxd per state directory, and opens its socket.
 *
 * How      listen_lock takes the instance lock. Its holder may open the registry and replace a
 *          stale socket file. listen_open creates the socket, or uses the one that a service
 *          manager passed (LISTEN_FDS).
 * Trust    The runtime directory must be owned by the user and closed to others: clients trust the
 *          name of the socket.
 * Owns     The caller owns the fds. The lock lasts as long as its fd.
 * See      data/units, tests/api
 */
#pragma once

#include <stdbool.h>
#include "lib/base/err.h"

#define LISTEN_LOCK_MS 3000 /* for the previous one, which is exiting */

/* Creates a directory 0700 if needed; rejects one of another user or open to others. */
int listen_check_folder(const char *dir, struct err *err) MUST_CHECK;
/* Returns an fd that holds the lock, or -EBUSY. */
int listen_lock(struct err *err) MUST_CHECK;
/* Returns a listening fd, non-blocking. *ret_passed: a service manager passed it. */
int listen_open(bool *ret_passed, struct err *err) MUST_CHECK;
/* Closes the socket for new clients; earlier ones can still be accepted. Not for a passed one. */
void listen_end(int fd);
