/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault - the vault as seen by sbxd: its socket, its process, requests to it.
 *
 * How      sbxd listens at the vault's socket (lib/os/ipc/vault_sock.h). It starts sbx-vault-run
 *          with the listener and one end of a channel when a keeper requests a channel, when a
 *          client connects, or when sbxd has a request itself. Over its channel it passes the vault
 *          one end of each keeper's channel (vault_channels.c). The vault outlives sbxd with its
 *          channels; the next sbxd finds it at the socket, sends requests there, and replaces it
 *          when a keeper requests a channel. A request is a struct vault_op: queued, sent,
 *          finished. The API connection that waits for it has its id. A vault that exits is started
 *          again on demand, with a growing delay if it keeps exiting. vault_link_step handles
 *          everything that is due, after each event.
 * Trust    The vault may be compromised: its messages are limited, and it is dropped after an
 *          invalid one. Values pass in descriptors that sbxd does not read.
 * Owns     Listener, channel, pidfd, and the descriptors of requests until they are sent.
 * Limits   VAULT_LINK_MAX_OPS, VAULT_LINK_MAX_SENT, VAULT_LINK_MAX_PIPES; VAULT_HELLO_MS and
 *          VAULT_ANSWER_MS for its messages, VAULT_SWEEP_MS for the sweep after a removal.
 * See      api_secret.c, vault_spawn.c, lib/os/ipc/vault_chan.h, tests/api/test_secrets.py
 */
#pragma once

#include "src/sbxd/hands/hands.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/os/ipc/vault_scanned.h"

#define VAULT_LINK_MAX_OPS 64
#define VAULT_HELLO_MS 20000 /* the desktop's keyring may prompt for the key */
#define VAULT_ANSWER_MS 25000
#define VAULT_SCAN_MS 310000 /* for a SCAN; the vault stops it earlier */

struct keeper;

enum vault_op_state { VAULT_OP_FREE, VAULT_OP_QUEUED, VAULT_OP_SENT, VAULT_OP_FINISHED };

struct conn;
struct vault_op {
	enum vault_op_state state;
	enum vault_msg ask; /* SET, SET_REF, REMOVE, UNLOCK, LIST, STATUS, SCAN */
	uint32_t id;
	bool is_own;	       /* of the sweep: no client waits */
	bool was_lost;	       /* already sent once, to a vault that died */
	bool is_recorded;      /* a change: its record is in the audit log */
	unsigned n_registered; /* the link's value at the request */
	int fd;
	struct vault_meta *meta;
	struct vault_ref *ref;
	char sandbox[SPEC_MAX_NAME + 1]; /* name of the sandbox in scope, for the journal */
	char control[VAULT_MAX_CONTROL + 1];
	uint64_t sent_ms;

	/* the answer */
	struct vault_item *items;
	size_t n_items, room;
	struct vault_status status;
	struct vault_scanned *scanned; /* of a SCAN; allocated at the start */
	struct vault_done done;
	/* Replies to the call that waits for it; set by api_vault_ask. */
	void (*reply)(struct sbxd *d, struct conn *c, struct vault_op *op);
};

struct vault_link {
	int listen_fd; /* -1: only a vault of an earlier sbxd has it */
	bool is_listening, has_callers;
	/* The sbx-vault-run that this sbxd started; -1: none. */
	struct hands_child child;
	int sock;
	uint32_t gen;
	uint32_t armed;
	bool is_blocked;
	uint64_t crowded_ms; /* 0, or when to try again: see is_crowded in vault_link.c */
	bool is_crowd_said;
	bool is_owner; /* this sbxd started it: it accepts sandbox channels from here */
	enum vault_phase phase;
	bool has_said, has_answered;
	bool was_replaced; /* a vault of another build was told to stop */
	uint64_t started_ms, connected_ms, next_start_ms, delay_ms;
	struct vault_op op[VAULT_LINK_MAX_OPS];
	uint32_t last_id;
	unsigned n_mute; /* connections in a row that closed without HELLO */
	struct err why;	 /* of the last start that failed */
	bool sweep_due, sweep_missed;
	unsigned n_registered; /* number of references set so far */
	uint64_t sweep_until_ms;
	struct loop_timer timer;
};

void vault_link_init(struct vault_link *v);
/* Stops the vault when no keeper needs it. */
void vault_link_done(struct sbxd *d);

/* Whether requests make sense: a sealed file or a running vault exists. */
bool vault_link_has_vault(struct sbxd *d);
/* Returns a new request, to be filled in and then sent by vault_link_step; NULL if there are too
 * many. */
struct vault_op *vault_link_ask(struct sbxd *d, enum vault_msg ask);
struct vault_op *vault_link_find(struct sbxd *d, uint32_t id);
void vault_link_forget(struct sbxd *d, struct vault_op *op);
/* Handles everything that is due; at the start, finds a running vault, or listens. On a failure
 * sandboxes keep running, and it is tried again. */
void vault_link_step(struct sbxd *d);

/* A sandbox was removed: removes the credentials that were only for it. */
void vault_link_sweep(struct sbxd *d);
bool vault_link_is_sweeping(struct sbxd *d);

void vault_link_on_listen(struct sbxd *d);
void vault_link_on_event(struct sbxd *d, const struct loop_event *ev);
void vault_link_on_exit(struct sbxd *d);
void vault_link_on_timer(struct sbxd *d);
/* A keeper requests a channel to the vault: for struct keeper_ops. */
void vault_link_on_want(struct sbxd *d, struct keeper *k);
