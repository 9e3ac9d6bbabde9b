/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_sock - the socket of the vault: its one name, how to listen at it and how to connect.
 *
 * How      `vault.sock` beside sbxd's own socket, SOCK_SEQPACKET, 0600. sbxd listens and passes the
 *          listener on to the vault that it starts; who connects while no vault runs waits in the
 *          listener until one does. A vault outlives sbxd with the listener, and then only it has
 *          it: the next sbxd listens anew only where nobody answers.
 * Trust    The runtime folder is the user's alone (src/sbxd/http/listen.h); the vault checks the
 *          uid of each peer all the same.
 * Owns     The fds are the caller's: CLOEXEC, non-blocking.
 * See      vault_chan.h for what is said, src/sbxd/vault/vault.h, vault_sock_test.c
 */
#pragma once

#include "lib/base/err.h"

#define VAULT_SOCK_BACKLOG 128

/* $XDG_RUNTIME_DIR/sbx/vault.sock, on the heap. */
char *vault_sock_path(void);
/* -ECONNREFUSED when nobody listens (also when there is no socket), -EAGAIN when too many wait. */
int vault_sock_connect(struct err *err) MUST_CHECK;
/* Takes the place of a socket that nobody listens at; asking that first is the caller's. */
int vault_sock_listen(struct err *err) MUST_CHECK;
