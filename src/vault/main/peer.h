/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer - the connections of sbx-vault.
 *
 * How      peer_serve begins to read; each request is passed to ask_take. A reply that the socket
 *          does not accept waits in the peer, and the peer is not read until it is sent.
 * Trust    Peers are processes of the same uid. Untrusted input.
 * Limits   VAULT_MAX_SANDBOXES channels, one per sandbox; MAX_CALLERS connections; a peer has
 *          VAULT_MAX_PENDING open requests; STORE_BURST, VAULT_STORE_PER_S.
 */
#pragma once

#include "lib/base/bucket.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/os/ipc/vault_scanned.h"
#include "lib/os/loop/loop.h"

#define MAX_CALLERS 64 /* connections to the socket, and the owner's channel */
#define MAX_PEERS (VAULT_MAX_SANDBOXES + MAX_CALLERS)
/* STOREs of one sandbox in a row, then VAULT_STORE_PER_S: each one writes the sealed file. */
#define STORE_BURST VAULT_MAX_TOKENS

struct vault;

struct due {
	bool is_status;
	uint32_t id;
	struct vault_done done;
	struct vault_scanned *scanned; /* or NULL; on the heap */
};

struct peer {
	int fd; /* -1: a free slot */
	uint32_t gen;
	enum vault_phase phase;
	char sandbox[VAULT_MAX_SCOPE]; /* of SANDBOX, else "" */
	unsigned n_ops;
	struct due due[VAULT_MAX_PENDING]; /* replies that the socket did not accept */
	unsigned n_due;
	bool is_listing;
	uint32_t list_id;
	uint64_t list_after;
	bool is_watching, is_changed_due;
	bool is_paused; /* too many STOREs: the next ones wait in its socket */
	struct loop_timer timer;
};

/* Of a sandbox, for all its channels. */
struct store_rate {
	char sandbox[VAULT_MAX_SCOPE];
	struct bucket bucket;
};

void peer_init(struct vault *v);
/* Checks for the owner's channel. Called before any other descriptor can get its number. */
void peer_look_for_owner(struct vault *v);
/* Takes fd: a channel that the owner binds to a sandbox. Replaces an earlier one of the same
 * sandbox. */
void peer_add_sandbox(struct vault *v, const char *sandbox, int fd);
/* Begins to read requests of peers. */
void peer_serve(struct vault *v);
void peer_on_listen(struct vault *v);
void peer_on_event(struct vault *v, const struct loop_event *ev);
void peer_answer(
	struct vault *v, struct peer *p, uint32_t id, int code, uint64_t number, const char *text);
/* Takes `scanned`. */
void peer_answer_scanned(
	struct vault *v, struct peer *p, uint32_t id, struct vault_scanned *scanned);
void peer_answer_status(struct vault *v, struct peer *p, uint32_t id);
void peer_list(struct vault *v, struct peer *p, uint32_t id);
/* Notifies the peers that the change concerns; scope "": every sandbox. */
void peer_tell_changed(struct vault *v, const char *scope);
/* Counts a STORE of the peer. A peer that has sent too many is not read for a while. */
void peer_count_store(struct vault *v, struct peer *p);
void peer_on_timer(struct vault *v, struct loop_key key);
