/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_internal - functions of vault_channels.c, vault_ops.c and vault_spawn.c for vault_link.c
 * (socket, process, steps). vault_channels.c uses vault_ops.c.
 */
#pragma once

#include "vault.h"

#define VAULT_LINK_MAX_SENT 12 /* fewer than VAULT_MAX_PENDING */
#define VAULT_LINK_MAX_PIPES 4 /* of those; a silent one must not delay a list */
#define VAULT_LINK_MAX_ITEMS 4096
#define VAULT_LINK_BURST 64
#define VAULT_SWEEP_MS 3000
#define VAULT_FIRST_DELAY_MS 100
#define VAULT_LAST_DELAY_MS 5000
#define VAULT_MAX_MUTE 4
#define VAULT_CROWDED_MS 100
#define VAULT_WANT_GAP_MS \
	200 /* between two channels of one keeper, which waits KEEPER_VAULT_GAP_MS */
#define VAULT_LIVED_MS 5000 /* a vault that ran this long did not fail at its start */

struct conn;

/* Answered, or failed. */
void vault_op_finish(struct sbxd *d, struct vault_op *op, int code, const char *text);
/* Records before the request is sent; with `why`, records that it failed. */
int vault_op_record(
	struct sbxd *d, const struct vault_op *op, const char *why, struct err *err) MUST_CHECK;
/* A reference is set: sbx-vault-run may execute its program from now on. text: why not. */
int vault_op_register(
	struct sbxd *d, const struct vault_op *op, char text[VAULT_MAX_TEXT]) MUST_CHECK;
bool vault_op_is_change(const struct vault_op *op);
/* Returns the waiting connection, or NULL. */
struct conn *vault_op_asker(struct sbxd *d, uint32_t id);
int vault_op_send(struct sbxd *d, struct vault_op *op) MUST_CHECK;

/* Whether a request of sbxd itself is pending. */
bool vault_ops_has_own(const struct vault_link *v);
/* Whether an answer is awaited. */
bool vault_ops_sent(const struct vault_link *v);
/* The oldest that may be sent now, or NULL. */
struct vault_op *vault_ops_next(struct vault_link *v);
/* The vault they were sent to has exited: read-only requests are sent again, once. */
void vault_ops_lost(struct sbxd *d, const char *why);
void vault_ops_fail_queued(struct sbxd *d, int code, const char *why);
/* Returns true if one of sbxd's own was among them: more requests may follow. */
bool vault_ops_hand_out(struct sbxd *d);
/* Lists credentials that removed sandboxes left. */
void vault_ops_sweep(struct sbxd *d);

/* vault_spawn.c: starts sbx-vault-run with the listener and its end of our channel. */
int vault_spawn(int listener, int channel, struct hands_child *ret, struct err *err) MUST_CHECK;

/* vault_channels.c: whether a keeper waits for a channel. */
bool vault_channels_wanted(struct sbxd *d);
/* Creates the requested channels of all keepers. Returns -EAGAIN if the vault does not read. */
int vault_channels_give(struct sbxd *d) MUST_CHECK;
