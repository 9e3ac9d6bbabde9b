/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_sock - the socket of the vault: its one name, how to listen at it and how to connect.
 *
 * How      `vault.sock` in the directory of sbxd's socket, SOCK_SEQPACKET, 0600. sbxd listens and
 *          passes the listener to the vault that it starts; clients that connect while no vault
 *          runs wait in the listener. A vault outlives sbxd and keeps the listener: the next sbxd
 *          listens again only if nothing answers on the socket.
 * Trust    The runtime directory is the user's alone (src/sbxd/http/listen.h); the vault checks the
 *          uid of each peer anyway.
 * Owns     The fds are the caller's: CLOEXEC, non-blocking.
 * See      vault_chan.h for the messages, src/sbxd/vault/vault.h, vault_sock_test.c
 */
#pragma once

#include "lib/base/err.h"

#define VAULT_SOCK_BACKLOG 128

/* $XDG_RUNTIME_DIR/sbx/vault.sock, on the heap. */
char *vault_sock_path(void);
/* -ECONNREFUSED if no process listens or there is no socket, -EAGAIN if too many wait. */
int vault_sock_connect(struct err *err) MUST_CHECK;
/* Replaces a stale socket; the caller checks first that no process listens. */
int vault_sock_listen(struct err *err) MUST_CHECK;
