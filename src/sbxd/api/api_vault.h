/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_vault - requests of API calls to the vault, used by api_secret.c and api_scan.c.
 *
 * How      api_vault_op, filled in, then api_vault_ask with the function that replies.
 * Trust    Requests of the same user. Values and dumps pass in descriptors that sbxd does not read.
 * Owns     Nothing: vault_link owns the request.
 * See      vault.h
 */
#pragma once

#include "src/sbxd/http/http.h"
#include "lib/os/ipc/vault_chan.h"
#include "src/sbxd/vault/vault.h"

typedef void api_vault_fn(struct sbxd *d, struct conn *c, struct vault_op *op);

/* Returns NULL, and replies, if there are too many. */
struct vault_op *api_vault_op(struct sbxd *d, struct conn *c, enum vault_msg what);
/* Returns the one passed descriptor, or replies with `why` and returns -1. */
int api_take_passed(struct sbxd *d, struct conn *c, const char *why);
/* Makes the connection wait for the request. After the answer, calls `reply`, or replies with the
 * vault's error. The answer may arrive before this function returns. */
void api_vault_ask(
	struct sbxd *d, struct conn *c, struct vault_op *op, api_vault_fn *reply, uint64_t ms);
