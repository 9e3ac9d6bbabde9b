/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault_link - the keeper's channel to the vault: bindings, releases, storing of tokens.
 *
 * How      See vault_link.c.
 * Trust    Runs in the keeper. Sees messages of the vault, never a value.
 * Owns     The channel and the questions that the vault has not answered.
 * Limits   KEEPER_MAX_RELEASES, KEEPER_MAX_STORES and the times below.
 */
#pragma once

#include <assert.h>

#include "creds.h"
#include "lib/base/clock.h"
#include "lib/os/ipc/vault_chan.h"
#include "lib/os/loop/loop.h"
#include "lib/rules/gate/gate.h"

#define KEEPER_VAULT_GAP_MS 250 /* before the vault is tried again; doubled each time ... */
#define KEEPER_VAULT_MAX_GAP_MS 5000
#define KEEPER_VAULT_MS clock_limit_ms(10000) /* for HELLO (sbxd starts the vault) and for LIST */
#define KEEPER_VAULT_RELIST_MS 1000	      /* while the vault is not open yet */
#define KEEPER_RELEASE_MS 35000		      /* a program that fetches the value has 30 s */
#define KEEPER_MAX_RELEASES (32 * ORIGIN_N_WHICH)
#define KEEPER_STORE_MS 15000
/* Tokens being sent to the vault. A LIST may wait behind all of them, at the vault's rate. */
#define KEEPER_MAX_STORES 32
static_assert(KEEPER_MAX_STORES * 1000 / VAULT_STORE_PER_S < 10000, "within KEEPER_VAULT_MS");

struct keeper;
struct origin;

/* An unanswered RELEASE. */
struct release {
	uint32_t id; /* of the message; 0: free */
	uint32_t gen;
	uint32_t origin, origin_gen;
	enum origin_which which;
	uint32_t login; /* the exchange whose login this is, and no origin's value; 0: none */
	struct loop_timer timer;
};

/* A STORE for an origin: until the vault has answered, and then until the bindings have it. */
struct store {
	uint32_t id; /* of the message; 0: free */
	uint32_t gen;
	uint32_t origin, origin_gen;
	uint32_t token; /* origin's number of TOKENS */
	char name[VAULT_MAX_NAME];
	bool is_kept;
	struct loop_timer timer;
};

struct vault_link {
	int sock; /* -1: away */
	enum vault_phase phase;
	uint32_t gen;
	uint32_t last_id;
	uint32_t list_id; /* 0: no LIST is under way */
	bool is_listed;	  /* creds is from a list of the vault */
	bool is_current;  /* by this connection */
	bool is_dirty;	  /* CHANGED arrived during a LIST */
	unsigned tries;
	struct vault_item *items, *known; /* of the LIST under way, and of the last one */
	size_t n_items, n_known;
	char fault[VAULT_MAX_TEXT]; /* why the vault could not list */
	struct release releases[KEEPER_MAX_RELEASES];
	struct store stores[KEEPER_MAX_STORES];
	bool no_logins, all; /* credentials.oauth is false, credentials.intercept */
	char *own_services;  /* a list of lib/secret/service/own.h; NULL: not read yet */
	struct loop_timer timer;
};

void vault_init(struct keeper *k);
bool vault_is_live(const struct keeper *k, struct loop_key key);
bool release_is_live(const struct keeper *k, struct loop_key key);
bool store_is_live(const struct keeper *k, struct loop_key key);
/* Requests a channel from sbxd until one arrives. */
void vault_start(struct keeper *k);
/* Takes fd. */
int vault_take_channel(struct keeper *k, int fd) MUST_CHECK;
void vault_on_event(struct keeper *k);
void vault_on_timer(struct keeper *k);
void vault_on_release_timeout(struct keeper *k, const struct loop_event *ev);
void vault_stop(struct keeper *k);
/* Returns the facts about credentials for an ask; the texts are valid until the next event. */
struct gate_binding vault_look(struct keeper *k, const struct edge_ask *ask);
/* Requests the value for the stream, which stays the caller's; origins_on_released follows. */
int vault_release(struct keeper *k, const struct origin *o, enum origin_which which, int stream,
	struct err *err) MUST_CHECK;
/* Requests the login of the upstream proxy for the connection of an exchange (not 0), which stays
 * the caller's; on_logged of egress_ops follows. */
int vault_login(struct keeper *k, uint32_t exchange, int connection, struct err *err) MUST_CHECK;
void vault_on_store_timeout(struct keeper *k, const struct loop_event *ev);
/* Stores the token whose frame is in the pipe; the caller keeps the pipe. tokens_on_stored follows
 * when the bindings have the token. */
int vault_store(struct keeper *k, const struct origin *o, enum origin_which which, uint32_t token,
	int pipe, struct err *err) MUST_CHECK;
/* Returns the number of unanswered requests of this origin. */
size_t vault_count_stores(const struct keeper *k, const struct origin *o);
/* Applies credentials.oauth and credentials.intercept and reads the services of `sbx secret own`
 * again. Takes effect immediately. */
void vault_set_rules(struct keeper *k, bool logins, bool all);
/* The origin has exited: its releases are dropped. */
void vault_forget(struct keeper *k, uint32_t origin, uint32_t origin_gen);
